"""Finds texts that are all but identical: Jaccard index of character 5-grams of at least 0.9.

Candidates come from MinHash signatures (Broder 1997, https://doi.org/10.1109/SEQUEN.1997.666900) in bands and
are then compared exactly. With 8 bands of 4 a pair at 0.9 is missed once in 5,000 times, and less the more
alike it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from angle_data.gis.texts import Node, Texts
from angle_data.text import normalise, stable_hash

if TYPE_CHECKING:
    import numpy as np

    Grams = np.ndarray[Any, np.dtype[np.uint64]]

__all__ = ["NEAR", "NearTexts", "grams", "overlap"]

NEAR = 0.9
"""The Jaccard index from which two texts count as near-identical."""

_N, _BANDS, _ROWS, _COMPARED = 5, 8, 4, 8


def grams(text: str) -> Grams:
    """Return the distinct character 5-grams of the normalised text as sorted 64-bit hashes."""
    import numpy as np

    codes = np.frombuffer(normalise(text).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    count = max(len(codes) - _N + 1, 1)
    if len(codes) < _N:
        codes = np.pad(codes, (0, _N - len(codes)))
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(_N):
        hashes = hashes * np.uint64(0x100000001B3) + codes[offset : offset + count]
    return np.unique(hashes * np.uint64(0x9E3779B97F4A7C15))


def overlap(one: Grams, other: Grams) -> float:
    """Return the Jaccard index of two sets of `grams`."""
    import numpy as np

    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


class NearTexts:
    """An index of texts by issue that answers which of them are near-identical to another.

    `salt` chooses the hash functions, so that two indexes miss different pairs.
    """

    def __init__(self, texts: Texts, salt: str = "") -> None:
        import numpy as np

        self._texts = texts
        self._buckets: dict[tuple[int, bytes], list[Node]] = {}
        factors = [stable_hash(f"{salt}-{i}") | 1 for i in range(_BANDS * _ROWS)]
        self._factors = np.array(factors, dtype=np.uint64)[:, None]

    def neighbours(self, node: Node) -> Iterator[Node]:
        """Yield indexed issues whose text is near-identical to that of `node`, at least one if any is."""
        own = grams(self._texts.get(node).text)
        tried = {node}
        for key in self._keys(own):
            for other in self._buckets.get(key, ()):
                if other not in tried:
                    tried.add(other)
                    if overlap(own, grams(self._texts.get(other).text)) >= NEAR:
                        yield other

    def add(self, node: Node) -> None:
        """Index the text of `node`."""
        for key in self._keys(grams(self._texts.get(node).text)):
            bucket = self._buckets.setdefault(key, [])
            # A crowd of equal texts is known by its first few.
            if len(bucket) < _COMPARED and node not in bucket:
                bucket.append(node)

    def _keys(self, own: Grams) -> list[tuple[int, bytes]]:
        mixed = self._factors * (own ^ (own >> 29))[None, :]
        least = (mixed ^ (mixed >> 31)).min(axis=1)
        return [(band, least[band * _ROWS : (band + 1) * _ROWS].tobytes()) for band in range(_BANDS)]
