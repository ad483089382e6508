"""`angle-data ensemble`: runs in; `dataset/`, `rejected.jsonl` and `report.json` out.

The steps of this folder in their order. Same runs, options and seed give the same bytes, in whatever order
the runs are named and their rows stand.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.disjoint import DisjointSets
from angle_data.ensemble.graders import Judgement, read_grading
from angle_data.ensemble.labels import ANTONYM_SCORE, LABELS, grade_of, label_choice, random_pairs
from angle_data.ensemble.read import Grades, group_by_source, read_runs
from angle_data.ensemble.report import EnsembleSummary, make_card, make_report, summarise
from angle_data.ensemble.splits import group_sources
from angle_data.ensemble.strategies import Choice, cap, load_strategy, synonym_sets
from angle_data.errors import InputError
from angle_data.jsonl import replace_file, write_jsonl
from angle_data.locking import hold
from angle_data.publish.dataset import write_dataset
from angle_data.records import LabelledPair
from angle_data.splits import check_ratios, draw_split
from angle_data.text import normalise, stable_hash

log = logging.getLogger("angle.ensemble")


@dataclass(frozen=True, slots=True)
class EnsembleConfig:
    """Settings of one build; checked when made.

    `scores` are run directories with grades. `antonym_score` in 0..1 applies to all labels but `binary`;
    `random_per_source` None means 0 for `binary` labels and 1 for the others, which need a lower end;
    `max_per_source` None is no cap; `ratios` are the shares of train, validation and test.

    Raises:
        InputError: A value is unknown or out of its range.
    """

    runs: tuple[Path, ...]
    out: Path
    strategy: str = "vote"
    labels: str = "binary"
    scores: tuple[Path, ...] = ()
    antonym_score: float = ANTONYM_SCORE
    random_per_source: int | None = None
    max_per_source: int | None = None
    ratios: tuple[float, ...] = (0.9, 0.1)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise InputError(f"unknown labels {self.labels!r}; choose one of {', '.join(LABELS)}")
        if not 0 <= self.antonym_score <= 1:
            raise InputError(f"antonym score must lie in 0..1, got {self.antonym_score:g}")
        if self.labels == "binary" and self.antonym_score != ANTONYM_SCORE:
            raise InputError(
                "--antonym-score is for --labels ordinal or graded; binary antonyms have score 0"
            )
        if self.labels == "graded" and not self.scores:
            raise InputError("--labels graded needs grades: give --scores RUN of `angle-data llm-score`")
        if self.random_per_source is not None and self.random_per_source < 0:
            raise InputError(f"random pairs per source must be 0 or more, got {self.random_per_source}")
        if self.max_per_source is not None and self.max_per_source < 1:
            raise InputError(f"max per source must be 1 or more, got {self.max_per_source}")
        check_ratios(self.ratios)

    @property
    def random_pairs(self) -> int:
        """Random pairs per source, the default of `labels` resolved."""
        if self.random_per_source is None:
            return 0 if self.labels == "binary" else 1
        return self.random_per_source


def build_ensemble(config: EnsembleConfig) -> EnsembleSummary:
    """Build the data set of `config.runs` in `config.out` and return its counts.

    Raises:
        InputError: A run or the output folder cannot be used, the strategy is unknown, no pair is left, or
            the grades are of none of the candidates (or of no use, with labels that rest on them).
    """
    earlier = _check_out(config)
    strategy = load_strategy(config.strategy)
    runs = read_runs(config.runs)
    sources = group_by_source(candidate for run in runs for candidate in run.candidates)
    grading = read_grading(config.scores, sources, labels=config.labels)
    outcome = strategy(sources, grading.grades)
    alike = synonym_sets(outcome.kept)  # before pairs go that are good, but too many
    if config.max_per_source is not None:
        cap(outcome, config.max_per_source, seed=config.seed)
    if not outcome.kept:
        reasons = sorted(Counter(rejection.reason for rejection in outcome.dropped).items())
        shown = ", ".join(f"{reason} {count}" for reason, count in reasons)
        raise InputError(
            f"none of {len(outcome.dropped)} candidates is left ({shown}); look at the candidates of the runs"
        )
    labelled = None
    if config.labels == "graded":
        graded = sum(grade_of(choice, grading.grades) is not None for choice in outcome.kept)
        labelled = {"graded": graded, "ordinal": len(outcome.kept) - graded}
        if not graded:
            raise InputError(
                f"--labels graded: none of the {len(outcome.kept)} pairs that are kept is graded "
                f"({grading.share}); grade more candidates, or choose --labels ordinal"
            )
    splits = _split(outcome.kept, config, grading.grades, alike)
    notes = grading.notes(labelled)
    for note in notes:
        log.warning("%s", note)
    settings = _settings(config, grading)
    if earlier not in (None, settings):
        log.info("%s: replaces a data set that was made with other settings", config.out)
    summary = summarise(runs, outcome, splits, config.out / "dataset")
    report = make_report(runs, settings, summary, outcome.details | grading.report(labelled))
    card = make_card(runs, settings, summary, notes)
    with hold(config.out):
        for left in (*config.out.glob(".rejected.jsonl.*"), *config.out.glob(".report.json.*")):
            left.unlink()  # by a build that was killed while it wrote
        write_dataset(summary.dataset, splits, card)
        rejected = sorted(
            outcome.dropped, key=lambda r: (r.source_id, r.source, r.polarity, r.model, r.key, r.text)
        )
        write_jsonl(config.out / "rejected.jsonl", (rejection.to_dict() for rejection in rejected))
        with replace_file(config.out / "report.json") as stream:
            json.dump(report, stream, ensure_ascii=False, indent=2)
            stream.write("\n")
    return summary


def _settings(config: EnsembleConfig, grading: Judgement) -> dict[str, str | int | float]:
    """Return the settings that shape the data, by option name; paths are none of them."""
    ordinal = {} if config.labels == "binary" else {"antonym-score": config.antonym_score}
    return {
        "strategy": config.strategy,
        "labels": config.labels,
        **ordinal,
        "random-per-source": config.random_pairs,
        "max-per-source": "no cap" if config.max_per_source is None else config.max_per_source,
        "graders": ", ".join(grading.used) or "none",
        "ratios": ",".join(f"{ratio:g}" for ratio in config.ratios),
        "seed": config.seed,
    }


def _check_out(config: EnsembleConfig) -> Any:
    """Refuse to write into a run, or over files no build wrote; return an earlier build's settings."""
    out = config.out
    if out.resolve() in {run.resolve() for run in (*config.runs, *config.scores)}:
        raise InputError(f"--out {out} is one of the runs; give another directory")
    if not out.is_dir():
        return None
    settings = None
    try:
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        ours = isinstance(report, dict) and "settings" in report
        settings = report["settings"] if ours else None
    except FileNotFoundError:  # the folder is empty, or its build was stopped before it wrote the report
        ours = all(p.name in ("dataset", "rejected.jsonl") or p.name[0] == "." for p in out.iterdir())
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise InputError(f"--out {out} is not empty and holds no earlier data set; give another directory")
    return settings


def _split(
    kept: Sequence[Choice],
    config: EnsembleConfig,
    grades: Grades,
    alike: DisjointSets[str],
) -> dict[str, list[LabelledPair]]:
    """Return the pairs of each non-empty split, in an order drawn by the seed."""
    sources = {choice.source.key: choice.source for choice in kept}
    partners: dict[str, list[str]] = {key: [] for key in sources}
    for choice in kept:
        partners[choice.source.key].append(normalise(choice.candidate.text))
    shares = check_ratios(config.ratios)
    # Drawn by the group's hash: adding texts moves no other group, unless a new text ties two together.
    where = {
        key: draw_split(f"{config.seed}\nsplit\n{leader}", shares)
        for key, leader in group_sources(partners).items()
    }
    taken = {choice.key for choice in kept}
    splits: dict[str, list[LabelledPair]] = {name: [] for name in shares}
    for choice in kept:
        pair = label_choice(choice, labels=config.labels, antonym_score=config.antonym_score, grades=grades)
        splits[where[choice.source.key]].append(pair)
    for name, pairs in splits.items():
        members = [source for key, source in sources.items() if where[key] == name]
        pairs += random_pairs(
            members, per_source=config.random_pairs, seed=config.seed, taken=taken, alike=alike
        )
        pairs.sort(key=lambda p: stable_hash(f"{config.seed}\norder\n{p.text1}\n{p.polarity}\n{p.text2}"))
    if not splits["train"]:
        raise InputError(f"none of {len(sources)} texts fell into train; give more texts, or --ratios 1")
    for name, share in shares.items():
        if not splits[name]:
            log.warning(
                "no text fell into %s (%d texts, share %g): it is left out", name, len(sources), share
            )
    return {name: pairs for name, pairs in splits.items() if pairs}
