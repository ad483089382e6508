"""The ranges that a grid draws its recipes from."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from angle_data.errors import InputError
from angle_train.recipe import SECTIONS, Recipe, read_toml

_MOST_REFUSED = 1000  # draws in a row
_NOT_SEARCHED = {
    "epochs": "the rounds decide how long a trial trains",
    "average_with_backbone": "trials are compared before the backbone is mixed in",
    "human_weight": "it is given to the pairs before the search",
    "folds": "a grid has dev pairs",
    "seed": "it is no better for being lucky on the dev pairs",
}


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class Range:
    """A positive value on a logarithmic scale.

    Attributes:
        low: The least.
        high: The most.
        zero: Share of the draws that are 0 instead: a term that is switched off.
    """

    low: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    high: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    zero: Annotated[float, Field(ge=0, le=1)] = 0.0

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError("low must be below high")

    def draw(self, generator: random.Random) -> float:
        """Return a value, rounded to three digits."""
        if generator.random() < self.zero:
            return 0.0
        value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        return float(f"{value:.3g}")


SPACE: dict[str, Range] = {
    **{weight: Range(0.02, 2.0, zero=0.2) for weight in ("in_batch_weight", "angle_weight")},
    "cosine_tau": Range(0.02, 0.2),
    "in_batch_tau": Range(0.02, 0.2),
    "angle_tau": Range(0.03, 1.0),  # above that the term hardly pulls
    "learning_rate": Range(5e-6, 3e-4),
}
"""The default: weights, temperatures and learning rate, around the presets' and the papers' values.

The cosine weight stays: all three times the same factor are the same training, since AdamW and the clipping
of gradients take the scale of a loss out.
"""
_PART_OF = {
    "cosine_tau": "cosine_weight",
    "in_batch_tau": "in_batch_weight",
    "positive_score": "in_batch_weight",
    "angle_tau": "angle_weight",
    "lora_alpha": "lora_rank",
    "lora_dropout": "lora_rank",
}
"""What makes no difference where the other value is 0."""


def read_space(path: Path) -> dict[str, Range]:
    """Read ranges from a TOML file of lines such as `learning_rate = { low = 1e-5, high = 1e-4 }`.

    `zero` may be given too. Any number of a recipe can be searched that a trial follows, whole ones too.

    Raises:
        InputError: The file is missing or malformed, or a value is unknown, out of its range or not searched.
    """
    tables = read_toml(path, "file of ranges")
    if not tables:
        raise InputError(f"{path}: no ranges in it; write KEY = {{ low = …, high = … }}")
    space = {}
    for name, table in tables.items():
        try:
            space[name] = Range(**table)
        except (TypeError, ValueError):
            raise InputError(
                f"{path}: {name} must be {{ low = …, high = … }} with 0 < low < high, "
                "and zero in 0..1 if given"
            ) from None
        try:
            for value in [table["low"], table["high"], *([0] if space[name].zero else [])]:
                Recipe().with_overrides({name: value})
            check_space(space, Recipe())
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    return space


def check_space(space: Mapping[str, Range], recipe: Recipe) -> None:
    """Check that every range makes a difference to the trials of a grid around `recipe`.

    Raises:
        InputError: One does not; says why.
    """
    refused = dict(_NOT_SEARCHED)
    if recipe.training.skip_near_copies:
        refused["negative_score"] = "skip_near_copies leaves pairs out by it before the search"
    for name in space:
        if name in refused:
            raise InputError(f"{name} cannot be searched: {refused[name]}; set it in the recipe")
        if name not in usable(space, recipe):
            raise InputError(
                f"{name} makes no difference where {_PART_OF[name]} is 0, as in the recipe; "
                f"set that, or give a range for it too"
            )


def usable(space: Mapping[str, Range], recipe: Recipe) -> dict[str, Range]:
    """Return the ranges that make a difference around `recipe`: no temperature of a term of weight 0."""
    stated = asdict(recipe.objective) | asdict(recipe.backbone)
    return {
        name: found
        for name, found in space.items()
        if name not in _PART_OF or _PART_OF[name] in space or stated[_PART_OF[name]] != 0
    }


def draw_trials(space: Mapping[str, Range], count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials; the first has none, which is `recipe` as it is.

    Args:
        space: What to draw from.
        count: How many trials.
        seed: Decides the draws; more trials begin with the same ones.
        recipe: What the values will be set in. Draws that it does not allow (all weights 0) are drawn again.

    Raises:
        InputError: It allows hardly any draw, or none.
    """
    generator = random.Random(seed)
    hints = {name: hint for section in SECTIONS.values() for name, hint in get_type_hints(section).items()}
    whole = {name for name, hint in hints.items() if hint is int or int in get_args(hint)}
    trials: list[dict[str, float]] = [{}]
    refused = 0
    while len(trials) < count:
        drawn = {name: space[name].draw(generator) for name in space}
        values = {name: round(value) if name in whole else value for name, value in drawn.items()}
        try:
            recipe.with_overrides(values)
            trials.append(values)
            refused = 0
        except InputError as error:
            refused += 1
            if refused == _MOST_REFUSED:
                raise InputError(
                    f"{refused} draws in a row from the ranges are no recipe ({error}); give other ranges"
                ) from None
    return trials
