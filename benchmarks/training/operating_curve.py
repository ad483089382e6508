"""How often `training.choosing` takes a tuned model that is no better, and how often it finds one that is.

    python benchmarks/training/operating_curve.py [--gains 0 0.1] [--worlds 400] [--pairs 8 16 --each 4]

Simulated are similarities of a backbone that correlates with the gold scores by 0.6 and of tuned weights
after 12 evaluations, whose true gain grows up to the one named (or falls to it); noise is shared by weights
that are close to each other, and the parts of k-fold shift it. With merging, 6 evaluations with 5 shares of
the backbone each. `maximum` is the rule of earlier releases: the best figure, if it exceeds the backbone's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import options, save_results  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.stats import norm, spearmanr  # noqa: E402

from angle_train.data.pairs import PairSet  # noqa: E402
from angle_train.training.choosing import resampled, select_simplest  # noqa: E402

Array = NDArray[np.float64]
PAIRS = (30, 50, 100, 200)
GAINS = (-0.10, 0.0, 0.03, 0.05, 0.10)
_SPEARMAN = 0.6
_UNLIKE = 0.4  # share of the noise in which fully tuned weights and the backbone differ
_OWN = 0.02  # share of the noise that is of one evaluation alone
_SHIFT = 0.1  # of a part's similarities, in standard deviations: another model measured it


def world(
    generator: np.random.Generator, pairs: int, evaluations: int, shares: Sequence[float], gain: float
) -> tuple[Array, Array, list[int], Array]:
    """Return gold scores (B,), similarities (C, B), rungs (C,) and true correlations (C,); backbone first."""
    moved = [0.0, *((e / evaluations) * (1 - share) for e in range(evaluations, 0, -1) for share in shares)]
    at, of = np.array(moved), np.array([0, *np.repeat(range(1, evaluations + 1), len(shares))])
    alike = (1 - _OWN) * (1 - _UNLIKE * np.abs(at[:, None] - at)) + _OWN * (of[:, None] == of)
    noise = np.linalg.cholesky(alike + 1e-9 * np.eye(len(at))) @ generator.standard_normal((len(at), pairs))
    gold, true = generator.standard_normal(pairs), _SPEARMAN + gain * at
    similarity = true[:, None] * gold + np.sqrt(1 - true**2)[:, None] * noise
    similarity += _SHIFT * at[:, None] * generator.standard_normal(5)[np.arange(pairs) % 5]
    rungs = [0] + [3 if share else 1 + (e > 0) for e in range(evaluations) for share in shares]
    return np.round(5 * norm.cdf(gold)), similarity, rungs, true


def rule(gold: Array, similarity: Array, rungs: Sequence[int], each: int = 1) -> int:
    """Return the candidate that the toolkit takes; a source has so many pairs `each`."""
    texts = [f"{i}" for i in range(2 * len(gold))]
    sources = [f"{i // each}" for i in range(len(gold))]
    pairs = PairSet("pairs", texts[::2], texts[1::2], gold, np.ones(len(gold)), source_ids=sources)
    return select_simplest(*resampled([pairs], [[column] for column in similarity]), rungs).chosen


def maximum(gold: Array, similarity: Array, *_: object) -> int:
    """Return the candidate with the highest figure."""
    return int(np.argmax([spearmanr(gold, column).statistic for column in similarity]))


RULES: dict[str, Callable[..., int]] = {"rule": rule, "maximum": maximum}


def simulate(worlds: int, gains: Sequence[float], sizes: Sequence[int], each: int) -> dict[str, Any]:
    """Return how often a tuned model is taken, and its true gain, by rule, kind of run, pairs and gain."""
    found: dict[str, Any] = {}
    kinds = {"checkpoints": (12, (0.0,)), "with merging": (6, (0.0, 0.2, 0.4, 0.6, 0.8))}
    for (name, (evaluations, shares)), pairs, gain in product(kinds.items(), sizes, gains):
        unit, taken = f"{name}, {pairs} pairs, true gain {gain:+.2f}", []
        for number in range(worlds):
            seeds = [number, pairs, round(1000 + 1000 * gain), evaluations]
            made = world(np.random.default_rng(seeds), pairs, evaluations, shares, gain)
            chosen = [choice(*made[:3], each) for choice in RULES.values()]
            taken.append([made[3][one] - _SPEARMAN if one else np.nan for one in chosen])
        adopted = (~np.isnan(taken)).mean(axis=0).tolist()
        worth = (np.nansum(taken, axis=0) / worlds).tolist()
        found[unit] = {"rules": list(RULES), "adopted": adopted, "gain": worth}
        print(f"{unit}: adopted {adopted[0]:.2f}, by the maximum {adopted[1]:.2f}", flush=True)
    return found


def main() -> None:
    """Print how often tuned models are taken."""
    parser = options(__doc__)
    parser.add_argument("--gains", type=float, nargs="+", default=GAINS, help="true ones")
    parser.add_argument("--worlds", type=int, default=400, help="for each figure")
    parser.add_argument("--pairs", type=int, nargs="+", default=PAIRS, help="held out")
    parser.add_argument("--each", type=int, default=1, help="pairs of a source")
    asked = parser.parse_args()
    save_results("operating-curve", simulate(asked.worlds, asked.gains, asked.pairs, asked.each))


if __name__ == "__main__":
    main()
