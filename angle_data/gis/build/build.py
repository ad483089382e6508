"""Builds the data set from what was crawled: links, clusters, pairs, splits, rows and the evidence.

A pure function of the store, the options and the seed: the same bytes every time. Uses no network.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import AngleError, InputError, MissingExtraError
from angle_data.gis.build.candidates import Candidates
from angle_data.gis.build.card import render_gis_card
from angle_data.gis.build.clusters import Clusters, find_clusters
from angle_data.gis.build.dataset import COLUMNS, IDS_COLUMNS, Row, write_rows
from angle_data.gis.build.figures import draw_figures
from angle_data.gis.build.links import Link, judge
from angle_data.gis.build.near import NearTexts
from angle_data.gis.build.negatives import draw_negatives, spoken_pairs
from angle_data.gis.build.positives import Pair, positive_pairs
from angle_data.gis.build.placing import Places, place_issues
from angle_data.gis.build.report import Measures, check_splits, cluster_counts, link_counts, pair_counts
from angle_data.gis.build.scan import Scan, scan_store
from angle_data.gis.crawl.selection import Selection
from angle_data.gis.build.splits import SPLIT_BY, check_ratios, missed_shares
from angle_data.gis.crawl.store import STORE_NAME, Store
from angle_data.gis.build.texts import Node, Texts
from angle_data.gis.build.tokens import token_counter
from angle_data.jsonl import replace_file, write_jsonl
from angle_data.locking import hold
from angle_data.text import content_id, stable_hash

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """What to build from `out`/crawl.sqlite; checks itself.

    `negatives` are wanted for each positive pair. `split_by` is `cluster`, `time` or `repo`, `ratios` the
    shares of train, validation and test. `max_pairs_per_cluster` bounds the positive pairs of a cluster.
    `cross_repo` allows duplicates in two repositories. `ids_only` leaves the texts out. `tokenizer` is a
    tokenizer file for the statistics of lengths (see `tokens`). `selection` says what of the store counts.
    """

    out: Path
    seed: int = 0
    negatives: float = 1.0
    split_by: str = "cluster"
    ratios: tuple[float, ...] = (0.86, 0.07, 0.07)
    max_pairs_per_cluster: int = 10
    cross_repo: bool = False
    ids_only: bool = False
    tokenizer: str | None = None
    selection: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        if self.split_by not in SPLIT_BY:
            raise InputError(f"--split-by must be one of {', '.join(SPLIT_BY)}, got {self.split_by!r}")
        if not 0 <= self.negatives <= 100:
            raise InputError(f"--negatives must be between 0 and 100, got {self.negatives:g}")
        if self.max_pairs_per_cluster < 1:
            raise InputError(f"--max-pairs-per-cluster must be at least 1, got {self.max_pairs_per_cluster}")
        check_ratios(self.ratios)


@dataclass(frozen=True, slots=True)
class GisSummary:
    """What was built: `counts` in short, the folder of the data set, and the whole report."""

    counts: dict[str, int]
    dataset: Path
    report: dict[str, Any]


def build_gis(config: BuildConfig) -> GisSummary:
    """Write `dataset/`, `audit/`, `report.json` and `figures/` to `config.out`; the card shows the figures.

    Raises:
        InputError: There is no store, nothing in it makes a pair, or an option cannot be met.
    """
    name, count = token_counter(config.tokenizer)
    measures = Measures(name, count)
    with Store.open(config.out / STORE_NAME, read_only=True) as store, hold(config.out):
        texts = Texts(store)
        with Progress("issues read", store.count("issues")) as progress:
            scan = scan_store(
                store, lambda repo, done: progress.advance(done, repo), selection=config.selection
            )
        return _Build(config, scan, texts, measures).run()


class _Build:
    """One build; the methods are its steps."""

    def __init__(self, config: BuildConfig, scan: Scan, texts: Texts, measures: Measures) -> None:
        self._config, self._scan, self._texts, self._measures = config, scan, texts, measures
        self._changes: dict[Node, frozenset[str]] = {}

    def run(self) -> GisSummary:
        """Do everything in order."""
        config, scan, texts = self._config, self._scan, self._texts
        links = judge(scan, scan.statements, texts, cross_repo=config.cross_repo)
        clusters = find_clusters(links)
        pairs, dropped, hubs = positive_pairs(
            clusters, texts, most=config.max_pairs_per_cluster, seed=config.seed
        )
        if not pairs:
            _write_audit(config.out / "audit", scan, links, dropped)
            raise InputError(_nothing(config, scan))
        spoken, mute = spoken_pairs(scan)
        near, shares = NearTexts(texts), check_ratios(config.ratios)
        places = place_issues(
            scan.heads, clusters, pairs, spoken, near, by=config.split_by, shares=shares, seed=config.seed
        )
        dropped += [("crosses_time_border", pair) for pair in pairs if places.crosses(pair, scan.heads)]
        pairs = [pair for pair in pairs if not places.crosses(pair, scan.heads)]
        _write_audit(config.out / "audit", scan, links, dropped)
        positives: dict[str, list[Pair]] = {split: [] for split in shares}
        for pair in pairs:
            positives[places.splits[pair.one]].append(pair)
        missed = missed_shares({name: len(found) for name, found in positives.items()}, shares)
        if missed:
            log.warning("shares of the positive pairs: %s; see --ratios, or crawl more", missed)
        candidates = Candidates(scan, clusters, links, texts, near, places.splits, places.periods)
        negatives, vain = draw_negatives(
            positives, candidates, spoken, ratio=config.negatives, seed=config.seed,
            tell=lambda repo: log.debug("%s: negatives drawn", repo),
        )  # fmt: skip
        splits = {name: [*positives[name], *negatives[name]] for name in positives}
        for name in [name for name, found in splits.items() if not found]:
            log.warning("no pairs for %s: too few clusters for its share; it is left out", name)
            del splits[name]
        report: dict[str, Any] = {
            "options": _options(config),
            "left_out": scan.left_out,
            "store": {"repositories": len(scan.repos), "issues": len(scan.heads), "comments": scan.comments},
            "links": link_counts(links, clusters),
            "clusters": cluster_counts(clusters),
            "pairs": _drops(pairs, dropped, hubs),
            "negatives": _negative_counts(negatives, clusters, vain, mute),
            "splits": pair_counts(splits),
            "periods": _periods(places),
            "checks": check_splits(splits, clusters, texts),
        }
        if any(report["checks"].values()):
            raise AngleError(_leaks(report["checks"]))
        return self._write(splits, report)

    def _write(self, splits: Mapping[str, list[Pair]], report: dict[str, Any]) -> GisSummary:
        config, measures = self._config, self._measures
        columns = IDS_COLUMNS if config.ids_only else COLUMNS

        def card(folder: Path) -> str:
            repositories = sorted(measures.repositories.items(), key=lambda item: (-item[1].total(), item[0]))
            report["repositories"] = {name: dict(sorted(found.items())) for name, found in repositories}
            report["tokens"], report["overlap"] = measures.tokens(), measures.overlap()
            report["cleaning"] = self._cleaning()
            figures = self._figures(folder, report)
            return render_gis_card(report, ids_only=config.ids_only, figures=figures)

        dataset = config.out / "dataset"
        write_rows(dataset, {name: self._rows(name, pairs) for name, pairs in splits.items()}, columns, card)
        with replace_file(config.out / "report.json") as stream:
            stream.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
        return GisSummary(_summary(report), dataset, report)

    def _figures(self, folder: Path, report: Mapping[str, Any]) -> tuple[str, ...]:
        """Draw the figures, beside the data set and in its `folder` for the card; return their names."""
        figures = self._config.out / "figures"
        try:
            names = draw_figures(figures, self._measures.lengths, report)
        except MissingExtraError as error:
            log.warning("no figures: %s", error)
            return ()
        (folder / "figures").mkdir()
        for name in names:
            shutil.copyfile(figures / name, folder / "figures" / name)
        return names

    def _rows(self, split: str, pairs: Iterable[Pair]) -> Iterator[Row]:
        """Yield the rows of a split in random order, and measure them on the way."""
        scan, seed = self._scan, self._config.seed
        for pair in sorted(pairs, key=lambda pair: stable_hash(f"{seed} row {pair.one} {pair.other}")):
            one, other = self._text(pair.one), self._text(pair.other)
            leader = pair.cluster
            row = {
                "text1": one,
                "text2": other,
                "label": pair.label,
                "repo": scan.repos[pair.one[0]].name,
                "number1": pair.one[1],
                "number2": pair.other[1],
                "url1": scan.url(pair.one),
                "url2": scan.url(pair.other),
                "created1": scan.heads[pair.one].created_at,
                "created2": scan.heads[pair.other].created_at,
                "kind": pair.kind,
                "evidence": pair.evidence,
                "evidence_url": pair.evidence_url,
                "cluster": f"{scan.repos[leader[0]].name}#{leader[1]}",
            }
            self._measures.add(split, row)
            if self._config.ids_only:
                del row["text1"], row["text2"]
                row |= {"hash1": content_id(one), "hash2": content_id(other)}
            yield row

    def _text(self, node: Node) -> str:
        cleaned = self._texts.get(node)
        self._changes[node] = cleaned.changes
        return cleaned.text

    def _cleaning(self) -> dict[str, Any]:
        total = len(self._changes)
        counts = Counter(change for found in self._changes.values() for change in found)
        changed = sum(bool(found) for found in self._changes.values())
        shares = {name: round(100 * count / total, 2) for name, count in sorted(counts.items())}
        return {"texts": total, "share_changed": round(100 * changed / total, 2), "by_change_percent": shares}


def _write_audit(folder: Path, scan: Scan, links: list[Link], dropped: list[tuple[str, Pair]]) -> None:
    for status, name in (("accepted", "links"), ("tentative", "tentative")):
        found = (link.to_dict(scan) for link in links if link.status == status)
        write_jsonl(folder / f"{name}.jsonl", found)
    rejected = [link.to_dict(scan) for link in links if link.status == "rejected"]
    pairs = [
        {"status": "rejected", "reason": reason, "source": "pair", "evidence": pair.evidence,
         "duplicate": scan.url(pair.one), "canonical": scan.url(pair.other)}
        for reason, pair in dropped
    ]  # fmt: skip
    write_jsonl(folder / "rejected.jsonl", [*rejected, *pairs])


def _options(config: BuildConfig) -> dict[str, Any]:
    names = ("seed", "negatives", "split_by", "max_pairs_per_cluster", "cross_repo", "ids_only")
    repos = config.selection.repos
    selection = {**asdict(config.selection), "repos": None if repos is None else list(repos)}
    return {**{name: getattr(config, name) for name in names}, "ratios": list(config.ratios), **selection}


def _periods(places: Places) -> dict[str, str | None]:
    """The last moment of the period of every split; None is open."""
    periods = places.periods
    return dict(zip_longest(periods.splits, periods.borders)) if periods else {}


def _nothing(config: BuildConfig, scan: Scan) -> str:
    left_out = f"; left out: {', '.join(scan.left_out)}" if scan.left_out else ""
    return (
        f"{config.out / STORE_NAME}: no duplicates among {len(scan.heads)} issues with "
        f"{scan.comments} comments; see audit/ for what was rejected, and crawl more{left_out}"
    )


def _leaks(checks: Mapping[str, int]) -> str:
    found = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in checks.items() if count)
    return f"nothing written, for the splits are not apart ({found}); please report this defect"


def _drops(pairs: list[Pair], dropped: list[tuple[str, Pair]], hubs: int) -> dict[str, Any]:
    counts = Counter(reason for reason, _ in dropped) + Counter(hub=hubs)
    return {
        "possible": len(pairs) + counts.total(),
        "kept": len(pairs),
        "transitive": sum(pair.evidence == "transitive" for pair in pairs),
        "dropped": dict(sorted(counts.items())),
    }


def _negative_counts(
    negatives: Mapping[str, list[Pair]], clusters: Clusters, vain: Counter[str], mute: Counter[str]
) -> dict[str, Any]:
    positive = {node for edge in clusters.edges for node in (edge.duplicate, edge.canonical)}
    found = [pair for pairs in negatives.values() for pair in pairs]
    originals = {edge.canonical for edge in clusters.edges}
    both = sum(pair.one in positive and pair.other in positive for pair in found)
    second = sum(pair.other in originals for pair in found)
    return {
        "kept": len(found),
        "kinds": dict(sorted(Counter(pair.kind for pair in found).items())),
        "both_sides_in_positives_percent": round(100 * both / max(len(found), 1), 2),
        "second_is_an_original_percent": round(100 * second / max(len(found), 1), 2),
        "dropped": {**dict(sorted(vain.items())), **{f"denial_{k}": v for k, v in sorted(mute.items())}},
    }


def _summary(report: Mapping[str, Any]) -> dict[str, int]:
    links, splits = report["links"], report["splits"]
    counts = {
        "links_accepted": links["accepted"],
        "links_tentative": sum(links["tentative"].values()),
        "links_rejected": sum(links["rejected"].values()),
        "clusters": report["clusters"]["clusters"],
        "pairs_left_out": sum(report["pairs"]["dropped"].values()),
        "positives": sum(found["positives"] for found in splits.values()),
        "negatives": sum(found["negatives"] for found in splits.values()),
    }
    return {**counts, **{name: found["pairs"] for name, found in splits.items()}}
