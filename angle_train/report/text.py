"""Results as a plain text table and as sentences; correlations are multiplied by 100 here and not before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from angle_train.evaluate.bootstrap import Difference
from angle_train.evaluate.compare import SPEARMAN, Result

_OPENINGS = {
    "better": "tuning helped on",
    "no reliable difference": "no reliable difference on",
    "worse": "tuning hurt on",
}
_TESTS = {"paired": "paired t-test", "unpaired": "Welch's t-test, as the seeds are not the same"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of results: names of the columns, texts of the rows, and which columns hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int]


def table_of(results: Sequence[Result], *, roles: bool = False) -> Table:
    """Return a row for every result; correlations with gold scores alone need no column that names them.

    Sets that are not of the published size are marked with `*`. Those of several seeds have their standard
    deviation, and the p-value of the test over seeds behind the verdict.

    Args:
        results: Set by set.
        roles: Whether a column says what each set was used for; else it stands behind the names of sets
            that have one name.
    """
    alone = all(result.metric == SPEARMAN for result in results)
    sets = {(result.pairs, result.role) for result in results}
    twice = {pairs for pairs, count in Counter(pairs for pairs, _ in sets).items() if count > 1}
    columns = ["pairs" if alone else "task", *(["role"] if roles else []), "n"]
    columns += ["model", "Spearman"] if alone else ["figure", "model", "x 100"]
    rows = []
    for result in results:
        name = result.pairs + ("*" if result.standard_size is False else "")
        role = f" ({result.role})" if result.pairs in twice and not roles else ""
        rows.append(
            [
                name + role,
                *([result.role] if roles else []),
                str(result.count),
                *([] if alone else [result.metric]),
                result.model,
                f"{100 * result.score.value:.1f}"
                + ("" if result.spread is None else f" ± {100 * result.spread:.1f}"),
                f"[{100 * result.score.low:.1f}, {100 * result.score.high:.1f}]",
                *difference_cells(result.difference)[:2],
                _verdict(result),
            ]
        )
    first = len(columns) - 1
    numbers = [columns.index("n"), *range(first, first + 4)]
    return Table([*columns, "95 %", "difference", "95 %", "verdict"], rows, numbers)


def _verdict(result: Result) -> str:
    """Return the verdict of a result, and what seeds say of it; empty where it is compared with nothing."""
    if result.difference is None:
        return ""
    p_value = result.seed_test.p_value if result.seed_test else None
    verdict = result.difference.verdict + seeds_note(result.difference)
    return verdict + ("" if p_value is None else f", p = {p_value:.3g}")


def seeds_note(difference: Difference) -> str:
    """Return what to say where the items decide and the seeds do not agree; else nothing."""
    return " over seeds" if difference.decided and difference.seeds_agree is False else ""


def notes_on(results: Sequence[Result]) -> list[str]:
    """Return sentences on seeds and on sizes of sets, where results have them."""
    notes = []
    if any(result.spread is not None for result in results):
        notes.append("± standard deviation over seeds.")
    kinds = {result.seed_test.kind for result in results if result.seed_test}
    if kinds:
        named = "; ".join(text for kind, text in _TESTS.items() if kind in kinds)
        notes.append(f"p: over seeds, {named}. Better, worse: over items and over seeds, each at 95 %.")
    if any(result.standard_size is False for result in results):
        notes.append("* not of the published size: not comparable with published figures.")
    return notes


def results_table(results: Sequence[Result]) -> str:
    """Return an aligned table, one line per result, with notes on what the numbers are."""
    made = table_of(results)
    table = [made.columns, *made.rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(made.columns))]
    lines = [
        "  ".join(
            text.rjust(width) if i in made.numbers else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    baselines = sorted({result.baseline for result in results if result.baseline})
    paired = f"; differences to {', '.join(baselines)}, paired" if baselines else ""
    alone = all(result.metric == SPEARMAN for result in results)
    what = (
        "Spearman x 100, 95 % bootstrap intervals over pairs"
        if alone
        else "95 % bootstrap intervals over items"
    )
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:], f"{what}{paired}.", *notes_on(results)])


def verdict_sentence(pairs: str, difference: Difference) -> str:
    """Return what a paired difference says about tuning, such as `tuning helped on X: +3.1 [+1.0, +5.2]`."""
    delta, interval, verdict = difference_cells(difference)
    return f"{_OPENINGS[verdict]} {pairs}: {delta} {interval}"


def difference_cells(difference: Difference | None) -> tuple[str, str, str]:
    """Return the texts of a paired difference, its interval and its verdict; empty without one."""
    if difference is None:
        return "", "", ""
    interval = f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return f"{100 * difference.delta:+.1f}", interval, difference.verdict
