"""One training run on the Sentence Transformers trainer.

Reads and writes no files but checkpoints, in the directory that it is given.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate.data_loader import prepare_data_loader
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, TrainerCallback, TrainerState

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, write_jsonl
from angle_train.data.pairs import PairSet
from angle_train.evaluation.dev_sets import (
    DevSet,
    figures_by_kind,
    mean_figure,
    measure_sets,
    name_of_figure,
)
from angle_train.evaluation.known import KnownVectors
from angle_train.model.adapters import has_adapters, load_adapters, training_weights
from angle_train.model.load import quiet_libraries
from angle_train.model.roles import options_by_role, transformers_of
from angle_train.model.routes import check_routes_of
from angle_train.objective.batches import EpochSampler, PairCollator
from angle_train.objective.kept import Kept
from angle_train.objective.loss import CombinedLoss, sparse_lookups
from angle_train.recipe import EMBEDDINGS, Recipe, TrainingConfig
from angle_train.training.arguments import (
    Schedule,
    checkpoint_gradients,
    resolve_precision,
    training_arguments,
)
from angle_train.training.choosing import Columns
from angle_train.training.frozen import computed_once, freeze_layers
from angle_train.training.merging import blended
from angle_train.training.processes import any_process, is_first, process_count, process_number, rank_zero
from angle_train.training.watch import (
    METRIC,
    DivergedError,
    FirstLook,
    Point,
    RunCallback,
    catch_interrupt,
    disk_errors_in_one_line,
    evaluations_since_best,
    learning_curve,
)

log = logging.getLogger("angle.fit")

NO_PATIENCE = 10**9
"""The patience of runs that are compared with others: all are trained to the end."""

# What accelerate puts on a model that it prepares: a forward pass in half precision, and two notes. With the
# first note it would not prepare the model again.
_PREPARED = ("forward", "_is_accelerate_prepared", "_original_forward")


@dataclass(frozen=True, slots=True)
class Training:
    """The log of a run; the model itself holds the last weights.

    Attributes:
        curve: Every evaluation, in order.
        steps: Optimiser steps taken.
        planned_steps: Steps the recipe asked for; more than `steps` if it stopped early.
        best_step: The step that was best on the dev sets; `run` chooses which weights to `restore`.
    """

    curve: list[Point]
    steps: int
    planned_steps: int
    best_step: int


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What few runs need.

    Attributes:
        stop_at: Stop after this step; the learning rate falls as planned.
        trackers: Programs that the run is reported to, see `arguments.check_trackers`.
        kept: Texts that are to keep their similarities.
        callbacks: Of the user.
        loss: In place of the recipe's objective: a loss of Sentence Transformers, or a function that makes
            one for a model. Its batches are those of the library's collator, or of `collator`.
        collator: Makes the batches of a data set.
        label: What the progress line calls this training.
    """

    stop_at: int | None = None
    trackers: Sequence[str] = ()
    kept: Kept | None = None
    callbacks: Sequence[TrainerCallback] = ()
    loss: nn.Module | Callable[[SentenceTransformer], nn.Module] | None = None
    collator: Callable[..., PairCollator] | None = None
    label: str = "training"


VectorsByWeights = dict[tuple[int, float], KnownVectors]
"""What weights made of texts, by the steps that led to the weights and the backbone's share in them."""


class DevEvaluator(BaseEvaluator):
    """Measures the dev sets on the way, for the log and for `choosing`.

    Args:
        sets: The dev sets: pairs and searches.
        start: Mean figure of the untouched model.
        notes: File that keeps the columns of the sets, so that a run that was cut off has those measured
            before.
        share: Share of the backbone that is mixed in for it.
        told: Called in rank zero with the step and the columns of each evaluation.
        beside: Further sets to measure, behind the dev sets; they do not count in the figure.

    Attributes:
        backbone: What is mixed in, see `merging.snapshot`; to be set where there is a share.
        vectors: What weights that may be taken, the best and the last, made of the texts of the sets.
        figure: What the mean figure is called.
    """

    def __init__(
        self,
        sets: Sequence[DevSet],
        start: float = -math.inf,
        notes: Path | None = None,
        share: float = 0.0,
        told: Callable[[int, Columns], None] | None = None,
        beside: Sequence[PairSet] = (),
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name = ""
        self.primary_metric = METRIC
        self.figure = name_of_figure(sets)
        self.start = start
        self.backbone: Mapping[str, Tensor] = {}
        self._sets = sets
        self._measured = [*sets, *beside]
        self._notes = notes
        self._share = share
        self._told = told
        self._rows: dict[int, list[list[float]]] = {}
        self.vectors: VectorsByWeights = {}
        self._best, self._best_step = -math.inf, 0

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return `dev_score`, the mean over the dev sets, and that of the pairs and of the searches."""
        known = KnownVectors()
        columns = self._columns(model, self._measured, known)
        rows = self._read()
        rows[steps] = [column.tolist() for column in columns]
        self._rows = rows
        if self._notes is not None and is_first():
            found = [{"step": step, "similarity": rows[step]} for step in sorted(rows)]
            write_jsonl(self._notes, found)
        if self._told is not None and is_first():
            self._told(steps, columns[: len(self._sets)])
        score = mean_figure(self._sets, columns)
        if score > self._best:
            self._best, self._best_step = score, steps
        self.vectors = {key: value for key, value in self.vectors.items() if key[0] == self._best_step}
        self.vectors[steps, self._share] = known
        return {METRIC: score, **figures_by_kind(self._sets, columns[: len(self._sets)])}

    def look(self, model: Any, step: int) -> None:
        """Tell what the weights at a step make of the dev sets, and keep nothing of it."""
        if self._told is not None:
            self._told(step, self._columns(model, self._sets, KnownVectors()))

    def _columns(self, model: Any, sets: Sequence[DevSet], known: KnownVectors) -> Columns:
        """Return the columns of sets under the weights of `model`, with the backbone's share.

        Measured in the precision of the weights, as the saved model computes: accelerate replaces the
        `forward` of a model that it prepares by one that computes in half precision, and hides the method of
        the class.
        """
        prepared = model.__dict__.pop("forward", None)
        with blended(model, self.backbone, self._share):
            columns = measure_sets(model, sets, known=known)
        if prepared is not None:
            model.__dict__["forward"] = prepared
        return columns

    def _read(self) -> dict[int, list[list[float]]]:
        if self._notes is None or not self._notes.exists():
            return self._rows
        return {row["step"]: row["similarity"] for _, row in read_jsonl(self._notes)}

    @rank_zero
    def measured(self) -> dict[int, list[NDArray[np.float64]]]:
        """Return the columns so far, in the order of the steps: by step and set, (B,) or (Q,) each."""
        rows = self._read()
        return {step: [np.array(column) for column in rows[step]] for step in sorted(rows)}


class OwnEvaluator(BaseEvaluator):
    """A user's evaluator: its primary metric is what training follows, the higher the better."""

    start = -math.inf
    figure = "score"

    def __init__(self, evaluator: BaseEvaluator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.primary_metric = METRIC
        self._evaluator = evaluator

    def __call__(self, model: Any, *given: Any, **more: Any) -> dict[str, float]:
        """Return the user's figures, and the one to follow as `dev_score`."""
        found = self._evaluator(model, *given, **more)
        figures = found if isinstance(found, dict) else {"evaluator": float(found)}
        followed = getattr(self._evaluator, "primary_metric", None)
        if followed not in figures:
            if len(figures) > 1:
                raise InputError(
                    f"the evaluator's primary_metric is {followed!r}, and it returns {', '.join(figures)}; "
                    "set primary_metric to one of these"
                )
            (followed,) = figures
        better = 1.0 if getattr(self._evaluator, "greater_is_better", True) else -1.0
        return {**figures, METRIC: better * float(figures[followed])}


class _Trainer(SentenceTransformerTrainer):
    """The library's trainer with our batches; notes whether a loss was no finite number."""

    sources: Sequence[str] | None = None
    block: int = 1
    _not_finite: Tensor | None = None

    def training_step(self, *given: Any, **more: Any) -> Tensor:
        """Take a step and return its loss, as the library does."""
        loss: Tensor = super().training_step(*given, **more)
        bad = ~loss.isfinite()
        self._not_finite = bad if self._not_finite is None else self._not_finite | bad
        return loss

    def diverged(self) -> bool:
        """Return whether a loss was no finite number, in any process."""
        return any_process(self._not_finite is not None and bool(self._not_finite))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Note nothing for the library's card, which quotes pairs; `report.card` writes ours."""

    def get_batch_sampler(self, *given: Any, **options: Any) -> EpochSampler:
        """Return the `EpochSampler` of the training data, the only data that the trainer samples."""
        sampler = cast(EpochSampler, super().get_batch_sampler(*given, **options))
        # Given as arguments of the run, the sources would end up in checkpoints.
        sampler.sources, sampler.block = self.sources, self.block
        return sampler

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches; several processes all get each batch, and its collator divides the texts."""
        if self.args.world_size == 1:
            return super().get_train_dataloader()
        loader = self._build_dataloader(self.train_dataset, self.args.train_batch_size, dataset_kind="train")
        prepared: DataLoader[Any] = prepare_data_loader(
            loader, self.accelerator.device, num_processes=1, process_index=0, put_on_device=True
        )
        return prepared

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        if has_adapters(self.model):
            load_adapters(self.model, Path(resume_from_checkpoint))
        else:
            super()._load_from_checkpoint(resume_from_checkpoint)


def train(
    model: SentenceTransformer,
    pairs: PairSet | Dataset,
    recipe: Recipe,
    directory: Path,
    *,
    evaluator: DevEvaluator | OwnEvaluator | None = None,
    resume: Path | None = None,
    options: TrainOptions | None = None,
) -> Training:
    """Train `model` in place on `pairs` and leave it with the last weights.

    Args:
        model: Trained in fp32 weights, whatever they were.
        pairs: What to train on; a data set of any columns where `options` have a loss.
        recipe: How; settled, see `presets.settle`.
        directory: Checkpoints go here: the last one, and the best one on the dev sets.
        evaluator: Measures on the dev sets.
        resume: Checkpoint in `directory` to go on from; the result is the same as without the interruption.
        options: What few runs need.

    Raises:
        InputError: The machine cannot compute in the recipe's precision, or a checkpoint cannot be written.
        DivergedError: The loss became no finite number; the weights of `model` are of no use.
        KeyboardInterrupt: Ctrl-C; a checkpoint was written.
        ValueError: The recipe is not settled.
    """
    config = recipe.training
    if None in (config.epochs, config.learning_rate):
        raise ValueError("settle the recipe first, see training.presets")
    options = options or TrainOptions()
    if resume:
        check_routes_of(resume, model)
    state = TrainerState.load_from_json(str(resume / "trainer_state.json")) if resume else TrainerState()
    end = Schedule(recipe, len(pairs)).steps if options.stop_at is None else options.stop_at
    if resume and (state.global_step >= end or evaluations_since_best(state) >= config.patience):
        # Cut off after its last evaluation: no step is left to take.
        restore(model, directory, state.global_step)
    else:
        trainer = _make_trainer(model, pairs, recipe, directory, evaluator, options)
        start = evaluator.start if evaluator else -math.inf
        frozen = recipe.backbone.layers_frozen
        with computed_once(model, frozen, directory / "activations", go_on=resume is not None):
            state = _take_steps(trainer, config, state.global_step, end, start, resume, options.label)
    return Training(
        curve=learning_curve(state),
        steps=state.global_step,
        planned_steps=state.max_steps,
        best_step=state.best_global_step or state.global_step,
    )


def _make_trainer(
    model: SentenceTransformer,
    pairs: PairSet | Dataset,
    recipe: Recipe,
    directory: Path,
    evaluator: DevEvaluator | OwnEvaluator | None,
    options: TrainOptions,
) -> _Trainer:
    config = recipe.training
    if recipe.backbone.frozen_layers == EMBEDDINGS:
        for transformer in transformers_of(model):
            transformer.get_input_embeddings().requires_grad_(False)
    freeze_layers(model, recipe.backbone.layers_frozen)
    checkpoint_gradients(model, recipe)
    model = training_weights(model, resolve_precision(config.precision, model.device))
    args = training_arguments(
        recipe,
        len(pairs),
        directory,
        model.device,
        select=evaluator is not None,
        trackers=options.trackers,
    )
    with quiet_libraries():
        trainer = _Trainer(
            model=model,
            args=args,
            train_dataset=_columns(pairs) if isinstance(pairs, PairSet) else pairs,
            loss=options.loss or CombinedLoss(model, recipe.objective, config.gradient_cache),
            evaluator=evaluator,
            # Any callable does; the annotation knows only its own class.
            data_collator=cast(Any, _collator(model, pairs, recipe, options)),
            callbacks=list(options.callbacks),
        )
    if isinstance(pairs, PairSet):
        trainer.sources = pairs.sources()
        trainer.block = config.source_block
    trainer.remove_callback(PrinterCallback)
    if process_number():
        torch.manual_seed(config.seed + process_number())  # dropout of its own; a checkpoint restores it
    return trainer


def _columns(pairs: PairSet) -> Dataset:
    """Return pairs as the rows that `PairCollator` reads."""
    columns = {"text1": pairs.text1, "text2": pairs.text2, "score": pairs.score, "weight": pairs.weight}
    columns |= {"scale": pairs.scales()}
    return Dataset.from_dict({name: list(values) for name, values in columns.items()})


def _collator(
    model: SentenceTransformer, pairs: PairSet | Dataset, recipe: Recipe, options: TrainOptions
) -> PairCollator | None:
    """Return what makes the batches; None for the library's own."""
    of_pairs = isinstance(pairs, PairSet)
    kind: Callable[..., PairCollator] | None = PairCollator if of_pairs else options.collator
    if kind is None:
        return None
    return kind(
        model.preprocess,
        recipe,
        choose_chunking(model),
        prompt=model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
        process=process_number(),
        processes=process_count(),
        kept=options.kept,
        roles=options_by_role(model) if not of_pairs or pairs.roles else {},
    )


def _take_steps(
    trainer: _Trainer,
    config: TrainingConfig,
    done: int,
    end: int,
    start: float,
    resume: Path | None,
    label: str,
) -> TrainerState:
    """Take the steps from `done` to `end` and return the trainer's last state."""
    label = f"{label}, on from step {done}" if resume else label
    adaptive = choose_chunking(trainer.model) == "adaptive" and not torch.distributed.is_initialized()
    with (
        quiet_libraries(),
        catch_interrupt() as pressed,
        Progress(label, end) as progress,
        disk_errors_in_one_line(Path(str(trainer.args.output_dir))),
        warnings.catch_warnings(),
        sparse_lookups(trainer.model) if adaptive else nullcontext(),  # DDP takes none, with one process too
    ):
        progress.skip(done)
        # accelerate hands DDP an argument under its old name.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)

        def interrupted() -> bool:
            return any_process(pressed())

        figure = getattr(trainer.evaluator, "figure", "")
        trainer.add_callback(
            RunCallback(progress, config.patience, interrupted, trainer.diverged, start, end, figure)
        )
        first = trainer.args.eval_steps
        alone = resume is None and process_count() == 1  # together they would have to agree on the time
        if alone and first and isinstance(trainer.evaluator, DevEvaluator):
            trainer.add_callback(FirstLook(trainer.evaluator.look, int(first), trainer.diverged))
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    for name in _PREPARED:  # so that the model can be measured, saved, and trained again
        trainer.model.__dict__.pop(name, None)
    if trainer.diverged():
        raise DivergedError(trainer.state.global_step)
    if any_process(pressed()):
        log.warning("interrupted at step %d; run the same command to resume there", trainer.state.global_step)
        raise KeyboardInterrupt
    return trainer.state


def restore(model: SentenceTransformer, directory: Path, step: int) -> None:
    """Give `model` the weights of the checkpoint that `train` left in `directory` at that step."""
    checkpoint = directory / f"checkpoint-{step}"
    if has_adapters(model):
        load_adapters(model, checkpoint)
        return
    with quiet_libraries():
        weights = SentenceTransformer(str(checkpoint), device="cpu", local_files_only=True).state_dict()
    model.float().load_state_dict(weights)


def choose_chunking(model: SentenceTransformer) -> str:
    """Return `fixed` or `adaptive`, see `PairCollator`: what is faster where `model` lies."""
    # Small passes gain on one thread; several threads wait for each other at each of their many ends.
    alone = process_count() == 1 and torch.get_num_threads() == 1
    return "adaptive" if model.device.type == "cpu" and alone else "fixed"
