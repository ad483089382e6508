"""One training run from files to files: pairs and a backbone in, model and report out.

Composes the steps; what each does is in its module. The untouched backbone is always measured on the same
pairs, and is what gets saved if no checkpoint ranks the dev pairs better.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.locking import hold
from angle_train.backbones import backbone_identity, load_backbone, quiet_libraries
from angle_train.config import Recipe
from angle_train.evaluate.compare import compare
from angle_train.evaluate.sts import check_finite, evaluate_model, spearman
from angle_train.pairs import PairSet, check_stated_scale, count_leaks, hold_out, join, load_pairs
from angle_train.report.html import write_fit_html
from angle_train.report.summary import BACKBONE, TUNED, DataNote, FitReport
from angle_train.rows import dataset_splits
from angle_train.runstate import RunDirectory
from angle_train.saving import disk_errors_in_one_line
from angle_train.trainer import Training, record_dev_scores, resolve_precision, train

__all__ = ["FitConfig", "FitResult", "fit"]

log = logging.getLogger("angle.fit")

_HELD_OUT = 0.1
Columns = list[NDArray[np.float64]]  # similarities, one column for each dev and test set


@dataclass(frozen=True, slots=True)
class FitConfig:
    """What to fit, on what, and where to put it.

    Attributes:
        data: Sources of training pairs, see `pairs.load_pairs`.
        backbone: Directory or hub id of the model to start from.
        out: Directory for the model and the report.
        recipe: How to train.
        dev: Sources of the pairs that select the checkpoint. Default: the validation splits of the
            training data, or else a tenth of it.
        test: Sources of pairs that nothing is selected on.
        scale: Scale of the scores, `LOW-HIGH`, see `pairs.load_pairs`; default detected.
        overwrite: Replace an earlier run in `out`.
        device: `cpu`, `cuda` …; default the best there is.
    """

    data: Sequence[str]
    backbone: str
    out: Path
    recipe: Recipe = field(default_factory=Recipe)
    dev: Sequence[str] = ()
    test: Sequence[str] = ()
    scale: str | None = None
    overwrite: bool = False
    device: str | None = None


@dataclass(frozen=True, slots=True)
class FitResult:
    """Where the model is, what the report says, and whether the run had been finished before."""

    out: Path
    report: FitReport
    already_finished: bool


@dataclass(frozen=True, slots=True)
class _Data:
    train: PairSet
    dev: list[PairSet]
    test: list[PairSet]

    @property
    def evaluated(self) -> list[tuple[str, PairSet]]:
        return [*(("dev", pairs) for pairs in self.dev), *(("test", pairs) for pairs in self.test)]


def fit(config: FitConfig) -> FitResult:
    """Run, or go on with, the training run that `config` describes.

    Raises:
        InputError: Something about the data, the backbone, the recipe or the directory is wrong.
        KeyboardInterrupt: Ctrl-C; the same call goes on from the checkpoint that was written.
    """
    if Path(config.backbone).resolve() == config.out.resolve():
        raise InputError(f"--out {config.out} is the backbone itself; give another directory")
    data = _load(config)
    directory = RunDirectory(config.out, _fingerprint(config, data))
    status = directory.status(overwrite=config.overwrite)
    if status == "finished":
        log.info("%s: already finished; --overwrite runs it again", config.out)
        return FitResult(config.out, FitReport.read(config.out / "report.json"), already_finished=True)
    notes = _leaks(data)
    model = _load_backbone(config)
    resolve_precision(config.recipe.training.precision, model.device)
    with hold(config.out):
        # Asked again: another process may have written here while the model was loaded.
        resume = directory.claim(directory.status(overwrite=config.overwrite), overwrite=config.overwrite)
        if resume:
            log.info("going on from %s", resume)
        report = _run(config, data, model, directory, resume, notes)
        directory.finish()
    return FitResult(config.out, report, already_finished=False)


def _run(
    config: FitConfig,
    data: _Data,
    model: SentenceTransformer,
    directory: RunDirectory,
    resume: Path | None,
    notes: list[str],
) -> FitReport:
    """Measure, train, measure again, and write everything."""
    before = _similarities(BACKBONE, model, data)
    score = _dev_score(data, before)
    log.info("step 0, the untouched backbone: dev Spearman %.2f", 100 * score)
    if config.recipe.training.prompt:
        model.prompts["angle"] = config.recipe.training.prompt
        model.default_prompt_name = "angle"
    training = train(model, data.train, data.dev, config.recipe, directory.checkpoints, resume, score)
    if config.recipe.training.average_with_backbone:
        _average(model, _load_backbone(config), config.recipe.training.average_with_backbone)
    after = _similarities(TUNED, model, data)
    backbone = directory.fingerprint["backbone"]
    report = _report(config.recipe, backbone, data, training, before, after, notes, model)
    if report.kept == BACKBONE:
        model = _load_backbone(config)
    else:
        record_dev_scores(model, data.dev, _dev_scores(data, after))
    with disk_errors_in_one_line(config.out):
        _save(config, model, report)
    columns = [
        (pairs, old, new)
        for (role, pairs), old, new in zip(data.evaluated, before, after, strict=True)
        if role == "test" or not data.test
    ]
    write_fit_html(config.out / "report.html", report, columns)
    return report


def _load(config: FitConfig) -> _Data:
    """Load all pairs; without dev sources, take validation splits or hold out some training pairs."""
    scale = config.scale
    sets = [load_pairs(spec, split="train", scale=scale, rows="train") for spec in config.data]
    dev = [load_pairs(spec, split="validation", scale=scale, rows="dev") for spec in config.dev]
    if not config.dev:
        divided = [spec for spec in config.data if "validation" in dataset_splits(spec)]
        dev = [load_pairs(spec, split="validation", scale=scale) for spec in divided]
    test = [load_pairs(spec, split="test", scale=scale, rows="test") for spec in config.test]
    check_stated_scale(scale, [*sets, *dev, *test])
    train_pairs = join(sets)
    if not dev:
        train_pairs, held_out = hold_out(train_pairs, _HELD_OUT, config.recipe.training.seed)
        log.info("no dev pairs given: %d of the training pairs are held out, by source", len(held_out))
        for part in (train_pairs, held_out):
            if not len(part) or np.ptp(part.score) == 0:
                raise InputError("too few training pairs to hold some out for selection; give --dev pairs")
        dev = [held_out]
    return _Data(train_pairs, dev, test)


def _fingerprint(config: FitConfig, data: _Data) -> dict[str, str]:
    return {
        "recipe": replace(config.recipe, description="").to_toml_text(),
        "backbone": backbone_identity(config.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
        "test pairs": " ".join(pairs.sha256() for pairs in data.test),
    }


def _load_backbone(config: FitConfig) -> SentenceTransformer:
    return load_backbone(config.backbone, config.recipe.training.max_seq_length, config.device)


def _leaks(data: _Data) -> list[str]:
    """Return, and log, a warning for every evaluated set that shares pairs with what was learned from."""
    notes = []
    for role, pairs in data.evaluated:
        learned = [("training", data.train), *(("dev", dev) for dev in data.dev if role == "test")]
        for origin, seen in learned:
            if leaks := count_leaks(seen, pairs):
                notes.append(f"{leaks} of {len(pairs)} {role} pairs of {pairs.name} are {origin} pairs too")
                log.warning("warning: %s: results on them are flattered", notes[-1])
    return notes


def _similarities(name: str, model: SentenceTransformer, data: _Data) -> Columns:
    columns = []
    with quiet_libraries():
        for _, pairs in data.evaluated:
            columns.append(evaluate_model(model, pairs))
            check_finite(columns[-1], pairs, name)
    return columns


def _dev_scores(data: _Data, columns: Columns) -> list[float]:
    """Return the Spearman on each dev set; their columns stand first."""
    return [spearman(pairs.score, column) for pairs, column in zip(data.dev, columns, strict=False)]


def _dev_score(data: _Data, columns: Columns) -> float:
    scores = _dev_scores(data, columns)
    return sum(scores) / len(scores)


def _average(model: SentenceTransformer, backbone: SentenceTransformer, share: float) -> None:
    """Move the weights of `model` towards those of `backbone`: (1 - share)·tuned + share·backbone."""
    theirs = backbone.state_dict()
    for name, weights in model.state_dict().items():
        if weights.is_floating_point():
            weights.lerp_(theirs[name].to(weights), share)


def _report(
    recipe: Recipe,
    backbone: str,
    data: _Data,
    training: Training,
    before: Columns,
    after: Columns,
    notes: list[str],
    model: SentenceTransformer,
) -> FitReport:
    dev_before, dev_after = _dev_score(data, before), _dev_score(data, after)
    if training.equal_batches:
        notes = [
            *notes,
            f"{training.equal_batches} batches had equal scores throughout and taught no ranking",
        ]
        log.warning("warning: %s", notes[-1])
    results = [
        result
        for (role, pairs), old, new in zip(data.evaluated, before, after, strict=True)
        for result in compare(pairs, {BACKBONE: old, TUNED: new}, baseline=BACKBONE, role=role)
    ]
    return FitReport(
        backbone=backbone,
        recipe=asdict(recipe),
        device=model.device.type,
        precision=resolve_precision(recipe.training.precision, model.device),
        data=[DataNote.of(role, pairs) for role, pairs in [("train", data.train), *data.evaluated]],
        curve=[{"step": 0, "epoch": 0.0, "dev": dev_before, "terms": {}}, *map(asdict, training.curve)],
        steps=training.steps,
        planned_steps=training.planned_steps,
        best_step=training.best_step,
        kept="tuned" if dev_after > dev_before else "backbone",
        dev_before=dev_before,
        dev_after=dev_after,
        results=results,
        notes=notes,
    )


def _save(config: FitConfig, model: SentenceTransformer, report: FitReport) -> None:
    with quiet_libraries():
        model.save_pretrained(str(config.out))
    with replace_file(config.out / "recipe.toml") as stream:
        stream.write(config.recipe.to_toml_text())
    report.write(config.out / "report.json")
