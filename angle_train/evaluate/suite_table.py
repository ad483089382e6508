"""Scores of tasks as a plain text table; figures are multiplied by 100 here and nowhere before."""

from __future__ import annotations

from collections.abc import Sequence

from angle_train.evaluate.bootstrap import Difference
from angle_train.evaluate.scores import Score

COLUMNS = ("task", "n", "figure", "model", "x 100", "95 %", "difference", "95 %", "verdict")
NUMBERS = (1, 4, 5, 6, 7)


def suite_table(scores: Sequence[Score]) -> str:
    """Return an aligned table, one line per figure and model, with a note on what the numbers are.

    A task whose set is not of the published size is marked with `*`. Systems of several seeds have their
    standard deviation, and the p-value of the test over seeds behind the verdict.
    """
    lines = aligned(COLUMNS, [cells(score) for score in scores], NUMBERS)
    baseline = next((score.baseline for score in scores if score.baseline), None)
    note = f"; differences to {baseline}, paired" if baseline else ""
    lines.append(f"95 % bootstrap intervals over items{note}.")
    lines += seed_notes(scores)
    if any(score.standard is False for score in scores):
        lines.append("* not of the published size: not comparable with published figures.")
    return "\n".join(lines)


def cells(score: Score) -> tuple[str, ...]:
    """Return the texts of one row, in the order of `COLUMNS`."""
    spread = "" if score.spread is None else f" ± {100 * score.spread:.1f}"
    row = (
        score.task + ("*" if score.standard is False else ""),
        str(score.count),
        score.metric,
        score.system,
        f"{100 * score.score.value:.1f}{spread}",
        f"[{100 * score.score.low:.1f}, {100 * score.score.high:.1f}]",
    )
    p_value = score.seed_test.p_value if score.seed_test else None
    delta, interval, verdict = difference_cells(score.difference)
    if score.difference and score.difference.seeds_agree is False and score.difference.decided:
        verdict += " over seeds"
    return (*row, delta, interval, verdict + ("" if p_value is None else f", p = {p_value:.3g}"))


def seed_notes(scores: Sequence[Score]) -> list[str]:
    """Return sentences that say how systems of several seeds are judged; none where there are none."""
    notes = []
    if any(score.spread is not None for score in scores):
        notes.append("± standard deviation over seeds.")
    kinds = {score.seed_test.kind for score in scores if score.seed_test}
    if kinds:
        tests = {"paired": "paired t-test", "unpaired": "Welch's t-test, as the seeds are not the same"}
        named = "; ".join(text for kind, text in tests.items() if kind in kinds)
        notes.append(f"p: over seeds, {named}. Better, worse: over items and over seeds, each at 95 %.")
    return notes


def difference_cells(difference: Difference | None) -> tuple[str, str, str]:
    """Return the texts of a paired difference, its interval and its verdict; empty without one."""
    if difference is None:
        return "", "", ""
    interval = f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return f"{100 * difference.delta:+.1f}", interval, difference.verdict


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> list[str]:
    """Return the lines of a table: the names of its columns, a rule, the rows.

    Args:
        columns: Names of the columns.
        rows: Texts of each row, one a column.
        numbers: Positions of the columns that are aligned to the right.
    """
    table = [columns, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    lines = [
        "  ".join(
            text.rjust(width) if i in numbers else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
