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
from pkgutil import resolve_name
from typing import Any

from angle_data.disjoint import DisjointSets
from angle_data.ensembling.config import ANTONYM_SCORES, STRATEGIES, EnsembleConfig
from angle_data.ensembling.given import Screened, read_given, screen_given
from angle_data.ensembling.graders import Judgement, read_grading
from angle_data.ensembling.groups import group_sources
from angle_data.ensembling.labels import label_choice, label_given, random_pairs
from angle_data.ensembling.read import Source, offers_of, read_runs
from angle_data.ensembling.report import EnsembleSummary, make_card, make_report, rejected_rows, summarise
from angle_data.ensembling.scale import Scale
from angle_data.ensembling.strategies import Choice, Outcome, cap, synonym_sets
from angle_data.errors import InputError
from angle_data.jsonl import write_json, write_jsonl
from angle_data.locking import hold
from angle_data.publish.card import write_dataset
from angle_data.records import PURPOSES, LabelledPair
from angle_data.splits import check_ratios, draw_split
from angle_data.text import content_id, normalise, stable_hash

log = logging.getLogger("angle.ensemble")


@dataclass(frozen=True, slots=True)
class Choices:
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
    degrees = any(offer.candidate.degree for offer in offers)
    grading = read_grading(config.scores, runs, offers, {pair.key for pair in given})
    chosen = _choose(config, grading, degrees=degrees)
    outcome = resolve_name(STRATEGIES[chosen.strategy])(offers, grading.grades)
    alike = synonym_sets(outcome.kept)  # before pairs go that are good, but too many
    if config.max_per_source is not None:
        cap(outcome, config.max_per_source, seed=config.seed)
    others = screen_given(given, grading.grades, {choice.key for choice in outcome.kept})
    _check_left(outcome, others)
    labelled: dict[str, int] = {}
    if chosen.labels == "graded" and grading.graded:
        graded = sum(choice.key in grading.grades for choice in outcome.kept)
        labelled = {"graded": graded, "expected": len(outcome.kept) - graded}
        if not (graded or degrees or others.kept):
            raise InputError(
                f"--labels graded: none of the {len(outcome.kept)} pairs that are kept is graded "
                f"({grading.share}); grade more candidates, or choose --labels ordinal"
            )
    splits = _split(outcome.kept, others, config, chosen, grading, alike)
    notes = [*grading.notes(labelled), *others.notes()]
    for note in notes:
        log.warning("%s", note)
    if config.purpose is None and any(choice.candidate.polarity == "antonym" for choice in outcome.kept):
        log.info("%s", _question(config, chosen))
    settings = _settings(config, chosen, grading)
    summary = summarise(runs, outcome, others, splits, config.out / "dataset", grading)
    report = make_report(runs, settings, summary, outcome.details | grading.report(labelled))
    with hold(config.out):
        for left in (*config.out.glob(".rejected.jsonl.*"), *config.out.glob(".report.json.*")):
            left.unlink()  # by a build that was killed while it wrote
        # First, so that a data set beside it is known for ours, should the report never be written.
        write_jsonl(config.out / "rejected.jsonl", rejected_rows([*outcome.dropped, *others.dropped]))
        write_dataset(summary.dataset, splits, make_card(runs, settings, summary, notes))
        write_json(config.out / "report.json", report)
    if earlier not in (None, _made_of(report)):
        log.warning("%s: replaced a data set of other runs, grades or settings", config.out)
    return summary


def _choose(config: EnsembleConfig, grading: Judgement, *, degrees: bool) -> Choices:
    plain = "ordinal" if config.purpose else "binary"
    labels = config.labels or ("graded" if grading.used or degrees else plain)
    if labels == "graded" and not (config.scores or degrees):
        raise InputError(
            "--labels graded needs grades or degrees: give --scores RUN of `angle-data llm-score`, or a run "
            "of `angle-data llm-label --prompts degrees`"
        )
    if labels == "graded" and not (grading.used or degrees):
        reasons = "; ".join(f"{grader} {verdict.reason}" for grader, verdict in grading.verdicts.items())
        raise InputError(
            f"--labels graded has no grader to go by: {reasons}. Grade with another model or prompt, or "
            "choose --labels ordinal"
        )
    if config.labels is None:
        replace(config, labels=labels)  # raises if other options do not go with it
    number = config.random_per_source
    return Choices(
        config.strategy or ("principled" if grading.graded else "vote"),
        labels,
        ANTONYM_SCORES[config.purpose] if config.antonym_score is None else config.antonym_score,
        (0 if labels == "binary" else 1) if number is None else number,
    )


def _question(config: EnsembleConfig, chosen: Choices) -> str:
    """Return the question what the pairs are for, with what antonyms score now and by each answer."""
    binary, own = config.labels == "binary", config.antonym_score
    apart, related = (ANTONYM_SCORES[purpose] if own is None else own for purpose in PURPOSES)
    now = 0 if chosen.labels == "binary" else chosen.antonym_score
    return (
        f"must opposites be kept apart? You did not say, and they score {now:g}. --purpose opposites: yes "
        f"({0 if binary else apart:g}); --purpose topics: no, they are related "
        f"({related:g}{', not with --labels binary' * binary}); fit then takes the recipe of that name"
    )


def _check_left(outcome: Outcome, others: Screened) -> None:
    if outcome.kept or others.kept:
        return
    reasons = sorted(Counter(r.reason for r in (*outcome.dropped, *others.dropped)).items())
    shown = ", ".join(f"{reason} {count}" for reason, count in reasons)
    what = f"{len(outcome.dropped)} candidates" if outcome.dropped else f"{len(others.dropped)} given pairs"
    raise InputError(f"none of {what} is left ({shown}); look at the candidates of the runs")


def _settings(config: EnsembleConfig, chosen: Choices, grading: Judgement) -> dict[str, str | int | float]:
    """Return the settings that shape the data, by option name; paths are none of them."""
    ordinal = {} if chosen.labels == "binary" else {"antonym-score": chosen.antonym_score}
    return {
        "strategy": chosen.strategy,
        "labels": chosen.labels,
        **({"purpose": config.purpose} if config.purpose else {}),
        **ordinal,
        "random-per-source": chosen.random_per_source,
        "max-per-source": "no cap" if config.max_per_source is None else config.max_per_source,
        "graders": ", ".join(grading.used) or "none",
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
        return _made_of(json.loads((out / "report.json").read_text(encoding="utf-8")))
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
    kept: Sequence[Choice],
    others: Screened,
    config: EnsembleConfig,
    chosen: Choices,
    grading: Judgement,
    alike: DisjointSets[str],
) -> dict[str, list[LabelledPair]]:
    """Return the pairs of each non-empty split, in an order drawn by the seed; given ones across two go."""
    shares = check_ratios(config.ratios)
    texts, where = _place(kept, others, shares, config.seed)
    # Mined pairs connect nearly all texts: those across splits go, or one split would hold everything.
    others.sift(lambda p: None if where[normalise(p.text1)] == where[normalise(p.text2)] else "across_splits")
    splits: dict[str, list[LabelledPair]] = {name: [] for name in shares}
    for row in _label(kept, others, chosen, grading):
        splits[where[normalise(row.text1)]].append(row)
        if row.supervision == "grades" and row.label:
            alike.join(normalise(row.text1), normalise(row.text2))
    taken = {choice.key for choice in kept} | others.keys
    for name, pairs in splits.items():
        members = [source for key, source in texts.items() if where[key] == name]
        pairs += random_pairs(
            members, per_source=chosen.random_per_source, seed=config.seed, taken=taken, alike=alike
        )
        pairs.sort(key=lambda p: stable_hash(f"{config.seed}\norder\n{p.text1}\n{p.polarity}\n{p.text2}"))
    if not splits["train"]:
        raise InputError(f"none of {len(texts)} texts fell into train; give more texts, or --ratios 1")
    for name, share in shares.items():
        if not splits[name]:
            log.warning("no text fell into %s (%d texts, share %g): it is left out", name, len(texts), share)
    return {
        name: [replace(pair, purpose=config.purpose) for pair in pairs]
        for name, pairs in splits.items()
        if pairs
    }


def _place(
    kept: Sequence[Choice], others: Screened, shares: Mapping[str, float], seed: int
) -> tuple[dict[str, Source], dict[str, str]]:
    """Return the sources (of given pairs alone, their texts), and the split of each text of the user's."""
    texts = {choice.source.key: choice.source for choice in kept}
    partners: dict[str, list[str]] = {key: [] for key in texts}
    for choice in kept:
        partners[choice.source.key].append(normalise(choice.candidate.text))
    for text in (text for pair in others.kept for text in (pair.text1, pair.text2)):
        partners.setdefault(normalise(text), [])
        if not kept:
            texts[normalise(text)] = Source(normalise(text), content_id(text), text)
    # Drawn by the group's hash: adding texts moves no other group, unless a new text ties two together.
    return texts, {
        key: draw_split(f"{seed}\nsplit\n{leader}", shares) for key, leader in group_sources(partners).items()
    }


def _label(
    kept: Sequence[Choice], others: Screened, chosen: Choices, grading: Judgement
) -> list[LabelledPair]:
    antonym_score = chosen.antonym_score
    scale = Scale(kept, others.kept, grading.grades, antonym_score=antonym_score)
    graded = scale if chosen.labels == "graded" and grading.graded else None
    ids = {choice.source.key: choice.source.id for choice in kept}
    rows = [label_choice(c, labels=chosen.labels, antonym_score=antonym_score, scale=graded) for c in kept]
    for pair in others.kept:
        source_id = ids.get(normalise(pair.text1)) or content_id(pair.text1)
        rows.append(label_given(pair, source_id, labels=chosen.labels, scale=scale))
    return rows
