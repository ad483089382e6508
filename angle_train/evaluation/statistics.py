"""Numbers that follow from n scored items, of the whole set and of any resample of it.

A resample is a row of counts: how often each item was drawn. Every statistic handles many resamples at
once, without drawing rows of data, so that `bootstrap` can give an interval for all of them. Where a
resample lacks the items that a statistic needs, it is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluation.similarity import spearman

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Statistic(Protocol):
    """A number that follows from n items."""

    @property
    def size(self) -> int:
        """How many items n."""
        ...

    def value(self) -> float:
        """Return the number over all items."""
        ...

    def resampled(self, counts: Array) -> Array:
        """Return the number (R,) in each of R resamples, for counts (R, n) of the items in it.

        NaN where the resample says nothing.
        """
        ...


class Ranked:
    """One column (n,), sorted once, that gives its ranks in any resample."""

    def __init__(self, values: Array) -> None:
        self._order = np.argsort(values, kind="stable")
        _, self._group, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._last: tuple[Array, Array] | None = None

    def drawn(self, counts: Array) -> Array:
        """Return how many drawn items (R, G) have each of the G distinct values, from the lowest value up."""
        result: Array = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        return result

    def centred_ranks(self, counts: Array) -> Array:
        """Return mid-ranks (R, n) minus their mean, for counts (R, n); rows not drawn get one too.

        The last answer is kept: statistics of several models share the ranks of their gold scores.
        """
        if self._last is None or self._last[0] is not counts:
            drawn = self.drawn(counts)
            below = np.cumsum(drawn, axis=1) - drawn
            middle = (drawn.sum(axis=1, keepdims=True) + 1) / 2
            ranks: Array = (below + (drawn + 1) / 2)[:, self._group] - middle
            self._last = (counts, ranks)
        return self._last[1]


class SpearmanOf:
    """Spearman's rank correlation of gold scores (n,) and similarities (n,), ties by their mean rank.

    `ranked_gold` is the gold scores' `Ranked` where several models share it; default made here.
    """

    def __init__(self, gold: Array, similarity: Array, ranked_gold: Ranked | None = None) -> None:
        self._gold, self._similarity = np.asarray(gold), np.asarray(similarity)
        self._ranked = (ranked_gold or Ranked(self._gold), Ranked(self._similarity))

    @property
    def size(self) -> int:
        """How many pairs."""
        return len(self._gold)

    def value(self) -> float:
        """Return the correlation in [-1, 1]; 0 where one side is constant."""
        return spearman(self._gold, self._similarity)

    def resampled(self, counts: Array) -> Array:
        """Return the correlation (R,) in each resample; 0 where one side is constant."""
        x, y = (ranked.centred_ranks(counts) for ranked in self._ranked)
        covariance, *variances = (np.einsum("rn,rn,rn->r", counts, *two) for two in ((x, y), (x, x), (y, y)))
        variance = variances[0] * variances[1]
        return _ratio(covariance, np.sqrt(variance), 0.0)


@dataclass(frozen=True, slots=True)
class MeanOf:
    """The weighted mean of one value per item: accuracy (0 or 1 each), recall, reciprocal rank.

    Attributes:
        values: (n,).
        weights: (n,), positive; default all equal. The mean of the accuracies of k folds gives each item
            1 / (size of its fold).
    """

    values: Array
    weights: Array | None = None

    @property
    def size(self) -> int:
        """How many items."""
        return len(self.values)

    def value(self) -> float:
        """Return the mean."""
        return float(np.average(self.values, weights=self.weights))

    def resampled(self, counts: Array) -> Array:
        """Return the mean (R,) over the drawn items."""
        weights = np.ones(self.size) if self.weights is None else self.weights
        result: Array = (counts @ (weights * self.values)) / (counts @ weights)
        return result


class _OfKinds:
    """A number that follows from n items of two kinds: gold labels (n,), and what was said of each (n,)."""

    def __init__(self, gold: Bools, said: NDArray[Any]) -> None:
        self._gold, self._said = np.asarray(gold, dtype=np.float64), np.asarray(said)
        self._ranked = Ranked(self._said)

    @property
    def size(self) -> int:
        """How many items."""
        return len(self._gold)

    def value(self) -> float:
        """Return the number over all items."""
        return float(self.resampled(np.ones((1, self.size)))[0])

    def resampled(self, counts: Array) -> Array:
        """Return the number (R,) in each resample; NaN where it lacks the items to measure by."""
        positive = self._ranked.drawn(counts * self._gold)
        return self._from_groups(positive, self._ranked.drawn(counts) - positive)

    def _from_groups(self, positive: Array, negative: Array) -> Array:
        """Return the number (R,) from positives and negatives (R, G) by distinct value, lowest first.

        For figures that have no `resampled` of their own.
        """
        raise NotImplementedError


class FScore(_OfKinds):
    """F1 of the positive class, 2·TP / (2·TP + FP + FN), from whether each item was said to be positive (n,).

    0 where nothing is positive and nothing was said to be.
    """

    def resampled(self, counts: Array) -> Array:
        """Return F1 (R,) over the drawn items."""
        hits, called = counts @ (self._gold * self._said), counts @ self._said.astype(np.float64)
        return _ratio(2 * hits, called + counts @ self._gold, 0.0)


class AreaUnderCurve(_OfKinds):
    """Area under the ROC curve: the chance that a positive item scores above a negative one, ties half."""

    def _from_groups(self, positive: Array, negative: Array) -> Array:
        below = np.cumsum(negative, axis=1) - negative
        won = (positive * (below + negative / 2)).sum(axis=1)
        return _ratio(won, positive.sum(axis=1) * negative.sum(axis=1), np.nan)


class AveragePrecision(_OfKinds):
    """Average precision: mean precision at each step of recall, from the highest score down."""

    def _from_groups(self, positive: Array, negative: Array) -> Array:
        hits = np.cumsum(positive[:, ::-1], axis=1)
        precision = _ratio(hits, hits + np.cumsum(negative[:, ::-1], axis=1), 0.0)
        return _ratio((positive[:, ::-1] * precision).sum(axis=1), hits[:, -1], np.nan)


def _ratio(above: Array, below: Array, otherwise: float) -> Array:
    """Return `above / below`, or `otherwise` where `below` is 0."""
    result: Array = np.full_like(above, otherwise)
    np.divide(above, below, out=result, where=below > 0)
    return result
