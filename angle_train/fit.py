"""One training run from files to files: pairs and a backbone in, model and report out.

`fit` is the table of contents of a run. The untouched backbone is always measured on the same pairs, and is
what gets saved if no checkpoint ranks the dev pairs better.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.locking import hold
from angle_train.data.pairs import PairSet
from angle_train.data.splits import RunData, load_run_data, run_leaks
from angle_train.evaluate.similarity import evaluate_model
from angle_train.model.adapters import has_adapters
from angle_train.model.load import (
    backbone_identity,
    check_device,
    finish_training,
    load_backbone,
    load_for_training,
    quiet_libraries,
    save_model,
    starts_as_backbone,
    usable_positions,
)
from angle_train.model.long_text import choose_length
from angle_train.objective.loss import widths
from angle_train.recipe import AUTO, BackboneConfig, Recipe
from angle_train.report.page import write_fit_page
from angle_train.report.result import (
    BACKBONE,
    TUNED,
    FitReport,
    Measured,
    Trained,
    make_report,
    mean_spearman,
    measure,
    spearmans,
)
from angle_train.report.text import command_line, portable
from angle_train.train.arguments import (
    Schedule,
    check_trackers,
    resolve_precision,
    tracker_folder,
    warn_of_emulation,
)
from angle_train.train.checkpoints import HIDDEN, RunDirectory
from angle_train.train.choosing import (
    best_share,
    blend,
    blended,
    cross_fit,
    shares_to_try,
    snapshot,
)
from angle_train.train.processes import connect, on_first
from angle_train.train.trainer import DevEvaluator, Training, TrainOptions, record_dev_scores, train
from angle_train.train.watch import disk_errors_in_one_line, memory_errors_in_one_line

log = logging.getLogger("angle.fit")


@dataclass(frozen=True, slots=True)
class FitConfig:
    """What to fit, on what, and where to put it.

    Attributes:
        data: Sources of training pairs, see `pairs.load_pairs`; may be none if there are human-graded ones.
        backbone: Directory or hub id of the model to start from.
        out: Directory for the model and the report.
        recipe: How to train.
        dev: Sources of the pairs that select the checkpoint. Default: parts of the human-graded pairs in
            turn, or else the validation splits of the training data, or else a tenth of it.
        test: Sources of pairs that nothing is selected on.
        human: Sources of human-graded training pairs, weighted by the recipe's `human_weight`.
        scale: Scale of the scores, `LOW-HIGH`, see `pairs.load_pairs`; default detected.
        drop_leaks: Leave out training pairs that are dev or test pairs too.
        overwrite: Replace an earlier run in `out`.
        device: `cpu`, `cuda` …; default the best there is.
        report_to: Programs that follow the run, see `arguments.TRACKERS`.
    """

    data: Sequence[str]
    backbone: str
    out: Path
    recipe: Recipe = field(default_factory=Recipe)
    dev: Sequence[str] = ()
    test: Sequence[str] = ()
    human: Sequence[str] = ()
    scale: str | None = None
    drop_leaks: bool = False
    overwrite: bool = False
    device: str | None = None
    report_to: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FitResult:
    """Where the model is, what the report says, and whether the run had been finished before."""

    out: Path
    report: FitReport
    already_finished: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """A run under way: what was asked for, with `auto` lengths settled, and the checkpoint to go on from."""

    config: FitConfig
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
            options=TrainOptions(stop_at=stop_at, trackers=self.config.report_to),
        )


def fit(config: FitConfig) -> FitResult:
    """Run, or go on with, the training run that `config` describes.

    Several processes, started by torchrun or accelerate launch, make one run together.

    Raises:
        InputError: Something about the data, the backbone, the recipe or the directory is wrong, or the
            memory does not suffice.
        KeyboardInterrupt: Ctrl-C; the same call goes on from the checkpoint that was written.
    """
    if Path(config.backbone).resolve() == config.out.resolve():
        raise InputError(f"--out {config.out} is the backbone itself; give another directory")
    check_trackers(config.report_to)
    check_device(config.device, numbered=False)
    with connect(config.device), memory_errors_in_one_line(), ExitStack() as held:
        data = load_data(config)
        config = replace(config, recipe=data.recipe)
        directory = RunDirectory(config.out, fingerprint(config, data))
        if on_first(lambda: directory.status(overwrite=config.overwrite)) == "finished":
            on_first(directory.tidy)
            log.info("%s: already finished; --overwrite runs it again", config.out)
            return FitResult(config.out, FitReport.read(config.out / "report.json"), already_finished=True)
        leaks = run_leaks(data)
        sized, model, lengths = load_at_length(config, data)
        warn_of_emulation(resolve_precision(config.recipe.training.precision, model.device), model.device)
        run = _Run(sized, data, directory, on_first(lambda: _claim(config, directory, held)))
        with tracker_folder(config.out):
            before = on_first(lambda: measure(BACKBONE, untouched(sized, model), data.evaluated))
            trained = _train_with_dev(run, model, before) if data.dev else _train_by_parts(run, model, before)
        details = {"leaks": [asdict(leak) for leak in leaks], "command": _command(config), **lengths}
        report = on_first(lambda: _finish(replace(run, config=config), model, trained, details))
    return FitResult(config.out, report, already_finished=False)


def load_data(config: FitConfig) -> RunData:
    """Return the pairs of a run, see `splits.load_run_data`."""
    return load_run_data(
        config.data,
        config.human,
        config.dev,
        config.test,
        recipe=config.recipe,
        scale=config.scale,
        drop_leaks=config.drop_leaks,
    )


def fingerprint(config: FitConfig, data: RunData) -> dict[str, str]:
    """Return what decides the run, by part: two runs are the same if these are."""
    parts = {
        "recipe": replace(config.recipe, description="").to_toml_text(),
        "backbone": backbone_identity(config.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
        "test pairs": " ".join(pairs.sha256() for pairs in data.test),
    }
    return parts | ({"human-graded pairs": data.human.sha256()} if data.human is not None else {})


def _claim(config: FitConfig, directory: RunDirectory, held: ExitStack) -> Path | None:
    """Take the directory for as long as `held` is open; return the checkpoint to go on from, if any."""
    held.enter_context(hold(config.out / HIDDEN))
    # The status again: another process may have written here while the model was loaded.
    resume = directory.claim(directory.status(overwrite=config.overwrite), overwrite=config.overwrite)
    if resume:
        log.info("going on from %s", resume)
    return resume


def load_at_length(config: FitConfig, data: RunData) -> tuple[FitConfig, SentenceTransformer, dict[str, Any]]:
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
    choice = choose_length(model, texts, recipe.training.prompt or None, 99.0 if automatic else 100.0)
    if automatic:
        log.info(
            "max_seq_length %d: the longest training text has %d tokens",
            choice.max_seq_length,
            choice.longest,
        )
        recipe = recipe.with_overrides({"max_seq_length": choice.max_seq_length})
        config = replace(config, recipe=recipe)
        model = load_for_run(config)
    if choice.truncated and recipe.backbone.long_text == "cut":
        positions, tokens = usable_positions(model), model.max_seq_length
        longer = positions is not None and tokens is not None and tokens < positions
        more = f"there are positions for --max-seq-length {positions}, and " if longer else ""
        more += "--set long_text=head_tail reads both ends"
        log.info("%.1f %% of the training texts are longer and are cut; %s", 100 * choice.truncated, more)
    return config, model, {"lengths": asdict(choice) | {"max_seq_length": model.max_seq_length}}


def load_for_run(config: FitConfig, backbone: BackboneConfig | None = None) -> SentenceTransformer:
    """Return a fresh model as the run starts with it, or with other settings of the backbone."""
    training = config.recipe.training
    backbone = backbone or config.recipe.backbone
    return load_for_training(
        config.backbone, backbone, training.prompt, _tokens(config), config.device, training.seed
    )


def untouched(config: FitConfig, model: SentenceTransformer) -> SentenceTransformer:
    """Return the backbone as it is: `model` itself, not trained yet, if the recipe changed nothing of it."""
    recipe = config.recipe
    same = starts_as_backbone(recipe.backbone, recipe.training.prompt)
    return model if same else load_backbone(config.backbone, _tokens(config), config.device)


def _tokens(config: FitConfig) -> int | None:
    """Return the stated tokens per text; none where they are the checkpoint's or not chosen yet."""
    stated = config.recipe.training.max_seq_length
    return stated if isinstance(stated, int) else None


def _train_with_dev(run: _Run, model: SentenceTransformer, before: Measured) -> Trained:
    """Train with dev pairs choosing the weights; `model` holds the final ones in the first process."""
    data = run.data
    score = mean_spearman(data.dev, before.columns)
    log.info("step 0, the untouched backbone: dev Spearman %.2f", 100 * score)
    training = run.train(model, DevEvaluator(data.dev, score))
    details = on_first(lambda: _mix_in_backbone(run.config, model, data.dev))
    after = on_first(lambda: measure(TUNED, model, data.evaluated))
    dev_after = mean_spearman(data.dev, after.columns)
    return Trained(training, data.evaluated, before, after, score, dev_after, details)


def _mix_in_backbone(config: FitConfig, model: SentenceTransformer, dev: Sequence[PairSet]) -> dict[str, Any]:
    """Mix the backbone into the tuned weights as the recipe says; return the report's note on it."""
    setting = config.recipe.training.average_with_backbone
    if not setting:
        return {}
    backbone = _backbone_weights(config, model)
    shares, scores = shares_to_try(setting), []
    if setting == AUTO:
        for share in shares:
            with blended(model, backbone, share), quiet_libraries():
                scores.append(mean_spearman(dev, [evaluate_model(model, pairs) for pairs in dev]))
            log.info("%.0f %% of the backbone: dev Spearman %.2f", 100 * share, 100 * scores[-1])
    share = shares[best_share(scores)] if scores else shares[0]
    blend(model, backbone, share)
    return {"merge": {"share": share, "shares": list(shares), "dev": scores}}


def _backbone_weights(config: FitConfig, model: SentenceTransformer) -> dict[str, Tensor]:
    """Return the weights to mix into those of `model`; with adapters, none have to be loaded."""
    return snapshot(model if has_adapters(model) else load_for_run(config))


def _train_by_parts(run: _Run, model: SentenceTransformer, before: Measured) -> Trained:
    """Train for as long as parts of the human-graded pairs, held out in turn, say."""
    config, data, human = run.config, run.data, run.data.human
    if human is None:
        raise ValueError("neither dev nor human-graded pairs")
    graded = [("human", human)]
    cross = cross_fit(
        lambda: load_for_run(config),
        human,
        data.others,
        config.recipe,
        run.directory.folds,
        run.directory.fingerprint,
        on_first(lambda: measure(BACKBONE, untouched(config, model), graded).columns[0]),
    )
    schedule, chosen = Schedule(config.recipe.training, len(data.train)), cross.choice.evaluation
    training, step = Training([], 0, schedule.steps, 0, 0), 0
    if chosen:
        step = schedule.step_at(cross.progress[chosen - 1])
        log.info("training on all %d pairs, up to step %d of %d", len(data.train), step, schedule.steps)
        training = run.train(model, stop_at=step)
        if cross.share:
            on_first(lambda: blend(model, _backbone_weights(config, model), cross.share))
    training = replace(training, curve=schedule.curve(cross.progress, cross.means), best_step=step)
    after = on_first(lambda: measure(TUNED, model, data.evaluated))
    held_out = replace(human, name=f"{human.name}/held out in turn")
    return Trained(
        training,
        [("dev", held_out), *data.evaluated],
        before.after([cross.before]),
        after.after([cross.after]),
        cross.backbone,
        cross.choice.mean,
        {"folds": cross.to_dict()},
    )


def _finish(run: _Run, model: SentenceTransformer, trained: Trained, details: dict[str, Any]) -> FitReport:
    """Write model and reports, and mark the run as finished."""
    config, data, directory = run.config, run.data, run.directory
    report = make_report(config.recipe, data, trained, directory.fingerprint["backbone"], details, model)
    if report.kept == BACKBONE:
        log.info("%s", report.verdict()[0])
        model = load_backbone(config.backbone, _tokens(config), config.device)
    else:
        backbone = config.recipe.backbone
        model = finish_training(model, backbone, lambda other: load_for_run(config, other))
        if data.dev:  # the parts held out in turn measured other models
            record_dev_scores(model, data.dev, spearmans(data.dev, trained.after.columns))
    with disk_errors_in_one_line(config.out):
        save_model(model, config.out)
        report.add_to_card(config.out / "README.md")
        with replace_file(config.out / "recipe.toml") as stream:
            stream.write(config.recipe.to_toml_text())
        report.write(config.out / "report.json")
    write_fit_page(config.out / "report.html", report, trained.views())
    directory.finish()
    return report


def _command(config: FitConfig) -> str:
    """Return the command that repeats the run, from the recipe beside its report."""
    sources = {"--data": config.data, "--human": config.human, "--dev": config.dev, "--test": config.test}
    return command_line(
        "angle-train fit",
        [
            ("--recipe", "recipe.toml"),
            ("--backbone", portable(config.backbone)),
            *((name, [portable(spec) for spec in specs]) for name, specs in sources.items()),
            ("--scale", config.scale),
            ("--drop-leaks", config.drop_leaks),
            ("--out", "again"),
        ],
    )
