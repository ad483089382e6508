"""Results as a plain text table and as sentences; here, at last, correlations are multiplied by 100."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from angle_train.evaluate.bootstrap import Difference
from angle_train.evaluate.compare import Result
from angle_train.evaluate.suite_table import aligned, difference_cells

COLUMNS = ("pairs", "n", "model", "Spearman", "95 %", "difference", "95 %", "verdict")
NUMBERS = (1, 3, 4, 5, 6)  # positions of the columns that are aligned to the right

_OPENINGS = {
    "better": "tuning helped on",
    "no reliable difference": "no reliable difference on",
    "worse": "tuning hurt on",
}


def cells(result: Result) -> tuple[str, ...]:
    """Return the texts of one row, in the order of `COLUMNS`."""
    score = result.score
    return (
        result.pairs,
        str(result.count),
        result.model,
        f"{100 * score.value:.1f}",
        f"[{100 * score.low:.1f}, {100 * score.high:.1f}]",
        *difference_cells(result.difference),
    )


def results_table(results: Sequence[Result]) -> str:
    """Return an aligned table, one line per result, with a note on what the numbers are.

    Sets of one name are told apart by what they were used for.
    """
    roles = {(result.pairs, result.role) for result in results}
    twice = {pairs for pairs, count in Counter(pairs for pairs, _ in roles).items() if count > 1}
    rows = [
        (f"{result.pairs} ({result.role})" if result.pairs in twice else result.pairs, *cells(result)[1:])
        for result in results
    ]
    lines = aligned(COLUMNS, rows, NUMBERS)
    baselines = sorted({result.baseline for result in results if result.baseline})
    note = f"; differences to {', '.join(baselines)}, paired" if baselines else ""
    return "\n".join([*lines, f"Spearman x 100, 95 % bootstrap intervals over pairs{note}."])


def verdict_sentence(pairs: str, difference: Difference) -> str:
    """Return what a paired difference says about tuning, such as `tuning helped on X: +3.1 [+1.0, +5.2]`."""
    delta, interval, verdict = difference_cells(difference)
    return f"{_OPENINGS[verdict]} {pairs}: {delta} {interval}"
