"""Measures the rows as they are written, counts what a build kept and dropped, and draws the lengths."""

from __future__ import annotations

import logging
import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from angle_data.errors import InputError, MissingExtraError
from angle_data.gis.build.clean import CUT, MASKED, Texts
from angle_data.gis.build.dataset import PairRow
from angle_data.gis.build.evidence import Node, Statement
from angle_data.gis.build.links import Pair
from angle_data.gis.build.near import near_texts
from angle_data.gis.build.positives import HUB, Clusters
from angle_data.text import content_id, words

log = logging.getLogger("angle")

LIMIT = 512  # tokens that the common encoders read
USUAL = "google-bert/bert-base-uncased"  # the tokenizer of the paper's backbone, by its name on the hub
ESTIMATE = "estimate: a token for every 5 letters of a word begun and for every other sign"
_COMPARED = 20_000
_TOKEN = re.compile(r"[^\W_]{1,5}|[^\w\s]|_")
_SAMPLES = 3
_EXCERPT = 160


def token_counter(tokenizer: str | None, *, fetch: bool = False) -> tuple[str, Callable[[str], int]]:
    """Return the name of the tokenizer and a function that counts the tokens of a text, special ones aside.

    `tokenizer` is a `tokenizer.json`, a folder that holds one, a model's name on the hub, or `estimate`. None
    is `USUAL` where its file is in the hub's cache, or may be fetched (`fetch`), and `ESTIMATE` elsewhere.
    """
    estimate = ESTIMATE, lambda text: len(_TOKEN.findall(text))
    if tokenizer == "estimate":
        return estimate
    named = tokenizer or USUAL
    path = Path(named, "tokenizer.json") if Path(named).is_dir() else Path(named)
    try:
        from huggingface_hub import hf_hub_download
        from tokenizers import Tokenizer

        is_here = path.is_file()
        if not is_here:
            path = Path(hf_hub_download(named, "tokenizer.json", local_files_only=not (fetch or tokenizer)))
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the libraries raise what they like
        if tokenizer is None:
            return estimate
        if isinstance(error, ImportError):
            raise MissingExtraError("--tokenizer", "train") from None
        why = str(error).partition("\n")[0]
        raise InputError(
            f"--tokenizer {tokenizer}: cannot read a tokenizer ({why}); give tokenizer.json, its "
            "folder, or a hub name"
        ) from None
    loaded.no_truncation()
    loaded.no_padding()
    name = path.parent.name or str(path) if is_here else named
    return name, lambda text: len(loaded.encode(text, add_special_tokens=False).ids)


@dataclass
class Measures:
    """Sums over rows; `lengths` are tokens of text1 and text2 in turn, by split.

    `pairs` are the kinds and sets of words (as hashes) of the first `_COMPARED` rows, `texts` the sets that
    these have, by text. `masked` counts the pairs of each kind by how many references their texts have had.
    """

    tokenizer: str
    count: Callable[[str], int]
    lengths: defaultdict[str, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("I")))
    repositories: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    pairs: list[tuple[str, frozenset[int], frozenset[int]]] = field(default_factory=list)
    texts: dict[str, frozenset[int]] = field(default_factory=dict)
    masked: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    cut: set[str] = field(default_factory=set)
    samples: defaultdict[str, list[PairRow]] = field(default_factory=lambda: defaultdict(list))

    def add(self, split: str, row: PairRow) -> None:
        """Take a row with texts into account."""
        label, texts = row["label"], (row["text1"], row["text2"])
        self.lengths[split].extend(map(self.count, texts))
        self.cut |= {content_id(text) for text in texts if text.endswith(CUT)}
        self.masked[row["kind"]][sum(text.count(MASKED) for text in texts)] += 1
        self.repositories[row["repo"]]["positives" if label else "negatives"] += 1
        if len(self.samples[row["kind"]]) < _SAMPLES:
            self.samples[row["kind"]].append(row)
        if len(self.pairs) < _COMPARED:
            for text in texts:
                found = frozenset(crc32(word.encode()) for word in words(text))
                self.texts.setdefault(content_id(text), found)
            one_bag, other_bag = (self.texts[content_id(text)] for text in texts)
            self.pairs.append((row["kind"], one_bag, other_bag))

    def summary(self) -> dict[str, Any]:
        """Return what the rows have in common; shares are in percent.

        `repositories` has the positives and negatives of each, the one with most pairs first; `tokens` the
        statistics of each split; `lexical` is from `_lexical`, `placeholder` from `_placeholder`; `texts_cut`
        says how many texts were longer than `clean.LONGEST_TEXT`; `samples` are the first pairs of each kind,
        whose order is random.
        """
        repositories = sorted(self.repositories.items(), key=lambda item: (-item[1].total(), item[0]))
        return {
            "repositories": {name: dict(sorted(found.items())) for name, found in repositories},
            "tokens": {"tokenizer": self.tokenizer} | {k: _lengths(v) for k, v in self.lengths.items()},
            "lexical": self._lexical(),
            "placeholder": self._placeholder(),
            "texts_cut": len(self.cut),
            "samples": {kind: list(map(_sample, rows)) for kind, rows in sorted(self.samples.items())},
        }

    def _lexical(self) -> dict[str, float]:
        """How well the words that two texts share tell duplicates from each kind of negative.

        The area under the ROC curve, where 0.5 is chance. The score of a pair is the Jaccard index of its two
        sets of words, each word weighted by its inverse document frequency.
        """
        often = Counter(word for bag in self.texts.values() for word in bag)
        weight = {word: math.log(len(self.texts) / count) for word, count in often.items()}
        scores: defaultdict[str, list[float]] = defaultdict(list)
        for kind, one, other in self.pairs:
            whole = math.fsum(weight[word] for word in one | other)
            scores[kind].append(math.fsum(weight[word] for word in one & other) / whole if whole else 0.0)
        positives = scores.pop("duplicate", [])
        return {kind: _area(positives, others) for kind, others in sorted(scores.items()) if positives}

    def _placeholder(self) -> dict[str, dict[str, float]]:
        """How well the placeholders of masked references alone tell duplicates from negatives.

        For duplicates and negatives the share of pairs with one, in percent; and the area under the ROC
        curve (0.5 is chance) by whether there is one (`presence`) and by how many there are (`count`).
        """
        positives = self.masked.get("duplicate", Counter())
        negatives: Counter[int] = sum(
            (found for kind, found in self.masked.items() if kind != "duplicate"), Counter()
        )
        if not (positives and negatives):
            return {}
        both = [sorted(found.elements()) for found in (positives, negatives)]
        shares = (round(100 * sum(map(bool, counts)) / len(counts), 2) for counts in both)
        present = [[float(count > 0) for count in counts] for counts in both]
        return {
            "pairs_with_one": dict(zip(("duplicates", "negatives"), shares, strict=True)),
            "auc": {"presence": _area(*present), "count": _area(*both)},
        }


def _area(positives: Sequence[float], others: Sequence[float]) -> float:
    """Return the area under the ROC curve of scores of duplicates and of others; none may be empty."""
    ordered = sorted(positives)
    # Twice the comparisons that a positive loses; a draw is lost by half.
    lost = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in others)
    comparisons = 2 * len(ordered) * len(others)
    return round((comparisons - lost) / comparisons, 3)


def _sample(row: PairRow) -> dict[str, str]:
    """What the card shows of a pair; a data set without texts has no excerpts."""
    found = {name: row[name] for name in ("url1", "url2", "evidence", "evidence_url")}
    for side in "12":
        text = " ".join(row.get(f"text{side}", "").split())
        found[f"excerpt{side}"] = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} ..."
    return found


def link_counts(links: Sequence[Statement]) -> dict[str, Any]:
    """Return how many statements were accepted, and the others by reason; they add up to `statements`."""
    by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for link in links:
        by_status[link.status][link.reason or link.evidence] += 1
    return {
        "statements": len(links),
        "accepted": by_status["accepted"].total(),
        "tentative": _sorted(by_status["tentative"]),
        "rejected": _sorted(by_status["rejected"]),
        "by_evidence": _sorted(by_status["accepted"]),
    }


def cluster_counts(clusters: Clusters) -> dict[str, int]:
    """Return how many clusters there are and how large they get."""
    sizes = [size for size in clusters.sizes().values() if size > 1]
    hubs = sum(size > HUB for size in sizes)
    return {"clusters": len(sizes), "issues": sum(sizes), "largest": max(sizes, default=0), "hubs": hubs}


def pair_counts(splits: Mapping[str, Sequence[Pair]]) -> dict[str, dict[str, int]]:
    """Return for each split the positives, negatives, pairs and issues, and the negatives of each kind."""
    found: dict[str, dict[str, int]] = {}
    for name, pairs in splits.items():
        kinds = Counter(pair.kind for pair in pairs if not pair.label)
        issues = {node for pair in pairs for node in (pair.one, pair.other)}
        counts = {"positives": len(pairs) - kinds.total(), "negatives": kinds.total(), "pairs": len(pairs)}
        found[name] = {**counts, "issues": len(issues), **_sorted(kinds)}
    return found


def check_splits(splits: Mapping[str, list[Pair]], clusters: Clusters, texts: Texts) -> dict[str, int]:
    """Count what is in two splits: issues, clusters, and near-identical texts; all should be 0."""
    places: defaultdict[Node, set[str]] = defaultdict(set)
    groups: defaultdict[Node, set[str]] = defaultdict(set)
    for name, pairs in splits.items():
        for pair in pairs:
            for node in (pair.one, pair.other):
                places[node].add(name)
                groups[clusters.every.leader(node)].add(name)
    near = near_texts(texts, places)
    straddling = 0
    for node in sorted(places):
        straddling += any(places[other] != places[node] for other in near.add(node))
    return {
        "shared_issues": sum(len(found) > 1 for found in places.values()),
        "shared_clusters": sum(len(found) > 1 for found in groups.values()),
        "near_identical_texts": straddling,
    }


def _lengths(found: array[int]) -> dict[str, float]:
    ordered = sorted(found)
    longer = list(map(max, found[::2], found[1::2]))

    def over(lengths: Collection[int]) -> float:
        return round(100 * sum(length > LIMIT for length in lengths) / len(lengths), 2)

    return {
        "texts": len(found),
        "mean": round(sum(found) / len(found), 1),
        "median": ordered[len(ordered) // 2],
        "p95": ordered[int(0.95 * (len(ordered) - 1))],
        "max": ordered[-1],
        f"texts_over_{LIMIT}": over(ordered),
        f"pairs_with_a_text_over_{LIMIT}": over(longer),
    }


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def draw_lengths(path: Path, lengths: Mapping[str, Sequence[int]], tokens: Mapping[str, Any]) -> bool:
    """Draw the lengths of every split, the middle half and nine tenths; False if that is not installed."""
    try:
        import matplotlib  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        log.warning("figures are left out: %s", MissingExtraError("drawing them", "figures"))
        return False
    names = [f"{name}\n{tokens[name][f'texts_over_{LIMIT}']} % > {LIMIT}" for name in lengths]
    figure = Figure(figsize=(1.6 * len(lengths) + 3, 4), layout="constrained", dpi=120)
    axes = figure.subplots()
    axes.boxplot(list(map(list, lengths.values())), whis=(5, 95), showfliers=False)
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.set_yscale("symlog")  # a few issues hold whole log files
    axes.axhline(LIMIT, color="tab:red", linewidth=1)
    axes.set_ylabel("tokens a text")
    axes.set_title(tokens["tokenizer"], fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": None})
    return True
