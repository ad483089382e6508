"""The positive pairs of the clusters: duplicate and original first, then some duplicates of one original."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from angle_data.gis.build.clusters import HUB, Clusters, Edge, unordered
from angle_data.gis.build.near import NEAR, grams, overlap
from angle_data.gis.build.texts import Node, Texts
from angle_data.text import stable_hash

DROPPED = {
    "closure": "two duplicates of one original; no more of these are taken than there are links",
    "cluster_cap": "the cluster has more pairs than one may give",
    "crosses_time_border": "the two issues were opened in the periods of different splits",
    "hub": "two duplicates of an original with so many that it is rather a collection",
    "near_identical": "the two texts are nearly the same, and the cluster has one such pair already",
}
"""Why a positive pair is left out -> what that means."""

_COPIES_A_CLUSTER = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """Two issues and what is known of them; `label` is 1 for duplicates.

    `kind` is `duplicate`, `random`, `hard` or `explicit_non_duplicate`. `cluster` is the leader of the
    cluster of the positive pair, for a negative pair that of its first issue if it has one.
    """

    one: Node
    other: Node
    label: int
    kind: str
    evidence: str
    evidence_url: str
    cluster: Node


def positive_pairs(
    clusters: Clusters, texts: Texts, *, most: int, seed: int
) -> tuple[list[Pair], list[tuple[str, Pair]], int]:
    """Return the positive pairs, at most `most` a cluster, and those left out with the reason.

    Reasons: `cluster_cap`; `near_identical`, all but one pair a cluster whose texts are nearly the same
    (double submissions teach nothing); `closure`, more pairs of duplicates than there are links. The last
    value counts the pairs of duplicates in hubs, which are not even formed.
    """
    sizes, pairs, dropped, hubs = clusters.sizes(), list[Pair](), list[tuple[str, Pair]](), 0
    edges: defaultdict[Node, list[Edge]] = defaultdict(list)
    for edge in clusters.edges:
        edges[clusters.strong.leader(edge.canonical)].append(edge)
    for leader in sorted(edges):
        own = sorted(edges[leader], key=lambda edge: (_trust(edge), _shuffle(seed, edge.duplicate)))
        found = [
            Pair(e.duplicate, e.canonical, 1, "duplicate", e.link.evidence, e.link.statement.url, leader)
            for e in own
        ]
        known = {unordered(pair.one, pair.other) for pair in found}
        strong = [edge for edge in own if not edge.link.weak]
        if sizes[leader] > HUB:
            hubs += _closure_size(strong)
        else:
            more = [p for p in _siblings(strong, leader) if unordered(p.one, p.other) not in known]
            more.sort(key=lambda pair: _shuffle(seed, pair.one, pair.other))
            dropped += [("closure", pair) for pair in more[len(found) :]]
            found += more[: len(found)]
        kept = _without_copies(found, texts, dropped)
        dropped += [("cluster_cap", pair) for pair in kept[most:]]
        pairs += kept[:most]
    return pairs, dropped, hubs


def _trust(edge: Edge) -> int:
    return int(edge.link.statement.rank)


def _by_original(edges: Iterable[Edge]) -> dict[Node, dict[Node, Edge]]:
    found: defaultdict[Node, dict[Node, Edge]] = defaultdict(dict)
    for edge in edges:
        found[edge.canonical].setdefault(edge.duplicate, edge)
    return dict(sorted(found.items()))


def _closure_size(edges: Iterable[Edge]) -> int:
    return sum(len(found) * (len(found) - 1) // 2 for found in _by_original(edges).values())


def _siblings(edges: Iterable[Edge], leader: Node) -> list[Pair]:
    """Pairs of duplicates of the same original, each pair of issues once."""
    found: dict[tuple[Node, Node], Pair] = {}
    for duplicates in _by_original(edges).values():
        for one, other in combinations(duplicates.values(), 2):
            url = one.link.statement.url
            pair = Pair(one.duplicate, other.duplicate, 1, "duplicate", "transitive", url, leader)
            found.setdefault(unordered(pair.one, pair.other), pair)
    return list(found.values())


def _without_copies(pairs: list[Pair], texts: Texts, dropped: list[tuple[str, Pair]]) -> list[Pair]:
    kept: list[Pair] = []
    copies = 0
    for pair in pairs:
        if overlap(grams(texts.get(pair.one).text), grams(texts.get(pair.other).text)) >= NEAR:
            copies += 1
            if copies > _COPIES_A_CLUSTER:
                dropped.append(("near_identical", pair))
                continue
        kept.append(pair)
    return kept


def _shuffle(seed: int, *nodes: Node) -> int:
    return stable_hash(f"{seed} {nodes}")
