"""Table 5 in scaled form: what LLM-written pairs are worth beside no labels and beside human ones.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/evaluation/table5.py [--seeds 1 2 3 4 5] [--only ROW …]

MiniLM's first three layers. The 1,500 human-graded STS-B validation pairs choose every row's checkpoint (or
the untuned model), so no row is quite without human labels; all 1,379 test pairs measure.

* annotator-a, -b, -c, concat, vote: 300 STS-B sentences, as in llm_supervised.py, whose runs are used.
* supervised: the 5,749 graded pairs, recipe stsb-supervised. It is one epoch and best at its end, so more
  epochs may be better, and the shares below lower.
* simcse-same, simcse-all: no labels. A text is its own partner under two dropout masks (Gao et al. 2021), on
  those 300 sentences (ten epochs) or all distinct ones of STS-B train (one epoch); temperature 0.05, batches
  of 64, learning rate 3e-5 (SimCSE's for BERT-base, not searched here), all weights trained. The recipes of
  the other rows were chosen on the validation pairs. Sentence-transformers' trainer does it: ours encodes
  equal texts of a batch once.

Last, the share of the supervised gain that a row recovers, (row - untuned) / (supervised - untuned), seed by
seed, with a t interval over the seeds.

Kept in runs/benchmarks/stsb: a model of ours by its recipe, row and seed, refused if recipe or pairs have
changed since; a SimCSE result by its row and seed alone, so delete stsb/simcse after a change of its settings
or texts.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "training"))

from common import RESULTS, data_folder, minilm, save_results, show
from llm_supervised import Task, data_sets
from llm_supervised import stsb as llm_task

from angle_data.console import configure_logging
from angle_data.jsonl import write_jsonl
from angle_train.data.pairs import load_pairs
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.fit import FitConfig, fit
from angle_train.model.load import load_backbone, quiet_libraries
from angle_train.recipe import Recipe, find_recipe
from angle_train.report.result import FitReport

LLM = ("annotator-a", "annotator-b", "annotator-c", "concat", "vote")
SIMCSE = {"simcse-same": 10, "simcse-all": 1}
"""Row -> epochs; the texts are those of the LLMs, or all of STS-B train."""
ROWS = (*SIMCSE, *LLM, "supervised")
_SIMCSE_TRAINING = {"precision": "fp32", "learning_rate": 3e-5, "batch_size": 64, "evals_per_epoch": 1}


def fitted(recipe_name: str, data: str, out: Path, seed: int) -> float:
    """Return the test Spearman of the model that a run of ours keeps; a finished run in `out` is read."""
    task = llm_task()
    recipe = Recipe.from_toml(find_recipe(recipe_name))
    seeded = replace(recipe, training=replace(recipe.training, seed=seed, precision="fp32"))
    result = fit(
        FitConfig(
            data=[data],
            backbone=str(minilm(task.layers)),
            out=out,
            recipe=seeded,
            dev=[str(path) for path in task.dev],
            test=[str(path) for path in task.test],
        )
    )
    return kept_score(result.report)


def kept_score(report: FitReport) -> float:
    """Return the test Spearman of what a run kept: the tuned weights, or the backbone if none was better."""
    rows = [row for row in report.results if row.role == "test" and row.model == report.kept]
    return rows[0].score.value


def simcse(texts: Sequence[str], epochs: int, kept: Path, seed: int) -> float:
    """Return the test Spearman after unsupervised SimCSE on `texts`, from the file `kept` if it is there."""
    if kept.exists():
        return float(json.loads(kept.read_text(encoding="utf-8"))["test"])
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer import losses
    from transformers import PrinterCallback

    from angle_train.train.arguments import training_arguments
    from angle_train.train.trainer import DevEvaluator

    task = llm_task()
    dev, test = (load_pairs(str(path)) for path in (*task.dev, *task.test))
    training = Recipe().with_overrides({**_SIMCSE_TRAINING, "epochs": epochs, "seed": seed}).training
    model = load_backbone(str(minilm(task.layers)))
    before, untuned = (spearman(pairs.score, evaluate_model(model, pairs)) for pairs in (dev, test))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, quiet_libraries():
        trainer = SentenceTransformerTrainer(
            model=model,
            args=training_arguments(training, len(texts), Path(scratch), model.device),
            train_dataset=Dataset.from_dict({"text1": list(texts), "text2": list(texts)}),
            loss=losses.MultipleNegativesRankingLoss(model, scale=20.0),
            evaluator=DevEvaluator([dev]),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    dev_best, tuned = (
        float(trainer.state.best_metric or -1),
        spearman(test.score, evaluate_model(model, test)),
    )
    found = tuned if dev_best > before else untuned
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_jsonl(kept, [{"test": found, "dev": dev_best, "dev_untuned": before, "test_tuned": tuned}])
    return found


def untuned_score(task: Task, backbone: str) -> float:
    """Return the test Spearman of a backbone as it is."""
    test = load_pairs(str(task.test[0]))
    return spearman(test.score, evaluate_model(load_backbone(backbone), test))


@cache
def llm_data() -> dict[str, Path]:
    """Return the pairs of each annotator, of all of them, and of the vote."""
    return data_sets(llm_task())


@cache
def texts_for(row: str) -> list[str]:
    """Return the sentences that the LLMs were given, or all distinct ones of STS-B train."""
    if row == "simcse-same":
        lines = llm_task().texts.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line)["text"] for line in lines]
    else:
        pairs = load_pairs(str(data_folder() / "data" / "stsb" / "train.jsonl.gz"))
        found = [*pairs.text1, *pairs.text2]
    return list(dict.fromkeys(found))


def measure(row: str, seed: int) -> float:
    """Return the test Spearman x 100 of a row with a seed."""
    home = RESULTS / "stsb"
    if row in SIMCSE:
        return 100 * simcse(texts_for(row), SIMCSE[row], home / "simcse" / f"{row}-{seed}.json", seed)
    supervised = row == "supervised"
    data = data_folder() / "data" / "stsb" / "train.jsonl.gz" if supervised else llm_data()[row]
    recipe = "stsb-supervised" if supervised else llm_task().recipe
    return 100 * fitted(recipe, str(data), home / recipe / f"{row}-{seed}", seed)


def shares(scores: dict[str, dict[int, float]], untuned: float) -> dict[str, list[float]]:
    """Return for each row the per cent of the supervised gain that it has, by the seeds that both have."""
    best = scores.get("supervised", {})
    return {
        row: [
            100 * (values[seed] - untuned) / (best[seed] - untuned) for seed in sorted(values.keys() & best)
        ]
        for row, values in scores.items()
        if row != "supervised"
    }


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by Student's t."""
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def main() -> None:
    """Measure what is missing, seeds outermost, and print scores and shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = llm_task()
    untuned = 100 * untuned_score(task, str(minilm(task.layers)))
    scores: dict[str, dict[int, float]] = {row: {} for row in arguments.only}
    for seed in arguments.seeds:
        for row in arguments.only:
            scores[row][seed] = measure(row, seed)
            print(f"{row} seed {seed}: {scores[row][seed]:.2f}", flush=True)
    values = {row: list(by_seed.values()) for row, by_seed in scores.items()}
    show("STS-B test, Spearman x 100", {"untuned": [untuned], **values})
    recovered = shares(scores, untuned) if "supervised" in scores else {}
    if recovered:
        print("\nper cent of the supervised gain, mean over the seeds [95 %]")
    for row, per_seed in recovered.items():
        interval = "[{:.1f}, {:.1f}]".format(*t_interval(per_seed)) if len(per_seed) > 1 else ""
        print(f"  {row:<12} {statistics.mean(per_seed):6.1f} {interval}")
    save_results("table5", {"untuned": untuned, "spearman": scores, "recovered": recovered})


if __name__ == "__main__":
    main()
