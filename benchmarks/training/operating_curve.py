"""How often `train.choosing` takes a tuned model that is no better, and how often it finds one that is.

    python benchmarks/training/operating_curve.py                                    # simulated
    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/operating_curve.py --real      # trained
    … --table                                                                        # what has been trained
    so far

Simulated: similarities of a backbone that correlates with the gold scores by 0.6 and of tuned weights after
12 evaluations, whose true gain grows up to the one named (or falls to it); noise is shared by weights that
are close to each other, and the parts of k-fold shift it. With merging, 6 evaluations with 5 shares of the
backbone each. `maximum` is the rule of earlier releases: the best figure, if it exceeds the backbone's.

Real: MiniLM's first three layers, 300 pairs of the STS-B sentences that LLMs annotated, 20 runs of each
kind with other pairs and another seed: `true` with their labels; `partners` with the second texts shuffled,
which teaches nothing about meaning, yet the in-batch term spreads the vectors, which is a true gain;
`scores` with the scores shuffled and the cosine term alone, which has nothing to gain. Every run keeps the
similarities of 3 evaluations with 3 shares of the backbone on 200 validation pairs, of which the first 30,
50, 100 and 200 choose, and on 300 others, which say what the choice was truly worth. No test pairs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import RESULTS, minilm, save_results  # noqa: E402
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
_RESAMPLES = 500
_SHARES = (0.0, 0.3, 0.6)
KINDS = ("true", "partners", "scores")
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


def simulate(worlds: int, gains: Sequence[float]) -> dict[str, Any]:
    """Return how often a tuned model is taken, and its true gain, by rule, kind of run, pairs and gain."""
    found: dict[str, Any] = {}
    kinds = {"checkpoints": (12, (0.0,)), "with merging": (6, (0.0, 0.2, 0.4, 0.6, 0.8))}
    for name, (evaluations, shares) in kinds.items():
        for pairs in PAIRS:
            for gain in gains:
                taken: dict[str, list[float]] = {"rule": [], "maximum": []}
                for number in range(worlds):
                    seeds = [number, pairs, round(1000 + 1000 * gain), evaluations]
                    made = world(np.random.default_rng(seeds), pairs, evaluations, shares, gain)
                    for label, chosen in (("rule", rule(*made[:3])), ("maximum", maximum(*made[:3]))):
                        taken[label].append(float(made[3][chosen] - _SPEARMAN) if chosen else np.nan)
                for label, worth in taken.items():
                    adopted = ~np.isnan(worth)
                    row = {"adopted": float(adopted.mean()), "gain": float(np.nansum(worth) / worlds)}
                    found[f"{label}, {name}, {pairs} pairs, {gain:+.2f}"] = row
                line = [found[f"{label}, {name}, {pairs} pairs, {gain:+.2f}"]["adopted"] for label in taken]
                shares_taken = ", by the maximum ".join(f"{share:.2f}" for share in line)
                print(f"{name}, {pairs} pairs, true gain {gain:+.2f}: adopted {shares_taken}", flush=True)
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

    generator = np.random.default_rng([number, KINDS.index(kind)])
    pairs = load_pairs(str(data_sets(stsb())["vote"]))
    pairs = pairs.take(sorted(generator.choice(len(pairs), 300, replace=False).tolist()), pairs.name)
    if kind == "partners":
        pairs = replace(pairs, text2=[pairs.text2[i] for i in generator.permutation(len(pairs))])
    if kind == "scores":
        pairs = replace(pairs, score=generator.permutation(pairs.score))
    held_out = load_pairs(str(data_folder() / "data" / "stsb" / "validation.jsonl.gz"))
    chosen = generator.permutation(len(held_out))[:500].tolist()
    sets = [held_out.take(chosen[:200], "dev"), held_out.take(chosen[200:], "truth")]
    values: dict[str, Any] = {
        "epochs": 3,
        "evals_per_epoch": 1,
        "patience": 9,
        "seed": number,
        "max_seq_length": 64,
    }
    if kind == "scores":
        values |= {"cosine_weight": 1.0, "in_batch_weight": 0.0, "angle_weight": 0.0}
    recipe = Recipe.from_toml(find_recipe("topics")).with_overrides(values)
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
    for merged in (False, True):
        for pairs in PAIRS:
            gains, truth = [], []
            for run in runs:
                some = [i for i, rung in enumerate(run["rungs"]) if merged or rung < 3]
                gold = np.array(run["gold"][0][:pairs])
                columns = np.array([run["candidates"][i][0][:pairs] for i in some])
                chosen = choice(gold, columns, [run["rungs"][i] for i in some])
                true = [spearmanr(run["gold"][1], run["candidates"][i][1]).statistic for i in some]
                gains.append(true[chosen] - true[0] if chosen else np.nan)
                truth.append(true[1] - true[0])
            taken = ~np.isnan(gains)
            lines.append(
                f"{'merging' if merged else 'checkpoints'}, {pairs} pairs: adopted {taken.sum()}, "
                f"worse than the backbone {(np.nan_to_num(gains) < 0).sum()}, mean gain kept "
                f"{100 * np.nansum(gains) / len(runs):+.1f} (the end of all: {100 * np.mean(truth):+.1f})"
            )
    return lines


def main() -> None:
    """Simulate, or train what is missing, and print how often tuned models are taken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", action="store_true", help="train")
    parser.add_argument("--table", action="store_true", help="print what has been trained, run nothing")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--runs", type=int, default=20, help="of each kind")
    parser.add_argument("--gains", type=float, nargs="+", default=list(GAINS), help="true, simulated")
    parser.add_argument("--worlds", type=int, default=400, help="simulated for each figure")
    arguments = parser.parse_args()
    if not (arguments.real or arguments.table):
        save_results("operating-curve", simulate(arguments.worlds, arguments.gains))
        return
    for kind in arguments.kinds:
        runs = []
        for number in range(arguments.runs):
            if arguments.real or (OUT / f"{kind}-{number}.json").exists():
                runs.append(trained(kind, number))
                print(f"{kind}, run {number + 1}", flush=True)
        for label, choice in (("rule", rule), ("maximum", maximum)):
            for line in judge(runs, choice) if runs else ():
                print(f"{kind}, {label}: {line}", flush=True)


if __name__ == "__main__":
    main()
