"""BM25: which of many texts answer a query best, by the words that they share. No model is needed.

A word counts more the rarer it is, more the oftener a text holds it (up to a limit), and less in long texts.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with the weight of a word as
Lucene has it, which is never negative.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from angle_data.similar.near import tokens

Array = np.ndarray[Any, np.dtype[Any]]

_SATURATION = 1.2  # k1: how soon more of the same word adds little
_LENGTH = 0.75  # b: how far long texts are held back


class BM25:
    """N texts that can be searched by words; each is known by its place among them.

    Memory: 8 bytes for each distinct word of each text, and the vocabulary.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        held, often, sizes, lengths = array("I"), array("I"), array("I"), array("I")
        for text in texts:
            found = Counter(tokens(text))
            held.extend(self._numbers.setdefault(token, len(self._numbers)) for token in found)
            often.extend(found.values())
            sizes.append(len(found))
            lengths.append(found.total())
        self.size = len(sizes)
        words = np.frombuffer(held, dtype=np.uint32) if held else np.empty(0, dtype=np.uint32)
        order = np.argsort(words, kind="stable")
        counts = np.bincount(words, minlength=len(self._numbers))
        self._starts = np.append(0, counts.cumsum())  # of the texts of each word
        self._places = np.repeat(np.arange(self.size, dtype=np.uint32), np.array(sizes, dtype=int))[order]
        mean = max(sum(lengths) / max(self.size, 1), 1e-9)
        long = 1 - _LENGTH + _LENGTH * np.array(lengths, dtype=np.float32)[self._places] / mean
        times = np.array(often, dtype=np.float32)[order]
        rarity = np.log1p((self.size - counts + 0.5) / (counts + 0.5)).astype(np.float32)
        self._weights = np.repeat(rarity, counts) * times * (_SATURATION + 1) / (times + _SATURATION * long)

    def scores(self, query: str) -> Array:
        """Return how well each text (N,) answers a query; 0 for those that share no word with it."""
        found = np.zeros(self.size)
        for token, times in Counter(tokens(query)).items():
            if (number := self._numbers.get(token)) is not None:
                part = slice(self._starts[number], self._starts[number + 1])
                found[self._places[part]] += times * self._weights[part]
        return found

    def best(self, query: str, most: int) -> tuple[Array, Array]:
        """Return places and scores of up to `most` texts that share a word, best first, then in order."""
        scores = self.scores(query)
        found = np.flatnonzero(scores)
        if len(found) > most:
            least = np.partition(scores[found], -most)[-most]
            found = found[scores[found] >= least]
        found = found[np.lexsort((found, -scores[found]))][:most]
        return found, scores[found]
