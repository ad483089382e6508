"""Paired bootstrap over items: intervals for a statistic and for the difference of two.

Items (pairs, texts, queries) are drawn with replacement. Rank statistics are ranked anew, ties by their
mean rank, in every resample: exact, but without sorting. A value's rank in a resample follows from how
often the values below it were drawn, so one sort of the data and cumulative counts give the ranks of all
resamples at once.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.statistics import Ranked, SpearmanOf, Statistic

__all__ = [
    "Difference",
    "Interval",
    "bootstrap_interval",
    "difference_between",
    "draw",
    "interval_around",
    "paired_bootstrap",
]

RESAMPLES = 10_000
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
    """After minus before, its 95 % interval, and the share of resamples where it is not above 0."""

    delta: float
    low: float
    high: float
    p_not_better: float

    @property
    def verdict(self) -> str:
        """`better` or `worse` where the interval lies on one side of 0, else `no reliable difference`."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "no reliable difference"


def bootstrap_interval(gold: Array, similarity: Array, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Return the Spearman correlation of two columns (B,) with its 95 % interval."""
    statistic = SpearmanOf(gold, similarity)
    (drawn,) = draw([statistic], resamples, seed)
    return interval_around(statistic.value(), drawn)


def paired_bootstrap(
    gold: Array, before: Array, after: Array, resamples: int = RESAMPLES, seed: int = 0
) -> Difference:
    """Return how much better `after` ranks the pairs than `before`, both measured on the same resamples.

    Args:
        gold: Gold scores (B,).
        before: Similarities (B,) under the one model.
        after: Similarities (B,) under the other.
        resamples: How many.
        seed: Decides which.
    """
    ranked = Ranked(np.asarray(gold))
    old, new = SpearmanOf(gold, before, ranked), SpearmanOf(gold, after, ranked)
    drawn_old, drawn_new = draw([old, new], resamples, seed)
    return difference_between(new.value() - old.value(), drawn_old, drawn_new)


def interval_around(value: float, drawn: Array) -> Interval:
    """Return a statistic's value with the percentile interval of its resampled values (R,)."""
    low, high = np.percentile(drawn, _PERCENTILES)
    return Interval(value, float(low), float(high))


def difference_between(delta: float, before: Array, after: Array) -> Difference:
    """Return a difference with the interval of the resampled ones; both (R,), from the same resamples."""
    difference = after - before
    low, high = np.percentile(difference, _PERCENTILES)
    return Difference(delta, float(low), float(high), p_not_better=float((difference <= 0).mean()))


def draw(statistics: Sequence[Statistic], resamples: int = RESAMPLES, seed: int = 0) -> list[Array]:
    """Return for every statistic its values (resamples,) in the same resamples of the same n items.

    Args:
        statistics: At least one, all of the same items in the same order.
        resamples: How many.
        seed: Decides which; the same for the same number of items.
    """
    results: list[list[Array]] = [[] for _ in statistics]
    for counts in _draws(statistics[0].size, resamples, seed):
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
