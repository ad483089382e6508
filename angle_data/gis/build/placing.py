"""Places issues in splits: what belongs together is joined into groups, and the groups are divided.

Together belong the issues of a cluster, near-identical texts and, while groups stay small, pairs that were
said to be none. How the shares come about is the business of `splits`, and by time of `periods`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.gis.build.clusters import Clusters, unordered
from angle_data.gis.build.near import NearTexts
from angle_data.gis.build.negatives import Spoken
from angle_data.gis.build.positives import Pair
from angle_data.gis.build.periods import Periods, find_periods
from angle_data.gis.build.scan import Head
from angle_data.gis.build.splits import assign_splits
from angle_data.gis.build.texts import Node

_LARGEST_GROUP = 60  # spoken pairs join groups no further than this, so that no group swallows the others


@dataclass(frozen=True, slots=True)
class Places:
    """The split of every issue of a positive or spoken pair; with a split by time also the periods."""

    splits: dict[Node, str]
    periods: Periods | None = None

    def crosses(self, pair: Pair, heads: Mapping[Node, Head]) -> bool:
        """Whether an issue of the pair was opened in another period than that of their split."""
        if self.periods is None:
            return False
        times = (heads[pair.one].created_at, heads[pair.other].created_at)
        return any(self.periods.split_of(time) != self.splits[pair.one] for time in times)


def place_issues(
    heads: Mapping[Node, Head],
    clusters: Clusters,
    pairs: Iterable[Pair],
    spoken: Iterable[Spoken],
    near: NearTexts,
    *,
    by: str,
    shares: Mapping[str, float],
    seed: int,
) -> Places:
    """Place every issue of a positive or spoken pair, and index their texts in `near`.

    Raises:
        InputError: Splits by repository need more repositories than there are.
    """
    groups: DisjointSets[Node] = DisjointSets()
    for edge in clusters.edges:
        groups.join(edge.duplicate, edge.canonical)
    positive = {node for edge in clusters.edges for node in (edge.duplicate, edge.canonical)}
    nodes = sorted(positive | {node for pair in spoken for node in (pair.one, pair.other)})
    for node in nodes:
        for other in near.add(node):
            groups.join(node, other)
    if by == "time":
        return _by_time(heads, groups, nodes, list(pairs), positive, shares)
    _join_spoken(groups, nodes, spoken)
    if by == "repo":
        first: dict[int, Node] = {}
        for node in nodes:
            groups.join(first.setdefault(node[0], node), node)
    weights = Counter(groups.leader(pair.one) for pair in pairs)
    if by == "repo" and len(weights) < len(shares):
        raise InputError(
            f"--split-by repo needs duplicates in at least {len(shares)} repositories, found {len(weights)}; "
            "crawl more repositories, or split by cluster"
        )
    sizes = {leader: weights[leader] for leader in {groups.leader(node) for node in nodes}}
    splits = assign_splits(sizes, shares, by=by, seed=seed)
    return Places({node: splits[groups.leader(node)] for node in nodes})


def _by_time(
    heads: Mapping[Node, Head],
    groups: DisjointSets[Node],
    nodes: Iterable[Node],
    pairs: list[Pair],
    positive: set[Node],
    shares: Mapping[str, float],
) -> Places:
    """Place every group by its youngest issue of a positive pair, or of any where it has none."""
    latest: dict[Node, tuple[bool, str]] = {}
    for node in nodes:
        leader = groups.leader(node)
        latest[leader] = max(latest.get(leader, (False, "")), (node in positive, heads[node].created_at))

    def times(pair: Pair) -> tuple[str, str]:
        oldest = min(heads[pair.one].created_at, heads[pair.other].created_at)
        return oldest, latest[groups.leader(pair.one)][1]

    periods = find_periods(map(times, pairs), shares)
    return Places({node: periods.split_of(latest[groups.leader(node)][1]) for node in nodes}, periods)


def _join_spoken(groups: DisjointSets[Node], nodes: Iterable[Node], spoken: Iterable[Spoken]) -> None:
    """Bring the issues of spoken pairs into one split, as long as the groups stay small."""
    sizes = Counter(groups.leader(node) for node in nodes)
    for pair in sorted(spoken, key=lambda pair: unordered(pair.one, pair.other)):
        one, other = groups.leader(pair.one), groups.leader(pair.other)
        if one != other and sizes[one] + sizes[other] <= _LARGEST_GROUP:
            groups.join(one, other)
            sizes[groups.leader(one)] = sizes[one] + sizes[other]
