"""What paper.py measures itself, beside the scores: the time of an epoch and how many pairs are saturated."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_train.recipe import Recipe, find_recipe, parse_settings

__all__ = ["Epoch", "Share", "saturated", "time_epoch"]

_AT_ONCE = 20_000  # pairs whose embeddings are held together


@dataclass(frozen=True)
class Epoch:
    """The time of one epoch of training alone.

    Attributes:
        wall: Seconds.
        cpu: Seconds of all threads of the process.
        pairs: Trained on.
        steps: Of the optimiser.
        device: Where, in words.
        precision: What it was computed in.
    """

    wall: float
    cpu: float
    pairs: int
    steps: int
    device: str
    precision: str

    def line(self) -> str:
        """Return all of it as a line."""
        return (
            f"{self.wall:.2f} s an epoch, {self.cpu:.2f} CPU s "
            f"({self.pairs:,} pairs, {self.steps} steps, {self.device}, {self.precision})"
        )


@dataclass(frozen=True)
class Share:
    """How many pairs of a kind have a high cosine."""

    kind: str
    pairs: int
    above_95: int
    above_80: int

    def line(self) -> str:
        """Return all of it as a line."""
        high, close = (100 * count / self.pairs for count in (self.above_95, self.above_80))
        return f"{self.kind:<14} {self.pairs:>8,} pairs: {high:5.1f} % above 0.95, {close:5.1f} % above 0.8"


def time_epoch(recipe_name: str, data: Path, backbone: str, settings: list[str], seed: int) -> Epoch:
    """Train one epoch on pairs and return its time; the model is thrown away.

    The clock runs from the end of the first step to the end of the last one, and the first counts as much as
    the mean of the others: loading, the first use of every kernel, evaluation and saving are left out.

    Raises:
        InputError: The pairs or the backbone cannot be used, or the pairs make a single step.
    """
    from angle_train.data.pairs import load_pairs
    from angle_train.model.prepare import load_for_training
    from angle_train.train.arguments import Schedule, resolve_precision
    from angle_train.train.trainer import train

    recipe = Recipe.from_toml(find_recipe(recipe_name)).with_overrides(parse_settings(settings))
    recipe = replace(recipe, training=replace(recipe.training, epochs=1, evals_per_epoch=1, seed=seed))
    training = recipe.training
    pairs = load_pairs(str(data))
    steps = Schedule(training, len(pairs)).steps
    if steps < 2:
        raise InputError(f"{data}: {len(pairs)} pairs make one step; timing an epoch needs at least two")
    length = training.max_seq_length if isinstance(training.max_seq_length, int) else None
    model = load_for_training(backbone, recipe.backbone, training.prompt, length, None, seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, _step_ends(steps) as ends:
        train(model, pairs, [], recipe, Path(scratch))
    (wall, cpu), (last_wall, last_cpu) = ends
    whole = steps / (steps - 1)
    return Epoch(
        whole * (last_wall - wall),
        whole * (last_cpu - cpu),
        len(pairs),
        steps,
        _device_name(model.device),
        resolve_precision(training.precision, model.device),
    )


@contextmanager
def _step_ends(steps: int) -> Iterator[list[tuple[float, float]]]:
    """Collect the wall and CPU clock at the end of the first and of the last of so many optimiser steps."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    found: list[tuple[float, float]] = []
    taken = 0

    def note(*_: Any) -> None:
        nonlocal taken
        taken += 1
        if taken in (1, steps):
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # what the processor has only asked for so far
            found.append((time.perf_counter(), time.process_time()))

    handle = register_optimizer_step_post_hook(note)
    try:
        yield found
    finally:
        handle.remove()


def _device_name(device: Any) -> str:
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"CPU, {torch.get_num_threads()} threads"


def saturated(data: Path, model_name: str) -> list[Share]:
    """Return how many of the pairs have a cosine above 0.95 and above 0.8: of all, then label by label.

    Raises:
        InputError: The pairs or the model cannot be used.
    """
    import numpy as np

    from angle_train.data.pairs import load_pairs
    from angle_train.evaluate.similarity import check_finite, cosine_rows, embed_pairs
    from angle_train.model.load import load_backbone, quiet_libraries

    pairs, model = load_pairs(str(data)), load_backbone(model_name)
    parts = []
    with quiet_libraries():
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs.take(range(start, min(start + _AT_ONCE, len(pairs))), pairs.name)
            parts.append(cosine_rows(*embed_pairs(model, part)))
            check_finite(parts[-1], part, model_name)
    cosine = np.concatenate(parts)

    def share(kind: str, rows: Any) -> Share:
        return Share(kind, int(rows.sum()), int((cosine[rows] > 0.95).sum()), int((cosine[rows] > 0.8).sum()))

    kinds = {"score 1": pairs.score == 1, "score 0": pairs.score == 0}
    return [
        share("all", np.ones(len(pairs), dtype=bool)),
        *(share(kind, rows) for kind, rows in kinds.items() if rows.any()),
    ]
