"""Watches a training run from inside: progress, learning curve, early stopping, interruption, and its limits.

The learning curve is kept in the trainer's own log, which is part of every checkpoint, so a resumed run
continues it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from angle_data.calling.interrupts import caught
from angle_data.console import Progress
from angle_data.errors import InputError

log = logging.getLogger("angle.fit")

METRIC = "dev_score"
"""What training follows, the higher the better: the mean of the figures of the dev sets."""
_METRICS = (f"eval_{METRIC}", "eval_dev_spearman")  # the second in checkpoints of earlier versions
FIRST_LOOK_S = 30.0
"""Seconds of training before a first look at the model, where the first evaluation is farther away still."""
_NO_TERMS = ("grad_norm", "learning_rate", "epoch")  # in the trainer's log beside the loss and its terms
# torch raises a plain RuntimeError where the processor's memory is exhausted.
_ON_THE_PROCESSOR = ("DefaultCPUAllocator", "not enough memory", "can't allocate memory", "std::bad_alloc")
_ADVICE = (
    "lower chunk_size, batch_size or max_seq_length (--set KEY=VALUE), or set gradient_cache or "
    "arguments.gradient_checkpointing to true; a new batch_size or max_seq_length needs a new --out or "
    "--overwrite"
)
# torch's zip writer raises a plain RuntimeError and drops the system's reason.
_TORCH_WRITER = ("inline_container", "PytorchStreamWriter")


Point = dict[str, Any]
"""A point of the learning curve: optimiser steps so far (`step`), the same in passes over the data (`epoch`),
and the mean figure of the dev sets, Spearman or nDCG@10 (`dev`)."""


class DivergedError(InputError):
    """The loss of a training became NaN or infinite: its weights are of no use."""

    def __init__(self, step: int) -> None:
        super().__init__(
            f"the training diverged: by step {step} the loss is not a number; the backbone stays as it was; "
            "lower learning_rate, or set precision to fp32 (with a new --out, or --overwrite)"
        )


class RunCallback(TrainerCallback):
    """Progress, one log line per evaluation, early stopping, and a checkpoint when interrupted.

    `progress` counts the steps of this process. `start` is the dev figure of the untouched backbone, which
    a checkpoint has to beat to be the best so far. At step `end` the run stops, and as soon as it is seen to
    have `diverged`: the weights of such a step are neither measured nor kept. `figure` is what to call the
    dev figure.
    """

    def __init__(
        self,
        progress: Progress,
        patience: int,
        interrupted: Callable[[], bool],
        diverged: Callable[[], bool],
        start: float = -math.inf,
        end: int | None = None,
        figure: str = "Spearman",
    ) -> None:
        self._progress = progress
        self._patience = patience
        self._interrupted = interrupted
        self._diverged = diverged
        self._start = start
        self._end = end
        self._figure = figure
        self._terms = "loss n/a"

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step; stop, with a checkpoint, if interrupted."""
        scores = [evaluation["dev"] for evaluation in learning_curve(state)]
        note = f"dev {100 * scores[-1]:.1f}, best {100 * max(self._start, *scores):.1f}" if scores else ""
        self._progress.advance(1, note)
        if state.global_step >= state.max_steps:
            control.should_log = True  # the last evaluation, too, comes with the loss since the one before
        if self._end is not None and self._end <= state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True
        if self._interrupted():
            control.should_save = control.should_training_stop = True
        # Looking waits for the GPU, so not at every step.
        if (control.should_evaluate or control.should_save or control.should_log) and self._diverged():
            control.should_evaluate = control.should_save = control.should_log = False
            control.should_training_stop = True

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Keep the mean loss and its terms for the next evaluation; log them where there is none.

        The means are the library's, since the last evaluation or the start of a resumed run.
        """
        means: dict[str, float] = kwargs["logs"]
        if "loss" not in means:
            return
        self._terms = ", ".join(f"{name} {means[name]:.3f}" for name in means if name not in _NO_TERMS)
        if args.eval_strategy == "no":
            done = (state.global_step, state.max_steps, state.epoch)
            log.info("step %d/%d, epoch %.2f: %s", *done, self._terms)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the evaluation; stop if the last ones brought nothing better."""
        *earlier, last = learning_curve(state)
        is_best = last["dev"] > max([self._start, *(evaluation["dev"] for evaluation in earlier)])
        best = ", the best so far" if is_best else ""
        log.info(
            "step %d/%d, epoch %.2f: %s; dev %s %.2f%s",
            last["step"],
            state.max_steps,
            last["epoch"],
            self._terms,
            self._figure,
            100 * last["dev"],
            best,
        )
        if evaluations_since_best(state) >= self._patience:
            log.info("no improvement for %d evaluations: stopping early", self._patience)
            control.should_training_stop = True


class FirstLook(TrainerCallback):
    """Looks at the model once, early, where the first evaluation is far away: who waits sees a first figure.

    It looks after half a minute of training, unless the first evaluation (at step `first`) comes within
    another one, by the pace so far, or the run has `diverged`. `look` is given the model and the step.
    Nothing is kept of what it finds, so the same weights are chosen with and without it, on any machine.
    """

    def __init__(
        self,
        look: Callable[[SentenceTransformer, int], None],
        first: int,
        diverged: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._first = first
        self._diverged = diverged
        self._clock = clock
        self._begun = math.inf
        self._looked = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Note the time."""
        self._begun = self._clock()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Look, if it is time to."""
        spent = self._clock() - self._begun
        ahead = spent / state.global_step * (self._first - state.global_step)
        if not self._looked and min(spent, ahead) >= FIRST_LOOK_S:
            self._looked = True
            if not (self._diverged() or control.should_training_stop):
                self._look(kwargs["model"], state.global_step)


def learning_curve(state: TrainerState) -> list[Point]:
    """Return the evaluations in the trainer's log; it is part of every checkpoint, so resuming keeps it."""
    entries: list[dict[str, Any]] = state.log_history
    return [
        {"step": entry["step"], "epoch": entry["epoch"], "dev": entry[measured]}
        for entry in entries
        if (measured := next((name for name in _METRICS if name in entry), None))
    ]


def evaluations_since_best(state: TrainerState) -> int:
    """Return how many evaluations there were since the best one; the backbone's does not count."""
    scores = [evaluation["dev"] for evaluation in learning_curve(state)]
    return len(scores) - 1 - scores.index(max(scores)) if scores else 0


@contextmanager
def catch_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP inside the block into a flag; the second stops as always.

    A batch system or container that ends a run sends a SIGTERM, and kills some seconds later.
    """
    pressed = threading.Event()

    def first() -> None:
        pressed.set()
        log.warning("finishing this step and saving a checkpoint; Ctrl-C again stops at once")

    with caught(first, once=True):
        yield pressed.is_set


@contextmanager
def memory_errors_in_one_line() -> Iterator[None]:
    """Turn what torch and Python raise for want of memory into an InputError: whose, and what needs less."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        if not (on_gpu or isinstance(error, MemoryError) or any(m in str(error) for m in _ON_THE_PROCESSOR)):
            raise
        place = "the GPU" if on_gpu else "the machine"
        raise InputError(f"{place} does not have enough memory for this run: {_ADVICE}") from None


@contextmanager
def disk_errors_in_one_line(directory: Path) -> Iterator[None]:
    """Turn what torch, safetensors and Python raise when `directory` takes no more into an InputError.

    It names the directory and, where it is known, the reason.
    """
    from safetensors import SafetensorError

    try:
        yield
    except ConnectionError:
        raise  # a reader that went away (a broken pipe) is no disk
    except OSError as error:
        reason = error.strerror or str(error)
    except SafetensorError as error:
        if "I/O error" not in str(error):
            raise
        reason = str(error).split("I/O error: ")[-1].split(" (os error")[0]
    except RuntimeError as error:
        if not any(mark in str(error) for mark in _TORCH_WRITER) or "Reader" in str(error):
            raise
        reason = "a write failed; the disk may be full"
    else:
        return
    raise InputError(
        f"{directory}: cannot be written ({reason}); free space or give another --out, and run again"
    )
