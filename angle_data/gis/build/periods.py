"""Splits by time: a stretch of time for each split, such that every pair lies in one of them whole.

A cluster belongs to the period of its latest issue. A pair of it that reaches back over the border is left
out; the borders are placed so that the pairs that remain come near the shares. Knows times, not texts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

_PLACES = 60
_START, _END = "", "~"  # before and after every time stamp


@dataclass(frozen=True, slots=True)
class Periods:
    """The splits from the oldest to the youngest, and the last moment of each; the last one's is open."""

    splits: tuple[str, ...]
    borders: tuple[str, ...]

    def split_of(self, created_at: str) -> str:
        """Return the split in whose period a time lies."""
        return self.splits[bisect_left(self.borders, created_at)]


def find_periods(pairs: Iterable[tuple[str, str]], shares: Mapping[str, float]) -> Periods:
    """Return the periods that come nearest to `shares`, the splits in that order.

    A pair is given by when its older issue was opened, and when the youngest issue of its cluster was.
    Nearest: the largest miss in whole percent is the smallest; then more pairs remain.
    """
    known = sorted(pairs, key=lambda pair: pair[1])
    names = tuple(shares)
    places = _spread(sorted({latest for _, latest in known}))
    if len(places) < len(names):
        return Periods(names[: len(places)], tuple(places[:-1]))
    counts = {
        low: _Kept([latest for oldest, latest in known if oldest > low]) for low in (_START, *places[:-1])
    }

    def miss(borders: tuple[str, ...]) -> tuple[int, int]:
        kept = [counts[low].until(high) for low, high in pairwise((_START, *borders, _END))]
        total = max(sum(kept), 1)
        worst = max(abs(count / total - share) for count, share in zip(kept, shares.values(), strict=True))
        return round(100 * worst), -total

    return Periods(names, min(combinations(places[:-1], len(names) - 1), key=miss))


@dataclass(frozen=True, slots=True)
class _Kept:
    """The pairs that begin after a border, by the time that ends their cluster, in order."""

    latest: Sequence[str]

    def until(self, high: str) -> int:
        """How many lie whole before `high`, or at it."""
        return bisect_right(self.latest, high)


def _spread(times: Sequence[str]) -> list[str]:
    """Return the times, or as many of them as are tried, evenly spread; the last is among them."""
    if len(times) <= _PLACES:
        return list(times)
    return [times[(i + 1) * len(times) // _PLACES - 1] for i in range(_PLACES)]
