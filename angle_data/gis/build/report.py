"""Measures the rows as they are written, and puts all counts of a build into one report."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from angle_data.gis.build.clusters import HUB, Clusters
from angle_data.gis.build.dataset import Row
from angle_data.gis.build.links import Link
from angle_data.gis.build.near import NearTexts
from angle_data.gis.build.positives import Pair
from angle_data.gis.build.texts import Node, Texts
from angle_data.text import jaccard, normalise

LIMIT = 512
"""Tokens that the common encoders read; the paper's long texts have more."""


@dataclass
class Measures:
    """Sums over rows. `lengths` are tokens of text1 and text2 in turn, by split."""

    tokenizer: str
    count: Callable[[str], int]
    lengths: defaultdict[str, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("I")))
    overlaps: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0] * 3))
    labels: Counter[int] = field(default_factory=Counter)
    repositories: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, split: str, row: Row) -> None:
        """Take a row with texts into account."""
        self.lengths[split].extend((self.count(row["text1"]), self.count(row["text2"])))
        one, other = row["text1"].casefold().split(), row["text2"].casefold().split()
        for n in (1, 2, 3):
            self.overlaps[row["label"]][n - 1] += jaccard(_ngrams(one, n), _ngrams(other, n))
        self.labels[row["label"]] += 1
        self.repositories[row["repo"]]["positives" if row["label"] else "negatives"] += 1

    def tokens(self) -> dict[str, Any]:
        """Return the token statistics of each split; shares are in percent."""
        by_split = {name: _lengths(found) for name, found in self.lengths.items()}
        return {"tokenizer": self.tokenizer, **by_split}

    def overlap(self) -> dict[str, dict[str, float]]:
        """Return the mean Jaccard index (percent) of the pairs' word n-grams, by label and n."""
        return {
            "duplicates" if label else "non-duplicates": {
                f"{n}-gram": round(100 * total / self.labels[label], 1)
                for n, total in enumerate(self.overlaps[label], start=1)
            }
            for label in sorted(self.labels, reverse=True)
        }


def link_counts(links: Iterable[Link], clusters: Clusters) -> dict[str, Any]:
    """Return how many statements were accepted, and the others by reason; they add up to `statements`."""
    by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for link in links:
        by_status[link.status][link.reason or link.evidence] += 1
    accepted = by_status["accepted"]
    return {
        "statements": sum(sum(found.values()) for found in by_status.values()),
        "accepted": sum(accepted.values()),
        "tentative": _sorted(by_status["tentative"]),
        "rejected": _sorted(by_status["rejected"]),
        "by_evidence": _sorted(accepted),
        "repeated": clusters.repeated,
        "edges": len(clusters.edges),
        "circles": clusters.circles,
    }


def cluster_counts(clusters: Clusters) -> dict[str, int]:
    """Return how many clusters there are and how large they get."""
    sizes = [size for size in clusters.sizes().values() if size > 1]
    hubs = sum(size > HUB for size in sizes)
    return {"clusters": len(sizes), "issues": sum(sizes), "largest": max(sizes, default=0), "hubs": hubs}


def pair_counts(splits: Mapping[str, Iterable[Pair]]) -> dict[str, dict[str, int]]:
    """Return for each split the positives, the negatives, the pairs of each kind and the issues."""
    found: dict[str, dict[str, int]] = {}
    for name, pairs in splits.items():
        kinds = Counter(pair.kind for pair in pairs)
        issues = {node for pair in pairs for node in (pair.one, pair.other)}
        positives = kinds["duplicate"]
        total = sum(kinds.values())
        found[name] = {"positives": positives, "negatives": total - positives, "pairs": total}
        found[name] |= {"issues": len(issues), **_sorted(kinds)}
    return found


def check_splits(splits: Mapping[str, list[Pair]], clusters: Clusters, texts: Texts) -> dict[str, int]:
    """Count what is in two splits: issues, clusters, and near-identical texts; all should be 0.

    The search for near-identical texts uses other hash functions than the build, and none for copies.
    """
    places: defaultdict[Node, set[str]] = defaultdict(set)
    groups: defaultdict[Node, set[str]] = defaultdict(set)
    for name, pairs in splits.items():
        for pair in pairs:
            for node in (pair.one, pair.other):
                places[node].add(name)
                groups[clusters.every.leader(node)].add(name)
    near, straddling = NearTexts(texts, "check"), 0
    copies: defaultdict[bytes, set[str]] = defaultdict(set)
    for node in sorted(places):
        seen = copies[sha256(normalise(texts.get(node).text).encode()).digest()]
        alike = any(places[other] != places[node] for other in near.add(node))
        straddling += alike or bool(seen - places[node])
        seen |= places[node]
    return {
        "shared_issues": sum(len(found) > 1 for found in places.values()),
        "shared_clusters": sum(len(found) > 1 for found in groups.values()),
        "near_identical_texts": straddling,
    }


def _lengths(found: array[int]) -> dict[str, float]:
    ordered = sorted(found)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return {
        "texts": len(found),
        "mean": round(sum(found) / len(found), 1),
        "median": ordered[len(ordered) // 2],
        "p95": ordered[int(0.95 * (len(ordered) - 1))],
        "max": ordered[-1],
        f"texts_over_{LIMIT}": _percent(length > LIMIT for length in found),
        f"pairs_with_a_text_over_{LIMIT}": _percent(max(pair) > LIMIT for pair in pairs),
    }


def _percent(said: Iterable[bool]) -> float:
    values = list(said)
    return round(100 * sum(values) / len(values), 2)


def _ngrams(words: list[str], n: int) -> frozenset[str]:
    return frozenset(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
