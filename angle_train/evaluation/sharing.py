"""How much surer pairs seem than they are where several share a text, or were made from one source.

Such pairs say partly the same thing. Drawing whole groups of them does not help where a few texts tie all
pairs together: a group is all that there is then. So single pairs are drawn, and intervals are widened by
what sharing adds to the variance. With p_i for how much pair i moves the figure, that is the sum of p_i p_j
over all pairs i and j that share something, beside the sum of p_i² over single pairs.

Of few sources that sum has few terms, so it is itself uncertain, and too small more often than large: the
mean of the pairs is taken off first, and with it a part of what is of each source. So intervals are those of
Student's t with as many degrees of freedom as there are sources, less one. Sources of unlike size count as
d = (Σ n)² / Σ n², n being the pairs of a source.

Source: Aronow, Samii and Assenova 2015, Cluster-Robust Variance Estimation for Dyadic Data
(https://doi.org/10.1093/pan/mpv018); of more than two things that pairs can share: Cameron, Gelbach and
Miller 2011, Robust Inference with Multiway Clustering (https://doi.org/10.1198/jbes.2010.07136); an effective
number of clusters: Carter, Schnepel and Steigerwald 2017 (https://doi.org/10.1162/REST_a_00639); of several
sets: Satterthwaite 1946, An Approximate Distribution of Estimates of Variance Components
(https://doi.org/10.2307/3002019). How often the intervals hold: benchmarks/log/few-sources-widened.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm, t

from angle_data.text import normalise
from angle_train.data.pairs import PairSet
from angle_train.evaluation.statistics import Array, Drawn

_FEWEST = 2.0  # of one source, or one text that all pairs have, nothing is known; it is as wide as of two
_SOURCE = "\0"  # before a source, which no text begins with
_END = 0.975  # of a 95 % interval


_Grouping = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows and the number of the group that each is of (2, M), and the part that each group is of (G,)."""


class Sharing:
    """Which of n pairs, those of one or several sets in their order, share something."""

    def __init__(self, sets: Sequence[PairSet]) -> None:
        things = [found for pairs in sets for found in _things(pairs)]
        self._set = np.repeat(np.arange(len(sets)), [len(pairs) for pairs in sets])
        self._groupings = _groupings(self._set, _groups_of(things))
        # Of two pairs that share two things, each thing counts them, and both together take one off.
        self._signed: list[tuple[int, NDArray[np.int64]]] = []
        for size in range(1, max(map(len, things), default=0) + 1):
            rows, keys = [], []
            for row, found in enumerate(things):
                for key in combinations(found, size):
                    rows.append(row)
                    keys.append(key)
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            of = np.array([[row, numbers[key]] for row, key in zip(rows, keys, strict=True)], np.int64)
            if len(numbers) < len(keys):  # else nothing is shared so often
                self._signed.append((1 if size % 2 else -1, of.reshape(-1, 2).T))

    def __bool__(self) -> bool:
        return bool(self._signed)

    def widening(self, figure: Drawn) -> float:
        """Return how many times wider the interval of a figure is for what its pairs share; at least 1.

        That is the root of the design effect of survey statistics, and what few sources add (above).
        """
        variance = float(np.nanvar(figure.drawn))
        if not self._signed or not variance > 0:
            return 1.0
        pull, added = figure.pull, 0.0
        for sign, (rows, numbers) in self._signed:
            moved = pull[rows]
            added += sign * float((np.bincount(numbers, moved) ** 2).sum() - (moved**2).sum())
        return math.sqrt(max(1.0, 1.0 + added / variance)) * self.of_few(figure)

    def of_few(self, figure: Drawn) -> float:
        """Return how many times wider an interval is whose variance rests on as many sources as there are.

        Of several sets a pair counts by how much the pairs of its set move the figure. Sets that share a
        source are taken together, and apart: a small one loses a mean of its own, whatever the other has. The
        wider of both counts.
        """
        squares = np.bincount(self._set, figure.pull**2) / np.maximum(np.bincount(self._set), 1)
        weight = np.sqrt(squares)[self._set]
        if not weight.any():  # of very few pairs, none may move a rank correlation by itself
            weight = np.ones(len(weight))
        return max(
            _of_few(np.bincount(numbers, weight[rows]), parts) for (rows, numbers), parts in self._groupings
        )

    def deviation(self, figure: Drawn) -> float:
        """Return the standard error of a figure, widened."""
        return float(np.nanstd(figure.drawn)) * self.widening(figure)

    def widened(self, figure: Drawn) -> Array:
        """Return the resampled values (R,) of a figure as far apart as what the pairs share makes them."""
        factor = self.widening(figure)
        if factor == 1.0:
            return figure.drawn
        middle = np.nanmean(figure.drawn)
        spread: Array = middle + factor * (figure.drawn - middle)
        return spread


def _of_few(size: NDArray[Any], parts: NDArray[np.int64]) -> float:
    """Return how many times wider an interval is that rests on sources of these sizes (G,).

    Every part, such as a set, loses its own mean. So degrees of freedom are combined over parts as
    Satterthwaite does, as if the pairs of a source were alike. A part of a single source tells nothing of its
    own variance, nor do others: it is as wide as it would be alone, by its share of the variance.
    """
    total, variance = (np.bincount(parts, part) for part in (size, size**2))
    total, variance = total[total > 0], variance[total > 0]
    shares, count = variance / variance.sum(), total**2 / variance
    several = count >= _FEWEST
    known = float(shares[several].sum())
    squared = (1 - known) * _student(_FEWEST - 1, _FEWEST / (_FEWEST - 1))
    if known:
        of, freedom = shares[several] / known, count[several] - 1
        squared += known * _student(1 / (of**2 / freedom).sum(), float((of * (1 + 1 / freedom)).sum()))
    return math.sqrt(squared)


def _student(freedom: float, lost: float) -> float:
    """Return how many times larger a squared interval is of so many degrees of freedom.

    `lost` is how many times the variance is what is left of it when means are taken off.
    """
    return float(t.ppf(_END, freedom) / norm.ppf(_END)) ** 2 * lost


def _groups_of(things: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the rows that share a thing, and the number of each such group (2, M); all others are alone.

    A thing is part of one that most of its pairs have, too, if that has more pairs: a text of its source. Its
    pairs that nothing else holds together are a group of their own.
    """
    members = dict[str, list[int]]()
    for row, found in enumerate(things):
        for thing in found:
            members.setdefault(thing, []).append(row)
    # Of as many pairs, a source goes before a text, and names decide between texts.
    ranks = {thing: (len(rows), thing.startswith(_SOURCE), thing) for thing, rows in members.items()}

    def part_of_another(thing: str, rows: Sequence[int]) -> bool:
        beside = Counter(other for row in rows for other in things[row])
        return any(2 * n > len(rows) and ranks[other] > ranks[thing] for other, n in beside.items())

    several = [(thing, tuple(rows)) for thing, rows in members.items() if len(rows) > 1]
    whole = dict.fromkeys(rows for thing, rows in several if not part_of_another(thing, rows))
    left = {*range(len(things))}.difference(*whole)
    outside = (tuple(row for row in rows if row in left) for _, rows in several)
    groups = [*whole, *dict.fromkeys(rows for rows in outside if len(rows) > 1)]
    alone = sorted(left.difference(*groups))
    groups += [(row,) for row in alone]
    of = [(row, number) for number, rows in enumerate(groups) for row in rows]
    return np.array(of, np.int64).reshape(-1, 2).T


def _groupings(of_set: NDArray[np.int64], groups: NDArray[np.int64]) -> list[_Grouping]:
    """Return groups with the number of the part that each is of: sets that share a group are one part.

    Of several sets also the groups inside each set, which then is a part.
    """
    rows, numbers = groups
    if not len(rows):
        return [(groups, np.empty(0, np.int64))]
    sets, count = int(of_set.max()) + 1, int(numbers.max()) + 1
    edges = coo_array((np.ones(len(rows)), (of_set[rows], sets + numbers)), shape=(sets + count,) * 2)
    part = np.asarray(connected_components(edges, directed=False)[1][sets:], dtype=np.int64)
    found = [(groups, part)]
    if sets > 1:
        inside, number = np.unique(of_set[rows] * count + numbers, return_inverse=True)
        found.append((np.stack([rows, number]), inside // count))
    return found


def _things(pairs: PairSet) -> Iterator[list[str]]:
    """Yield for each pair what others can share: its texts and, where the data says it, its source."""
    sources = [f"{_SOURCE}{source}" for source in pairs.source_ids or ()] or [""] * len(pairs)
    for first, second, source in zip(pairs.text1, pairs.text2, sources, strict=True):
        yield sorted({normalise(first), normalise(second), *([source] if source else [])})


INDEPENDENT = Sharing(())
"""Items that share nothing."""
