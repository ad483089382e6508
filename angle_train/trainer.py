"""One training run on the Sentence Transformers trainer; the only module that knows that trainer.

Knows nothing of files but the checkpoint directory that it is given, and nothing of reports.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import BaseEvaluator
from transformers import PrinterCallback, TrainerState

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.backbones import quiet_libraries
from angle_train.batching import PairCollator
from angle_train.config import Recipe
from angle_train.evaluate.sts import evaluate_model, spearman
from angle_train.loss import CombinedLoss
from angle_train.monitor import (
    METRIC,
    Evaluation,
    RunCallback,
    TermMeter,
    catch_interrupt,
    evaluations_since_best,
    learning_curve,
)
from angle_train.pairs import PairSet
from angle_train.replay import EpochSampler, ReplayableCollator, count_equal_batches
from angle_train.saving import disk_errors_in_one_line
from angle_train.settings import TrainingConfig

__all__ = [
    "DevEvaluator",
    "Training",
    "make_collator",
    "record_dev_scores",
    "resolve_precision",
    "train",
    "training_arguments",
]

log = logging.getLogger("angle.fit")

_SCHEDULERS = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


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
        """Return `dev_spearman`, and each set's own value where there are several."""
        metrics = _dev_metrics(self._sets, [spearman(s.score, evaluate_model(model, s)) for s in self._sets])
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics


class _Trainer(SentenceTransformerTrainer):
    """The trainer with batches of its own; given as an argument, the sampler would end up in checkpoints."""

    sources: Sequence[str]
    block: int

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
        return EpochSampler(dataset, batch_size, drop_last, seed=seed, sources=self.sources, block=self.block)


def train(
    model: SentenceTransformer,
    pairs: PairSet,
    dev: Sequence[PairSet],
    recipe: Recipe,
    directory: Path,
    resume: Path | None = None,
    backbone_score: float = -math.inf,
) -> Training:
    """Train `model` in place and leave it with the weights that were best on the dev sets.

    Args:
        model: Trained in fp32 weights, whatever they were.
        pairs: What to train on.
        dev: Their mean Spearman selects the weights.
        recipe: How.
        directory: Checkpoints go here: the last and the best.
        resume: Checkpoint in `directory` to go on from; the result is the same as without the interruption.
        backbone_score: Mean Spearman of the untouched model on the dev sets, for the log.

    Raises:
        InputError: The machine cannot compute in the recipe's precision, or a checkpoint cannot be written.
        KeyboardInterrupt: Ctrl-C; a checkpoint was written.
    """
    config = recipe.training
    _describe(model, pairs)
    state = TrainerState.load_from_json(str(resume / "trainer_state.json")) if resume else TrainerState()
    if resume and _has_ended(state, config):
        _restore(model, directory / f"checkpoint-{state.best_global_step or state.global_step}")
    else:
        state = _run(model, pairs, dev, recipe, directory, resume, state.global_step, backbone_score)
    return Training(
        curve=learning_curve(state),
        steps=state.global_step,
        planned_steps=state.max_steps,
        best_step=state.best_global_step or state.global_step,
        equal_batches=_equal_batches(pairs, config, state.global_step),
    )


def _run(
    model: SentenceTransformer,
    pairs: PairSet,
    dev: Sequence[PairSet],
    recipe: Recipe,
    directory: Path,
    resume: Path | None,
    done: int,
    backbone_score: float,
) -> TrainerState:
    """Take the steps that remain after the `done` first ones and return the trainer's last state."""
    config, meter = recipe.training, TermMeter()
    if config.freeze_embeddings:
        _freeze_embeddings(model)
    columns = {"text1": pairs.text1, "text2": pairs.text2, "score": pairs.score, "weight": pairs.weight}
    with quiet_libraries(), catch_interrupt() as interrupted:
        args = training_arguments(config, len(pairs), directory, model.device)
        trainer = _Trainer(
            model=model.float(),
            args=args,
            train_dataset=Dataset.from_dict({name: list(values) for name, values in columns.items()}),
            loss=CombinedLoss(model, recipe.objective, meter.add),
            evaluator=DevEvaluator(dev),
            # Any callable does; the annotation knows only its own class.
            data_collator=cast(Any, make_collator(model, recipe)),
        )
        trainer.sources, trainer.block = pairs.sources(), config.source_block
        trainer.remove_callback(PrinterCallback)
        total = math.ceil(_steps_per_epoch(config, len(pairs)) * config.epochs)
        label = f"training, on from step {done}" if resume else "training"
        with Progress(label, total - done) as progress, disk_errors_in_one_line(directory):
            trainer.add_callback(RunCallback(progress, config.patience, interrupted, meter, backbone_score))
            trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        if interrupted():
            log.warning(
                "interrupted at step %d; the same command goes on from there", trainer.state.global_step
            )
            raise KeyboardInterrupt
    return trainer.state


def _has_ended(state: TrainerState, config: TrainingConfig) -> bool:
    """Return whether a run that was cut off after its last evaluation has no step left to take."""
    return state.global_step >= state.max_steps or evaluations_since_best(state) >= config.patience


def _restore(model: SentenceTransformer, checkpoint: Path) -> None:
    """Give `model` the weights of a checkpoint."""
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


def resolve_precision(precision: str, device: torch.device) -> str:
    """Return the precision that a run on `device` computes in: `fp32`, `bf16` or `fp16`.

    Raises:
        InputError: fp16 without a GPU.
    """
    if precision == "auto":
        capable = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return "bf16" if capable else "fp32"
    if precision == "fp16" and device.type != "cuda":
        raise InputError(f"precision fp16 needs a GPU, this run is on {device.type}; use fp32 or bf16")
    return precision


def make_collator(model: SentenceTransformer, recipe: Recipe) -> ReplayableCollator:
    """Return the collator that prepares the batches of `recipe` for `model`."""
    config, objective = recipe.training, recipe.objective
    collate = PairCollator(
        model.preprocess,
        positive_score=objective.positive_score,
        negative_score=objective.negative_score,
        chunk_size=config.chunk_size,
        swap=config.swap,
        transitive=objective.transitive,
        prompt=model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
    )
    return ReplayableCollator(collate, config.seed)


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


def _steps_per_epoch(config: TrainingConfig, count: int) -> int:
    batches = -(-count // config.batch_size)
    return -(-batches // config.gradient_accumulation)


def training_arguments(
    config: TrainingConfig, count: int, directory: Path, device: torch.device
) -> SentenceTransformerTrainingArguments:
    """Return the trainer's settings for a recipe.

    Args:
        config: The recipe's training section.
        count: Training pairs.
        directory: Checkpoints go here.
        device: Where the model is.

    Raises:
        InputError: The device cannot compute in the recipe's precision.
    """
    every = -(-_steps_per_epoch(config, count) // config.evals_per_epoch)
    precision = resolve_precision(config.precision, device)
    return SentenceTransformerTrainingArguments(
        output_dir=str(directory),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        gradient_accumulation_steps=config.gradient_accumulation,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        lr_scheduler_type=_SCHEDULERS[config.scheduler],
        warmup_steps=config.warmup_ratio,  # below 1 it is read as a share of all steps
        max_grad_norm=config.max_grad_norm,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=device.type == "cpu",
        seed=config.seed,
        data_seed=config.seed,
        batch_sampler=EpochSampler,
        dataloader_pin_memory=device.type == "cuda",
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model=METRIC,
        greater_is_better=True,
        logging_strategy="steps",
        logging_steps=every,
        report_to="none",
        disable_tqdm=True,
    )
