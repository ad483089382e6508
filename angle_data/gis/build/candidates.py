"""Which issues may stand in a negative pair together, and in which split each may be used.

An issue without a place takes that of the first pair it is used in, unless a near-identical text already has
another one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from angle_data.disjoint import DisjointSets
from angle_data.gis.build.clean import is_dummy
from angle_data.gis.build.clusters import Clusters, unordered
from angle_data.gis.build.links import Link
from angle_data.gis.build.near import NearTexts
from angle_data.gis.build.periods import Periods
from angle_data.gis.build.scan import Scan
from angle_data.gis.build.texts import Node, Texts
from angle_data.text import jaccard, words

_TOO_ALIKE = 0.6
_REUSED = 4
_COMPARED = 20
_RECENT = 4_096
_LOST = frozenset(
    {"unknown_repository", "other_repository", "missing", "outside", "gone", "moved_away", "pull"}
)


class Candidates:
    """The issues that negative pairs are drawn from.

    `places` maps the issues of positive and spoken pairs to their splits and grows; `near` indexes the texts
    of all issues that have a place. `positive` are the issues that links connect, `originals` those of them
    that others duplicate. `uses` counts in how many negative pairs an issue is the partner. With `periods`,
    an issue fits only the split in whose period it was opened.
    """

    def __init__(
        self,
        scan: Scan,
        clusters: Clusters,
        links: Iterable[Link],
        texts: Texts,
        near: NearTexts,
        places: dict[Node, str],
        periods: Periods | None = None,
    ) -> None:
        self.scan, self.texts, self.places, self._periods = scan, texts, places, periods
        self.uses: Counter[Node] = Counter()
        self._clusters, self._near = clusters, near
        # What is one problem for all that is known: clusters, and whoever has a text like one of theirs.
        self._alike: DisjointSets[Node] = DisjointSets()
        self._members: defaultdict[Node, set[Node]] = defaultdict(set)
        for edge in clusters.edges:
            self._alike.join(edge.duplicate, edge.canonical)
            self._members[clusters.every.leader(edge.canonical)] |= {edge.duplicate, edge.canonical}
        for node in places:
            self._alike.join(node, near.groups.leader(node))
        self._words = lru_cache(_RECENT)(lambda node: words(texts.get(node).text))
        self._tied, self._said = set[tuple[Node, Node]](), set[tuple[Node, Node]]()
        # Said to be a duplicate of something unknown: its original may be any issue.
        self._unresolved = {node for node, head in scan.heads.items() if head.marked}
        for link in links:
            if link.duplicate and link.canonical:
                pair = unordered(link.duplicate, link.canonical)
                self._said.add(pair)
                if link.status != "rejected":
                    self._tied.add(pair)
            if link.reason in _LOST and link.statement.direction == "this_is_dup_of":
                self._unresolved.add(link.statement.here)
        self._unresolved -= {edge.duplicate for edge in clusters.edges}
        self.originals = frozenset(edge.canonical for edge in clusters.edges)
        self.positive = self.originals | {edge.duplicate for edge in clusters.edges}
        self._pool: defaultdict[tuple[str, int], list[tuple[str, Node]]] = defaultdict(list)
        for node in self.positive:
            self._pool[places[node], node[0]].append((scan.heads[node].created_at, node))
        for pool in self._pool.values():
            pool.sort()

    def usable(self, node: Node) -> bool:
        """Whether an issue can stand in a negative pair at all."""
        head = self.scan.heads.get(node)
        if head is None or head.is_pull or head.gone or node in self._unresolved:
            return False
        return not is_dummy(self.texts.get(node).text)

    def leader(self, node: Node) -> Node:
        """Return the name of the cluster of an issue."""
        return self._clusters.strong.leader(node)

    def tied(self, one: Node, other: Node) -> bool:
        """Whether two issues belong to one cluster, be it over copies of their texts, or a link ties them.

        A link that stands is enough, kept or not.
        """
        return self._alike.leader(one) == self._alike.leader(other) or unordered(one, other) in self._tied

    def fits(self, one: Node, other: Node, split: str) -> bool:
        """Whether two issues may make a negative pair in `split`: nothing ties them, and texts differ."""
        if one == other or self.tied(one, other) or self.scan.mentioned(one, other):
            return False
        if unordered(one, other) in self._said:
            return False
        if self.uses[other] >= _REUSED or not self.usable(other):
            return False
        if any(jaccard(self._words(kin), self._words(other)) >= _TOO_ALIKE for kin in self._kin(one)):
            return False
        if other not in self.places and any(self.tied(one, copy) for copy in self._near.neighbours(other)):
            return False
        return self.place(other, split)

    def timely(self, node: Node, split: str) -> bool:
        """Whether an issue was opened in the period of `split`; always where there are no periods."""
        return self._periods is None or self._periods.split_of(self.scan.heads[node].created_at) == split

    def place(self, node: Node, split: str) -> bool:
        """Give `node` its place in `split`; False if it, or a near-identical text, is in another one."""
        if not self.timely(node, split):
            return False
        if node in self.places:
            return self.places[node] == split
        if any(self.places[other] != split for other in self._near.neighbours(node)):
            return False
        self.places[node] = split
        for other in self._near.add(node):
            self._alike.join(node, other)
        return True

    def _kin(self, node: Node) -> list[Node]:
        """An issue and some of its cluster, the originals first."""
        members = self._members.get(self._clusters.every.leader(node), set()) - {node}
        return [node, *sorted(members, key=lambda kin: (kin not in self.originals, kin))[:_COMPARED]]

    def pool_around(self, split: str, repo_id: int, created_at: str, most: int) -> list[Node]:
        """Return up to `most` issues of positive pairs opened around a time, by distance in the order."""
        return list(_around(self._pool[split, repo_id], created_at, most))

    def others_around(self, split: str, repo_id: int, created_at: str, most: int) -> list[Node]:
        """Return up to `most` issues of no positive pair opened around a time, free for `split`."""
        found = _around(self._others[repo_id], created_at, 4 * most)
        return [node for node in found if self.places.get(node, split) == split][:most]

    @cached_property
    def _others(self) -> dict[int, list[tuple[str, Node]]]:
        found: dict[int, list[tuple[str, Node]]] = {repo_id: [] for repo_id in self.scan.repos}
        for node, head in self.scan.heads.items():
            if not (head.is_pull or head.gone or node in self.positive or node in self._unresolved):
                found[node[0]].append((head.created_at, node))
        for pool in found.values():
            pool.sort()
        return found


def _around(ordered: list[tuple[str, Node]], created_at: str, most: int) -> Iterator[Node]:
    """Yield the issues nearest to a time in the order of age, from both sides in turn."""
    middle = bisect_left(ordered, (created_at, (0, 0)))
    found = 0
    for step in range(len(ordered)):
        for position in (middle + step, middle - 1 - step):
            if 0 <= position < len(ordered):
                if found == most:
                    return
                found += 1
                yield ordered[position][1]
