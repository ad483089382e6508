"""The combined objective against sentence-transformers' CoSENTLoss and AnglELoss on STS-B, all else equal.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/stsb_supervised.py

Backbone: the first three layers of MiniLM (55.9 untuned on the test set). Every row has the same trainer,
epochs, batch size, learning rate, schedule, seeds, batches and choice of checkpoint (dev Spearman); only loss
and collator differ. CPU seconds cover training with its evaluations.
Options: --seeds 1 2 3, --only NAME …, --precision bf16 (faster on a CPU that has it).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import RESULTS, data_folder, minilm, save_results, show

from angle_data.console import configure_logging
from angle_train.data.pairs import PairSet, load_pairs
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.model.load import load_backbone, quiet_libraries
from angle_train.recipe import Recipe, find_recipe
from angle_train.settings import ObjectiveConfig
from angle_train.train.arguments import training_arguments
from angle_train.train.trainer import DevEvaluator, train

OURS = {
    "ours (recipe)": None,
    "ours, cosine alone": ObjectiveConfig(in_batch_weight=0, angle_weight=0),
    "ours, published angle alone": ObjectiveConfig(
        cosine_weight=0, in_batch_weight=0, angle_tau=0.05, angle_mode="published"
    ),
    "ours, symmetric angle alone": ObjectiveConfig(cosine_weight=0, in_batch_weight=0, angle_tau=0.05),
}
PEERS = {"ST CoSENTLoss": "CoSENTLoss", "ST AnglELoss": "AnglELoss"}


def fit_ours(objective: ObjectiveConfig | None) -> Callable[..., None]:
    """Return a trainer of our loss with `objective` in place of the recipe's."""

    def run(model: Any, pairs: PairSet, dev: PairSet, recipe: Recipe, out: Path) -> None:
        train(model, pairs, [dev], replace(recipe, objective=objective or recipe.objective), out)

    return run


def fit_peer(loss_name: str) -> Callable[..., None]:
    """Return a trainer of a stock loss with the stock collator, and everything else as ours."""

    def run(model: Any, pairs: PairSet, dev: PairSet, recipe: Recipe, out: Path) -> None:
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer
        from sentence_transformers.sentence_transformer import losses
        from transformers import PrinterCallback

        columns = {"text1": list(pairs.text1), "text2": list(pairs.text2), "score": pairs.score.tolist()}
        with quiet_libraries():
            trainer = SentenceTransformerTrainer(
                model=model,
                args=training_arguments(recipe.training, len(pairs), out, model.device),
                train_dataset=Dataset.from_dict(columns),
                loss=getattr(losses, loss_name)(model),
                evaluator=DevEvaluator([dev]),
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()

    return run


def main() -> None:
    """Train every row with every seed and print test Spearman and CPU seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="rows to run; default all")
    parser.add_argument("--precision", default="fp32")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    folder = data_folder() / "data" / "stsb"
    sets = {name: load_pairs(str(folder / f"{name}.jsonl.gz")) for name in ("train", "validation", "test")}
    recipe = Recipe.from_toml(find_recipe("stsb-supervised"))
    rows = {name: fit_peer(loss) for name, loss in PEERS.items()}
    rows |= {name: fit_ours(objective) for name, objective in OURS.items()}
    wanted = {name: run for name, run in rows.items() if not arguments.only or name in arguments.only}
    scores: dict[str, list[float]] = {name: [] for name in wanted}
    seconds: dict[str, list[float]] = {name: [] for name in wanted}
    for seed in arguments.seeds:  # seeds outermost, so that every row meets the machine's moods alike
        for name, run in wanted.items():
            model = load_backbone(str(minilm(3)))
            seeded = replace(
                recipe, training=replace(recipe.training, seed=seed, precision=arguments.precision)
            )
            out = RESULTS / "stsb-supervised" / "checkpoints"
            shutil.rmtree(out, ignore_errors=True)
            started = time.process_time()
            run(model, sets["train"], sets["validation"], seeded, out)
            seconds[name].append(time.process_time() - started)
            test = sets["test"]
            scores[name].append(100 * spearman(test.score, evaluate_model(model, test)))
            print(f"{name} seed {seed}: {scores[name][-1]:.2f}, {seconds[name][-1]:.0f} CPU s", flush=True)
    show("STS-B test, Spearman x 100", scores)
    print(
        "\nCPU seconds, median: " + ", ".join(f"{n} {statistics.median(s):.0f}" for n, s in seconds.items())
    )
    save_results("stsb_supervised", {"spearman": scores, "cpu_seconds": seconds})


if __name__ == "__main__":
    main()
