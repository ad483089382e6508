"""Scores and cost of the evaluation tasks for the packaged MiniLM, and the same scores by other code.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/evaluation/suite.py [--task sts transfer …] [--check]

One thread. A row a task: CPU seconds, texts encoded for it (those that earlier tasks had are not encoded
again), figures x 100. --check compares: STS with sentence-transformers' EmbeddingSimilarityEvaluator on the
same files, transfer tasks with scikit-learn's own grid search over the folds of SentEval's protocol, pair
sets with scipy and scikit-learn. For mteb's scoring see mteb_scores.py.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import data_folder, minilm, save_results

from angle_data.console import configure_logging
from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluate.similarity import Embedder
from angle_train.evaluate.task import GROUPS, Settings, expand_names, load_task
from angle_train.evaluate.tasks.pairs import PairData
from angle_train.evaluate.tasks.sources import DataFolder
from angle_train.model.load import load_backbone, quiet_libraries

DEFAULT = [*GROUPS["sts"], *GROUPS["transfer"], *GROUPS["pairs"], "nli", *GROUPS["retrieval"]]


def st_spearman(model: Any, pairs: PairSet) -> float:
    """Return Spearman's correlation of cosines by sentence-transformers' own evaluator."""
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    evaluator = EmbeddingSimilarityEvaluator(
        list(pairs.text1), list(pairs.text2), pairs.score.tolist(), main_similarity="cosine", name="x"
    )
    with quiet_libraries():
        return float(evaluator(model)["x_spearman_cosine"])


def first_best(results: dict[str, Any]) -> int:
    """Return the position of the first C with the best accuracy in per cent, rounded as SentEval does."""
    return int(np.argmax(np.round(100 * results["mean_test_score"], 2)))


def plain_loop(task: Any, data: Any, embed: Embedder) -> float:
    """Return the accuracy by SentEval's protocol, written out with scikit-learn's own loops."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

    def features(part: Any) -> tuple[np.ndarray, np.ndarray]:
        labels = np.array(part.labels)
        if task.features == "difference":
            u, v = embed([a for a, _ in part.items]), embed([b for _, b in part.items])
            return np.c_[np.abs(u - v), u * v], labels
        return embed(part.items), labels

    def search(folds: Any, low: int, high: int) -> Any:
        grid = {"C": [2.0**t for t in range(low, high)]}
        classifier = LogisticRegression(max_iter=1000, random_state=1111)
        return GridSearchCV(classifier, grid, cv=folds, refit=first_best)

    ten = StratifiedKFold(10, shuffle=True, random_state=1111)
    x, y = features(data.train)
    if task.protocol == "nested":
        scores = [search(ten, -2, 4).fit(x[a], y[a]).score(x[b], y[b]) for a, b in ten.split(x, y)]
        return float(np.mean(scores))
    x_test, y_test = features(data.test)
    if task.protocol == "folds":
        return float(search(ten, -1, 6).fit(x, y).score(x_test, y_test))
    x_dev, y_dev = features(data.validation)
    parts = PredefinedSplit([-1] * len(y) + [0] * len(y_dev))
    found = search(parts, -2, 4).fit(np.r_[x, x_dev], np.r_[y, y_dev]).best_params_
    final = LogisticRegression(max_iter=1000, random_state=1111, **found).fit(x, y)
    return float(final.score(x_test, y_test))


def main() -> None:
    """Measure every task and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", nargs="+", default=DEFAULT)
    parser.add_argument("--model", default=None, help="directory; default the packaged MiniLM")
    parser.add_argument("--check", action="store_true", help="compare with other code")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    logging.getLogger("angle").setLevel(logging.ERROR)
    import torch

    torch.set_num_threads(1)
    source = DataFolder(data_folder() / "data")
    model = load_backbone(arguments.model or str(minilm()), device="cpu")
    embed = Embedder(model, "MiniLM")
    rows: dict[str, Any] = {}
    for name in expand_names(arguments.task):
        task: Any = load_task(name)
        try:
            data = task.load(source)
        except InputError as error:
            print(f"{name:<26} not run: {error}", flush=True)
            continue
        before, started = embed.computed, time.process_time()
        outcome = task.measure(data, embed, Settings())
        seconds = time.process_time() - started
        figures = {metric: 100 * statistic.value() for metric, statistic in outcome.statistics.items()}
        rows[name] = {"figures": figures, "cpu_seconds": seconds, "texts": embed.computed - before}
        rows[name]["items"] = next(iter(outcome.statistics.values())).size
        shown = "  ".join(f"{metric} {value:.2f}" for metric, value in figures.items())
        print(f"{name:<26} {seconds:7.1f} s  {rows[name]['texts']:6d} texts  {shown}", flush=True)
        if arguments.check:
            others = check(task, data, model, embed)
            rows[name]["others"] = others
            for other, (metric, value) in others.items():
                apart = abs(100 * value - figures[metric])
                print(f"{'':<26} {metric} by {other}: {100 * value:.6f}, apart {apart:.1e}")
    print(f"\nCPU seconds in all: {sum(row['cpu_seconds'] for row in rows.values()):.0f}")
    if arguments.task == DEFAULT and arguments.model is None:
        save_results("evaluation_suite", rows)


def check(task: Any, data: Any, model: Any, embed: Embedder) -> dict[str, tuple[str, float]]:
    """Return figures of the task by other code: whose -> name of the figure and its value."""
    if isinstance(data, PairSet):
        return {"sentence-transformers": ("spearman", st_spearman(model, data))}
    if isinstance(data, PairData):
        return pair_figures(data.test, model)
    if hasattr(task, "protocol") and task.features != "joined":
        return {"plain loop": ("accuracy", plain_loop(task, data, embed))}
    return {}


def pair_figures(pairs: PairSet, model: Any) -> dict[str, tuple[str, float]]:
    """Return the figures of binary pairs that need no threshold, from cosines of the model's own."""
    from scipy.stats import spearmanr
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.metrics.pairwise import paired_cosine_distances

    with quiet_libraries():
        first, second = (model.encode(list(texts)).astype(float) for texts in (pairs.text1, pairs.text2))
    # Texts that are equal to the model have cosines that differ by rounding only; they are ties.
    cosine = (1 - paired_cosine_distances(first, second)).round(10)
    gold = pairs.score
    return {
        "scipy": ("spearman", float(spearmanr(gold, cosine).statistic)),
        "scikit-learn": ("auc", float(roc_auc_score(gold, cosine))),
        "scikit-learn too": ("average_precision", float(average_precision_score(gold, cosine))),
    }


if __name__ == "__main__":
    main()
