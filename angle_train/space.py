"""What a grid searches over: ranges of recipe values, and the combinations drawn from them.

Pure but for reading the file; knows recipes by the names of their values only.
"""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_train.config import Recipe

__all__ = ["SPACE", "Range", "draw_trials", "read_space"]

_WEIGHTS = ("cosine_weight", "in_batch_weight", "angle_weight")


@dataclass(frozen=True, slots=True)
class Range:
    """A positive value on a logarithmic scale.

    Attributes:
        low: The least.
        high: The most.
        zero: Share of the draws that are 0 instead: a term that is switched off.
    """

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
    **{weight: Range(0.02, 2.0, zero=0.2) for weight in _WEIGHTS},
    "cosine_tau": Range(0.02, 0.2),
    "in_batch_tau": Range(0.02, 0.2),
    "angle_tau": Range(0.2, 5.0),
    "learning_rate": Range(5e-6, 3e-4),
}
"""The default: the three weights, the temperatures and the learning rate, around the papers' values."""


def read_space(path: Path) -> dict[str, Range]:
    """Read ranges from a TOML file of lines such as `learning_rate = { low = 1e-5, high = 1e-4 }`.

    `zero` may be given too. Any value of a recipe that is a number can be searched.

    Raises:
        InputError: The file is missing or malformed, or a value is unknown or out of its range.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"{path}: no such file of ranges; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a valid TOML file: {error}") from None
    if not tables:
        raise InputError(f"{path}: no ranges in it; write KEY = {{ low = …, high = … }}")
    return {name: _range(path, name, table) for name, table in tables.items()}


def _range(path: Path, name: str, table: Any) -> Range:
    wrong = f"{path}: {name} must be {{ low = …, high = … }} with 0 < low < high, and zero in 0..1 if given"
    if not isinstance(table, dict) or not {"low", "high"} <= table.keys() <= {"low", "high", "zero"}:
        raise InputError(wrong)
    numbers = [table["low"], table["high"], table.get("zero", 0.0)]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
        raise InputError(wrong)
    low, high, zero = map(float, numbers)
    if not (0 < low < high < math.inf and 0 <= zero <= 1):
        raise InputError(wrong)
    try:
        for value in [low, high, *([0.0] if zero else [])]:
            Recipe().with_overrides({name: value})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Range(low, high, zero)


def draw_trials(space: Mapping[str, Range], count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials; the first has none, which is `recipe` as it is.

    Args:
        space: What to draw from.
        count: How many trials.
        seed: Decides the draws; more trials begin with the same ones.
        recipe: What the values will be set in. Draws that it does not allow (all weights 0) are drawn again.
    """
    generator = random.Random(seed)
    trials: list[dict[str, float]] = [{}]
    while len(trials) < count:
        values = {name: space[name].draw(generator) for name in space}
        try:
            recipe.with_overrides(values)
        except InputError:
            continue
        trials.append(values)
    return trials
