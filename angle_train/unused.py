"""Settings that a run would not use: told, so that nobody believes that they were measured.

Only values that differ from the default count: these somebody has chosen. Knows recipes alone, loads nothing
heavy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any

from angle_train.recipe import Recipe
from angle_train.settings import SECTIONS

_TERMS = {
    "cosine_weight": ("cosine_tau",),
    "in_batch_weight": ("in_batch_tau", "isp"),
    "angle_weight": ("angle_tau", "angle_mode"),
}
"""Weight of a term to the settings that it alone uses."""


def unused_values(recipe: Recipe, varied: Collection[str] = ()) -> dict[str, str]:
    """Return the settings that play no part because of others, and the reason, such as `with lora_rank 0`.

    Args:
        recipe: Of the run.
        varied: Weights that are not always what the recipe says: their terms are not taken to be off.
    """
    objective, backbone = recipe.objective, recipe.backbone
    reasons: dict[str, Iterable[str]] = {}
    for weight, own_settings in _TERMS.items():
        if not getattr(objective, weight) and weight not in varied:
            reasons[f"with {weight} 0"] = own_settings
    if backbone.lora_rank:
        reasons[f"with lora_rank {backbone.lora_rank}"] = ("freeze_embeddings",)
    else:
        reasons["with lora_rank 0"] = ("lora_alpha", "lora_dropout", "lora_targets")
    found: dict[str, str] = {}
    for reason, names in reasons.items():
        for name in names:
            found.setdefault(name, reason)
    return found


def unused_settings(recipe: Recipe, *, human: bool, dev: bool) -> list[str]:
    """Return a sentence for each reason why some of the chosen settings play no part.

    Args:
        recipe: Of the run.
        human: Whether it has human-graded training pairs.
        dev: Whether it has dev pairs.
    """
    unused = unused_values(recipe)
    if not human:
        unused |= dict.fromkeys(("human_weight", "folds"), "without human-graded pairs")
    elif dev:
        unused["folds"] = "with dev pairs"
    else:
        unused["patience"] = "where parts of the human-graded pairs choose the number of steps"
    by_reason: dict[str, list[str]] = {}
    for section in SECTIONS:
        for name in _changed(getattr(recipe, section), unused):
            by_reason.setdefault(unused[name], []).append(name)
    return [f"{', '.join(names)} {_play(names)} no part {reason}" for reason, names in by_reason.items()]


def _changed(section: Any, names: Iterable[str]) -> list[str]:
    """Return those of `names` whose value is not the default, in the order of the section."""
    wanted = set(names)
    return [f.name for f in fields(section) if f.name in wanted and getattr(section, f.name) != f.default]


def _play(names: list[str]) -> str:
    return "plays" if len(names) == 1 else "play"
