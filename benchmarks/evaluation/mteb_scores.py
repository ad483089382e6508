"""Our STS scores beside those of mteb's own task code on the same files, and of its own model wrapper.

    pip install mteb
    ANGLE_BENCH_DATA=FOLDER python benchmarks/evaluation/mteb_scores.py [--task stsb sick-r …]

mteb runs whole (`mteb.evaluate`), but reads the pairs from our files, since its SICK-R is another selection
(all splits, 9,927 pairs). Exit status 1 if a score is more than 1e-6 (of 1) away.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import data_folder, minilm

from angle_data.errors import InputError
from angle_train.evaluate.mteb_adapter import MtebModel
from angle_train.evaluate.tasks.registry import GROUPS, ScoredPairs, Settings, load_task
from angle_train.evaluate.tasks.sources import DataFolder

CLOSE = 1e-6


def mteb_spearman(model: Any, pairs: ScoredPairs) -> float:
    """Return the main score of mteb's STS Benchmark task with `pairs` in place of its data."""
    import mteb
    from datasets import Dataset, DatasetDict

    kind = type(mteb.get_task("STSBenchmark"))

    class Ours(kind):  # type: ignore[misc,valid-type]
        """The task, with our pairs."""

        def load_data(self, **kwargs: Any) -> None:
            """Put the pairs where mteb expects its own."""
            columns = {
                "sentence1": list(pairs.text1),
                "sentence2": list(pairs.text2),
                "score": pairs.gold.tolist(),
            }
            self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
            self.data_loaded = True

    result = mteb.evaluate(model, tasks=[Ours()], cache=None, show_progress_bar=False)
    scores = result.task_results[0].scores["test"][0]
    return float(scores["cosine_spearman"])


def main() -> int:
    """Compare task by task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", nargs="+", default=list(GROUPS["sts"]))
    arguments = parser.parse_args()
    import torch
    from sentence_transformers import SentenceTransformer

    warnings.simplefilter("ignore")  # of mteb: a newer version of the task exists
    torch.set_num_threads(1)
    source = DataFolder(data_folder() / "data")
    ours, plain = MtebModel(str(minilm()), device="cpu"), SentenceTransformer(str(minilm()), device="cpu")
    worst = 0.0
    for name in arguments.task:
        task = load_task(name)
        try:
            pairs = task.load(source)
        except InputError as error:
            print(f"{name}: not run: {error}")
            continue
        score = next(iter(task.measure(pairs, ours._embed, Settings()).statistics.values())).value()
        adapted, wrapped = mteb_spearman(ours, pairs), mteb_spearman(plain, pairs)
        worst = max(worst, abs(score - adapted), abs(score - wrapped))
        print(f"{name}: ours {score:.9f}, mteb with our adapter {adapted:.9f}, mteb alone {wrapped:.9f}")
    print(f"largest distance {worst:.1e}")
    return int(worst > CLOSE)


if __name__ == "__main__":
    sys.exit(main())
