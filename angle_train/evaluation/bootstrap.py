"""Paired bootstrap over items: intervals for a statistic and for the difference of two.

Items (pairs, texts, queries) are drawn with replacement. Rank statistics are ranked anew, ties by their
mean rank, in every resample: exact, but without sorting. A value's rank in a resample follows from how
often the values below it were drawn, so one sort of the data and cumulative counts give the ranks of all
resamples at once. Large sets get fewer resamples: their intervals are narrow, and drawing takes long.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluation.statistics import Statistic

RESAMPLES = 10_000
_MOST_CELLS = 200_000_000  # resamples × items: a minute or so for each column of similarities
_FEWEST = 1_000  # below that the ends of a 95 % interval are themselves a matter of chance
_PERCENTILES = (2.5, 97.5)
_CELLS_AT_ONCE = 50_000  # resamples × items worked on together; small enough for the processor's cache
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A statistic, such as a Spearman correlation in [-1, 1], and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """After minus before, over resamples of the items.

    Attributes:
        delta: The difference on all items.
        low, high: Its 95 % interval.
    """

    delta: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`better` or `worse` where the interval lies on one side of 0, else `no reliable difference`."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no reliable difference"


def resamples_for(count: int) -> int:
    """Return how many resamples a set of `count` items gets: 10,000, fewer beyond 20,000 items."""
    return min(RESAMPLES, max(_FEWEST, _MOST_CELLS // count))


def interval_around(value: float, drawn: Array) -> Interval:
    """Return a statistic's value with the percentile interval of its resampled values (R,).

    Resamples that say nothing, NaN, are left out.
    """
    low, high = np.nanpercentile(drawn, _PERCENTILES)
    return Interval(value, float(low), float(high))


def difference_between(delta: float, before: Array, after: Array) -> Difference:
    """Return a difference with the interval of the resampled ones; both (R,), from the same resamples.

    Resamples that say nothing, NaN, are left out.
    """
    difference = after - before
    difference = difference[~np.isnan(difference)]
    low, high = np.percentile(difference, _PERCENTILES)
    return Difference(delta, float(low), float(high))


def draw(
    statistics: Sequence[Statistic],
    resamples: int = RESAMPLES,
    seed: int = 0,
    groups: Sequence[str] | None = None,
) -> list[Array]:
    """Return for every statistic its values (resamples,) in the same resamples of the same n items.

    Args:
        statistics: At least one, all of the same items in the same order.
        resamples: How many.
        seed: Decides which; the same for the same number of items.
        groups: Key (n,) of the group that each item belongs to; groups are drawn then, with all their items.
    """
    results: list[list[Array]] = [[] for _ in statistics]
    group = np.arange(statistics[0].size) if groups is None else np.unique(groups, return_inverse=True)[1]
    for drawn in _draws(int(group.max()) + 1, resamples, seed):
        counts = drawn[:, group]
        for result, statistic in zip(results, statistics, strict=True):
            result.append(statistic.resampled(counts))
    return [np.concatenate(result) for result in results]


def _draws(n: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield blocks (R, n) of how often each of n items was drawn in n draws."""
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
