"""The ranges that a grid draws its recipes from."""

from __future__ import annotations

import math
import random
from contextlib import suppress

from angle_data.errors import InputError
from angle_train.recipe import Recipe

SPACE = {
    **{weight: (0.02, 2.0, 0.2) for weight in ("in_batch_weight", "angle_weight")},
    "cosine_tau": (0.02, 0.2, 0.0),
    "in_batch_tau": (0.02, 0.2, 0.0),
    "angle_tau": (0.03, 1.0, 0.0),  # above that the term hardly pulls
    "learning_rate": (5e-6, 3e-4, 0.0),
}
"""Weights, temperatures and learning rate, around the presets' and the papers' values: from and to, drawn on
a logarithmic scale, and the share of draws that are 0, a term left out.

The cosine weight stays: all three times the same factor are the same training, since AdamW and the clipping
of gradients take the scale of a loss out.
"""


def draw_trials(count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials, to three digits; the first has none: `recipe` as it is.

    More trials of a seed begin with the same ones. Draws that the recipe does not allow (all weights 0) are
    drawn again, and a term that it leaves out has no temperature.
    """
    generator = random.Random(seed)
    names = [name for name in SPACE if name != "cosine_tau" or recipe.objective.cosine_weight != 0]
    trials: list[dict[str, float]] = [{}]
    while len(trials) < count:
        values = {}
        for name in names:
            low, high, zero = SPACE[name]
            left_out = generator.random() < zero
            value = 0.0 if left_out else math.exp(generator.uniform(math.log(low), math.log(high)))
            values[name] = float(f"{value:.3g}")
        with suppress(InputError):
            recipe.with_overrides(values)
            trials.append(values)
    return trials
