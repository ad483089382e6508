"""Scores of tasks as a plain text table; figures are multiplied by 100 here and nowhere before."""

from __future__ import annotations

from collections.abc import Sequence

from angle_train.evaluate.scores import Score

__all__ = ["COLUMNS", "NUMBERS", "cells", "suite_table"]

COLUMNS = ("task", "n", "figure", "model", "x 100", "95 %", "difference", "95 %", "verdict")
NUMBERS = (1, 4, 5, 6, 7)


def suite_table(scores: Sequence[Score]) -> str:
    """Return an aligned table, one line per figure and model, with a note on what the numbers are.

    A task whose set is not of the published size is marked with `*`. Systems of several seeds have their
    standard deviation, and the p-value of the paired test over seeds behind the verdict.
    """
    rows = [COLUMNS, *(cells(score) for score in scores)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(
            text.rjust(width) if i in NUMBERS else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    baseline = next((score.baseline for score in scores if score.baseline), None)
    note = f"; differences to {baseline}, paired" if baseline else ""
    lines.append(f"95 % bootstrap intervals over items{note}.")
    if any(score.spread is not None for score in scores):
        lines.append("± standard deviation over seeds; p: paired t-test over seeds.")
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
    difference = score.difference
    if difference is None:
        return (*row, "", "", "")
    p_value = score.seed_test.p_value if score.seed_test else None
    return (
        *row,
        f"{100 * difference.delta:+.1f}",
        f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]",
        difference.verdict + ("" if p_value is None else f", p = {p_value:.3g}"),
    )
