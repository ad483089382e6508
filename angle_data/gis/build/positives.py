"""Groups issues that are one and the same problem, and makes the positive pairs of each group.

A cluster is the transitive closure of the accepted links. Words that tie two issues without calling either a
duplicate make a pair and do not merge clusters, or else a chain of "same as" would swallow unrelated issues.
Links may go in circles. A cluster gives its links as pairs first, then pairs of duplicates of one original.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, groupby
from math import comb

from angle_data.disjoint import DisjointSets
from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import Node, Statement
from angle_data.gis.build.facts import Rank
from angle_data.gis.build.links import Pair, unordered
from angle_data.similar.near import is_near
from angle_data.text import stable_hash

HUB = 30  # a larger cluster is a hub, such as an epic and its parts: only its links count, not the closure

DROPPED = {
    "closure": "two duplicates of one original; no more of these are taken than there are links",
    "cluster_cap": "the cluster has more pairs than one may give",
    "crosses_time_border": "the two issues were opened in the periods of different splits",
    "hub": "two duplicates of an original with so many that it is rather a collection",
    "near_identical": "the two texts are nearly the same, and the cluster has one such pair already",
}
"""Why a positive pair is left out -> what that means."""


@dataclass
class Clusters:
    """Edges, the best accepted link between each two issues, and what they merge.

    `strong` merges by words that say duplicate, `every` by all accepted links. `denied` are pairs of issues
    said to be no duplicates.
    """

    edges: list[Statement] = field(default_factory=list)
    strong: DisjointSets[Node] = field(default_factory=DisjointSets)
    every: DisjointSets[Node] = field(default_factory=DisjointSets)
    denied: list[Pair] = field(default_factory=list)

    @property
    def originals(self) -> frozenset[Node]:
        """The issues that others duplicate."""
        return frozenset(edge.canonical for edge in self.edges)

    @property
    def issues(self) -> frozenset[Node]:
        """All issues that edges connect."""
        return self.originals | {edge.duplicate for edge in self.edges}

    def sizes(self) -> Counter[Node]:
        """Return the number of issues of each strong cluster by its leader."""
        return Counter(self.strong.leader(node) for node in sorted(self.issues))


def find_clusters(links: Iterable[Statement]) -> Clusters:
    """Return the clusters that the accepted ones among `links` make; their order does not matter."""

    def best_first(said: Statement) -> tuple[bool, Rank, str, str, tuple[int, int]]:
        weak = said.weak and said.rank is not Rank.EVENT
        return weak, said.rank, said.created_at, said.url, said.span or (0, 0)

    found = Clusters()
    best: dict[tuple[Node, Node], Statement] = {}
    for link in sorted((link for link in links if link.status == "accepted"), key=best_first):
        best.setdefault(unordered(link.duplicate, link.canonical), link)
    for pair, edge in sorted(best.items(), key=lambda item: item[0]):
        found.edges.append(edge)
        found.every.join(*pair)
        if not edge.weak:
            found.strong.join(*pair)
    return found


def positive_pairs(
    clusters: Clusters, texts: Texts, *, most: int, seed: int
) -> tuple[list[Pair], list[tuple[str, Pair]], int]:
    """Return the positive pairs, at most `most` a cluster, and those left out with a key of `DROPPED`.

    The last value counts the pairs of duplicates in hubs, which are not even formed.
    """
    sizes = clusters.sizes()
    pairs = list[Pair]()
    dropped = list[tuple[str, Pair]]()
    hubs = 0
    edges: defaultdict[Node, list[Statement]] = defaultdict(list)
    for edge in clusters.edges:
        edges[clusters.strong.leader(edge.canonical)].append(edge)
    for leader in sorted(edges):
        own = sorted(edges[leader], key=lambda e: (e.rank, _shuffle(seed, e.duplicate)))
        found = [Pair(e.duplicate, e.canonical, 1, "duplicate", e.evidence, e.url, leader) for e in own]
        known = {unordered(pair.one, pair.other) for pair in found}
        strong = [edge for edge in own if not edge.weak]
        if sizes[leader] > HUB:
            hubs += sum(comb(count, 2) for count in Counter(edge.canonical for edge in strong).values())
        else:
            more = [p for p in _siblings(strong, leader) if unordered(p.one, p.other) not in known]
            more.sort(key=lambda pair: _shuffle(seed, pair.one, pair.other))
            dropped += [("closure", pair) for pair in more[len(found) :]]
            found += more[: len(found)]
        kept = list[Pair]()
        copied = False
        for pair in found:
            near = is_near(texts.get(pair.one), texts.get(pair.other))
            if near and copied:
                dropped.append(("near_identical", pair))
            else:
                kept.append(pair)
            copied = copied or near
        dropped += [("cluster_cap", pair) for pair in kept[most:]]
        pairs += kept[:most]
    return pairs, dropped, hubs


def _siblings(edges: Iterable[Statement], leader: Node) -> list[Pair]:
    """Pairs of duplicates of the same original, each pair of issues once."""
    found: dict[tuple[Node, Node], Pair] = {}
    by_original = sorted(edges, key=lambda edge: edge.canonical)
    for _, duplicates in groupby(by_original, key=lambda edge: edge.canonical):
        for one, other in combinations(duplicates, 2):
            pair = Pair(one.duplicate, other.duplicate, 1, "duplicate", "transitive", one.url, leader)
            found.setdefault(unordered(pair.one, pair.other), pair)
    return list(found.values())


def _shuffle(seed: int, *nodes: Node) -> int:
    return stable_hash(f"{seed} {nodes}")
