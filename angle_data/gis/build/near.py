"""Finds issues whose texts are all but identical: a Jaccard index of at least 0.9.

Compared are sets of two words each that follow one another, so that the order of words counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import Node
from angle_data.similar.near import NearSets, tokens
from angle_data.text import jaccard, stable_hash

NEAR = 0.9  # the Jaccard index from which two texts count as near-identical
_RECENT = 4_096
_SAMPLE = 2_000  # issues whose texts show what is common


def near_texts(texts: Texts, nodes: Iterable[Node]) -> NearSets[Node]:
    """Return an index, still empty, that finds the texts of issues that are near-identical.

    `nodes` are issues of the repositories that are indexed.
    """
    bag = lru_cache(_RECENT)(lambda node: word_pairs(texts.get(node)))
    return NearSets(NEAR, bag, nsmallest(_SAMPLE, nodes, key=lambda node: stable_hash(f"{node}")))


def is_near(one: str, other: str) -> bool:
    """Return whether two texts are near-identical."""
    return jaccard(word_pairs(one), word_pairs(other)) >= NEAR


def word_pairs(text: str) -> frozenset[str]:
    """Return the distinct pairs of words that follow one another in `text`, or its only word."""
    found = tokens(text)
    return frozenset(map(" ".join, pairwise(found)) if len(found) > 1 else found)
