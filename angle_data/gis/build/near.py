"""Finds texts that are all but identical: Jaccard index of character 5-grams of at least 0.9.

Copies are known by the hash of their text and stand for one. Other candidates come from MinHash signatures
(Broder 1997, https://doi.org/10.1109/SEQUEN.1997.666900) in bands and are then compared exactly. With 16
bands of 4 a pair at 0.9 is missed once in 26 million times, and less the more alike it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from angle_data.disjoint import DisjointSets
from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import Node
from angle_data.text import normalise, stable_hash

Grams = np.ndarray[Any, np.dtype[np.uint64]]

NEAR = 0.9  # the Jaccard index from which two texts count as near-identical
_N, _BANDS, _ROWS = 5, 16, 4
# Parts of a signature, and how many are equal at least: at 0.9 fewer are once in 100 million times.
_PARTS, _LEAST_EQUAL = 256, 200
_RECENT = 4_096


def grams(text: str) -> Grams:
    """Return the distinct character 5-grams of the normalised text as sorted 64-bit hashes."""
    text = normalise(text)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    count = max(len(codes) - _N + 1, 1)
    if len(codes) < _N:
        codes = np.pad(codes, (0, _N - len(codes)))
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(_N):
        hashes = hashes * np.uint64(0x100000001B3) + codes[offset : offset + count]
    return np.unique(hashes * np.uint64(0x9E3779B97F4A7C15))


def overlap(one: Grams, other: Grams) -> float:
    """Return the Jaccard index of two sets of `grams`."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


class NearTexts:
    """An index of texts by issue that answers which of them are near-identical to another.

    `groups` joins the indexed issues whose texts are near-identical, be it over others.
    """

    def __init__(self, texts: Texts) -> None:
        self.groups: DisjointSets[Node] = DisjointSets()
        self._texts = texts
        self._copies: dict[int, Node] = {}
        self._nodes: list[Node] = []
        # Half of each part is enough to compare, and these stay in memory.
        self._signatures = np.zeros((64, _PARTS), dtype=np.uint32)
        self._buckets: dict[tuple[int, bytes], list[int]] = {}
        factors = [stable_hash(f"-{i}") | 1 for i in range(_PARTS)]
        self._factors = np.array(factors, dtype=np.uint64)[:, None]
        self._grams = lru_cache(_RECENT)(lambda node: grams(texts.get(node)))

    def neighbours(self, node: Node) -> list[Node]:
        """Return the indexed issues whose text is near-identical to that of `node`, one for all copies."""
        return self._find(node)[0]

    def add(self, node: Node) -> list[Node]:
        """Index the text of `node` and return the `neighbours` that it joins."""
        found, key, signature = self._find(node)
        for other in found:
            self.groups.join(node, other)
        if key not in self._copies:
            self._copies[key] = node
            place = len(self._nodes)
            if place == len(self._signatures):
                self._signatures = np.concatenate([self._signatures, np.zeros_like(self._signatures)])
            self._signatures[place] = signature
            self._nodes.append(node)
            for bucket in _buckets(signature):
                self._buckets.setdefault(bucket, []).append(place)
        return found

    def _find(self, node: Node) -> tuple[list[Node], int, Grams]:
        """Return the neighbours of an issue, and the hash and the signature of its text."""
        key, own = stable_hash(normalise(self._texts.get(node))), self._grams(node)
        mixed = self._factors * (own ^ (own >> 29))[None, :]
        signature: Grams = (mixed ^ (mixed >> 31)).min(axis=1)
        copy = self._copies.get(key)
        found = [] if copy is None or copy == node else [copy]
        # Of those that share a bucket, most are of one template and not near.
        places = sorted({place for bucket in _buckets(signature) for place in self._buckets.get(bucket, ())})
        equal = (self._signatures[places] == signature.astype("u4")).sum(axis=1) if places else ()
        alike = (self._nodes[place] for place, n in zip(places, equal, strict=True) if n >= _LEAST_EQUAL)
        others = (other for other in alike if other != copy)
        found += (other for other in others if overlap(own, self._grams(other)) >= NEAR)
        return found, key, signature


def _buckets(signature: Grams) -> list[tuple[int, bytes]]:
    return [(band, signature[band * _ROWS : (band + 1) * _ROWS].tobytes()) for band in range(_BANDS)]
