"""The ranges that a grid draws its recipes from."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from angle_data.errors import InputError
from angle_train.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Range:
    """A positive value on a logarithmic scale; `zero` is the share of draws that are 0, a term left out."""

    low: float
    high: float
    zero: float = 0.0

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
"""Weights, temperatures and learning rate, around the presets' and the papers' values.

The cosine weight stays: all three times the same factor are the same training, since AdamW and the clipping
of gradients take the scale of a loss out.
"""


def usable(space: Mapping[str, Range], recipe: Recipe) -> dict[str, Range]:
    """Return the ranges that make a difference around `recipe`: no temperature of a term of weight 0."""
    stated = asdict(recipe.objective)
    parts = {name: name.replace("_tau", "_weight") for name in space}
    return {name: space[name] for name, of in parts.items() if of in space or stated.get(of) != 0}


def draw_trials(space: Mapping[str, Range], count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials; the first has none, which is `recipe` as it is.

    More trials of a seed begin with the same ones. Draws that the recipe does not allow (all weights 0) are
    drawn again.
    """
    generator = random.Random(seed)
    trials: list[dict[str, float]] = [{}]
    while len(trials) < count:
        values = {name: space[name].draw(generator) for name in space}
        with suppress(InputError):
            recipe.with_overrides(values)
            trials.append(values)
    return trials
