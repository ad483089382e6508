"""Groups issues that are one and the same problem: the transitive closure of the accepted links.

Words that tie two issues without calling either a duplicate make a pair and do not merge clusters, or else a
chain of "same as" would swallow unrelated issues. Links may go in circles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from angle_data.disjoint import DisjointSets
from angle_data.gis.build.links import Link
from angle_data.gis.build.texts import Node

HUB = 30
"""A larger cluster is a hub, such as an epic and its parts: only its links count, not the closure."""


@dataclass(frozen=True, slots=True)
class Edge:
    """The best link between two issues."""

    duplicate: Node
    canonical: Node
    link: Link


@dataclass
class Clusters:
    """Edges and what they merge.

    `strong` merges by words that say duplicate, `every` by all accepted links; `repeated` counts links that
    say again what an edge says, `circles` the edges that close a circle.
    """

    edges: list[Edge] = field(default_factory=list)
    strong: DisjointSets[Node] = field(default_factory=DisjointSets)
    every: DisjointSets[Node] = field(default_factory=DisjointSets)
    repeated: int = 0
    circles: int = 0

    def sizes(self) -> dict[Node, int]:
        """Return the number of issues of each strong cluster by its leader."""
        counts: defaultdict[Node, int] = defaultdict(int)
        for node in sorted({node for edge in self.edges for node in (edge.duplicate, edge.canonical)}):
            counts[self.strong.leader(node)] += 1
        return dict(counts)


def find_clusters(links: Iterable[Link]) -> Clusters:
    """Return the clusters that the accepted ones among `links` make; their order does not matter."""
    found = Clusters()
    ends: dict[tuple[Node, Node], Edge] = {}
    accepted = [link for link in links if link.status == "accepted"]
    for link in sorted(accepted, key=_best_first):
        assert link.duplicate is not None
        assert link.canonical is not None
        pair = unordered(link.duplicate, link.canonical)
        found.repeated += pair in ends
        ends.setdefault(pair, Edge(link.duplicate, link.canonical, link))
    for pair in sorted(ends):
        edge = ends[pair]
        found.edges.append(edge)
        found.every.join(*pair)
        if not edge.link.weak:
            found.circles += found.strong.leader(pair[0]) == found.strong.leader(pair[1])
            found.strong.join(*pair)
    return found


def unordered(one: Node, other: Node) -> tuple[Node, Node]:
    """Return the two issues in their order, whichever came first."""
    return (one, other) if one <= other else (other, one)


def _best_first(link: Link) -> tuple[float, str, str, tuple[int, int]]:
    said = link.statement
    return -said.confidence, said.created_at, said.url, said.span or (0, 0)
