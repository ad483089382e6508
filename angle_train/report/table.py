"""Results as a plain text table and as sentences; here, at last, correlations are multiplied by 100."""

from __future__ import annotations

from collections.abc import Sequence

from angle_train.evaluate.bootstrap import Difference
from angle_train.evaluate.compare import Result

__all__ = ["COLUMNS", "NUMBERS", "cells", "results_table", "verdict_sentence"]

COLUMNS = ("pairs", "n", "model", "Spearman", "95 %", "difference", "95 %", "verdict")
NUMBERS = (1, 3, 4, 5, 6)  # positions of the columns that are aligned to the right

_OPENINGS = {
    "better": "tuning helped on",
    "no reliable difference": "no reliable difference on",
    "worse": "tuning hurt on",
}


def cells(result: Result) -> tuple[str, ...]:
    """Return the texts of one row, in the order of `COLUMNS`."""
    score, difference = result.score, result.difference
    row = (
        result.pairs,
        str(result.count),
        result.model,
        _hundred(score.value),
        _range(score.low, score.high),
    )
    if difference is None:
        return (*row, "", "", "")
    return (
        *row,
        f"{100 * difference.delta:+.1f}",
        f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]",
        difference.verdict,
    )


def results_table(results: Sequence[Result]) -> str:
    """Return an aligned table, one line per result, with a note on what the numbers are."""
    rows = [COLUMNS, *(cells(result) for result in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(
            text.rjust(width) if i in NUMBERS else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    baselines = sorted({result.baseline for result in results if result.baseline})
    note = f"; differences to {', '.join(baselines)}, paired" if baselines else ""
    return "\n".join([*lines, f"Spearman x 100, 95 % bootstrap intervals over pairs{note}."])


def verdict_sentence(pairs: str, difference: Difference) -> str:
    """Return what a paired difference says about tuning, such as `tuning helped on X: +3.1 [+1.0, +5.2]`."""
    interval = f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return f"{_OPENINGS[difference.verdict]} {pairs}: {100 * difference.delta:+.1f} {interval}"


def _hundred(value: float) -> str:
    return f"{100 * value:.1f}"


def _range(low: float, high: float) -> str:
    return f"[{_hundred(low)}, {_hundred(high)}]"
