"""Watches a training run from inside: progress, learning curve, early stopping, interruption, and its limits.

The learning curve is kept in the trainer's own log, which is part of every checkpoint, so a resumed run
continues it. The mean terms of the loss stand in the entries of the evaluations; those of an interval that
was interrupted stand in an entry of their own.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from angle_data.console import Progress
from angle_data.errors import InputError

log = logging.getLogger("angle.fit")

METRIC = "dev_spearman"
_UNFINISHED = "terms_so_far"
_ORDER = {"loss": 0, "cosine": 1, "in_batch": 2, "angle": 3}  # of the terms in the log; others follow
_HELD = 256  # batches whose terms may wait on the device
# torch raises a plain RuntimeError where the processor's memory is exhausted.
_ON_THE_PROCESSOR = ("DefaultCPUAllocator", "not enough memory", "can't allocate memory", "std::bad_alloc")
_ADVICE = (
    "lower chunk_size, batch_size or max_seq_length (--set KEY=VALUE), or set gradient_cache or "
    "gradient_checkpointing to true; other batch_size or max_seq_length need another --out or --overwrite"
)
# torch's zip writer raises a plain RuntimeError and drops the system's reason.
_TORCH_WRITER = ("inline_container", "PytorchStreamWriter")


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


class TermMeter:
    """Means of the loss terms since the last evaluation, in double precision.

    Sums are exact to the last bit over an interruption, which the trainer's own are not. Values that are not
    finite (a batch that overflowed) are left out. Values stay on their device until they are asked for, since
    fetching them would make the processor wait for a GPU after every batch.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}
        self._held: list[tuple[list[str], Tensor]] = []

    def add(self, terms: Mapping[str, Tensor]) -> None:
        """Count the terms (scalars) of one batch."""
        self._held.append((list(terms), torch.stack([term.detach() for term in terms.values()])))
        if len(self._held) >= _HELD:
            self._fetch()

    def _fetch(self) -> None:
        """Add what is held to the sums, in the order in which it came."""
        for names, values in self._held:
            # Python's floats are doubles, which not every device has.
            for name, value in zip(names, values.tolist(), strict=True):
                total, count = self._sums.get(name, (0.0, 0))
                if math.isfinite(value):
                    self._sums[name] = (total + value, count + 1)
        self._held.clear()

    def means(self) -> dict[str, float]:
        """Return `loss`, the sum of all means, and the mean of each term; nothing if nothing was counted."""
        self._fetch()
        means = {name: total / count for name, (total, count) in self._sums.items()}
        rounded = {name: round(mean, 6) for name, mean in means.items()}
        return {"loss": round(math.fsum(means.values()), 6)} | rounded if means else {}

    def state(self) -> dict[str, list[float]]:
        """Return sum and count of every term, ready for JSON."""
        self._fetch()
        return {name: [total, count] for name, (total, count) in self._sums.items()}

    def restore(self, state: Mapping[str, list[float]]) -> None:
        """Go on from what `state` returned; from nothing, start anew."""
        self._held.clear()
        self._sums = {name: (total, int(count)) for name, (total, count) in state.items()}


class RunCallback(TrainerCallback):
    """Progress, one log line per evaluation, early stopping, and a checkpoint when interrupted.

    `progress` counts the steps of this process and `meter` is fed by the loss. `start` is the dev Spearman of
    the untouched backbone, which a checkpoint has to beat to be the best so far. At step `end` the run stops.
    """

    def __init__(
        self,
        progress: Progress,
        patience: int,
        interrupted: Callable[[], bool],
        meter: TermMeter,
        start: float = -math.inf,
        end: int | None = None,
    ) -> None:
        self._progress, self._patience, self._interrupted = progress, patience, interrupted
        self._meter, self._start, self._end = meter, start, end
        self._shown = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Go on where a resumed run's checkpoint is."""
        self._shown = state.global_step
        self._meter.restore(_unfinished_terms(state))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step; stop, with a checkpoint, if interrupted."""
        scores = [evaluation.dev for evaluation in learning_curve(state)]
        note = f"dev {100 * scores[-1]:.1f}, best {100 * max(self._start, *scores):.1f}" if scores else ""
        self._progress.advance(state.global_step - self._shown, note)
        self._shown = state.global_step
        if self._end is not None and self._end <= state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True
        if self._interrupted():
            entries: list[dict[str, Any]] = state.log_history
            entries.append({"step": state.global_step, _UNFINISHED: self._meter.state()})
            control.should_save = control.should_training_stop = True

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the evaluation; stop if the last ones brought nothing better."""
        entries: list[dict[str, Any]] = state.log_history
        entry = next(entry for entry in reversed(entries) if f"eval_{METRIC}" in entry)
        entry["terms"] = self._meter.means()
        self._meter.restore({})
        *earlier, last = learning_curve(state)
        is_best = last.dev > max([self._start, *(evaluation.dev for evaluation in earlier)])
        best = ", the best so far" if is_best else ""
        log.info(
            "step %d/%d, epoch %.2f: %s; dev Spearman %.2f%s",
            last.step,
            state.max_steps,
            last.epoch,
            _in_words(last.terms) or "loss n/a",
            100 * last.dev,
            best,
        )
        if evaluations_since_best(state) >= self._patience:
            log.info("no better for %d evaluations: stopping early", self._patience)
            control.should_training_stop = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the loss terms of a run that is not measured on the way."""
        if args.eval_strategy == "no" and (means := self._meter.means()):
            terms = _in_words(means)
            log.info("step %d/%d, epoch %.2f: %s", state.global_step, state.max_steps, state.epoch, terms)
            self._meter.restore({})


def _in_words(terms: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in terms.items())


def learning_curve(state: TrainerState) -> list[Evaluation]:
    """Return the evaluations in the trainer's log; it is part of every checkpoint, so resuming keeps it."""
    entries: list[dict[str, Any]] = state.log_history
    curve = []
    for entry in entries:
        if f"eval_{METRIC}" in entry:
            found = sorted(entry.get("terms", {}).items(), key=lambda term: _ORDER.get(term[0], len(_ORDER)))
            terms = dict(found)  # a checkpoint sorts its keys
            curve.append(Evaluation(entry["step"], entry["epoch"], entry[f"eval_{METRIC}"], terms))
    return curve


def evaluations_since_best(state: TrainerState) -> int:
    """Return how many evaluations there were since the best one; the backbone's does not count."""
    scores = [evaluation.dev for evaluation in learning_curve(state)]
    return len(scores) - 1 - scores.index(max(scores)) if scores else 0


def _unfinished_terms(state: TrainerState) -> dict[str, list[float]]:
    """Return the loss terms between the last evaluation and an interruption, see `TermMeter.state`."""
    entries: list[dict[str, Any]] = state.log_history
    for entry in reversed(entries):
        if f"eval_{METRIC}" in entry:
            break
        if _UNFINISHED in entry and entry["step"] == state.global_step:
            terms: dict[str, list[float]] = entry[_UNFINISHED]
            return terms
    return {}


@contextmanager
def catch_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM inside the block into a flag; the second one does what it always does.

    A batch system or container that ends a run sends a SIGTERM, and kills some seconds later.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(signum: int, frame: object) -> None:
        pressed.set()
        restore()
        log.warning("finishing this step and saving a checkpoint; Ctrl-C again stops at once")

    for number in previous:
        signal.signal(number, handle)
    try:
        yield pressed.is_set
    finally:
        restore()


@contextmanager
def memory_errors_in_one_line() -> Iterator[None]:
    """Turn what torch and Python raise when memory does not suffice into one line.

    Raises:
        InputError: It did not; says whose memory, and what needs less of it.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        if (
            isinstance(error, RuntimeError)
            and not on_gpu
            and not any(m in str(error) for m in _ON_THE_PROCESSOR)
        ):
            raise
        place = "the GPU" if on_gpu else "the machine"
        raise InputError(f"{place} has not enough memory for this run: {_ADVICE}") from None


@contextmanager
def disk_errors_in_one_line(directory: Path) -> Iterator[None]:
    """Turn what torch, safetensors and Python raise when `directory` takes no more into one line.

    Raises:
        InputError: A file could not be written; names the directory and, where it is known, the reason.
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
