"""One training run on the Sentence Transformers trainer; the only module that knows that trainer.

Knows nothing of files but the checkpoint directory that it is given, and nothing of reports.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.data_loader import prepare_data_loader
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch.utils.data import DataLoader
from transformers import PrinterCallback, TrainerState

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.model.adapters import has_adapters, load_adapters, training_weights
from angle_train.model.load import quiet_libraries
from angle_train.objective.batches import PairCollator
from angle_train.objective.lookups import sparse_lookups
from angle_train.objective.losses import OWN_LOSS, make_loss
from angle_train.recipe import Recipe
from angle_train.settings import TrainingConfig
from angle_train.train.arguments import Schedule, resolve_precision, training_arguments
from angle_train.train.autocast import end_autocast, without_autocast
from angle_train.train.processes import any_process, is_first, process_count, process_number
from angle_train.train.replay import EpochSampler, ReplayableCollator, count_equal_batches
from angle_train.train.saving import disk_errors_in_one_line
from angle_train.train.sharding import (
    ShardingTrainer,
    WholeModelEvaluator,
    copy_to_shard,
    is_sharded,
)
from angle_train.train.watch import (
    METRIC,
    Evaluation,
    RunCallback,
    TermMeter,
    catch_interrupt,
    evaluations_since_best,
    learning_curve,
)

log = logging.getLogger("angle.fit")


@dataclass(frozen=True, slots=True)
class Training:
    """What came of a run: the model itself holds the best weights.

    Attributes:
        curve: Every evaluation, in order.
        steps: Optimiser steps taken.
        planned_steps: Steps the recipe asked for; more than `steps` if it stopped early.
        best_step: The step whose weights the model holds.
        equal_batches: Batches up to `steps` whose scores were all equal: they rank nothing.
    """

    curve: list[Evaluation]
    steps: int
    planned_steps: int
    best_step: int
    equal_batches: int


class DevEvaluator(BaseEvaluator):
    """Mean Spearman over the dev sets, as an evaluator that the trainer selects checkpoints by."""

    def __init__(self, sets: Sequence[PairSet]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name = ""
        self.primary_metric = METRIC
        self._sets = sets

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return `dev_spearman`, and each set's own value where there are several.

        Measured in the precision of the weights, as what is saved will be.
        """
        with without_autocast(model):
            metrics = _dev_metrics(self._sets, self.scores(model, steps))
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def scores(self, model: Any, steps: int) -> list[float]:
        """Return the score of each set after so many steps."""
        return [spearman(pairs.score, evaluate_model(model, pairs)) for pairs in self._sets]


class _Trainer(ShardingTrainer):
    """The trainer with batches of its own; given as an argument, the sampler would end up in checkpoints."""

    sources: Sequence[str]
    block: int
    scores: Sequence[float] | None

    def get_batch_sampler(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> EpochSampler:
        """Return the sampler of the training data, the only data that the trainer samples."""
        return EpochSampler(
            dataset,
            batch_size,
            drop_last,
            seed=seed,
            sources=self.sources,
            block=self.block,
            scores=self.scores,
        )

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: torch.nn.Module | None = None
    ) -> None:
        if has_adapters(self.model) and self.whole is None:
            load_adapters(self.model, Path(resume_from_checkpoint))
        else:
            super()._load_from_checkpoint(resume_from_checkpoint)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches; several processes all get each batch, and its collator divides the texts."""
        if self.args.world_size == 1:
            return super().get_train_dataloader()
        loader = self._build_dataloader(self.train_dataset, self.args.train_batch_size, dataset_kind="train")
        prepared: DataLoader[Any] = prepare_data_loader(
            loader, self.accelerator.device, num_processes=1, process_index=0, put_on_device=True
        )
        return prepared


def train(
    model: SentenceTransformer,
    pairs: PairSet,
    dev: Sequence[PairSet],
    recipe: Recipe,
    directory: Path,
    resume: Path | None = None,
    backbone_score: float = -math.inf,
    *,
    stop_at: int | None = None,
    evaluator: DevEvaluator | None = None,
    trackers: Sequence[str] = (),
) -> Training:
    """Train `model` in place and leave it with the weights that were best on the dev sets.

    Where several processes shard it, it is of use afterwards in process 0 only.

    Args:
        model: Trained in fp32 weights, whatever they were.
        pairs: What to train on.
        dev: Their mean Spearman selects the weights; with none, the last weights are kept.
        recipe: How.
        directory: Checkpoints go here: the last and the best.
        resume: Checkpoint in `directory` to go on from; the result is the same as without the interruption.
        backbone_score: Mean Spearman of the untouched model on the dev sets, for the log.
        stop_at: Stop after this step; the learning rate falls as planned.
        evaluator: Measures on the dev sets; default their Spearman alone.
        trackers: Programs that the run is reported to, see `trackers`.

    Raises:
        InputError: The machine cannot compute in the recipe's precision, or a checkpoint cannot be written.
        KeyboardInterrupt: Ctrl-C; a checkpoint was written.
    """
    config, device = recipe.training, model.device
    _describe(model, pairs)
    state = TrainerState.load_from_json(str(resume / "trainer_state.json")) if resume else TrainerState()
    schedule = Schedule(config, len(pairs))
    end = schedule.steps if stop_at is None else stop_at
    if resume and (state.global_step >= end or evaluations_since_best(state) >= config.patience):
        # Cut off after its last evaluation: no step is left to take.
        _restore(model, directory / f"checkpoint-{state.best_global_step or state.global_step}")
    else:
        if dev and evaluator is None:
            evaluator = DevEvaluator(dev)
        if resume and is_sharded():
            _restore(model, resume)
        trainer, meter = _prepare(model, pairs, recipe, directory, evaluator, trackers)
        state = _run(trainer, meter, config, end, resume, state.global_step, backbone_score)
        if is_sharded() and is_first():
            _restore(
                model.to(device), directory / f"checkpoint-{state.best_global_step or state.global_step}"
            )
    return Training(
        curve=learning_curve(state),
        steps=state.global_step,
        planned_steps=state.max_steps,
        best_step=state.best_global_step or state.global_step,
        equal_batches=_equal_batches(pairs, config, state.global_step),
    )


def _prepare(
    model: SentenceTransformer,
    pairs: PairSet,
    recipe: Recipe,
    directory: Path,
    evaluator: BaseEvaluator | None,
    trackers: Sequence[str],
) -> tuple[_Trainer, TermMeter]:
    """Return the trainer of a run and the meter that its loss feeds."""
    config, meter, device, whole = recipe.training, TermMeter(), model.device, None
    if config.freeze_embeddings:
        _freeze_embeddings(model)
    model = training_weights(model, resolve_precision(config.precision, device))
    if is_sharded():
        whole, model = model, copy_to_shard(model)
        evaluator = WholeModelEvaluator(evaluator, whole, device) if evaluator is not None else None
    columns = {"text1": pairs.text1, "text2": pairs.text2, "score": pairs.score, "weight": pairs.weight}
    select = evaluator is not None
    with quiet_libraries():
        args = training_arguments(config, len(pairs), directory, device, select=select, trackers=trackers)
        trainer = _Trainer(
            model=model,
            args=args,
            train_dataset=Dataset.from_dict({name: list(values) for name, values in columns.items()}),
            loss=make_loss(model, recipe.objective, meter.add, config.gradient_cache),
            evaluator=evaluator,
            # Any callable does; the annotation knows only its own class.
            data_collator=cast(Any, make_collator(model, recipe)),
        )
    trainer.sources, trainer.block = pairs.sources(), config.source_block
    trainer.scores = pairs.score.tolist() if config.label_diverse else None
    trainer.remove_callback(PrinterCallback)
    if whole is not None:
        trainer.shard(whole)
    if process_number():
        torch.manual_seed(config.seed + process_number())  # dropout of its own; a checkpoint restores it
    return trainer, meter


def _run(
    trainer: _Trainer,
    meter: TermMeter,
    config: TrainingConfig,
    end: int,
    resume: Path | None,
    done: int,
    backbone_score: float,
) -> TrainerState:
    """Take the steps that remain after the `done` first ones and return the trainer's last state."""
    label = f"training, on from step {done}" if resume else "training"
    directory = Path(str(trainer.args.output_dir))
    adaptive = choose_chunking(trainer.model, config) == "adaptive" and process_count() == 1
    with (
        quiet_libraries(),
        catch_interrupt() as pressed,
        Progress(label, end - done) as progress,
        disk_errors_in_one_line(directory),
        warnings.catch_warnings(),
        sparse_lookups(trainer.model) if adaptive else nullcontext(),
    ):
        # accelerate hands DDP an argument under its old name.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        trainer.add_callback(
            RunCallback(
                progress,
                config.patience,
                lambda: any_process(pressed()),
                meter,
                backbone_score,
                end,
            )
        )
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    end_autocast(trainer.model)
    if any_process(pressed()):
        log.warning("interrupted at step %d; the same command goes on from there", trainer.state.global_step)
        raise KeyboardInterrupt
    return trainer.state


def _restore(model: SentenceTransformer, checkpoint: Path) -> None:
    """Give `model` the weights of a checkpoint."""
    if has_adapters(model):
        load_adapters(model, checkpoint)
        return
    with quiet_libraries():
        weights = SentenceTransformer(str(checkpoint), device="cpu", local_files_only=True).state_dict()
    model.float().load_state_dict(weights)


def _equal_batches(pairs: PairSet, config: TrainingConfig, steps: int) -> int:
    """Return how many of the batches of the first `steps` steps had equal scores throughout."""
    scores = pairs.score.tolist()
    rows = Dataset.from_dict({"score": scores})
    sampler = EpochSampler(
        rows,
        config.batch_size,
        drop_last=False,
        seed=config.seed,
        sources=pairs.sources(),
        block=config.source_block,
        scores=scores if config.label_diverse else None,
    )
    return count_equal_batches(sampler, scores, steps, config.gradient_accumulation)


def record_dev_scores(model: SentenceTransformer, dev: Sequence[PairSet], scores: Sequence[float]) -> None:
    """Put the Spearman of the final weights on each dev set into the model's card.

    The trainer leaves those of its last evaluation there, which need not be the weights that are saved.
    """
    model.model_card_data.eval_results_dict = {DevEvaluator(dev): _dev_metrics(dev, scores)}


def _dev_metrics(dev: Sequence[PairSet], scores: Sequence[float]) -> dict[str, float]:
    """Return the mean score and, of several sets, each one's; sets of equal names are numbered."""
    metrics = {METRIC: sum(scores) / len(scores)}
    if len(dev) > 1:
        names = [pairs.name for pairs in dev]
        for number, (name, score) in enumerate(zip(names, scores, strict=True), start=1):
            metrics[f"{name}{f'_{number}' if names.count(name) > 1 else ''}_spearman"] = score
    return metrics


def make_collator(model: SentenceTransformer, recipe: Recipe) -> ReplayableCollator:
    """Return the collator that prepares the batches of `recipe` for `model`."""
    config, objective = recipe.training, recipe.objective
    collate = PairCollator(
        model.preprocess,
        positive_score=objective.positive_score,
        negative_score=objective.negative_score,
        chunk_size=config.chunk_size,
        chunking=choose_chunking(model, config),
        swap=config.swap and objective.loss == OWN_LOSS,
        transitive=objective.transitive,
        isp=objective.isp,
        prompt=model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
        process=process_number(),
        processes=process_count(),
    )
    return ReplayableCollator(collate, config.seed)


def choose_chunking(model: SentenceTransformer, config: TrainingConfig) -> str:
    """Return `fixed` or `adaptive`: what the recipe says, for `auto` what is faster where `model` lies."""
    if config.chunking != "auto":
        return config.chunking
    # Small passes gain on one thread; several threads wait for each other at each of their many ends.
    alone = process_count() == 1 and torch.get_num_threads() == 1
    return "adaptive" if model.device.type == "cpu" and alone else "fixed"


def _freeze_embeddings(model: SentenceTransformer) -> None:
    transformer = model.transformers_model
    if transformer is None:
        raise InputError("freeze_embeddings is for transformer models; set it to false for this backbone")
    transformer.get_input_embeddings().requires_grad_(False)


def _describe(model: SentenceTransformer, pairs: PairSet) -> None:
    """Name the data in the model's card and choose its examples; the trainer would draw them at random."""
    card: Any = model.model_card_data
    best = int(pairs.score.argmax())
    first, partner, other = pairs.text1[best], pairs.text2[best], pairs.text2[int(pairs.score.argmin())]
    card.train_datasets = [{"name": pairs.name}]
    card.widget = [{"source_sentence": first, "sentences": [partner, other]}]
    card.usage_examples = [first, partner, other]
