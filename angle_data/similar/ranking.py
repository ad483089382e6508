"""Which texts are most similar to another, by the weights of the tokens that they share (`near.tokens`).

The weight of a token is log((N + 1) / n), where n of N texts hold it: the rarer, the more it says. The
overlap of two texts is the weight of the tokens that both hold, as a share of the weight of those that either
holds: their Jaccard index, weighted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_DECIMALS = 9  # beyond which sums of the same weights differ by their order


def numbered(found: Iterable[str]) -> Array:
    """Return the distinct tokens as sorted numbers, so that memory does not grow with the vocabulary."""
    return np.unique(np.fromiter((crc32(token.encode()) for token in found), dtype=np.uint32))


class Index:
    """An inverted index of texts, in flat arrays, made of the tokens of each as `numbered`.

    A text is known by its place among them. Eight bytes for each token of each text.
    """

    def __init__(self, texts: Iterable[Array]) -> None:
        parts = [*texts]
        sizes = np.array([len(part) for part in parts])
        self._tokens, of_texts = np.unique(np.concatenate(parts), return_inverse=True)
        self._of_texts = of_texts.astype(np.uint32)
        self._ends = sizes.cumsum()  # of the tokens of each text
        places = np.repeat(np.arange(len(parts), dtype=np.uint32), sizes)
        self._places = places[np.argsort(self._of_texts, kind="stable")]
        self._often = np.bincount(self._of_texts, minlength=len(self._tokens))
        self._starts = np.append(0, self._often.cumsum())  # of the texts of each token
        self._unknown = np.log(len(parts) + 1)  # the weight of a token that no text holds
        self._weight = self._unknown - np.log(self._often)

    def nearest(self, place: int, most: int, *, words: int, window: int) -> tuple[Array, Array]:
        """Return up to `most` texts that share most with the one at `place`, and the overlap with each.

        Found by the `words` rarest tokens, each of which leads to the `window` texts that stand next to it of
        those that hold the token. The nearest come first; of equally near ones each text has others first:
        those that follow it.
        """
        own = self._tokens_at(place)
        own = own[np.lexsort((own, self._often[own]))]
        parts = [self._places[:0]]
        for token in own[:words]:
            holders = self._places[self._starts[token] : self._starts[token + 1]]
            start = min(np.searchsorted(holders, place) - window // 2, len(holders) - window)
            parts.append(holders[max(0, start) :][:window])
        weights = np.repeat(self._weight[own[:words]], [len(part) for part in parts[1:]])
        found, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        shared = np.bincount(inverse, weights, len(found)).round(_DECIMALS)
        found, shared = found[found != place].astype(int), shared[found != place]
        after = (found - place) % len(self._ends)
        found = found[np.lexsort((after, -shared))][:most]
        overlaps = self._overlaps(own, found)
        order = np.lexsort(((found - place) % len(self._ends), -overlaps))
        return found[order], overlaps[order]

    def overlap(self, one: Array, other: Array) -> float:
        """Return the overlap of two texts that need not be in the index."""
        both = np.intersect1d(one, other, assume_unique=True)
        return self._worth(both) / max(self._worth(np.union1d(one, other)), 1e-9)

    def _worth(self, found: Array) -> float:
        """Return the sum of the weights of tokens."""
        places = np.minimum(np.searchsorted(self._tokens, found), len(self._tokens) - 1)
        known = self._tokens[places] == found
        return float(np.where(known, self._weight[places], self._unknown).sum())

    def _overlaps(self, own: Array, places: Array) -> Array:
        """Return the overlap of the tokens `own` with those of each text at `places`."""
        lists = [self._tokens_at(place) for place in places]
        owner = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
        held = np.concatenate([own[:0], *lists])
        weights = self._weight[held]
        both = np.bincount(owner, weights * np.isin(held, own), len(lists))
        either = self._weight[own].sum() + np.bincount(owner, weights, len(lists)) - both
        found: Array = (both / either).round(_DECIMALS)
        return found

    def _tokens_at(self, place: int) -> Array:
        start = self._ends[place - 1] if place else 0
        return self._of_texts[start : self._ends[place]]
