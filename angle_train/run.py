"""One training run from files to files: pairs and a backbone in, model and report out.

`fit` is the table of contents of a run. The untouched backbone is always measured on the same pairs, and is
what gets saved if no checkpoint surely ranks the dev pairs better.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.console import duration
from angle_data.errors import InputError
from angle_data.jsonl import write_text
from angle_data.locking import hold
from angle_train.data.keep import load_to_keep, with_kept
from angle_train.data.sources import labels_usd
from angle_train.data.splits import RunData, load_run_data, run_leaks
from angle_train.evaluation.similarity import mean_spearman, measure
from angle_train.model.adapters import has_adapters
from angle_train.model.load import (
    backbone_identity,
    check_device,
    finish_training,
    hub_id,
    load_backbone,
    load_for_training,
    quiet_libraries,
    save_model,
)
from angle_train.model.long_text import choose_length
from angle_train.objective.loss import widths
from angle_train.options import FitOptions
from angle_train.recipe import AUTO, CHECKPOINT, BackboneConfig
from angle_train.report.card import write_card
from angle_train.report.page import write_fit_page
from angle_train.report.result import (
    BACKBONE,
    TUNED,
    FitReport,
    Trained,
    make_report,
)
from angle_train.report.text import command_line, made_line
from angle_train.train.arguments import Schedule, check_trackers, resolve_precision, tracker_names
from angle_train.train.choosing import Columns, climb, resampled, what_pairs_show
from angle_train.train.folds import cross_fit
from angle_train.train.merging import SHARES, blend, blended, share_on_the_way, snapshot
from angle_train.train.processes import connect, on_first
from angle_train.train.run_directory import HIDDEN, RunDirectory, check_free
from angle_train.train.trainer import DevEvaluator, Training, TrainOptions, restore, train
from angle_train.train.watch import Point, disk_errors_in_one_line, memory_errors_in_one_line

log = logging.getLogger("angle.fit")

# How a result is computed: it changes only by rounding and by which activations dropout draws. The work of
# `loss` is done when the values are chosen.
_SAME_RESULT = ("chunk_size", "chunking", "gradient_cache", "gradient_checkpointing", "loss")


class FitResult(NamedTuple):
    """What the report says, and whether the run had been finished before."""

    report: FitReport
    already_finished: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """A run under way: what was asked for, with `auto` lengths settled, and the checkpoint to go on from."""

    config: FitOptions
    data: RunData
    directory: RunDirectory
    resume: Path | None

    def train(
        self, model: SentenceTransformer, dev: DevEvaluator | None = None, stop_at: int | None = None
    ) -> Training:
        """Train `model` in place on all training pairs."""
        return train(
            model,
            self.data.train,
            self.config.recipe,
            self.directory.checkpoints,
            evaluator=dev,
            resume=self.resume,
            options=TrainOptions(stop_at=stop_at, trackers=tracker_names(self.config.report_to)),
        )


def fit(config: FitOptions, reason: str = "") -> FitResult:
    """Run, or go on with, the training run that `config` describes; `reason` says why with that recipe.

    Several processes, started by torchrun or accelerate launch, make one run together.

    Raises:
        InputError: Something about the data, the backbone, the recipe or the directory is wrong, or the
            memory does not suffice.
        KeyboardInterrupt: Ctrl-C; the same call goes on from the checkpoint that was written.
    """
    if Path(config.backbone).resolve() == config.out.resolve():
        raise InputError(f"--out {config.out} is the backbone itself; give another directory")
    begun = time.monotonic()
    check_trackers(tracker_names(config.report_to), config.out)
    check_device(config.device, numbered=False)
    with connect(config.device), memory_errors_in_one_line(), ExitStack() as held:
        on_first(lambda: check_free(config.out))
        data = load_data(config, reason)
        config = replace(config, recipe=data.recipe)
        directory = RunDirectory(config.out, fingerprint(config, data))
        if on_first(lambda: directory.status(overwrite=config.overwrite)) == "finished":
            on_first(directory.tidy)
            log.info("%s: already finished; --overwrite runs it again", config.out)
            return FitResult(on_first(lambda: _reopen(config)), True)
        leaks = run_leaks(data)
        sized, model, lengths = load_at_length(config, data)
        resolve_precision(config.recipe.training.precision, model.device)  # refuses at once what cannot be
        data = keep_similarities(sized, data, model)
        run = _Run(sized, data, directory, on_first(lambda: _claim(config, directory, held)))
        sets = [pairs for _, pairs in data.evaluated]
        before = on_first(lambda: measure(untouched(sized, model), sets, BACKBONE))
        trained = _train_with_dev(run, model, before) if data.dev else _train_by_parts(run, model, before)
        names = ("backbone", "data", "human", "keep", "dev", "test", "scale", "drop_leaks")
        options = {"recipe": "recipe.toml", **{name: getattr(config, name) for name in names}, "out": "again"}
        command = command_line("angle-train fit", options, moved=True)  # repeats the run
        details = {"leaks": [asdict(leak) for leak in leaks], "command": command, **lengths}
        if reason:
            details["reason"] = reason
        if known := hub_id(config.backbone):
            details["base_model"] = known
        report = on_first(lambda: _finish(replace(run, config=config), model, trained, details))
        log.info("done in %s", duration(time.monotonic() - begun))
    return FitResult(report, False)


def _reopen(config: FitOptions) -> FitReport:
    """Return the report of a finished run, whose model must do what `require_better` asks for now."""
    report = FitReport.read(config.out / "report.json")
    if config.require_better and report.doubted:
        raise InputError(
            f"--require-better: {report.advice().removesuffix('.')}; {config.out} holds the tuned model, of "
            "a run without this option: use the backbone, or run again with --overwrite"
        )
    return report


def load_data(config: FitOptions, reason: str = "") -> RunData:
    """Return the pairs of a run, see `splits.load_run_data`; `reason` is that of `fit`."""
    if reason:
        log.info("%s", reason)
    data = load_run_data(
        config.data or (),
        config.human or (),
        config.dev or (),
        config.test or (),
        recipe=config.recipe,
        scale=config.scale,
        drop_leaks=config.drop_leaks,
    )
    if not config.keep:
        return data
    if not (data.recipe.objective.cosine_weight or data.recipe.objective.angle_weight):
        raise InputError("--keep: the objective of this run ranks nothing; add --set cosine_weight=0.2")
    return replace(data, kept=load_to_keep(config.keep, [data.train, *data.dev, *data.test]))


def keep_similarities(config: FitOptions, data: RunData, model: SentenceTransformer) -> RunData:
    """Return the data with the pairs to keep among what trains, scored by the untouched backbone."""
    if data.kept is None:
        return data
    kept = data.kept
    column = on_first(lambda: measure(untouched(config, model), [kept], BACKBONE)[0])
    if np.ptp(column.clip(0.0, 1.0)) == 0:
        raise InputError("--keep: the backbone finds all its pairs equally similar; give pairs that differ")
    return with_kept(data, kept, column)


def fingerprint(config: FitOptions, data: RunData) -> dict[str, str]:
    """Return what decides the run, by part: two runs are the same if these are."""
    recipe = config.recipe
    values = asdict(recipe.objective) | asdict(recipe.backbone) | asdict(recipe.training)
    parts = {key: json.dumps(value) for key, value in values.items() if key not in _SAME_RESULT}
    parts |= {
        "backbone": backbone_identity(config.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
        "test pairs": " ".join(pairs.sha256() for pairs in data.test),
    }
    more = {"human-graded pairs": data.human, "pairs to keep": data.kept}
    return parts | {part: pairs.sha256() for part, pairs in more.items() if pairs is not None}


def _claim(config: FitOptions, directory: RunDirectory, held: ExitStack) -> Path | None:
    """Take the directory for as long as `held` is open; return the checkpoint to go on from, if any."""
    held.enter_context(hold(config.out / HIDDEN))
    # The status again: another process may have written here while the model was loaded.
    resume = directory.claim(directory.status(overwrite=config.overwrite))
    if resume:
        log.info("going on from %s", resume)
    return resume


def load_at_length(
    config: FitOptions, data: RunData
) -> tuple[FitOptions, SentenceTransformer, dict[str, Any]]:
    """Return the run with its number of tokens per text, the model to train, and the report's note on it."""
    recipe = config.recipe
    automatic = recipe.training.max_seq_length == AUTO
    model = load_for_run(config)
    width = model.get_embedding_dimension()
    if width is not None:
        widths(recipe.objective, width)  # refuses before anything is measured
    if model.transformers_model is None or model.max_seq_length is None:
        return config, model, {}
    texts = [*data.train.text1, *data.train.text2]
    found = choose_length(model, texts, recipe.training.prompt or None, 99.0 if automatic else 100.0)
    if automatic:
        log.info(
            "max_seq_length %d: the longest training text has %d tokens",
            found.max_seq_length,
            found.longest,
        )
        recipe = recipe.with_overrides({"max_seq_length": found.max_seq_length})
        config = replace(config, recipe=recipe)
        model = load_for_run(config)
    if found.truncated and recipe.backbone.long_text == "cut":
        log.info(
            "%.1f %% of the training texts are longer than %d tokens and are cut; --max-seq-length reads "
            "more where the model can, --set long_text=head_tail both ends",
            100 * found.truncated,
            model.max_seq_length,
        )
    return config, model, {"lengths": asdict(found) | {"max_seq_length": model.max_seq_length}}


def load_for_run(config: FitOptions, backbone: BackboneConfig | None = None) -> SentenceTransformer:
    """Return a fresh model as the run starts with it, or with other settings of the backbone."""
    training = config.recipe.training
    backbone = backbone or config.recipe.backbone
    return load_for_training(
        config.backbone, backbone, training.prompt, _tokens(config), config.device, training.seed
    )


def untouched(config: FitOptions, model: SentenceTransformer) -> SentenceTransformer:
    """Return the backbone as it is: `model` itself, not trained yet, if the recipe changed nothing of it."""
    asked, prompt = config.recipe.backbone, config.recipe.training.prompt
    same = (asked.pooling, asked.quantization, asked.long_text, prompt) == (CHECKPOINT, "none", "cut", "")
    return model if same else load_backbone(config.backbone, _tokens(config), config.device)


def _tokens(config: FitOptions) -> int | None:
    """Return the stated tokens per text; none where they are the checkpoint's or not chosen yet."""
    stated = config.recipe.training.max_seq_length
    return stated if isinstance(stated, int) else None


def _train_with_dev(run: _Run, model: SentenceTransformer, before: Columns) -> Trained:
    """Train with dev pairs choosing the weights; `model` holds the final ones in the first process."""
    data, setting = run.data, run.config.recipe.training.average_with_backbone
    score = mean_spearman(data.dev, before)
    log.info("step 0, the untouched backbone: dev Spearman %.2f", 100 * score)
    log.info("%s", what_pairs_show(data.dev))
    share = share_on_the_way(setting)
    evaluator = DevEvaluator(data.dev, score, run.directory.checkpoints / "measured.jsonl", share)
    evaluator.backbone = snapshot(model) if share else {}
    training = run.train(model, evaluator)
    step, details = on_first(lambda: _choose_weights(run, model, training, evaluator, before))
    after = on_first(lambda: _measure_finished(run, model))
    dev_after = mean_spearman(data.dev, after)
    training = replace(training, best_step=step)
    return Trained(training, data.evaluated, before, after, score, dev_after, details)


def _measure_finished(run: _Run, model: SentenceTransformer) -> Columns:
    """Make a trained model what will be saved, and only then measure it: the report is about that model."""
    config = run.config
    finish_training(model, config.recipe.backbone, lambda other: load_for_run(config, other))
    return measure(model, [pairs for _, pairs in run.data.evaluated], TUNED)


def _choose_weights(
    run: _Run, model: SentenceTransformer, training: Training, evaluator: DevEvaluator, before: Columns
) -> tuple[int, dict[str, Any]]:
    """Give `model` the weights that the dev pairs choose; where they choose the backbone, tuned ones.

    Returns the step of the weights, 0 for the backbone, and the report's notes on the choice.
    """
    dev, setting = run.data.dev, run.config.recipe.training.average_with_backbone
    measured = evaluator.measured()
    *steps, end = (point["step"] for point in training.curve if point["step"] in measured)
    # A run that stopped early did not end as planned: its end is one of the evaluations, and no simpler.
    later = 2 if training.steps == training.planned_steps else 1
    step_of, levels = [end, end, *steps], [0, 1, *(later for _ in steps)]
    candidates = [before[: len(dev)], *(measured[step] for step in step_of[1:])]
    # Of the weights between, only the best were kept.
    lost = [i for i, step in enumerate(step_of) if step not in (end, training.best_step)]
    backbone, first = evaluator.backbone, len(candidates)
    shares = SHARES if setting == AUTO else (float(setting),)
    scores, drawn = resampled(dev, candidates)
    choice = climb(scores, drawn, levels, lost)
    tuned = choice.chosen or 1
    if setting == AUTO:
        backbone = _backbone_weights(run.config, model)
        restore(model, run.directory.checkpoints, step_of[tuned])
        for share in shares[1:]:
            with blended(model, backbone, share), quiet_libraries():
                candidates.append(measure(model, dev))
        more = resampled(dev, candidates[first:])
        levels += [3] * len(shares[1:])
        step_of += [step_of[tuned]] * len(shares[1:])
        choice = climb(np.append(scores, more[0]), np.append(drawn, more[1], axis=0), levels, lost)
    step = step_of[choice.chosen]
    share = shares[1 + choice.chosen - first] if choice.chosen >= first else shares[0]
    restore(model, run.directory.checkpoints, step)
    blend(model, backbone, share)
    mixed = f" with {100 * share:.0f} % of the backbone" if share else ""
    log.info("%s", choice.sentence(f"step {step}{mixed}", "dev pairs"))
    merge = {"share": share, "shares": list(shares), "dev": [choice.scores[tuned], *choice.scores[first:]]}
    return step if choice.chosen else 0, {"choice": choice.to_dict()} | ({"merge": merge} if setting else {})


def _backbone_weights(config: FitOptions, model: SentenceTransformer) -> dict[str, Tensor]:
    """Return the weights to mix into those of `model`; with adapters, none have to be loaded."""
    return snapshot(model if has_adapters(model) else load_for_run(config))


def _train_by_parts(run: _Run, model: SentenceTransformer, before: Columns) -> Trained:
    """Train for as long as parts of the human-graded pairs, held out in turn, say."""
    config, data, human = run.config, run.data, run.data.human
    if human is None:
        raise ValueError("neither dev nor human-graded pairs")
    untuned = on_first(lambda: measure(untouched(config, model), [human], BACKBONE)[0])
    cross = cross_fit(
        lambda: load_for_run(config),
        human,
        data.others,
        config.recipe,
        run.directory.folds,
        run.directory.fingerprint,
        untuned,
    )
    schedule = Schedule(config.recipe.training, len(data.train))
    training, step = Training([], 0, schedule.steps, 0), 0
    if cross.choice.chosen:
        step = schedule.step_at(cross.progress[cross.evaluation - 1])
        log.info("training on all %d pairs, up to step %d of %d", len(data.train), step, schedule.steps)
        training = run.train(model, stop_at=step)
        if cross.share:
            on_first(lambda: blend(model, _backbone_weights(config, model), cross.share))
    curve: list[Point] = [
        {"step": at, "epoch": at / schedule.per_epoch, "dev": score}
        for at, score in zip(map(schedule.step_at, cross.progress), cross.curve, strict=True)
    ]
    training = replace(training, curve=curve, best_step=step)
    after = on_first(lambda: _measure_finished(run, model))
    held_out = replace(human, name=f"{human.name}/held out in turn")
    return Trained(
        training,
        [("dev", held_out), *data.evaluated],
        [untuned, *before],
        [cross.after, *after],
        cross.choice.scores[0],
        cross.choice.scores[max(cross.choice.chosen, 1)],
        {"folds": cross.to_dict(), "choice": cross.choice.to_dict()},
    )


def _finish(run: _Run, model: SentenceTransformer, trained: Trained, details: dict[str, Any]) -> FitReport:
    """Write model and reports, and mark the run as finished."""
    config, directory = run.config, run.directory
    report = make_report(config.recipe, run.data, trained, directory.fingerprint["backbone"], details, model)
    if config.require_better and report.doubted:
        report = report.with_backbone()
    if report.kept == BACKBONE:
        log.info("%s", report.verdict()[0])
        # It reads as many tokens as when it was measured.
        tokens = report.details.get("lengths", {}).get("max_seq_length")
        model = load_backbone(config.backbone, tokens, config.device)
    with disk_errors_in_one_line(config.out), directory.replacing() as folder:
        write_text(folder / "recipe.toml", config.recipe.to_toml_text())
        report.write(folder / "report.json")
        save_model(model, folder)
        write_card(folder / "README.md", report, model)
        made = made_line(usd=sum(map(labels_usd, config.data or ())))
        write_fit_page(folder / "report.html", report, trained.views(report.tuned_name), made)
    directory.finish()
    return report
