"""Builds the data set from what was crawled: links, clusters, pairs, splits, rows and the evidence.

A pure function of the store, the options and the seed: the same bytes every time. Uses no network.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import AngleError, InputError
from angle_data.gis.build.answers import Answers
from angle_data.gis.build.card import render_gis_card
from angle_data.gis.build.clean import Texts
from angle_data.gis.build.dataset import COLUMNS, IDS_COLUMNS, PairRow, write_forms
from angle_data.gis.build.evidence import Scan, Statement, scan_store
from angle_data.gis.build.links import Pair, denied_pairs, judge_links
from angle_data.gis.build.near import near_texts
from angle_data.gis.build.negatives import Candidates, draw_negatives
from angle_data.gis.build.positives import find_clusters, positive_pairs
from angle_data.gis.build.report import (
    Measures,
    check_splits,
    cluster_counts,
    draw_lengths,
    link_counts,
    pair_counts,
    token_counter,
)
from angle_data.gis.build.splits import place_issues
from angle_data.gis.comments.readings import Readings
from angle_data.gis.crawl.ledger import CrawlLedger
from angle_data.gis.crawl.selection import GisConfig, Selection
from angle_data.gis.crawl.store import STORE_NAME, Store
from angle_data.jsonl import write_json, write_jsonl
from angle_data.locking import hold
from angle_data.publish.dataset import write_rows
from angle_data.splits import check_ratios, missed_shares
from angle_data.text import content_id, stable_hash

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class GisSummary:
    """What was built: `counts` in short, the folder of the data set, the whole report, and its ledger."""

    counts: dict[str, int]
    dataset: Path
    report: dict[str, Any]
    ledger: CrawlLedger


def build_gis(config: GisConfig, answers: Answers | None = None) -> GisSummary:
    """Write `dataset/`, `audit/`, `report.json` and `figures/` to `config.out`; the card shows the figures.

    `answers` are what an annotator said of doubtful comments.
    An `InputError` if there is no store, nothing in it makes a pair, or an option cannot be met.
    """
    measures = Measures(*token_counter(config.tokenizer))
    selection = config.selection()
    dataset = config.out / "dataset"
    figure = "figures/token-lengths.png"
    with Store.open(config.out / STORE_NAME, read_only=True) as store, hold(config.out):
        with Progress("issues read", store.count("issues")) as progress, Readings(config.out) as readings:
            scan = scan_store(
                store,
                lambda repo: progress.advance(1, repo),
                selection=selection,
                read=readings.read,
                answers=answers,
            )
        texts = Texts(store, scan.forms)
        unfinished = [one.name for one in scan.ledger.repositories if one.used and one.read == "unfinished"]
        if unfinished:
            names = ", ".join(unfinished[:5]) + (" ..." if len(unfinished) > 5 else "")
            log.warning("not read to the end: %s; run without --no-crawl to continue", names)
        splits, report = _pairs(config, scan, texts)
        report = {
            "options": _options(config, selection, scan.answers),
            **report,
            "ledger": scan.ledger.report(),
        }
        if scan.answers.model:
            report["asked"] = {"model": scan.answers.model, **scan.answers.counts()}

        def card(folder: Path) -> str:
            report.update(measures.summary())
            drawn = draw_lengths(config.out / figure, measures.lengths, report["tokens"])
            if drawn:
                (folder / "figures").mkdir()
                shutil.copyfile(config.out / figure, folder / figure)
            write_forms(folder, {scan.repos[repo].name: lines for repo, lines in scan.forms.items()})
            return render_gis_card(report, figures=[Path(figure).name] if drawn else [])

        rows = {name: _rows(config, scan, texts, measures, name, pairs) for name, pairs in splits.items()}
        write_rows(dataset, rows, IDS_COLUMNS if config.ids_only else COLUMNS, card)
    write_json(config.out / "report.json", report)
    links, pairs = report["links"], report["pairs"]
    counts = {
        "links_accepted": links["accepted"],
        **{f"links_{status}": sum(links[status].values()) for status in ("tentative", "rejected")},
        "clusters": report["clusters"]["clusters"],
        "pairs_left_out": sum(pairs["dropped"].values()),
        "positives": pairs["kept"],
        "negatives": report["negatives"]["kept"],
        **{name: found["pairs"] for name, found in report["splits"].items()},
    }
    return GisSummary(counts, dataset, report, scan.ledger)


def _pairs(config: GisConfig, scan: Scan, texts: Texts) -> tuple[dict[str, list[Pair]], dict[str, Any]]:
    """Return the pairs of every split that has some, and the counts; write the audit."""
    # Who duplicates whom.
    links = judge_links(scan, texts, cross_repo=config.cross_repo)
    clusters = find_clusters(links)
    pairs, dropped, hubs = positive_pairs(
        clusters, texts, most=config.max_pairs_per_cluster, seed=config.seed
    )
    if not pairs:
        _write_audit(config.out / "audit", scan, links, dropped)
        raise InputError(
            f"{config.out / STORE_NAME}: no duplicates among {len(scan.heads)} issues with {scan.comments} "
            "comments; see audit/ for what was rejected, check --repos and --archive, or crawl more; "
            f"left out: {', '.join(scan.ledger.left_out()) or 'none'}"
        )
    # Which issue is in which split.
    clusters.denied, denials_dropped = denied_pairs(scan)
    near = near_texts(texts, clusters.issues)
    shares = check_ratios(config.ratios)
    places = place_issues(
        scan.heads, clusters, pairs, near, shares=shares, by=config.split_by, seed=config.seed
    )
    positives: dict[str, list[Pair]] = {split: [] for split in shares}
    for pair in pairs:
        split = places.splits[pair.one]
        nodes = (pair.one, pair.other)
        if all(places.timely(scan.heads[node].created_at, split) for node in nodes):
            positives[split].append(pair)
        else:
            dropped.append(("crosses_time_border", pair))
    _write_audit(config.out / "audit", scan, links, dropped)
    missed = missed_shares({name: len(found) for name, found in positives.items()}, shares)
    if missed:
        log.warning("shares of the positive pairs: %s; see --ratios, or crawl more", missed)
    # Another partner for every duplicate.
    candidates = Candidates(scan, clusters, links, texts, near, places)
    negatives, vain = draw_negatives(
        positives, candidates, clusters.denied, ratio=config.negatives, seed=config.seed
    )
    if config.negatives and not any(negatives.values()):
        log.warning(
            "no non-duplicates: no issue was found to pair with a duplicate (%s); crawl more issues, or add "
            "negative pairs of your own before you train",
            ", ".join(f"{reason} {count:,}" for reason, count in vain.items()) or "none was due",
        )
    vain += Counter({f"denial_{reason}": count for reason, count in denials_dropped.items()})
    splits = {name: [*positives[name], *negatives[name]] for name in positives}
    for name in [name for name, found in splits.items() if not found]:
        log.warning("no pairs for %s: too few clusters for its share; the split is left out", name)
        del splits[name]
    # What was kept and dropped, and whether the splits are apart.
    kept = sum(map(len, positives.values()))
    lost = Counter(reason for reason, _ in dropped)
    lost += Counter(hub=hubs)
    report: dict[str, Any] = {
        "left_out": scan.ledger.left_out(),
        "store": {"repositories": len(scan.repos), "issues": len(scan.heads), "comments": scan.comments},
        "links": link_counts(links),
        "clusters": cluster_counts(clusters),
        "pairs": {"possible": kept + lost.total(), "kept": kept, "dropped": dict(sorted(lost.items()))},
        "negatives": {"kept": sum(map(len, negatives.values())), "dropped": dict(sorted(vain.items()))},
        "splits": pair_counts(splits),
        "periods": places.periods,
        "checks": check_splits(splits, clusters, texts),
    }
    if any(report["checks"].values()):
        raise AngleError(
            f"nothing written, for the splits are not apart {report['checks']}; please report this defect"
        )
    return splits, report


def _rows(
    config: GisConfig, scan: Scan, texts: Texts, measures: Measures, split: str, pairs: Iterable[Pair]
) -> Iterator[PairRow]:
    """Yield the rows of a split in random order, and measure them on the way."""
    for pair in sorted(pairs, key=lambda pair: stable_hash(f"{config.seed} row {pair.one} {pair.other}")):
        row: PairRow = {
            "label": pair.label,
            "repo": scan.repos[pair.one[0]].name,
            "kind": pair.kind,
            "evidence": pair.evidence,
            "evidence_url": pair.evidence_url,
            "cluster": f"{scan.repos[pair.cluster[0]].name}#{pair.cluster[1]}",
        }
        for side, node in (("1", pair.one), ("2", pair.other)):
            row |= {f"text{side}": texts.get(node), f"created{side}": scan.heads[node].created_at}
            row |= {f"number{side}": node[1], f"url{side}": scan.url(node)}
        measures.add(split, row)
        if config.ids_only:
            row |= {f"hash{side}": content_id(row.pop(f"text{side}")) for side in "12"}
        yield row


def _write_audit(folder: Path, scan: Scan, links: list[Statement], dropped: list[tuple[str, Pair]]) -> None:
    pairs = (
        {"status": "rejected", "reason": reason, "source": "pair", "evidence": pair.evidence,
         "duplicate": scan.url(pair.one), "canonical": scan.url(pair.other)}
        for reason, pair in dropped
    )  # fmt: skip
    for status, name in (("accepted", "links"), ("tentative", "tentative"), ("rejected", "rejected")):
        found = (link.to_dict(scan) for link in links if link.status == status)
        write_jsonl(folder / f"{name}.jsonl", chain(found, pairs if status == "rejected" else ()))


def _options(config: GisConfig, selection: Selection, asked: Answers) -> dict[str, Any]:
    """The options that decide what is built, and the command that builds the same from the same store.

    `asked` is the model that doubtful comments were sent to, if any.
    """
    names = ("seed", "negatives", "split_by", "max_pairs_per_cluster", "cross_repo", "ids_only", "ratios")
    chosen = {name: getattr(config, name) for name in names} | asdict(selection)
    usual = {field.name: field.default for field in fields(GisConfig)}
    command = "angle-data gis --no-crawl --out FOLDER"
    for name, value in chosen.items():
        if name == "seed" or value != usual[name]:
            shown = ",".join(f"{share:g}" for share in value) if name == "ratios" else value
            shown = "LIST" if name == "repos" else shown
            command += f" --{name.replace('_', '-')}" + ("" if value is True else f" {shown}")
    command += f" --ask {asked.model}" * bool(asked.model) + " --ask-guesses" * asked.guesses
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}
    return {**listed, "command": command}
