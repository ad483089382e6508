"""Places issues in train, validation and test: joins what belongs together into groups, and divides these.

Together belong the issues of a cluster and near-identical texts. By `cluster` and `repo` the groups fill the
shares (`angle_data.splits`). By `time` every split is a period: a cluster is in that of its latest issue, a
pair of it that reaches back over the border is left out, and the pairs that remain come near the shares.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, zip_longest

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.gis.build.evidence import Head, Node
from angle_data.gis.build.links import Pair
from angle_data.gis.build.positives import Clusters
from angle_data.similar.near import NearSets
from angle_data.splits import fill_shares

_BORDERS = 60
_START, _END = "", "~"  # before and after every time stamp


@dataclass(frozen=True, slots=True)
class Places:
    """The split of every issue of a positive pair; with a split by time also the `find_periods`."""

    splits: dict[Node, str]
    periods: dict[str, str | None] = field(default_factory=dict)

    def timely(self, created_at: str, split: str) -> bool:
        """Whether a time lies in the period of `split`; always where there are no periods."""
        return not self.periods or split_at_time(self.periods, created_at) == split


def place_issues(
    heads: Mapping[Node, Head],
    clusters: Clusters,
    pairs: Sequence[Pair],
    near: NearSets[Node],
    *,
    shares: Mapping[str, float],
    by: str,
    seed: int,
) -> Places:
    """Place every issue that links connect, and index their texts in `near`.

    Clusters of which an issue is said to be no duplicate of one of the other go to one split, so that the
    pair can be kept. `shares` sum to 1; `by` is the value of --split-by.
    """
    groups: DisjointSets[Node] = DisjointSets()
    for edge in clusters.edges:
        groups.join(edge.duplicate, edge.canonical)
    nodes = sorted(clusters.issues)
    for node in nodes:
        for other in near.add(node):
            groups.join(node, other)
    for pair in clusters.denied if by == "cluster" else ():
        if {pair.one, pair.other} <= clusters.issues:
            groups.join(pair.one, pair.other)
    if by == "time":
        return _by_time(heads, groups, nodes, pairs, shares)
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
    splits = fill_shares(sizes, shares, seed=seed, few=by == "repo")
    return Places({node: splits[groups.leader(node)] for node in nodes})


def _by_time(
    heads: Mapping[Node, Head],
    groups: DisjointSets[Node],
    nodes: Iterable[Node],
    pairs: Iterable[Pair],
    shares: Mapping[str, float],
) -> Places:
    """Place every group by its youngest issue."""
    latest: defaultdict[Node, str] = defaultdict(str)
    for node in nodes:
        latest[groups.leader(node)] = max(latest[groups.leader(node)], heads[node].created_at)
    times = (
        (min(heads[pair.one].created_at, heads[pair.other].created_at), latest[groups.leader(pair.one)])
        for pair in pairs
    )
    periods = find_periods(times, shares)
    return Places({node: split_at_time(periods, latest[groups.leader(node)]) for node in nodes}, periods)


def split_at_time(periods: Mapping[str, str | None], created_at: str) -> str:
    """Return the split in whose period a time lies."""
    return next(split for split, last in periods.items() if last is None or created_at <= last)


def find_periods(pairs: Iterable[tuple[str, str]], shares: Mapping[str, float]) -> dict[str, str | None]:
    """Return the last moment of each split's period, None for the last, such that they come near `shares`.

    A pair is given by when its older issue was opened, and when the youngest issue of its cluster was.
    Nearest: the largest miss in whole percent is the smallest; then more pairs remain.
    """
    known = sorted(pairs, key=lambda pair: pair[1])
    names = tuple(shares)
    times = sorted({latest for _, latest in known})
    if len(times) > _BORDERS:  # as many as are tried, evenly spread; the last is among them
        times = [times[(i + 1) * len(times) // _BORDERS - 1] for i in range(_BORDERS)]
    if len(times) < len(names):
        return dict(zip_longest(names[: len(times)], times[:-1]))
    # The pairs that begin after a border, by the time that ends their cluster, in order.
    after = {low: [latest for oldest, latest in known if oldest > low] for low in (_START, *times[:-1])}

    def miss(borders: tuple[str, ...]) -> tuple[int, int]:
        kept = [bisect_right(after[low], high) for low, high in pairwise((_START, *borders, _END))]
        total = max(sum(kept), 1)
        worst = max(abs(count / total - share) for count, share in zip(kept, shares.values(), strict=True))
        return round(100 * worst), -total

    borders = min(combinations(times[:-1], len(names) - 1), key=miss)
    return dict(zip_longest(names, borders))
