"""Paired bootstrap over pairs: intervals for a Spearman correlation and for the difference of two.

Pairs are drawn with replacement and ranked anew, ties by their mean rank, in every resample: exact, but
without sorting. A value's rank in a resample follows from how often the values below it were drawn, so
one sort of the data and cumulative counts give the ranks of all resamples at once.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.sts import spearman

__all__ = ["Difference", "Interval", "bootstrap_interval", "paired_bootstrap"]

RESAMPLES = 10_000
_PERCENTILES = (2.5, 97.5)
_CELLS_AT_ONCE = 50_000  # resamples × pairs worked on together; small enough for the processor's cache
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A Spearman correlation in [-1, 1] and its 95 % interval."""

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
    (drawn,) = _resampled(gold, [similarity], resamples, seed)
    low, high = np.percentile(drawn, _PERCENTILES)
    return Interval(spearman(gold, similarity), float(low), float(high))


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
    drawn_before, drawn_after = _resampled(gold, [before, after], resamples, seed)
    difference = drawn_after - drawn_before
    low, high = np.percentile(difference, _PERCENTILES)
    return Difference(
        delta=spearman(gold, after) - spearman(gold, before),
        low=float(low),
        high=float(high),
        p_not_better=float((difference <= 0).mean()),
    )


def _resampled(gold: Array, columns: list[Array], resamples: int, seed: int) -> list[Array]:
    """Return for every column its Spearman correlations (resamples,) with gold; 0 where one is constant."""
    results: list[list[Array]] = [[] for _ in columns]
    ranked = [_Ranked(np.asarray(column)) for column in (gold, *columns)]
    for counts in _draws(len(gold), resamples, seed):
        gold_ranks = ranked[0].centred_ranks(counts)
        for result, column in zip(results, ranked[1:], strict=True):
            ranks = column.centred_ranks(counts)
            result.append(_correlation(gold_ranks, ranks, counts))
    return [np.concatenate(result) for result in results]


def _draws(n: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield blocks (R, n) of how often each of n pairs was drawn in n draws."""
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


class _Ranked:
    """One column (n,), sorted once, that gives its ranks in any resample."""

    def __init__(self, values: Array) -> None:
        self._order = np.argsort(values, kind="stable")
        _, self._group, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def centred_ranks(self, counts: Array) -> Array:
        """Return mid-ranks (R, n) minus their mean, for counts (R, n); rows not drawn get one too."""
        drawn = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        below = np.cumsum(drawn, axis=1) - drawn
        ranks: Array = (below + (drawn + 1) / 2)[:, self._group] - (counts.shape[1] + 1) / 2
        return ranks


def _correlation(x: Array, y: Array, counts: Array) -> Array:
    """Return the correlation (R,) of centred columns (R, n) weighted by counts."""
    weighted = counts * x
    covariance = (weighted * y).sum(axis=1)
    variance = (weighted * x).sum(axis=1) * (counts * y * y).sum(axis=1)
    result: Array = np.zeros_like(covariance)
    np.divide(covariance, np.sqrt(variance), out=result, where=variance > 0)
    return result
