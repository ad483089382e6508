"""Numbers that follow from n scored items, and their intervals by the paired bootstrap.

Items (pairs, texts, queries) are drawn with replacement. A resample is a row of counts: how often each item
was drawn. Every statistic handles many resamples at once, without drawing rows of data; where a resample
lacks the items that it needs, it is NaN, or 0 for a rank correlation, which then ranks nothing. Rank
statistics are ranked anew, ties by their mean rank, in every resample: exact, but without sorting. A value's
rank in a resample follows from how often the values below it were drawn, so one sort of the data and
cumulative counts give the ranks of all resamples at once. Large sets get fewer resamples: their intervals are
narrow, and drawing takes long. Correlations are in [-1, 1] here; only reports and tables multiply by 100.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_MOST_CELLS = 200_000_000  # resamples × items: a minute or so for each column of similarities
_FEWEST = 1_000  # below that the ends of a 95 % interval are themselves a matter of chance
_PERCENTILES = (2.5, 97.5)
_CELLS_AT_ONCE = 50_000  # resamples × items worked on together; small enough for the processor's cache
Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number that follows from `size` items n.

    `resampled` gives it (R,) in each of R resamples, for counts (R, n) of the items in it; NaN where the
    resample says nothing. `pull` gives how far each item (n,) moves it, drawn once more than it is there: its
    derivative by the counts, where each is 1, which is the empirical influence function divided by n; 0 where
    all items say nothing.
    """

    size: int
    resampled: Callable[[Array], Array]
    pull: Callable[[], Array]

    def value(self) -> float:
        """Return the number over all items."""
        return float(self.resampled(np.ones((1, self.size)))[0])


class Part:
    """Some of `size` items, at `positions`, that statistics can be about."""

    def __init__(self, positions: NDArray[np.int64], size: int) -> None:
        self._positions, self._size = positions, size
        self._last: tuple[Array, Array] | None = None

    def lift(self, statistic: Statistic) -> Statistic:
        """Return a statistic of these items as one of all items."""

        def pull() -> Array:
            every = np.zeros(self._size)  # the other items have none
            every[self._positions] = statistic.pull()
            return every

        return Statistic(self._size, lambda counts: statistic.resampled(self._among(counts)), pull)

    def _among(self, counts: Array) -> Array:
        """Return the counts of these items; the last are kept, for `Ranked` to know them again."""
        if self._last is None or self._last[0] is not counts:
            self._last = (counts, counts[:, self._positions])
        return self._last[1]


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

    def of_each(self, values: Array) -> Array:
        """Return for each item (n,) what `values` (G,) have for its own distinct value."""
        result: Array = values[self._group]
        return result

    def not_below(self, values: Array) -> Array:
        """Return for each item (n,) the sum of values (n,) over the items above it and half of its equals.

        That is what one more draw of it adds to the sum of values times ranks, if the values' sum is 0.
        """
        equal = np.bincount(self._group, values)
        return self.of_each(np.cumsum(equal[::-1])[::-1] - equal / 2)


def spearman_of(
    gold: Sequence[float] | Array, similarity: Array, ranked_gold: Ranked | None = None
) -> Statistic:
    """Return Spearman's rank correlation in [-1, 1] of gold scores (n,) and similarities (n,).

    Ties are ranked by their mean. It is 0 where one side is constant or a similarity is not finite (a model
    that diverged): it ranks nothing. `ranked_gold` is the gold scores' `Ranked` where several models share
    it; default made here.
    """
    known = np.isfinite(similarity).all()
    both = (ranked_gold or Ranked(np.asarray(gold)), Ranked(similarity if known else np.zeros(len(gold))))

    def resampled(counts: Array) -> Array:
        x, y = (ranked.centred_ranks(counts) for ranked in both)
        covariance, *variances = (np.einsum("rn,rn,rn->r", counts, *two) for two in ((x, y), (x, x), (y, y)))
        return _ratio(covariance, np.sqrt(variances[0] * variances[1]), 0.0)

    def pull() -> Array:
        once = np.ones((1, len(gold)))
        x, y = (ranked.centred_ranks(once)[0] for ranked in both)
        if not (x.any() and y.any()):
            return np.zeros(len(gold))
        # An item counts itself, and moves the ranks of those above it.
        of_x, of_y = (ranked.not_below for ranked in both)
        covariance, x_spread, y_spread = x @ y, x @ x, y @ y
        moved = (x * y + of_x(y) + of_y(x)) / np.sqrt(x_spread * y_spread)
        spread = (x**2 + 2 * of_x(x)) / x_spread + (y**2 + 2 * of_y(y)) / y_spread
        found: Array = moved - covariance / np.sqrt(x_spread * y_spread) * spread / 2
        return found

    return Statistic(len(gold), resampled, pull)


def spearman(gold: Sequence[float] | Array, similarity: Array) -> float:
    """Return Spearman's rank correlation over all items, see `spearman_of`."""
    return spearman_of(gold, similarity).value()


def mean_of(values: Array, weights: Array | None = None) -> Statistic:
    """Return the mean of one value per item (n,), by positive weights (n,): accuracy, reciprocal rank."""
    weights = np.ones(len(values)) if weights is None else weights
    mean = (weights @ values) / weights.sum()
    return Statistic(
        len(values),
        lambda counts: (counts @ (weights * values)) / (counts @ weights),
        lambda: weights * (values - mean) / weights.sum(),
    )


def area_under_curve(gold: Bools, said: Array) -> Statistic:
    """Return the area under the ROC curve: the chance that a positive item scores above a negative one.

    Ties count half.
    """

    def area(positive: Array, negative: Array) -> Array:
        below = np.cumsum(negative, axis=1) - negative
        won = (positive * (below + negative / 2)).sum(axis=1)
        return _ratio(won, positive.sum(axis=1) * negative.sum(axis=1), np.nan)

    def moved(positive: Array, negative: Array) -> tuple[Array, Array]:
        below = (np.cumsum(negative) - negative / 2) / negative.sum()
        above = (np.cumsum(positive[::-1])[::-1] - positive / 2) / positive.sum()
        value = positive @ below / positive.sum()
        return (below - value) / positive.sum(), (above - value) / negative.sum()

    return _of_kinds(gold, said, area, moved)


def average_precision(gold: Bools, said: Array) -> Statistic:
    """Return the mean precision at each step of recall, from the highest score down."""

    def precision(positive: Array, negative: Array) -> Array:
        hits = np.cumsum(positive[:, ::-1], axis=1)
        found = _ratio(hits, hits + np.cumsum(negative[:, ::-1], axis=1), 0.0)
        return _ratio((positive[:, ::-1] * found).sum(axis=1), hits[:, -1], np.nan)

    def moved(positive: Array, negative: Array) -> tuple[Array, Array]:
        # An item counts among what was found at its own value and at each lower one.
        among = np.cumsum((positive + negative)[::-1])[::-1]
        precise = np.cumsum(positive[::-1])[::-1] / among
        found, lost = (np.cumsum(part / among) for part in (positive, positive * precise))
        value = positive @ precise / positive.sum()
        return (precise + found - lost - value) / positive.sum(), -lost / positive.sum()

    return _of_kinds(gold, said, precision, moved)


def _of_kinds(
    gold: Bools,
    said: Array,
    figure: Callable[[Array, Array], Array],
    moved: Callable[[Array, Array], tuple[Array, Array]],
) -> Statistic:
    """Return a figure of the positives and negatives (R, G) of each distinct value said, lowest first.

    `moved` gives how far one more positive, and one more negative, of each value (G,) moves it.
    """
    ranked = Ranked(said)

    def kinds(counts: Array) -> tuple[Array, Array]:
        positive = ranked.drawn(counts * gold)
        return positive, ranked.drawn(counts) - positive

    def pull() -> Array:
        if gold.all() or not gold.any():
            return np.zeros(len(gold))
        (positive,), (negative,) = kinds(np.ones((1, len(gold))))
        as_positive, as_negative = (ranked.of_each(part) for part in moved(positive, negative))
        return np.where(gold, as_positive, as_negative)

    return Statistic(len(gold), lambda counts: figure(*kinds(counts)), pull)


def _ratio(above: Array, below: Array, otherwise: float) -> Array:
    """Return `above / below`, or `otherwise` where `below` is 0."""
    result: Array = np.full_like(above, otherwise)
    np.divide(above, below, out=result, where=below > 0)
    return result


@dataclass(frozen=True, slots=True)
class Interval:
    """A statistic, such as a Spearman correlation in [-1, 1], and its 95 % interval."""

    value: float
    low: float
    high: float


UNSURE = "no reliable difference"
"""The verdict on a difference whose interval holds 0."""


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
        return "better" if self.low > 0 else "worse" if self.high < 0 else UNSURE

    @property
    def half(self) -> float:
        """Half the width of the interval: smaller differences cannot be seen."""
        return (self.high - self.low) / 2

    @property
    def none_at_all(self) -> bool:
        """Whether there is no difference in any resample: both rank the items in the same way."""
        return self.delta == self.low == self.high == 0


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of n items, and what it is in resamples of them.

    Attributes:
        value: Over all items.
        drawn: In each resample (R,).
        pull: How far each item (n,) moves it, drawn once more than it is there.
    """

    value: float
    drawn: Array
    pull: Array

    def plus(self, other: Drawn, times: float = 1.0) -> Drawn:
        """Return the sum with so many times another figure of the same resamples."""
        return Drawn(
            self.value + times * other.value,
            self.drawn + times * other.drawn,
            self.pull + times * other.pull,
        )

    def minus(self, other: Drawn, times: float = 1.0) -> Drawn:
        """Return the difference to so many times another figure of the same resamples."""
        return self.plus(other, -times)


def resamples_for(count: int) -> int:
    """Return how many resamples `count` items get: 10,000; beyond 20,000 items fewer, at least 1,000."""
    return min(RESAMPLES, max(_FEWEST, _MOST_CELLS // count))


def interval_around(value: float, drawn: Array) -> Interval:
    """Return a statistic's value with the percentile interval of its resampled values (R,).

    Resamples that say nothing, NaN, are left out.
    """
    low, high = np.nanpercentile(drawn, _PERCENTILES)
    return Interval(value, float(low), float(high))


def draw(
    statistics: Sequence[Statistic],
    resamples: int = RESAMPLES,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    apart: int | None = None,
) -> list[Array]:
    """Return for every statistic its values (resamples,) in the same resamples of the same n items.

    There is at least one, all are of the same items in the same order. `seed` decides which resamples, the
    same for the same number of items. `groups` (n,) are keys of the group that each item belongs to: groups
    are drawn then, with all their items. For `apart` see `resampled_counts`.
    """
    results: list[list[Array]] = [[] for _ in statistics]
    for counts in resampled_counts(statistics[0].size, resamples, seed, groups, apart):
        for result, statistic in zip(results, statistics, strict=True):
            result.append(statistic.resampled(counts))
    return [np.concatenate(result) for result in results]


def draw_figures(
    statistics: Sequence[Statistic], resamples: int, seed: int = 0, apart: int | None = None
) -> list[Drawn]:
    """Return every statistic of the same n items in the same resamples, see `resampled_counts`."""
    drawn = draw(statistics, resamples, seed, apart=apart)
    return [
        Drawn(statistic.value(), values, _less_its_mean(statistic.pull(), apart))
        for statistic, values in zip(statistics, drawn, strict=True)
    ]


def _less_its_mean(pull: Array, apart: int | None) -> Array:
    """Return a pull (n,) less its mean among the items that are drawn together: one more is another less."""
    parts = [part for part in np.split(pull, [apart or 0]) if len(part)]
    return np.concatenate([part - part.mean() for part in parts])


def resampled_counts(
    size: int,
    resamples: int,
    seed: int,
    groups: Sequence[str] | None = None,
    apart: int | None = None,
) -> Iterator[Array]:
    """Yield how often each of `size` items is in each resample, blocks (r, size) of `resamples` in all.

    `groups` and `seed` are those of `draw`. With `apart`, groups that hold one of the first so many items are
    drawn among themselves, and so are the others, as two strata: every resample has as many of either as the
    data. What is drawn of the first does not depend on the others.
    """
    group = np.arange(size) if groups is None else np.unique(groups, return_inverse=True)[1]
    n = int(group.max()) + 1
    first = np.unique(group[:apart])
    parts = [part for part in (first, np.setdiff1d(np.arange(n), first)) if len(part)]
    generators = [np.random.default_rng(seed if number == 0 else (seed, number)) for number in (0, 1)]
    block = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = np.empty((rows, n))
        for part, generator in zip(parts, generators, strict=False):
            of = len(part)
            picked = generator.integers(of, size=(rows, of)) + of * np.arange(rows)[:, None]
            drawn[:, part] = np.bincount(picked.ravel(), minlength=rows * of).reshape(rows, of)
        yield drawn[:, group]
