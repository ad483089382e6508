"""`angle-data ensemble`: runs in; `dataset/`, `rejected.jsonl` and `report.json` out.

The steps of this folder in their order. Same runs, options and seed give the same bytes, in whatever order
the runs are named and their rows stand.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from angle_data.disjoint import DisjointSets
from angle_data.ensembling.config import ANTONYM_SCORES, STRATEGIES, EnsembleConfig
from angle_data.ensembling.evidence import Evidence, Verdict
from angle_data.ensembling.given import GivenPair, GivenPairs, read_given, screen_given
from angle_data.ensembling.labels import label_pairs, query_first, random_pairs, synonym_sets
from angle_data.ensembling.read import (
    GradeSet,
    Offer,
    Run,
    names_as_annotators,
    offers_of,
    read_runs,
    read_scores,
    without_own,
)
from angle_data.ensembling.report import (
    EnsembleSummary,
    grade_notes,
    grade_report,
    make_card,
    make_report,
    rejected_rows,
    summarise,
)
from angle_data.ensembling.screen import screen
from angle_data.ensembling.splits import place_texts
from angle_data.ensembling.strategies import Outcome, cap
from angle_data.errors import InputError
from angle_data.jsonl import loads, write_jsonl, write_text
from angle_data.locking import hold
from angle_data.publish.card import write_dataset
from angle_data.records import LabelledPair
from angle_data.splits import check_ratios
from angle_data.text import normalise, stable_hash

log = logging.getLogger("angle.ensemble")


@dataclass(frozen=True, slots=True)
class Settled:
    """The settings that are chosen by what there is: `EnsembleConfig`, its None resolved."""

    strategy: str
    labels: str
    antonym_score: float
    random_per_source: int


def build_ensemble(config: EnsembleConfig) -> EnsembleSummary:
    """Build the data set of `config.runs` and `config.pairs` in `config.out` and return its counts.

    Raises:
        InputError: A run, a file or the output folder cannot be used, no pair is left, or the grades are of
            none of the pairs (or of no use, with labels that rest on them).
    """
    if not (config.runs or config.pairs):
        raise InputError("no run directory given; name at least one written by `angle-data llm-label`")
    earlier = _check_out(config)
    runs = read_runs(config.runs)
    offers = offers_of(candidate for run in runs for candidate in run.candidates)
    given = read_given(config.pairs)
    read, evidence = _weigh(config, runs, offers, given)
    degrees = any(offer.candidate.degree for offer in offers)
    settled = _settle(config, evidence, degrees=degrees)
    outcome = resolve_name(STRATEGIES[settled.strategy])(evidence)
    alike = synonym_sets(outcome.kept)  # before pairs go that are good, but too many
    if config.max_per_source is not None:
        cap(outcome, config.max_per_source, seed=config.seed)
    others = screen_given(given, evidence.grades, {choice.key for choice in outcome.kept})
    _check_left(outcome, others)
    labelled: dict[str, int] = {}
    if settled.labels == "graded" and evidence.graded:
        graded = sum(choice.key in evidence.grades for choice in outcome.kept)
        labelled = {"graded": graded, "expected": len(outcome.kept) - graded}
        if not (graded or degrees or others.kept):
            raise InputError(
                f"--labels graded: none of the {len(outcome.kept)} pairs that are kept is graded "
                f"({evidence.share}); grade more candidates, or choose --labels ordinal"
            )
    splits = _split(config, settled, outcome, others, evidence, alike)
    notes = [*grade_notes(evidence, labelled), *others.notes()]
    for note in notes:
        log.warning("%s", note)
    if config.purpose is None and any(choice.candidate.polarity == "antonym" for choice in outcome.kept):
        log.info("%s", _question(config, settled))
    settings = _settings(config, settled, evidence)
    summary = summarise(runs, outcome, others, splits, config.out / "dataset", evidence)
    details = outcome.details | grade_report(evidence, read, labelled)
    report = make_report(runs, settings, summary, details)
    with hold(config.out):
        for left in (*config.out.glob(".rejected.jsonl.*"), *config.out.glob(".report.json.*")):
            left.unlink()  # by a build that was killed while it wrote
        # First, so that a data set beside it is known for ours, should the report never be written.
        write_jsonl(config.out / "rejected.jsonl", rejected_rows([*outcome.dropped, *others.dropped]))
        write_dataset(summary.dataset, splits, make_card(runs, settings, summary, notes))
        _write_report(config.out / "report.json", report)
    if earlier not in (None, _made_of(report)):
        log.warning("%s: replaced a data set of other runs, grades or settings", config.out)
    return summary


def _weigh(
    config: EnsembleConfig, runs: Sequence[Run], offers: Sequence[Offer], given: Sequence[GivenPair]
) -> tuple[GradeSet, Evidence]:
    """Read the grades, and return them with the evidence on the candidates that are usable."""
    read = read_scores(config.scores)
    candidates, others = {offer.key for offer in offers}, {pair.key for pair in given}
    read = replace(read, unknown=sum(key not in candidates and key not in others for key in read.grades))
    counted = without_own(read.grades, offers, names_as_annotators(read, runs))
    # What is put together as it is needs no subject.
    screened = screen(offers, topic=config.strategy != "concat")
    evidence = Evidence(screened, counted, others, read.rows)
    useless = all(verdict == Verdict() for verdict in evidence.verdicts.values())
    if read.grades and (evidence.pairs or given) and useless:
        mend = "" if given else "name the file of the graded pairs with --pairs, or "
        raise InputError(
            f"--scores grades none of the {len(candidates)} candidate pairs, or only what does not count "
            f"({read.unknown} other pairs; nobody grades their own sentences, nor any that the gate drops); "
            f"{mend}grade candidates with `angle-data llm-score RUN`, and other pairs with `--pairs FILE`, "
            "by another model"
        )
    if read.unknown:
        said = "%d of %d graded pairs are no candidates%s"
        log.info(said, read.unknown, len(read.grades), " and not given" * bool(given))
    return read, evidence


def _settle(config: EnsembleConfig, evidence: Evidence, *, degrees: bool) -> Settled:
    """Choose what the options leave open by what there is."""
    plain = "ordinal" if config.purpose else "binary"
    labels = config.labels or ("graded" if evidence.used or degrees else plain)
    if config.labels is None and config.purpose == "search":
        labels = "binary"  # a passage answers a query, or does not
    if labels == "graded" and not (config.scores or degrees):
        raise InputError(
            "--labels graded needs grades or degrees: give --scores RUN of `angle-data llm-score`, or a run "
            "of `angle-data llm-label --prompts degrees`"
        )
    if labels == "graded" and not (evidence.used or degrees):
        reasons = "; ".join(f"{grader} {verdict.reason}" for grader, verdict in evidence.verdicts.items())
        raise InputError(
            f"--labels graded has no grader to go by: {reasons}. Grade with another model or prompt, or "
            "choose --labels ordinal"
        )
    if config.labels is None:
        replace(config, labels=labels)  # raises if other options do not go with it
    number = config.random_per_source
    return Settled(
        config.strategy or ("principled" if evidence.graded else "vote"),
        labels,
        ANTONYM_SCORES[config.purpose] if config.antonym_score is None else config.antonym_score,
        (0 if labels == "binary" else 1) if number is None else number,
    )


def _question(config: EnsembleConfig, settled: Settled) -> str:
    """Return the question what the pairs are for, with what antonyms score now and by each answer."""
    binary, own = config.labels == "binary", config.antonym_score
    apart, related = (ANTONYM_SCORES[purpose] if own is None else own for purpose in ("opposites", "topics"))
    now = 0 if settled.labels == "binary" else settled.antonym_score
    return (
        f"must opposites be kept apart? You did not say, and they score {now:g}. --purpose opposites: yes "
        f"({0 if binary else apart:g}); --purpose topics: no, they are related "
        f"({related:g}{', not with --labels binary' * binary}); fit then takes the recipe of that name"
    )


def _check_left(outcome: Outcome, others: GivenPairs) -> None:
    if outcome.kept or others.kept:
        return
    reasons = sorted(Counter(r.reason for r in (*outcome.dropped, *others.dropped)).items())
    shown = ", ".join(f"{reason} {count}" for reason, count in reasons)
    what = f"{len(outcome.dropped)} candidates" if outcome.dropped else f"{len(others.dropped)} given pairs"
    raise InputError(f"none of {what} is left ({shown}); look at the candidates of the runs")


def _settings(config: EnsembleConfig, settled: Settled, evidence: Evidence) -> dict[str, str | int | float]:
    """Return the settings that shape the data, by option name; paths are none of them."""
    ordinal = {} if settled.labels == "binary" else {"antonym-score": settled.antonym_score}
    return {
        "strategy": settled.strategy,
        "labels": settled.labels,
        **({"purpose": config.purpose} if config.purpose else {}),
        **ordinal,
        "random-per-source": settled.random_per_source,
        "max-per-source": "no cap" if config.max_per_source is None else config.max_per_source,
        "graders": ", ".join(evidence.used) or "none",
        "ratios": ",".join(f"{ratio:g}" for ratio in config.ratios),
        "seed": config.seed,
    }


def _check_out(config: EnsembleConfig) -> Any:
    """Refuse to write into a run, or over files no build wrote; return what an earlier build was made of."""
    out = config.out
    if out.resolve() in {run.resolve() for run in (*config.runs, *config.scores)}:
        raise InputError(f"--out {out} is one of the runs; give another directory")
    if not out.is_dir():
        return None
    try:
        return _made_of(loads((out / "report.json").read_text(encoding="utf-8")))
    except FileNotFoundError:  # the folder is empty, or its build was stopped before it wrote the report
        names, begun = {p.name for p in out.iterdir() if p.name[0] != "."}, {"dataset", "rejected.jsonl"}
        if names <= begun and (names == begun or not any(out.glob("dataset/data/*.parquet"))):
            return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # not ours
    raise InputError(f"--out {out} is not empty and holds no earlier data set; give another directory")


def _made_of(report: Mapping[str, Any]) -> Any:
    """Return the digests of runs and grades, and the settings, that a data set was made of by its report."""
    runs = [run["sha256"] for run in report["runs"]]
    return runs, report.get("scores", {}).get("sha256"), report["settings"]


def _split(
    config: EnsembleConfig,
    settled: Settled,
    outcome: Outcome,
    others: GivenPairs,
    evidence: Evidence,
    alike: DisjointSets[str],
) -> dict[str, list[LabelledPair]]:
    """Return the pairs of each non-empty split, in an order drawn by the seed; given ones across two go."""
    shares = check_ratios(config.ratios)
    sources, where = place_texts(outcome.kept, others.kept, shares, config.seed)
    # Mined pairs connect nearly all texts: those across splits go, or one split would hold everything.
    others.sift(lambda p: None if where[normalise(p.text1)] == where[normalise(p.text2)] else "across_splits")
    splits: dict[str, list[LabelledPair]] = {name: [] for name in shares}
    for row in label_pairs(outcome.kept, others.kept, evidence, settled.labels, settled.antonym_score):
        splits[where[normalise(row.text1)]].append(query_first(row))
        if row.supervision == "grades" and row.label:
            alike.join(normalise(row.text1), normalise(row.text2))
    taken = {choice.key for choice in outcome.kept} | others.keys
    for name, pairs in splits.items():
        members = [source for source in sources if where[source.key] == name]
        number = settled.random_per_source
        pairs += random_pairs(members, per_source=number, seed=config.seed, taken=taken, alike=alike)
        pairs.sort(key=lambda p: stable_hash(f"{config.seed}\norder\n{p.text1}\n{p.polarity}\n{p.text2}"))
    if not splits["train"]:
        raise InputError(f"none of {len(sources)} texts fell into train; give more texts, or --ratios 1")
    for name, share in shares.items():
        if not splits[name]:
            few = "no text fell into %s (%d texts, share %g): it is left out"
            log.warning(few, name, len(sources), share)
    return {
        name: [replace(pair, purpose=config.purpose) for pair in pairs]
        for name, pairs in splits.items()
        if pairs
    }


def _write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Write the report; one that says the same stays, so that its time is that of the pairs."""
    text = json.dumps(report, ensure_ascii=False, indent=2, default=str) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
