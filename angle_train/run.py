"""One training run from files to files: pairs and a backbone in, model and report out.

`fit` is the recipe of a run, a step a line. The base model (the backbone before tuning) is always measured on
the same pairs, and stays where tuned weights are not shown to be better (`report.verdict`): these are saved
in `tuned/` then.

Every process loads and trains. What is marked `rank_zero` happens in the first process alone, which hands its
result to the others.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.console import duration
from angle_data.errors import InputError
from angle_data.jsonl import write_text
from angle_data.locking import hold
from angle_train.data.pairs import PairSet
from angle_train.data.sources import labels_usd
from angle_train.data.splits import RunData, run_leaks
from angle_train.evaluation.dev_sets import mean_figure, name_of_figure, name_of_items
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.power import power_sentence
from angle_train.evaluation.search import rank_documents, search_all
from angle_train.evaluation.similarity import Embedder, measure, pair_similarity
from angle_train.inputs import load_data
from angle_train.model.adapters import has_adapters
from angle_train.model.load import (
    backbone_identity,
    check_device,
    finish_training,
    hub_id,
    load_backbone,
    load_for_training,
    save_model,
    telling_name,
)
from angle_train.model.roles import AS_DOCUMENT, roles_of, set_role_prompts, tokens_read
from angle_train.objective.kept import Kept, kept_of
from angle_train.objective.loss import widths
from angle_train.options import FitOptions
from angle_train.outcome import (
    BaseFigures,
    HeldOut,
    TuningResult,
    checkpoint_candidates,
    columns_that_choose,
    views_of,
    what_was_found,
)
from angle_train.reading import length_of_texts, reads_roles
from angle_train.recipe import AUTO, CHECKPOINT, BackboneConfig, Recipe
from angle_train.report.card import write_card
from angle_train.report.page import write_fit_page
from angle_train.report.provisional import teller
from angle_train.report.result import FitReport, make_fit_report
from angle_train.report.text import command_line, made_line
from angle_train.report.verdict import BACKBONE, TUNED
from angle_train.trainer_arguments import tracker_names
from angle_train.training.arguments import check_arguments, check_trackers
from angle_train.training.choosing import Candidate, Columns, choose, too_few, what_pairs_show
from angle_train.training.distillation import Stages, stages_of
from angle_train.training.folds import cross_fit
from angle_train.training.frozen import check_frozen
from angle_train.training.guards import (
    Checkpoints,
    Guards,
    Weighed,
    as_details,
    guards_of,
    worse_sentence,
)
from angle_train.training.merging import blend, merge_details, snapshot
from angle_train.training.processes import connect_processes, rank_zero
from angle_train.training.run_directory import HIDDEN, RunDirectory, check_free
from angle_train.training.teacher import teacher_identity
from angle_train.training.trainer import DevEvaluator, Training, TrainOptions, restore
from angle_train.training.watch import Point, disk_errors_in_one_line, memory_errors_in_one_line

log = logging.getLogger("angle.fit")

# How a result is computed: it changes only by rounding and by which activations dropout draws. The work of
# `loss` is done when the values are chosen.
_SAME_RESULT = ("chunk_size", "gradient_cache", "gradient_checkpointing", "loss")
WITHOUT_TEST_PAIRS = (
    "warning: --require-better without --test pairs: the pairs that choose the weights also decide whether "
    "these are better, so a gain is flattered; give --test pairs"
)
_REPEATED = (
    *("backbone", "data", "human", "teacher", "teacher_pairs", "keep", "guard", "dev", "test"),
    *("dev_search", "test_search", "judged"),
    *("scale", "threshold", "drop_leaks"),
)


class FitResult(NamedTuple):
    """What the report says, and whether the run had been finished before."""

    report: FitReport
    already_finished: bool


@dataclass(frozen=True, slots=True)
class FitRun:
    """A run under way; nothing about it changes once its model is loaded.

    Attributes:
        options: What was asked for.
        recipe: The recipe, with all that it left open chosen for the pairs.
        data: Its pairs.
        directory: Where it writes.
        tokens: How many tokens of a text the model reads; None for as many as the checkpoint does.
        resume: The checkpoint to go on from.
        kept: The texts that are to keep their similarities, with the base model's embeddings.
    """

    options: FitOptions
    recipe: Recipe
    data: RunData
    directory: RunDirectory
    tokens: int | None = None
    resume: Path | None = None
    kept: Kept | None = None

    def load(self, backbone: BackboneConfig | None = None) -> SentenceTransformer:
        """Return a fresh model as training starts with it, or with other settings of the backbone."""
        training = self.recipe.training
        return load_for_training(
            self.options.backbone,
            backbone or self.recipe.backbone,
            training.prompt,
            self.tokens,
            self.options.device,
            training.seed,
            roles_of(training),
        )

    def train(
        self,
        model: SentenceTransformer,
        dev: DevEvaluator | None = None,
        *,
        first: DevEvaluator | None = None,
        stop_at: int | None = None,
    ) -> Training:
        """Train `model` in place on all training pairs; `first` is that of `Stages.train`."""
        return self.stages.train(
            model,
            self.directory,
            evaluator=dev,
            first=first,
            resume=self.resume,
            options=TrainOptions(stop_at, tracker_names(self.options.report_to), self.kept),
        )

    @property
    def stages(self) -> Stages:
        """The training on all training pairs, and what is distilled from it."""
        return stages_of(self.data.train, self.recipe, self.data.kept, self.load)


def fit(options: FitOptions, reason: str = "", loaded: tuple[RunData, Recipe] | None = None) -> FitResult:
    """Run, or go on with, the training run that `options` describe; `reason` says why with that recipe.

    `loaded` is what `load_data` returns for them, where that was done before. Several processes, started by
    torchrun or accelerate launch, make one run together.

    Raises:
        InputError: Something about the data, the backbone, the recipe or the directory is wrong, or the
            memory does not suffice.
        KeyboardInterrupt: Ctrl-C; the same call goes on from the checkpoint that was written.
    """
    begun = time.monotonic()
    with open_run(options) as held:
        data, recipe = loaded or load_data(options, reason)
        directory = RunDirectory(options.out, fingerprint(options, data, recipe))
        run = FitRun(options, recipe, data, directory)
        if run.directory.status(overwrite=options.overwrite) == "finished":
            return FitResult(reopen(run), True)
        facts = facts_of(run, reason)
        if data.test:
            log.info("%s", power_sentence(max(map(len, data.test)), data.judged_alone))
        elif options.require_better and not data.searches:
            log.warning("%s", WITHOUT_TEST_PAIRS)
        run, model, lengths = load_model(run)
        run = claim(run, held)
        before = measure_base_model(run, model)
        run = run_with_texts_to_keep(run, before)
        tune = tune_on_dev_sets if data.choosing else tune_by_parts
        outcome = tune(run, model, before)
        report = save(run, model, before, outcome, facts | lengths)
        log.info("done in %s", duration(time.monotonic() - begun))
    return FitResult(report, False)


@contextmanager
def open_run(options: FitOptions) -> Iterator[ExitStack]:
    """Check what costs nothing to check, connect the processes, and yield what holds the directory's lock."""
    if Path(options.backbone).resolve() == options.out.resolve():
        raise InputError(f"--out {options.out} is the backbone itself; give another directory")
    check_trackers(tracker_names(options.report_to), options.out)
    check_device(options.device, numbered=False)
    with connect_processes(options.device), memory_errors_in_one_line(), ExitStack() as held:
        check_free(options.out)
        yield held


@rank_zero
def reopen(run: FitRun) -> FitReport:
    """Return the report of a finished run."""
    out = run.options.out
    run.directory.tidy()
    log.info("%s: already finished; --overwrite runs it again", out)
    return FitReport.read(out / "report.json")


def fingerprint(options: FitOptions, data: RunData, recipe: Recipe) -> dict[str, str]:
    """Return what decides the run, by part: two runs are the same if these are."""
    values = asdict(recipe.objective) | asdict(recipe.backbone) | asdict(recipe.training) | recipe.arguments
    parts = {key: json.dumps(value) for key, value in values.items() if key not in _SAME_RESULT}
    parts |= {
        "backbone": backbone_identity(options.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
        "test pairs": " ".join(pairs.sha256() for pairs in data.test),
    }
    if options.threshold is not None:
        parts["threshold"] = f"{options.threshold:g}"
    if options.teacher:
        parts["teacher"] = teacher_identity(options.teacher)
    more: dict[str, Any] = {
        "human-graded pairs": data.human,
        "texts to keep": data.kept,
        "judged pairs": data.judged,
        "judged dev pairs": data.judged_dev,
    }
    more |= {f"dev search {searched.name}": searched for searched in data.dev_searches}
    more |= {f"test search {searched.name}": searched for searched in data.searches}
    more |= {f"guard {guard.pairs.name}": guard.pairs for guard in data.guards if guard.kind == "labelled"}
    return parts | {part: found.sha256() for part, found in more.items() if found is not None}


def facts_of(run: FitRun, reason: str) -> dict[str, Any]:
    """Return what the report says of a run before it has a model: leaks, the command that repeats it."""
    options: dict[str, Any] = {"recipe": "recipe.toml"}
    options |= {name: getattr(run.options, name) for name in _REPEATED} | {"out": "again"}
    facts: dict[str, Any] = {
        "leaks": [asdict(leak) for leak in run_leaks(run.data)],
        "command": command_line("angle-train fit", options, moved=True),
    }
    if reason:
        facts["reason"] = reason
    if known := hub_id(run.options.backbone):
        facts["base_model"] = known
    elif named := telling_name(run.options.backbone):
        facts["base_name"] = named
    return facts


def load_model(run: FitRun) -> tuple[FitRun, SentenceTransformer, dict[str, Any]]:
    """Return the run with its number of tokens per text, the model to train, and the report's note on it."""
    recipe = run.recipe
    stated = recipe.training.max_seq_length
    automatic = stated == AUTO
    run = replace(run, tokens=stated if isinstance(stated, int) else None)
    model = run.load()
    if reads_roles(model, recipe.training, run.options.backbone, teacher=bool(run.options.teacher)):
        run = replace(run, data=run.data.with_roles())
    check_arguments(recipe, model)  # refuses at once what cannot be
    check_frozen(model, recipe.backbone.layers_frozen)
    width = model.get_embedding_dimension()
    if width is not None:
        widths(recipe.objective, width)  # refuses before anything is measured
    if model.transformers_model is None or tokens_read(model) is None:
        return run, model, {}
    found = length_of_texts(model, run.data.train, recipe.training, 99.0 if automatic else 100.0)
    if automatic:
        log.info(
            "max_seq_length %d: the longest training text has %d tokens",
            found.max_seq_length,
            found.longest,
        )
        run = replace(run, tokens=found.max_seq_length)
        model = run.load()
    if found.truncated:
        log.info(
            "%.1f %% of the training texts are longer than %d tokens and are cut; raise --max-seq-length if "
            "the model allows more",
            100 * found.truncated,
            tokens_read(model),
        )
    return run, model, {"lengths": asdict(found) | {"max_seq_length": tokens_read(model)}}


def base_model(run: FitRun, model: SentenceTransformer) -> SentenceTransformer:
    """Return the backbone before tuning: `model` itself, not trained yet, if the recipe changed nothing.

    It has the same prompts for queries and documents, so that both are measured in the same way.
    """
    asked = run.recipe.backbone
    as_it_is = asked.pooling == CHECKPOINT and asked.quantization == "none" and not run.recipe.training.prompt
    return model if as_it_is else load_untuned(run, run.tokens)


def load_untuned(run: FitRun, tokens: int | None) -> SentenceTransformer:
    """Return the backbone as it is, with the run's prompts for queries and documents."""
    model = load_backbone(run.options.backbone, tokens, run.options.device)
    set_role_prompts(model, roles_of(run.recipe.training))
    return model


@rank_zero
def measure_base_model(run: FitRun, model: SentenceTransformer) -> BaseFigures:
    """Return what the base model makes of all that it is measured on, and of the texts to keep."""
    data = run.data
    base = base_model(run, model)
    embed = Embedder(base, BACKBONE)  # one for all: no text is embedded twice
    distils = run.recipe.training.distil_epochs > 0
    kept = None if distils else data.kept  # a distillation has them stay in another way
    return BaseFigures(
        kept=None if kept is None else embed(kept.texts, AS_DOCUMENT if data.train.roles else ""),
        columns=[pair_similarity(pairs, embed) for _, pairs in data.evaluated],
        guards=[pair_similarity(guard.pairs, embed) for guard in data.guards],
        human=None if data.choosing or data.human is None else pair_similarity(data.human, embed),
        found=search_all(data.searches, base, BACKBONE),
        dev_found=[rank_documents(searched, embed, keep=True) for searched in data.dev_searches],
    )


def run_with_texts_to_keep(run: FitRun, before: BaseFigures) -> FitRun:
    """Return the run with the base model's embeddings of the texts to keep."""
    kept = run.data.kept
    return run if kept is None or before.kept is None else replace(run, kept=kept_of(kept.texts, before.kept))


def guards_before(run: FitRun, before: BaseFigures) -> Guards:
    """Return the guards with what the base model makes of them."""
    return guards_of(run.data.guards, before.guards, run.recipe.training.guard_loss)


@rank_zero
def take_directory(run: FitRun, held: ExitStack) -> Path | None:
    """Take the directory for as long as `held` is open; return the checkpoint to go on from, if any."""
    held.enter_context(hold(run.options.out / HIDDEN, run.options.out))
    # The status again: another process may have written here while the model was loaded.
    resume = run.directory.claim(run.directory.status(overwrite=run.options.overwrite))
    if resume:
        log.info("resuming from %s", resume)
    return resume


def claim(run: FitRun, held: ExitStack) -> FitRun:
    """Return the run that has its directory to itself, with the checkpoint to go on from."""
    return replace(run, resume=take_directory(run, held))


def tune_on_dev_sets(run: FitRun, model: SentenceTransformer, before: BaseFigures) -> TuningResult:
    """Train with dev pairs and searches choosing the weights; `model` holds the final ones in rank zero."""
    dev = run.data.choosing
    beside = run.data.beside
    untuned = columns_that_choose(run.data, before.columns, before.dev_found)
    guards = guards_before(run, before)
    share = run.recipe.training.average_with_backbone
    score = mean_figure(dev, untuned)
    log.info("step 0, the untouched backbone: dev %s %.2f", name_of_figure(dev), 100 * score)
    if not run.data.test:
        log.info("%s", what_pairs_show(dev))
    elif (refused := too_few(dev)) is not None:
        log.warning("warning: %s. The weights at the end of training are those that are tested", refused)
    notes = run.directory.checkpoints / "measured.jsonl"
    stages = run.stages
    done = stages.first_steps
    told = teller(run.options.out, dev, untuned[: len(dev)], done + stages.schedule.steps)
    first = DevEvaluator(dev, score, told=told)
    evaluator = DevEvaluator(dev, score, notes, share, lambda step, now: told(done + step, now), beside)
    evaluator.backbone = backbone = snapshot(model)
    training = run.train(model, evaluator, first=first)
    found = checkpoint_candidates(training, evaluator.measured(), untuned, share)
    checkpoints = Checkpoints(model, backbone, run.directory.checkpoints, evaluator.vectors)
    candidates, weighed = checkpoints.within(guards, found, dev, beside)
    choice = choose(candidates, dev, run.data.judged_dev)
    number = choice.chosen or 1  # where none is surely better than the base model: the planned end
    taken = candidates[number]
    adopt_checkpoint(run, model, taken, backbone)
    chosen_by = f"dev {name_of_items(dev)}{choice.beside()}"
    log.info("%s", choice.sentence(f"step {taken.step}{taken.mixed}", chosen_by, number))
    training = replace(training, best_step=taken.step)
    findings = {"choice": choice.to_dict(), "guards": as_details(weighed[number], guards.most)}
    merge = merge_details(taken.share)
    known = evaluator.vectors.get((taken.step, taken.share))
    return TuningResult(training, choice, findings | merge | stages.details, known=known)


@rank_zero
def adopt_checkpoint(
    run: FitRun, model: SentenceTransformer, taken: Candidate, backbone: Mapping[str, Tensor]
) -> None:
    """Give `model` the weights of a candidate."""
    restore(model, run.directory.checkpoints, taken.step)
    blend(model, backbone, taken.share)


def tune_by_parts(run: FitRun, model: SentenceTransformer, before: BaseFigures) -> TuningResult:
    """Train for as long as parts of the human-graded pairs, held out in turn, say.

    What the parts chose is what guards judge. A larger share of the backbone was never measured on the parts,
    so where guards refuse it, the base model stays.
    """
    human, untuned = run.data.human, before.human
    if human is None or untuned is None:
        raise ValueError("neither dev nor human-graded pairs")
    guards = guards_before(run, before)
    fingerprint = run.directory.fingerprint
    cross = cross_fit(run.load, run.data, run.recipe, run.kept, run.directory.folds, fingerprint, untuned)
    schedule = run.stages.schedule
    step = schedule.step_at(cross.progress[cross.evaluation - 1])
    log.info("training on all %d pairs, up to step %d of %d", len(run.data.train), step, schedule.steps)
    backbone = snapshot(model) if cross.share else {}
    training = run.train(model, stop_at=step)
    rank_zero(blend)(model, backbone, cross.share)
    known = KnownVectors()
    losses = guards.losses(measure_tuned(model, guards.sets, known))
    log.info("%s", worse_sentence(losses, guards.most))
    choice = cross.choice
    if guards.refuse(losses):
        choice = replace(choice, chosen=0, best=choice.chosen or choice.best, refused=True)
        log.info("%s", choice.sentence(f"step {step}", "held-out pairs", choice.best))
    curve: list[Point] = [
        {"step": at, "epoch": at / schedule.per_epoch, "dev": score}
        for at, score in zip(map(schedule.step_at, cross.progress), cross.curve, strict=True)
    ]
    pairs = replace(human, name=f"{human.name}/held out in turn")
    return TuningResult(
        replace(training, curve=curve, best_step=step),
        choice,
        {
            "folds": cross.to_dict(),
            "guards": as_details(Weighed(losses), guards.most),
            "choice": choice.to_dict(),
        }
        | merge_details(cross.share)
        | run.stages.details,
        HeldOut(pairs, untuned, cross.after),
        known,
    )


@rank_zero
def measure_tuned(model: SentenceTransformer, sets: Sequence[PairSet], known: KnownVectors) -> Columns:
    """Return the similarities of sets of pairs under tuned weights; `known` is that of `Embedder`."""
    return measure(model, sets, known=known)


@rank_zero
def save(
    run: FitRun, model: SentenceTransformer, before: BaseFigures, outcome: TuningResult, facts: dict[str, Any]
) -> FitReport:
    """Make a trained model what users will have, measure that, and write it with its reports."""
    options = run.options
    directory = run.directory
    known = None if has_adapters(model) else outcome.known  # merged, they make slightly other weights
    finish_training(model, run.recipe.backbone, run.load)
    embed = Embedder(model, TUNED, known)
    after = [pair_similarity(pairs, embed) for _, pairs in run.data.evaluated]
    dev_found = [rank_documents(searched, embed, keep=True) for searched in run.data.dev_searches]
    trained = what_was_found(run.data, before, outcome, after, dev_found)
    searches = views_of(run.data.dev_searches, before.dev_found, dev_found, "dev")
    found = search_all(run.data.searches, model, TUNED)
    searches += views_of(run.data.searches, before.found, found, "test")
    identity = directory.fingerprint["backbone"]
    report = make_fit_report(run.recipe, run.data, trained, identity, facts, model, searches)
    log.info("%s", report.verdict.lines[0])
    with disk_errors_in_one_line(options.out), directory.replacing() as folder:
        if report.kept == BACKBONE:
            save_model(model, folder / TUNED)
            # It reads as many tokens as when it was measured.
            tokens = report.details.get("lengths", {}).get("max_seq_length")
            model = load_untuned(run, tokens)
        write_text(folder / "recipe.toml", run.recipe.to_toml_text())
        report.write(folder / "report.json")
        save_model(model, folder)
        write_card(folder / "README.md", report, model)
        made = made_line(usd=sum(map(labels_usd, options.data or ())))
        views = trained.views(report.tuned_name)
        write_fit_page(folder / "report.html", report, views, made, report.searches(searches))
    directory.finish()
    return report
