"""`angle-data ensemble`: runs in; `dataset/`, `rejected.jsonl` and `report.json` out.

Composes the steps of this package in their order; each can be used alone. Same runs, options and seed give
the same bytes, in whatever order the runs are named and their rows stand.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from angle_data.ensemble import load_strategy
from angle_data.ensemble.balance import balance
from angle_data.ensemble.labels import LABELS, default_random_pairs, label_choice, random_pairs
from angle_data.ensemble.merge import pair_key
from angle_data.ensemble.report import EnsembleSummary, make_card, make_report, summarise
from angle_data.ensemble.runs import read_runs
from angle_data.ensemble.sources import Choice, Outcome, group_by_source
from angle_data.ensemble.splits import SPLITS, assign_splits, check_ratios
from angle_data.errors import InputError
from angle_data.jsonl import replace_file, write_jsonl
from angle_data.publish.dataset import write_dataset
from angle_data.records import LabelledPair
from angle_data.text import normalise

__all__ = ["EnsembleConfig", "build_ensemble"]

log = logging.getLogger("angle.ensemble")

_ANTONYM_SCORE = 0.5


@dataclass(frozen=True, slots=True)
class EnsembleConfig:
    """Settings of one build; checked when made.

    `antonym_score` in 0..1 applies to `ordinal` labels; `random_per_source` None means the default of
    `labels`; `max_per_source` None means no cap; `ratios` are the shares of train, validation and test.

    Raises:
        InputError: A value is unknown or out of its range.
    """

    runs: tuple[Path, ...]
    out: Path
    strategy: str = "vote"
    labels: str = "binary"
    antonym_score: float = _ANTONYM_SCORE
    random_per_source: int | None = None
    max_per_source: int | None = None
    ratios: tuple[float, ...] = (0.9, 0.1)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise InputError(f"unknown labels {self.labels!r}; choose one of {', '.join(sorted(LABELS))}")
        if not 0 <= self.antonym_score <= 1:
            raise InputError(f"antonym score must lie in 0..1, got {self.antonym_score:g}")
        if self.labels == "binary" and self.antonym_score != _ANTONYM_SCORE:
            raise InputError("--antonym-score is for --labels ordinal; binary antonyms have score 0")
        if self.random_per_source is not None and self.random_per_source < 0:
            raise InputError(f"random pairs per source must be 0 or more, got {self.random_per_source}")
        if self.max_per_source is not None and self.max_per_source < 1:
            raise InputError(f"max per source must be 1 or more, got {self.max_per_source}")
        check_ratios(self.ratios)

    @property
    def random_pairs(self) -> int:
        """Random pairs per source, the default of `labels` resolved."""
        if self.random_per_source is None:
            return default_random_pairs(self.labels)
        return self.random_per_source


def build_ensemble(config: EnsembleConfig) -> EnsembleSummary:
    """Build the data set of `config.runs` in `config.out` and return its counts.

    Raises:
        InputError: A run or the output folder cannot be used, the strategy is unknown, or no pair is left.
    """
    _check_out(config)
    strategy = load_strategy(config.strategy)
    runs = read_runs(config.runs)
    sources = group_by_source(candidate for run in runs for candidate in run.candidates)
    outcome = strategy(sources)
    if config.max_per_source is not None:
        capped = balance(outcome.kept, max_per_source=config.max_per_source, seed=config.seed)
        outcome = Outcome(capped.kept, outcome.dropped + capped.dropped)
    if not outcome.kept:
        raise InputError(_nothing_left(outcome))
    splits = _split(outcome.kept, config)
    settings = _settings(config)
    summary = summarise(runs, outcome, splits, config.out / "dataset")
    write_dataset(summary.dataset, splits, make_card(runs, settings, summary))
    rejected = sorted(
        outcome.dropped, key=lambda r: (r.source_id, r.source, r.polarity, r.model, r.key, r.text)
    )
    write_jsonl(config.out / "rejected.jsonl", (rejection.to_dict() for rejection in rejected))
    with replace_file(config.out / "report.json") as stream:
        json.dump(make_report(runs, settings, summary), stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    return summary


def _settings(config: EnsembleConfig) -> dict[str, str | int | float]:
    """Return the settings that shape the data, by option name; paths are none of them."""
    ordinal = {"antonym-score": config.antonym_score} if config.labels == "ordinal" else {}
    return {
        "strategy": config.strategy,
        "labels": config.labels,
        **ordinal,
        "random-per-source": config.random_pairs,
        "max-per-source": "no cap" if config.max_per_source is None else config.max_per_source,
        "ratios": ",".join(f"{ratio:g}" for ratio in config.ratios),
        "seed": config.seed,
    }


def _check_out(config: EnsembleConfig) -> None:
    """Refuse to write into a run, or over files that no earlier build wrote."""
    out = config.out
    if out.resolve() in {run.resolve() for run in config.runs}:
        raise InputError(f"--out {out} is one of the runs; give another directory")
    if out.is_dir() and any(out.iterdir()) and not _is_build(out):
        raise InputError(f"--out {out} is not empty and holds no earlier data set; give another directory")


def _is_build(out: Path) -> bool:
    """Whether an earlier build left its report in `out`."""
    try:
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and "settings" in report


def _nothing_left(outcome: Outcome) -> str:
    counts = Counter(rejection.reason for rejection in outcome.dropped)
    shown = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return f"none of {len(outcome.dropped)} candidates is left ({shown}); look at the candidates of the runs"


def _split(kept: Sequence[Choice], config: EnsembleConfig) -> dict[str, list[LabelledPair]]:
    """Return the pairs of each non-empty split, in an order drawn by the seed."""
    sources = {choice.source.key: choice.source for choice in kept}
    partners: dict[str, list[str]] = {key: [] for key in sources}
    for choice in kept:
        partners[choice.source.key].append(normalise(choice.candidate.text))
    where = assign_splits(partners, ratios=config.ratios, seed=config.seed)
    taken = {pair_key(choice.source.text, choice.candidate.text) for choice in kept}
    splits: dict[str, list[LabelledPair]] = {name: [] for name in SPLITS[: len(config.ratios)]}
    for choice in kept:
        pair = label_choice(choice, labels=config.labels, antonym_score=config.antonym_score)
        splits[where[choice.source.key]].append(pair)
    for name, pairs in splits.items():
        members = [source for key, source in sources.items() if where[key] == name]
        pairs += random_pairs(members, per_source=config.random_pairs, seed=config.seed, taken=taken)
        pairs.sort(key=lambda pair: _rank(pair, config.seed))
    if not splits["train"]:
        raise InputError(f"none of {len(sources)} texts fell into train; give more texts, or --ratios 1")
    for name, ratio in zip(splits, config.ratios, strict=True):
        if ratio and not splits[name]:
            log.warning(
                "no text fell into %s (%d texts, share %g): it is left out", name, len(sources), ratio
            )
    return {name: pairs for name, pairs in splits.items() if pairs}


def _rank(pair: LabelledPair, seed: int) -> str:
    text = f"{seed}\norder\n{pair.text1}\n{pair.polarity}\n{pair.text2}"
    return hashlib.sha256(text.encode()).hexdigest()
