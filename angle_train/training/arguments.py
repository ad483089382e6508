"""The settings of the Sentence Transformers trainer: steps, precision, and programs that follow a run."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from torch.utils.data import DataLoader
from transformers import Trainer, get_scheduler

from angle_data.errors import InputError
from angle_train.model.roles import transformers_of
from angle_train.objective.batches import EpochSampler
from angle_train.recipe import Recipe
from angle_train.training.processes import process_count
from angle_train.training.watch import METRIC

log = logging.getLogger("angle.fit")

_CHECKPOINTING_OPTIONS = "gradient_checkpointing_kwargs"


class Schedule:
    """How many optimiser steps a recipe takes on `count` pairs, and how many lie between two evaluations."""

    def __init__(self, recipe: Recipe, count: int) -> None:
        config = recipe.training
        batches = -(-count // config.batch_size)
        accumulated: int = recipe.arguments["gradient_accumulation_steps"]
        self.per_epoch = -(-batches // accumulated)
        self.steps = math.ceil(self.per_epoch * config.epochs)
        self.every = -(-self.per_epoch // config.evals_per_epoch)

    def step_at(self, progress: float) -> int:
        """Return the step where this share (0..1) of the training is done."""
        return max(1, round(progress * self.steps))


CPU_INFO = Path("/proc/cpuinfo")
"""Where Linux says what a processor can do."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """Return what a run on `device` computes in: `fp32`, `bf16`, or `fp16`, without a GPU an InputError."""
    if precision == "auto":
        return "bf16" if _computes_bf16(device) else "fp32"
    if precision == "fp16" and device.type != "cuda":
        raise InputError(f"precision fp16 needs a GPU, this run is on {device.type}; use fp32 or bf16")
    return precision


def _computes_bf16(device: torch.device) -> bool:
    """Return whether `device` multiplies in bf16 by itself.

    Older GPUs emulate it, slower than fp32 and coarser. Of processors only those with AMX count: with
    AVX-512 BF16 alone it is faster than fp32 on some and slower on others.
    """
    if device.type == "cuda":
        able: bool = torch.cuda.is_bf16_supported(including_emulation=False)
        return able
    if device.type != "cpu" or not CPU_INFO.is_file():
        return False
    return "amx_bf16" in CPU_INFO.read_text(encoding="utf-8", errors="replace").split()


def check_arguments(recipe: Recipe, model: SentenceTransformer) -> None:
    """Raise an InputError unless a training of `model` can have the recipe's precision and `[arguments]`."""
    resolve_precision(recipe.training.precision, model.device)
    rate = {} if recipe.training.learning_rate is None else {"learning_rate": recipe.training.learning_rate}
    made = _made(output_dir="unused", use_cpu=model.device.type == "cpu", **rate, **_arguments_of(recipe))
    _check_parts(made)
    if recipe.arguments["gradient_checkpointing"]:
        _check_checkpointing(model)


def _check_parts(made: SentenceTransformerTrainingArguments) -> None:
    """Raise an InputError unless the library can make what follows from its arguments, tried on one weight.

    The trainer itself would make them only after the backbone is measured.
    """
    try:
        weight = torch.nn.Parameter(torch.zeros(1))
        optimizer: torch.optim.Optimizer = torch.optim.SGD([weight], made.learning_rate)
        of_modules = str(made.optim).startswith(("lomo", "adalomo", "galore", "apollo"))
        if made.optim_target_modules is None and not of_modules:  # those look for modules of the model
            kind, options = Trainer.get_optimizer_cls_and_kwargs(made)
            optimizer = kind([weight], **options)
        get_scheduler(made.lr_scheduler_type, optimizer, 1, 10, cast(Any, made.lr_scheduler_kwargs))
        DataLoader(
            [0],  # type: ignore[arg-type]
            num_workers=made.dataloader_num_workers,
            persistent_workers=made.dataloader_persistent_workers,
            prefetch_factor=made.dataloader_prefetch_factor,
        )
        for pattern in made.learning_rate_mapping or ():
            re.compile(pattern)
    except Exception as error:  # of any library that makes an optimiser
        raise InputError(f"[arguments] the trainer refuses them: {' '.join(str(error).split())}") from error


def _check_checkpointing(model: SentenceTransformer) -> None:
    if not all(encoder.supports_gradient_checkpointing for encoder in transformers_of(model)):
        raise InputError("this backbone does not support gradient_checkpointing; set it to false")


def checkpoint_gradients(model: SentenceTransformer, recipe: Recipe) -> None:
    """Let `model` compute its activations again in the backward pass, if the recipe says so.

    The trainer could do that, but for adapters and frozen weights only with these options.

    Raises:
        InputError: The backbone cannot.
    """
    if recipe.arguments["gradient_checkpointing"]:
        _check_checkpointing(model)
        options = recipe.arguments.get(_CHECKPOINTING_OPTIONS) or {"use_reentrant": False}
        for encoder in transformers_of(model):
            encoder.gradient_checkpointing_enable(options)


def _arguments_of(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe's `[arguments]` without those that are done by other means."""
    elsewhere = ("warmup_ratio", "gradient_checkpointing", _CHECKPOINTING_OPTIONS)
    return {name: value for name, value in recipe.arguments.items() if name not in elsewhere}


def _made(**settings: Any) -> SentenceTransformerTrainingArguments:
    """Return the library's arguments; what it refuses is an InputError."""
    try:
        return SentenceTransformerTrainingArguments(**settings)
    except (ValueError, TypeError, ImportError) as error:
        raise InputError(f"[arguments] the trainer refuses them: {' '.join(str(error).split())}") from error


def training_arguments(
    recipe: Recipe,
    count: int,
    directory: Path,
    device: torch.device,
    *,
    select: bool = True,
    trackers: Sequence[str] = (),
) -> SentenceTransformerTrainingArguments:
    """Return the trainer's settings for a recipe and a count of training pairs.

    Checkpoints go to `directory`; with `select` dev pairs choose one. Raises as `check_arguments`.
    """
    config = recipe.training
    schedule = Schedule(recipe, count)
    every = schedule.every
    precision = resolve_precision(config.precision, device)
    ours: dict[str, Any] = dict(
        output_dir=str(directory),
        num_train_epochs=config.epochs,
        # Of all processes together: `trainer` does not divide batches, the collator divides their texts.
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        # Below 1 it is read as a share of all steps, rounded up: a single step would have rate 0.
        warmup_steps=recipe.arguments["warmup_ratio"] if schedule.steps > 1 else 0,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=device.type == "cpu",
        seed=config.seed,
        data_seed=config.seed,
        batch_sampler=EpochSampler,
        dataloader_pin_memory=device.type == "cuda",
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        metric_for_best_model=METRIC,
        greater_is_better=True,
        logging_strategy="steps",
        logging_steps=every,
        report_to=list(trackers) or "none",
        disable_tqdm=True,
        eval_strategy="steps" if select else "no",
        eval_steps=every if select else None,
    )
    args = _made(**(ours | _arguments_of(recipe)))
    args.dataloader_drop_last = False  # set by the library where there are several processes
    if process_count() == 1 and args.n_gpu > 1:
        log.info(
            "one of %d GPUs is used; start with `torchrun --nproc-per-node %d -m angle_train` "
            "to use them all",
            args.n_gpu,
            args.n_gpu,
        )
        args._n_gpu = 1  # the trainer would split batches, and with them the objective, among the GPUs
    return args


def check_trackers(names: Sequence[str], out: Path) -> None:
    """Raise an InputError unless the trainer can report to these programs.

    TensorBoard's folder is in `out` by default; its own is inside the checkpoints, which go in the end.
    """
    from transformers.integrations.integration_utils import (
        INTEGRATION_TO_CALLBACK,
        get_available_reporting_integrations,
    )

    installed = get_available_reporting_integrations()  # type: ignore[no-untyped-call]
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            known = ", ".join(INTEGRATION_TO_CALLBACK)
            raise InputError(f"report_to: the trainer reports to no program {name!r} (known: {known})")
        if name not in installed:
            there = ", ".join(installed) or "none"
            raise InputError(f"report_to: {name} is not installed (installed: {there})")
    if names:
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(out / "tensorboard"))
