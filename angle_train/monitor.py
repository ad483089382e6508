"""Watches a training run from inside the trainer: progress, learning curve, early stopping, Ctrl-C.

Works on the trainer's own log, which is part of every checkpoint, so a resumed run continues it.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from angle_data.console import Progress

__all__ = ["METRIC", "Evaluation", "RunCallback", "catch_interrupt", "learning_curve"]

log = logging.getLogger("angle.fit")

METRIC = "dev_spearman"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One point of the learning curve.

    Attributes:
        step: Optimiser steps so far.
        epoch: The same in passes over the data.
        dev: Mean Spearman over the dev sets.
        terms: Mean weighted loss terms since the point before, and their sum as `loss`.
    """

    step: int
    epoch: float
    dev: float
    terms: dict[str, float] = field(default_factory=dict)


class RunCallback(TrainerCallback):
    """Progress, one log line per evaluation, early stopping, and a checkpoint when interrupted."""

    def __init__(self, progress: Progress, patience: int, interrupted: Callable[[], bool]) -> None:
        self._progress, self._patience, self._interrupted = progress, patience, interrupted
        self._shown = 0

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step; stop, with a checkpoint, if interrupted."""
        self._progress.advance(state.global_step - self._shown, _note(state))
        self._shown = state.global_step
        # Terms since the evaluation before belong to every evaluation, the last one included.
        control.should_log |= control.should_evaluate
        if _stale(state) >= self._patience:
            # A run that was killed after its last evaluation and resumed.
            control.should_training_stop = True
        if self._interrupted():
            control.should_save = control.should_training_stop = True

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the evaluation; stop if the last ones brought nothing better."""
        last = learning_curve(state)[-1]
        terms = ", ".join(f"{name} {value:.3f}" for name, value in last.terms.items())
        best = ", the best so far" if _stale(state) == 0 else ""
        log.info(
            "step %d/%d, epoch %.2f: %s; dev Spearman %.2f%s",
            last.step,
            state.max_steps,
            last.epoch,
            terms or "loss n/a",
            100 * last.dev,
            best,
        )
        if _stale(state) >= self._patience:
            log.info("no better for %d evaluations: stopping early", self._patience)
            control.should_training_stop = True


def learning_curve(state: TrainerState) -> list[Evaluation]:
    """Return the evaluations in the trainer's log; it is part of every checkpoint, so resuming keeps it."""
    terms: dict[int, dict[str, float]] = {}
    curve = []
    entries: list[dict[str, Any]] = state.log_history
    for entry in entries:
        if "loss" in entry:
            known = ("loss", "cosine", "in_batch", "angle")
            terms[entry["step"]] = {name: entry[name] for name in known if name in entry}
        elif f"eval_{METRIC}" in entry:
            step = entry["step"]
            curve.append(Evaluation(step, entry["epoch"], entry[f"eval_{METRIC}"], terms.get(step, {})))
    return curve


def _stale(state: TrainerState) -> int:
    """Return how many evaluations there were since the best one."""
    scores = [evaluation.dev for evaluation in learning_curve(state)]
    return len(scores) - 1 - scores.index(max(scores)) if scores else 0


def _note(state: TrainerState) -> str:
    scores = [evaluation.dev for evaluation in learning_curve(state)]
    return f"dev {100 * scores[-1]:.1f}, best {100 * max(scores):.1f}" if scores else ""


@contextmanager
def catch_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C inside the block into a flag; the second one interrupts at once."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(signum: int, frame: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, previous)
        log.warning("finishing this step and saving a checkpoint; Ctrl-C again stops at once")

    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
