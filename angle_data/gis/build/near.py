"""Finds issues whose texts are near-identical (`angle_data.similar.near`)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from heapq import nsmallest

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import Node
from angle_data.similar.near import NEAR_TEXTS, NearSets, word_pairs
from angle_data.text import stable_hash

_RECENT = 4_096
_SAMPLE = 2_000  # issues whose texts show what is common


def near_texts(texts: Texts, nodes: Iterable[Node]) -> NearSets[Node]:
    """Return an index, still empty, that finds the texts of issues that are near-identical.

    `nodes` are issues of the repositories that are indexed.
    """
    bag = lru_cache(_RECENT)(lambda node: word_pairs(texts.get(node)))
    return NearSets(NEAR_TEXTS, bag, nsmallest(_SAMPLE, nodes, key=lambda node: stable_hash(f"{node}")))
