"""How far two people agree who graded the same pairs: what any model can be expected to reach at most."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from angle_data.errors import InputError
from angle_data.look.grade import graded_pairs
from angle_data.text import counted, pair_key

FEWEST = 10
"""Pairs that both graded: fewer say nothing of how far they agree."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the grades of two people on the same pairs come to.

    Attributes:
        pairs: Pairs that both graded.
        spearman: Rank correlation of their grades, -1 to 1; None where one of them gave a single grade.
        apart: Mean distance of their grades.
        near: Share (0..1) of pairs on which they are at most one grade apart.
        farthest: The pairs on which they are farthest apart, by at least 2: both texts and both grades.
    """

    pairs: int
    spearman: float | None
    apart: float
    near: float
    farthest: Sequence[tuple[str, str, float, float]]

    def __str__(self) -> str:
        """Show it to people."""
        known = (
            "unknown, for all grades of one are equal" if self.spearman is None else f"{self.spearman:.2f}"
        )
        lines = [
            f"both     graded {counted(self.pairs, 'pair')}: Spearman {known}, {self.apart:.1f} apart on "
            f"average, {100 * self.near:.0f} % at most one apart",
            "         Expect of no model to follow one person's grades better than another person does.",
        ]
        for one, other, first, second in self.farthest:
            lines.append(f"differ   {first:g} and {second:g}: {one} | {other}")
        return "\n".join(lines)


def agreement_of(sheet: Path, second: Path) -> Agreement:
    """Return how far two filled sheets agree; a pair is the same in either order of its texts.

    Raises:
        InputError: A sheet cannot be read, or fewer than `FEWEST` pairs are graded in both.
    """
    first = _grades(sheet)
    other = _grades(second)
    both = [(*first[key], other[key][2]) for key in first if key in other]
    if len(both) < FEWEST:
        raise InputError(
            f"--second {second}: {counted(len(both), 'pair')} of {sheet} graded there too; at least {FEWEST} "
            "are needed: let the second person grade a copy of the sheet"
        )
    distances = [abs(one - two) for *_, one, two in both]
    farthest = sorted(both, key=lambda row: (-abs(row[2] - row[3]), row[:2]))[:_SHOWN]
    return Agreement(
        len(both),
        _spearman([row[2] for row in both], [row[3] for row in both]),
        statistics.fmean(distances),
        sum(distance <= 1 for distance in distances) / len(both),
        [row for row in farthest if abs(row[2] - row[3]) >= 2],
    )


def _grades(sheet: Path) -> dict[tuple[str, str], tuple[str, str, float]]:
    """Return the graded pairs of a sheet by what a pair is in either order: both texts and the grade."""
    rows = (row for split in graded_pairs(sheet).values() for row in split)
    return {pair_key(one, other): (one, other, float(grade)) for one, other, grade in rows}


def _spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of ranks, where equal grades share their mean rank."""
    try:
        return statistics.correlation(_ranks(first), _ranks(second))
    except statistics.StatisticsError:  # all alike
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    return [first[value] + (ordered.count(value) - 1) / 2 for value in values]
