"""Ranks the issues of one repository by BM25 (Robertson & Zaragoza 2009, https://doi.org/10.1561/1500000019).

An inverted index in flat arrays, about a kilobyte an issue: only the first 200 words of a text count, and
words are hashed, so that memory does not grow with the vocabulary.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from zlib import crc32

_WORD = re.compile(r"\w{2,30}")
_WORDS_A_TEXT = 200
_WORDS_A_QUERY = 48
_BUCKETS = 1 << 21
_COMMON = 0.1  # words in more texts than this share say little and cost most
_RARE = 50  # but never drop a word for being in so few texts
_K1, _B = 1.2, 0.75


class Bm25:
    """An index over (key, text); keys are integers and come in ascending order, such as issue numbers."""

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        import numpy as np

        keys, lengths = array("q"), array("I")
        terms, documents, counts = array("I"), array("I"), array("H")
        for position, (key, text) in enumerate(texts):
            hashed = _terms(text)
            found, times = np.unique(np.array(hashed, dtype=np.uint32), return_counts=True)
            keys.append(key)
            lengths.append(len(hashed))
            terms.frombytes(found.astype(np.uint32).tobytes())
            documents.frombytes(np.full(len(found), position, dtype=np.uint32).tobytes())
            counts.frombytes(times.astype(np.uint16).tobytes())
        self._keys = np.array(keys)
        flat = np.frombuffer(terms, dtype=np.uint32) if terms else np.zeros(0, dtype=np.uint32)
        order = np.argsort(flat, kind="stable")
        self._documents = np.array(documents, dtype=np.uint32)[order]
        length = np.array(lengths, dtype=np.float64)
        mean = max(float(length.mean()), 1.0) if len(length) else 1.0
        often = np.array(counts, dtype=np.float64)[order]
        norm = _K1 * (1 - _B + _B * length / mean)
        self._weights = (often * (_K1 + 1) / (often + norm[self._documents])).astype(np.float32)
        self._terms, self._starts = np.unique(flat[order], return_index=True)
        self._ends = np.append(self._starts[1:], len(flat))

    def rank(self, text: str, most: int) -> list[int]:
        """Return the keys of the `most` texts nearest to `text`, the best first; ties by key."""
        import numpy as np

        wanted = np.unique(np.array(_terms(text), dtype=np.uint32))
        places = np.searchsorted(self._terms, wanted)
        inside = places < len(self._terms)
        places = places[inside][self._terms[places[inside]] == wanted[inside]]
        sizes = self._ends[places] - self._starts[places]
        limit = max(_RARE, int(_COMMON * len(self._keys)))
        places = places[np.argsort(sizes, kind="stable")][: int((sizes <= limit).sum())][:_WORDS_A_QUERY]
        scores = np.zeros(len(self._keys))
        for place in places:
            own = slice(self._starts[place], self._ends[place])
            count = int(self._ends[place] - self._starts[place])
            worth = np.log(1 + (len(self._keys) - count + 0.5) / (count + 0.5))
            scores[self._documents[own]] += worth * self._weights[own]
        found = np.flatnonzero(scores)
        if len(found) > most:
            border = np.partition(scores[found], len(found) - most)[len(found) - most]
            found = found[scores[found] >= border]
        best = found[np.argsort(-scores[found], kind="stable")][:most]
        return [int(key) for key in self._keys[best]]


def _terms(text: str) -> list[int]:
    found = _WORD.findall(text.casefold(), 0, 40 * _WORDS_A_TEXT)[:_WORDS_A_TEXT]
    return [crc32(word.encode()) % _BUCKETS for word in found]
