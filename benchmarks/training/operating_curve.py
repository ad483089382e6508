"""How often `train.choosing` takes a tuned model that is no better, and how often it finds one that is.

    python benchmarks/training/operating_curve.py                                    # simulated
    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/operating_curve.py --real      # trained
    … --table                                              # what has been trained so far

Simulated: similarities of a backbone that correlates with the gold scores by 0.6 and of tuned weights after
12 evaluations, whose true gain grows up to the one named (or falls to it); noise is shared by weights that
are close to each other, and the parts of k-fold shift it. With merging, 6 evaluations with 5 shares of the
backbone each. `maximum` is the rule of earlier releases: the best figure, if it exceeds the backbone's.

Real: MiniLM's first three layers, 300 pairs of the STS-B sentences that LLMs annotated, 20 runs of each
kind with other pairs and another seed: `partners` with the second texts shuffled, which teaches nothing about
meaning, yet the in-batch term spreads the vectors, which is a true gain; `scores` with the scores shuffled
and the cosine term alone, which has nothing to gain. Every run keeps the similarities of 3 evaluations with 3
shares of the backbone on 200 validation pairs, of which the first 30, 50, 100 and 200 choose, and on 300
others, which say what the choice was truly worth. No test pairs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import RESULTS, minilm, options, save_results  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.stats import norm, spearmanr  # noqa: E402

from angle_train.data.pairs import PairSet  # noqa: E402
from angle_train.train.choosing import choose  # noqa: E402

Array = NDArray[np.float64]
PAIRS = (30, 50, 100, 200)
GAINS = (-0.10, 0.0, 0.03, 0.05, 0.10)
_SPEARMAN = 0.6
_UNLIKE = 0.4  # share of the noise in which fully tuned weights and the backbone differ
_OWN = 0.02  # share of the noise that is of one evaluation alone
_SHIFT = 0.1  # of a part's similarities, in standard deviations: another model measured it
_SHARES = (0.0, 0.3, 0.6)
KINDS = {"partners": 1, "scores": 2}  # the number seeds a run
OUT = RESULTS / "training" / "operating-curve"


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


def rule(gold: Array, similarity: Array, rungs: Sequence[int]) -> int:
    """Return the candidate that the toolkit takes."""
    texts = [f"{i}" for i in range(2 * len(gold))]
    pairs = PairSet("pairs", texts[::2], texts[1::2], gold, np.ones(len(gold)))
    return choose([pairs], [[column] for column in similarity], rungs).chosen


def maximum(gold: Array, similarity: Array, rungs: Sequence[int]) -> int:
    """Return the candidate with the highest figure."""
    return int(np.argmax([spearmanr(gold, column).statistic for column in similarity]))


RULES: dict[str, Callable[[Array, Array, Sequence[int]], int]] = {"rule": rule, "maximum": maximum}


def simulate(worlds: int, gains: Sequence[float]) -> dict[str, Any]:
    """Return how often a tuned model is taken, and its true gain, by rule, kind of run, pairs and gain."""
    found: dict[str, Any] = {}
    kinds = {"checkpoints": (12, (0.0,)), "with merging": (6, (0.0, 0.2, 0.4, 0.6, 0.8))}
    for (name, (evaluations, shares)), pairs, gain in product(kinds.items(), PAIRS, gains):
        unit, taken = f"{name}, {pairs} pairs, true gain {gain:+.2f}", []
        for number in range(worlds):
            seeds = [number, pairs, round(1000 + 1000 * gain), evaluations]
            made = world(np.random.default_rng(seeds), pairs, evaluations, shares, gain)
            chosen = [choice(*made[:3]) for choice in RULES.values()]
            taken.append([made[3][one] - _SPEARMAN if one else np.nan for one in chosen])
        adopted = (~np.isnan(taken)).mean(axis=0).tolist()
        worth = (np.nansum(taken, axis=0) / worlds).tolist()
        found[unit] = {"rules": list(RULES), "adopted": adopted, "gain": worth}
        print(f"{unit}: adopted {adopted[0]:.2f}, by the maximum {adopted[1]:.2f}", flush=True)
    return found


def trained(kind: str, number: int) -> dict[str, Any]:
    """Return the similarities of one run, from its file if it has been run."""
    path = OUT / f"{kind}-{number}.json"
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return kept
    from dataclasses import replace

    from common import data_folder
    from llm_supervised import data_sets, stsb

    from angle_train.data.pairs import load_pairs
    from angle_train.evaluation.similarity import evaluate_model
    from angle_train.model.load import load_for_training
    from angle_train.recipe import BackboneConfig, Recipe, find_recipe
    from angle_train.train.merging import blended, snapshot
    from angle_train.train.trainer import DevEvaluator, train

    generator = np.random.default_rng([number, KINDS[kind]])
    pairs = load_pairs(str(data_sets(stsb())["vote"]))
    pairs = pairs.take(sorted(generator.choice(len(pairs), 300, replace=False).tolist()), pairs.name)
    if kind == "partners":
        pairs = replace(pairs, text2=[pairs.text2[i] for i in generator.permutation(len(pairs))])
    if kind == "scores":
        pairs = replace(pairs, score=generator.permutation(pairs.score))
    held_out = load_pairs(str(data_folder() / "data" / "stsb" / "validation.jsonl.gz"))
    chosen = generator.permutation(len(held_out))[:500].tolist()
    sets = [held_out.take(chosen[:200], "dev"), held_out.take(chosen[200:], "truth")]
    values: dict[str, Any] = {"epochs": 3, "evals_per_epoch": 1, "patience": 9, "max_seq_length": 64}
    if kind == "scores":
        values |= {"cosine_weight": 1.0, "in_batch_weight": 0.0, "angle_weight": 0.0}
    recipe = Recipe.from_toml(find_recipe("topics")).with_overrides({**values, "seed": number})
    model = load_for_training(str(minilm(3)), BackboneConfig(), "", 64)
    backbone = [evaluate_model(model, each).tolist() for each in sets]
    similarities: list[list[list[list[float]]]] = []  # by evaluation, share and set

    class EachShare(DevEvaluator):
        def __call__(self, model: Any, *given: Any, **more: Any) -> dict[str, float]:
            similarities.append([])
            for share in _SHARES:
                with blended(model, self.backbone, share):
                    similarities[-1].append([evaluate_model(model, each).tolist() for each in sets])
            return super().__call__(model, *given, **more)

    evaluator = EachShare(sets)
    evaluator.backbone = snapshot(model)
    with tempfile.TemporaryDirectory() as folder:
        train(model, pairs, recipe, Path(folder), evaluator=evaluator)
    *earlier, end = similarities
    rungs = [0, *(3 if share else 1 + (e > 0) for e in range(len(similarities)) for share in _SHARES)]
    candidates = [backbone, *end, *(each for shares in earlier for each in shares)]
    result = {"gold": [each.score.tolist() for each in sets], "candidates": candidates, "rungs": rungs}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result), encoding="utf-8")
    return result


def judge(runs: Sequence[dict[str, Any]], choice: Callable[[Array, Array, Sequence[int]], int]) -> list[str]:
    """Return a line for each number of pairs: how often a tuned model was taken, and what it was worth."""
    lines = []
    for kind, pairs in product(("checkpoints", "merging"), PAIRS):
        gains, truth = [], []
        for run in runs:
            some = [i for i, rung in enumerate(run["rungs"]) if kind == "merging" or rung < 3]
            columns = np.array([run["candidates"][i][0][:pairs] for i in some])
            chosen = choice(np.array(run["gold"][0][:pairs]), columns, [run["rungs"][i] for i in some])
            true = [spearmanr(run["gold"][1], run["candidates"][i][1]).statistic for i in some]
            gains.append(true[chosen] - true[0] if chosen else np.nan)
            truth.append(true[1] - true[0])
        lines.append(
            f"{kind}, {pairs} pairs: adopted {(~np.isnan(gains)).sum()}, worse than the backbone "
            f"{(np.nan_to_num(gains) < 0).sum()}, mean gain kept {100 * np.nansum(gains) / len(runs):+.1f} "
            f"(the end of all: {100 * np.mean(truth):+.1f})"
        )
    return lines


def main() -> None:
    """Simulate, or train what is missing, and print how often tuned models are taken."""
    parser = options(__doc__)
    parser.add_argument("--real", action="store_true", help="train")
    parser.add_argument("--table", action="store_true", help="print what has been trained, run nothing")
    parser.add_argument("--gains", type=float, nargs="+", default=GAINS, help="true, simulated")
    parser.add_argument("--worlds", type=int, default=400, help="simulated for each figure")
    arguments = parser.parse_args()
    if not (arguments.real or arguments.table):
        save_results("operating-curve", simulate(arguments.worlds, arguments.gains))
        return
    for kind in KINDS:
        numbers = [n for n in range(20) if arguments.real or (OUT / f"{kind}-{n}.json").exists()]
        runs = [trained(kind, number) for number in numbers]
        for label, choice in RULES.items() if runs else ():
            for line in judge(runs, choice):
                print(f"{kind}, {len(runs)} runs, {label}: {line}", flush=True)


if __name__ == "__main__":
    main()
