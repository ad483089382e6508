"""Which texts are most similar to another, by the weights of the tokens that they share (`near.tokens`).

The weight of a token is log((N + 1) / n), where n of N texts hold it: the rarer, the more it says.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_K1 = 1.2  # of BM25: how soon repeats count no more
_B = 0.75  # of BM25: how much the length of a text counts
_DECIMALS = 9  # beyond which sums of the same weights differ by their order


def numbered(found: Iterable[str]) -> Array:
    """Return tokens as numbers, so that memory does not grow with the vocabulary; repeats stay."""
    return np.fromiter((crc32(token.encode()) for token in found), dtype=np.uint32)


class Index:
    """An inverted index of texts, in flat arrays, made of the tokens of each as `numbered`.

    A text is known by its place among them.
    """

    def __init__(self, texts: Iterable[Array]) -> None:
        lengths, parts = array("I"), []
        for place, found in enumerate(texts):
            distinct, times = np.unique(found, return_counts=True)
            lengths.append(len(found))
            parts.append(np.array([distinct, np.full(len(distinct), place), times], dtype=np.uint32))
        numbers, places, times = np.concatenate(parts, axis=1)
        self._lengths = np.array(lengths, dtype=np.float64)
        self._tokens, self._of_texts = np.unique(numbers, return_inverse=True)
        order = np.argsort(self._of_texts, kind="stable")
        self._places, self._times = places[order], times[order].astype(np.float32)
        self._starts = np.append(0, np.bincount(self._of_texts).cumsum())  # of the texts of each token
        self._ends = np.bincount(places, minlength=len(lengths)).cumsum()  # of the tokens of each text
        self._often = np.diff(self._starts)
        self._weight = np.log((len(lengths) + 1) / self._often)

    def rank(self, text: Array, most: int, *, words: int, common: int) -> list[int]:
        """Return the `most` texts nearest to one that need not be among them, the best first; ties by place.

        They are ranked by BM25 (Robertson & Zaragoza 2009, doi:10.1561/1500000019) over the `words` rarest
        tokens; those that more than `common` texts hold say little and cost most, and do not count.
        """
        known = self._known(text)
        known = known[self._often[known] <= common]
        known = known[np.argsort(self._often[known], kind="stable")][:words]
        scores = np.zeros(len(self._lengths))
        for token in known:
            own = slice(self._starts[token], self._starts[token + 1])
            times, places = self._times[own], self._places[own]
            norm = _K1 * (1 - _B + _B * self._lengths[places] / max(self._lengths.mean(), 1.0))
            scores[places] += self._weight[token] * times * (_K1 + 1) / (times + norm)
        found = np.flatnonzero(scores)
        if len(found) > most:
            border = np.partition(scores[found], len(found) - most)[len(found) - most]
            found = found[scores[found] >= border]
        best: list[int] = found[np.argsort(-scores[found], kind="stable")][:most].tolist()
        return best

    def overlap(self, one: Array, other: Array) -> float:
        """Return the Jaccard index of two texts' tokens by their weights; a token of no text weighs most."""

        def weight(found: Array) -> float:
            known = self._known(found)
            others = (len(found) - len(known)) * np.log(len(self._lengths) + 1)
            return float(self._weight[known].sum() + others)

        mine, theirs = np.unique(one), np.unique(other)
        return weight(np.intersect1d(mine, theirs)) / max(weight(np.union1d(mine, theirs)), 1e-9)

    def nearest(self, place: int, most: int, *, words: int, window: int) -> tuple[Array, Array]:
        """Return up to `most` texts that share most with the one at `place`, and the `overlap` with each.

        Found by the `words` rarest tokens, each of which leads to the `window` texts that stand next to it of
        those that hold the token. Of equally near ones each text has others first: those that follow it.
        """
        own = self._tokens_at(place)
        own = own[np.lexsort((own, self._often[own]))]
        parts = []
        for token in own[:words]:
            holders = self._places[self._starts[token] : self._starts[token + 1]]
            start = min(np.searchsorted(holders, place) - window // 2, len(holders) - window)
            parts.append(holders[max(0, start) :][:window])
        if not parts:
            return np.zeros(0, dtype=int), np.zeros(0)
        shares = np.repeat(self._weight[own[:words]], [len(part) for part in parts])
        found, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        shared = np.bincount(inverse, shares).round(_DECIMALS)
        others = found != place
        found, shared = found[others].astype(int), shared[others]
        after = (found - place) % len(self._lengths)
        found = found[np.lexsort((after, -shared))][:most]
        overlaps = self._overlaps(own, found)
        order = np.lexsort(((found - place) % len(self._lengths), -overlaps))
        return found[order], overlaps[order]

    def _overlaps(self, own: Array, places: Array) -> Array:
        """Return the overlap of the tokens `own` with those of each text at `places`."""
        lists = [self._tokens_at(place) for place in places]
        owner = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        held = np.concatenate([own[:0], *lists])
        weights = self._weight[held]
        common = np.bincount(owner, weights * np.isin(held, own), len(lists))
        either = self._weight[own].sum() + np.bincount(owner, weights, len(lists)) - common
        found: Array = (common / either).round(_DECIMALS)
        return found

    def _tokens_at(self, place: int) -> Array:
        start = self._ends[place - 1] if place else 0
        return self._of_texts[start : self._ends[place]]

    def _known(self, text: Array) -> Array:
        """Return the places of those tokens of a text that the index has, each once."""
        distinct = np.unique(text)
        places = np.minimum(np.searchsorted(self._tokens, distinct), len(self._tokens) - 1)
        known: Array = places[self._tokens[places] == distinct]
        return known
