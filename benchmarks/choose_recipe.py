"""Choose a recipe's values on dev pairs alone: test pairs are not even loaded.

    python benchmarks/choose_recipe.py cloud-ops
    ANGLE_BENCH_DATA=FOLDER python benchmarks/choose_recipe.py stsb
    ANGLE_BENCH_DATA=FOLDER python benchmarks/choose_recipe.py stsb-supervised

Successive halving over seeds: every candidate below runs with the first seed, the better half (mean dev
Spearman so far) with the next one, and so on. LOG.md says what was taken, and why where it is not the best.
Options: --seeds 101 102 (not the seeds that the tables use), --precision bf16. Finished runs are kept in
runs/benchmarks and not repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from common import RESULTS, data_folder, minilm, save_results
from llm_supervised import Task, cloud_ops, data_sets, stsb

from angle_data.console import configure_logging
from angle_train.fit import FitConfig, fit
from angle_train.recipe import Recipe, find_recipe

Values = Mapping[str, object]

# What differs from the recipe of that name; what distinguishes two candidates is spelt out in both, so that
# the same ones run whichever of them the recipe holds by now. LOG.md has the results of the last run.
CANDIDATES: dict[str, dict[str, Values]] = {
    "cloud-ops": {
        "all three terms": {},
        "no angle term": {"angle_weight": 0.0},
        "in-batch 0.2": {"in_batch_weight": 0.2},
        "embeddings train": {"freeze_embeddings": False},
    },
    "stsb": {
        "cosine 0.2, angle 0.2": {"cosine_weight": 0.2, "angle_weight": 0.2},
        "in-batch alone": {"cosine_weight": 0.0, "angle_weight": 0.0},
        "cosine 0.05": {"cosine_weight": 0.05, "angle_weight": 0.0},
        "cosine 0.2": {"cosine_weight": 0.2, "angle_weight": 0.0},
        "cosine 0.05, in-batch tau 0.1": {"cosine_weight": 0.05, "angle_weight": 0.0, "in_batch_tau": 0.1},
        "cosine 0.05, batch 128": {"cosine_weight": 0.05, "angle_weight": 0.0, "batch_size": 128},
    },
    "stsb-supervised": {
        "all three terms, in-batch 0.1": {"in_batch_weight": 0.1, "angle_weight": 1.0},
        "cosine alone": {"in_batch_weight": 0.0, "angle_weight": 0.0},
        "cosine + in-batch 0.03": {"in_batch_weight": 0.03, "angle_weight": 0.0},
        "cosine + in-batch 0.1": {"in_batch_weight": 0.1, "angle_weight": 0.0},
    },
}


@dataclass(frozen=True)
class Choice:
    """What one choice of values trains on and selects by."""

    recipe: str
    data: str
    backbone: Path
    dev: tuple[str, ...]


def choice_of(name: str) -> Choice:
    """Return what the task `name` trains on: the vote of all annotators, or STS-B train."""
    if name == "stsb-supervised":
        folder = data_folder() / "data" / "stsb"
        return Choice(name, str(folder / "train.jsonl.gz"), minilm(3), (str(folder / "validation.jsonl.gz"),))
    task: Task = {"cloud-ops": cloud_ops, "stsb": stsb}[name]()
    pairs = data_sets(task)["vote"]
    return Choice(task.recipe, str(pairs), minilm(task.layers), tuple(map(str, task.dev)))


def dev_score(choice: Choice, recipe: Recipe, out: Path) -> float:
    """Fit once and return the dev Spearman x 100 of the checkpoint it chose, the mean of all dev sets."""
    result = fit(FitConfig([choice.data], str(choice.backbone), out, recipe, dev=list(choice.dev)))
    return 100 * result.report.dev_after


def main() -> None:
    """Halve the candidates seed by seed and print the dev score of every run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=list(CANDIDATES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--precision", default="fp32")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    choice = choice_of(arguments.task)
    recipe = Recipe.from_toml(find_recipe(choice.recipe))
    candidates = CANDIDATES[arguments.task]
    scores: dict[str, list[float]] = {name: [] for name in candidates}
    left = list(candidates)
    for seed in arguments.seeds:
        for name in left:
            values = {**candidates[name], "seed": seed, "precision": arguments.precision}
            slug = "".join(letter if letter.isalnum() else "-" for letter in name)
            out = RESULTS / "choose" / arguments.task / f"{slug}-{seed}"
            scores[name].append(dev_score(choice, recipe.with_overrides(values), out))
            print(f"seed {seed}  {scores[name][-1]:6.2f}  {name}", flush=True)
        left = sorted(left, key=lambda name: -mean(scores[name]))[: max(1, (len(left) + 1) // 2)]
    print(f"\n{arguments.task}: dev Spearman x 100, rows that ran with more seeds first")
    for name, values in sorted(scores.items(), key=lambda row: (-len(row[1]), -mean(row[1]))):
        print(f"  {mean(values):6.2f}  {len(values)} seeds  {name}")
    save_results(f"choose-{arguments.task}", scores)


if __name__ == "__main__":
    main()
