"""Settings that a run would not use: told, so that nobody believes that they were measured.

Only values that differ from the default count: these somebody has chosen. Knows recipes alone, loads nothing
heavy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from angle_train.config import Recipe
from angle_train.losses import OWN_LOSS
from angle_train.settings import ObjectiveConfig

__all__ = ["unused_by_loss", "unused_settings"]

# What stock losses use of the objective's section: the thresholds of positives and hard negatives.
_USED_BY_STOCK = {"loss", "positive_score", "negative_score"}
_WINDOWS = ("stride", "max_windows", "window_memory")


def unused_by_loss(recipe: Recipe) -> set[str]:
    """Return the names of the objective's settings that play no part in the recipe's loss."""
    if recipe.objective.loss == OWN_LOSS:
        return set()
    return {f.name for f in fields(ObjectiveConfig)} - _USED_BY_STOCK


def unused_settings(recipe: Recipe, *, human: bool, dev: bool, weighted: bool) -> list[str]:
    """Return a sentence for each reason why some of the chosen settings play no part.

    Args:
        recipe: Of the run.
        human: Whether it has human-graded training pairs.
        dev: Whether it has dev pairs.
        weighted: Whether some training pairs have another weight than others.
    """
    backbone, training = recipe.backbone, recipe.training
    found = [
        (f"with loss {recipe.objective.loss!r}", _changed(recipe.objective, unused_by_loss(recipe))),
        ("without human-graded pairs", [] if human else _changed(training, ["human_weight", "folds"])),
        ("with dev pairs", _changed(training, ["folds"]) if human and dev else []),
    ]
    if not backbone.lora_rank:
        found.append(("with lora_rank 0", _changed(backbone, ["lora_alpha", "lora_dropout", "lora_targets"])))
    if backbone.long_text == "cut":
        found.append(("with long_text 'cut'", _changed(backbone, ["window", *_WINDOWS])))
    elif backbone.long_text == "head_tail":
        found.append(("with long_text 'head_tail'", _changed(backbone, _WINDOWS)))
    notes = [f"{', '.join(names)} {_play(names)} no part {reason}" for reason, names in found if names]
    if weighted and recipe.objective.loss != OWN_LOSS:
        notes.append(f"the weights of the pairs play no part with loss {recipe.objective.loss!r}")
    window = backbone.window or training.max_seq_length
    if backbone.long_text == "windows" and isinstance(window, int) and (backbone.stride or 0) > window:
        notes.append(
            f"stride {backbone.stride} is more than a window of {window}; windows then stand side by side"
        )
    return notes


def _changed(section: Any, names: Iterable[str]) -> list[str]:
    """Return those of `names` whose value is not the default, in the order of the section."""
    wanted = set(names)
    return [f.name for f in fields(section) if f.name in wanted and getattr(section, f.name) != f.default]


def _play(names: list[str]) -> str:
    return "plays" if len(names) == 1 else "play"
