"""Search for better weights and a better learning rate by successive halving, on `angle_train.train`.

    python examples/search.py --data pairs.jsonl --dev dev.jsonl --backbone MODEL --out runs/search

Every trial is a training with values of its own; trial 0 is the recipe as it is. Each round keeps the
best third and trains it three times as long; the last round takes `--epochs` (Jamieson and Talwalkar 2016,
https://arxiv.org/abs/1502.07943). The same command goes on where it was stopped.

The best of many trials is flattered by the dev pairs that chose it: measure it on test pairs before use.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from angle_data.errors import AngleError
from angle_train import train

SPACE = {  # drawn on a logarithmic scale; the cosine weight stays, since the scale of a loss is free
    "learning_rate": (5e-6, 3e-4),
    "in_batch_weight": (0.02, 2.0),
    "angle_weight": (0.02, 2.0),
    "in_batch_tau": (0.02, 0.2),
}
KEPT = 3  # one in so many goes on, three times as long

Trial = tuple[float, int, dict[str, float]]
"""Spearman on the dev pairs after tuning, the trial's number, and its values."""


def draw(trials: int, seed: int) -> list[dict[str, float]]:
    """Return the values of each trial; the first has none."""
    generator = random.Random(seed)

    def value(low: float, high: float) -> float:
        return float(f"{math.exp(generator.uniform(math.log(low), math.log(high))):.3g}")

    return [{}, *({key: value(*ends) for key, ends in SPACE.items()} for _ in range(trials - 1))]


def rounds(trials: int) -> int:
    """Return how many rounds leave one trial: 1 for up to three, 2 for up to nine."""
    return max(1, math.ceil(math.log(trials, KEPT) - 1e-9))


def search(out: Path, epochs: float, trials: int = 9, seed: int = 0, **options: Any) -> list[Trial]:
    """Return the trials of the last round, the best first; the others are arguments of `train`.

    `out` gets a folder for each training. `epochs` is how long the last round trains.
    """
    values = draw(trials, seed)
    going_on: Iterable[int] = range(trials)
    found: list[Trial] = []
    for number in range(rounds(trials)):
        share = KEPT ** (number + 1 - rounds(trials))
        found = []
        for trial in going_on:
            folder = out / f"round-{number + 1}" / f"trial-{trial}"
            best = train(out=folder, epochs=epochs * share, **options, **values[trial]).best
            found.append((best, trial, values[trial]))
            print(f"round {number + 1}, trial {trial}: dev {100 * best:.2f}", flush=True)
        found.sort(key=lambda each: (-each[0], each[1]))
        going = found[: math.ceil(len(found) / KEPT)]
        going_on = sorted({0, *(trial for _, trial, _ in going)})  # the recipe as it is, to compare with
    return found


def main() -> None:
    """Search, and print the trials of the last round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for option, name in (("--data", "pairs"), ("--dev", "dev"), ("--backbone", "model")):
        parser.add_argument(option, dest=name, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--recipe", help="name or .toml file")
    parser.add_argument("--epochs", type=float, default=3.0, help="of the last round")
    parser.add_argument("--trials", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.trials < 1:
        parser.error("--trials must be at least 1")
    try:
        found = search(**vars(given))
    except AngleError as error:
        sys.exit(f"search.py: error: {error}")
    for dev, trial, values in found:
        settings = " ".join(f"--set {key}={value:g}" for key, value in values.items())
        print(f"{100 * dev:6.2f}  trial {trial}  {settings or 'the recipe as it is'}")


if __name__ == "__main__":
    main()
