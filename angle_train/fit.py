"""One training run from files to files: pairs and a backbone in, model and report out.

Composes the steps; what each does is in its module. The untouched backbone is always measured on the same
pairs, and is what gets saved if no checkpoint ranks the dev pairs better.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.locking import hold
from angle_train.data.inputs import RunData, load_run_data, run_leaks, unused_in_run
from angle_train.data.pairs import PairSet
from angle_train.evaluate.similarity import evaluate_model
from angle_train.model.adapters import has_adapters
from angle_train.model.load import (
    backbone_identity,
    check_device,
    load_backbone,
    quiet_libraries,
    usable_positions,
)
from angle_train.model.long_text import choose_length
from angle_train.model.merge import best_share, blend, blended, shares_to_try, snapshot
from angle_train.model.prepare import finish_training, load_for_training, starts_as_backbone
from angle_train.objective.loss import widths
from angle_train.objective.losses import OWN_LOSS
from angle_train.recipe import Recipe
from angle_train.report.page import write_fit_page
from angle_train.report.result import (
    BACKBONE,
    TUNED,
    FitReport,
    Trained,
    make_report,
    mean_spearman,
    measure,
    spearmans,
)
from angle_train.report.text import command_line, portable
from angle_train.settings import AUTO, BackboneConfig
from angle_train.train.arguments import Schedule, resolve_precision, warn_of_emulation
from angle_train.train.checkpoints import RunDirectory
from angle_train.train.choosing import CrossFit, cross_fit
from angle_train.train.memory import memory_errors_in_one_line
from angle_train.train.processes import connect, on_first
from angle_train.train.saving import disk_errors_in_one_line
from angle_train.train.sharding import check_can_shard, is_sharded
from angle_train.train.trackers import check_trackers, tracker_folder
from angle_train.train.trainer import Training, record_dev_scores, train

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
        report_to: Programs that follow the run, see `trackers.TRACKERS`.
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
        return _fit(config, held)


def _fit(config: FitConfig, held: ExitStack) -> FitResult:
    recipe = config.recipe
    data = load_run_data(
        config.data,
        config.human,
        config.dev,
        config.test,
        recipe=recipe,
        scale=config.scale,
        drop_leaks=config.drop_leaks,
    )
    directory = RunDirectory(config.out, _fingerprint(config, data))
    status = on_first(lambda: directory.status(overwrite=config.overwrite))
    if status == "finished":
        on_first(directory.tidy)
        log.info("%s: already finished; --overwrite runs it again", config.out)
        return FitResult(config.out, FitReport.read(config.out / "report.json"), already_finished=True)
    for note in unused_in_run(recipe, data):
        log.warning("warning: %s", note)
    details: dict[str, Any] = {
        "leaks": [asdict(leak) for leak in run_leaks(data)],
        "command": _command(config),
    }
    config, model, lengths = load_at_length(config, data)
    if is_sharded():
        check_can_shard(model, recipe)  # before anything is measured
    details |= {"lengths": lengths} if lengths else {}
    warn_of_emulation(resolve_precision(recipe.training.precision, model.device), model.device)

    def claim() -> Path | None:
        held.enter_context(hold(config.out))
        # Asked again: another process may have written here while the model was loaded.
        return directory.claim(directory.status(overwrite=config.overwrite), overwrite=config.overwrite)

    resume = on_first(claim)
    if resume:
        log.info("going on from %s", resume)
    with tracker_folder(config.out):
        trained = _train(config, data, model, directory, resume)
    report = on_first(
        lambda: _finish(replace(config, recipe=recipe), data, model, directory, trained, details)
    )
    return FitResult(config.out, report, already_finished=False)


def _train(
    config: FitConfig, data: RunData, model: SentenceTransformer, directory: RunDirectory, resume: Path | None
) -> Trained:
    """Measure, train and measure again; the model holds the final weights in the first process."""
    recipe, human = config.recipe, data.human
    before = on_first(lambda: measure(BACKBONE, untouched(config, model), data.evaluated))
    if data.dev:
        score = mean_spearman(data.dev, before.columns)
        log.info("step 0, the untouched backbone: dev Spearman %.2f", 100 * score)
        training = train(
            model,
            data.train,
            data.dev,
            recipe,
            directory.checkpoints,
            resume,
            score,
            trackers=config.report_to,
        )
        details = on_first(lambda: _merge(config, model, data.dev))
        after = on_first(lambda: measure(TUNED, model, data.evaluated))
        dev_after = mean_spearman(data.dev, after.columns)
        return Trained(training, data.evaluated, before, after, score, dev_after, details)
    if human is None:
        raise ValueError("neither dev nor human-graded pairs")

    graded = [("human", human)]
    cross = cross_fit(
        lambda: load_for_run(config),
        human,
        data.others,
        recipe,
        directory.folds,
        directory.fingerprint,
        on_first(lambda: measure(BACKBONE, untouched(config, model), graded).columns[0]),
    )
    training = _train_as_chosen(config, data, model, directory, resume, cross)
    if cross.share and cross.choice.evaluation:
        on_first(lambda: blend(model, _backbone_of(config, model), cross.share))
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


def _train_as_chosen(
    config: FitConfig,
    data: RunData,
    model: SentenceTransformer,
    directory: RunDirectory,
    resume: Path | None,
    cross: CrossFit,
) -> Training:
    """Train on all pairs for as long as the parts say; the curve is the parts' mean."""
    recipe, chosen = config.recipe, cross.choice.evaluation
    schedule = Schedule(recipe.training, len(data.train))
    training = Training([], 0, schedule.steps, 0, 0)
    step = schedule.step_at(cross.progress[chosen - 1]) if chosen else 0
    if chosen:
        log.info("training on all %d pairs, up to step %d of %d", len(data.train), step, schedule.steps)
        training = train(
            model,
            data.train,
            [],
            recipe,
            directory.checkpoints,
            resume,
            stop_at=step,
            trackers=config.report_to,
        )
    return replace(training, curve=schedule.curve(cross.progress, cross.means), best_step=step)


def _merge(config: FitConfig, model: SentenceTransformer, dev: Sequence[PairSet]) -> dict[str, Any]:
    """Mix the backbone into the tuned weights as the recipe says; return what the report shows of that."""
    setting = config.recipe.training.average_with_backbone
    if not setting:
        return {}
    backbone = _backbone_of(config, model)
    shares, scores = shares_to_try(setting), []
    if setting == AUTO:
        for share in shares:
            with blended(model, backbone, share), quiet_libraries():
                scores.append(mean_spearman(dev, [evaluate_model(model, pairs) for pairs in dev]))
            log.info("%.0f %% of the backbone: dev Spearman %.2f", 100 * share, 100 * scores[-1])
    share = shares[best_share(scores)] if scores else shares[0]
    blend(model, backbone, share)
    return {"merge": {"share": share, "shares": list(shares), "dev": scores}}


def _backbone_of(config: FitConfig, model: SentenceTransformer) -> dict[str, Tensor]:
    """Return the weights to mix into those of `model`; with adapters, none have to be loaded."""
    return snapshot(model if has_adapters(model) else load_for_run(config))


def _finish(
    config: FitConfig,
    data: RunData,
    model: SentenceTransformer,
    directory: RunDirectory,
    trained: Trained,
    details: Mapping[str, Any],
) -> FitReport:
    """Write model and reports, and mark the run as finished."""
    report = make_report(config.recipe, data, trained, directory.fingerprint["backbone"], details, model)
    if report.kept == BACKBONE:
        log.info("%s", report.verdict()[0])
        model = _load_backbone(config)
    else:
        model = finish_training(
            model, config.recipe.backbone, lambda other: _load_for_training(config, other)
        )
        if data.dev:  # the parts held out in turn measured other models
            record_dev_scores(model, data.dev, spearmans(data.dev, trained.after.columns))
    with disk_errors_in_one_line(config.out):
        _save(config, model, report)
    write_fit_page(config.out / "report.html", report, trained.views())
    directory.finish()
    return report


def _command(config: FitConfig) -> str:
    """Return the command that repeats the run, from the recipe that lies beside its report."""
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


def _fingerprint(config: FitConfig, data: RunData) -> dict[str, str]:
    parts = {
        "recipe": replace(config.recipe, description="").to_toml_text(),
        "backbone": backbone_identity(config.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
        "test pairs": " ".join(pairs.sha256() for pairs in data.test),
    }
    return parts | ({"human-graded pairs": data.human.sha256()} if data.human is not None else {})


def _load_backbone(config: FitConfig) -> SentenceTransformer:
    return load_backbone(config.backbone, _tokens(config), config.device)


def load_for_run(config: FitConfig) -> SentenceTransformer:
    """Return a fresh model as the run starts with it."""
    return _load_for_training(config, config.recipe.backbone)


def _load_for_training(config: FitConfig, backbone: BackboneConfig) -> SentenceTransformer:
    training = config.recipe.training
    return load_for_training(
        config.backbone, backbone, training.prompt, _tokens(config), config.device, training.seed
    )


def _tokens(config: FitConfig) -> int | None:
    """Return the stated tokens per text; none where they are the checkpoint's or not chosen yet."""
    stated = config.recipe.training.max_seq_length
    return stated if isinstance(stated, int) else None


def load_at_length(config: FitConfig, data: RunData) -> tuple[FitConfig, SentenceTransformer, dict[str, Any]]:
    """Return the run with its number of tokens per text, the model to train, and the report's note on it."""
    recipe = config.recipe
    automatic = recipe.training.max_seq_length == AUTO
    model = load_for_run(config)
    width = model.get_embedding_dimension()
    if recipe.objective.loss == OWN_LOSS and width is not None:
        widths(recipe.objective, width)  # refuses before anything is measured
    if model.transformers_model is None or model.max_seq_length is None:
        return config, model, {}
    percentile = 99.0 if automatic else 100.0
    texts = [*data.train.text1, *data.train.text2]
    choice = choose_length(model, texts, recipe.training.prompt or None, percentile)
    if automatic:
        log.info(
            "max_seq_length %d: the longest training text has %d tokens",
            choice.max_seq_length,
            choice.longest,
        )
        training = replace(recipe.training, max_seq_length=choice.max_seq_length)
        config = replace(config, recipe=replace(recipe, training=training))
        model = load_for_run(config)
    if choice.truncated and recipe.backbone.long_text == "cut":
        log.info(
            "%.1f %% of the training texts are longer and are cut%s",
            100 * choice.truncated,
            _to_cut_less(model),
        )
    return config, model, asdict(choice) | {"max_seq_length": model.max_seq_length}


def _to_cut_less(model: SentenceTransformer) -> str:
    positions, tokens = usable_positions(model), model.max_seq_length
    longer = positions is not None and tokens is not None and tokens < positions
    more = f"there are positions for --max-seq-length {positions}, and " if longer else ""
    return f"; {more}--set long_text=head_tail reads both ends"


def untouched(config: FitConfig, model: SentenceTransformer) -> SentenceTransformer:
    """Return the backbone as it is: the model itself, before its first step, if nothing was made of it."""
    recipe = config.recipe
    same = starts_as_backbone(recipe.backbone, recipe.training.prompt)
    return model if same else _load_backbone(config)


def _save(config: FitConfig, model: SentenceTransformer, report: FitReport) -> None:
    with quiet_libraries():
        model.save_pretrained(str(config.out))
    report.add_to_card(config.out / "README.md")
    with replace_file(config.out / "recipe.toml") as stream:
        stream.write(config.recipe.to_toml_text())
    report.write(config.out / "report.json")
