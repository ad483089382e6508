"""Scores and cost of the evaluation tasks for the packaged MiniLM.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/evaluation/suite.py [--task sts transfer …]

One thread. A row a task: CPU seconds, texts encoded for it (those that earlier tasks had are not encoded
again), figures x 100.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import data_folder, minilm, save_results

from angle_data.console import configure_logging
from angle_data.errors import InputError
from angle_train.evaluation.similarity import Embedder
from angle_train.evaluation.task import GROUPS, Settings, expand_names, load_task
from angle_train.evaluation.tasks.sources import Source
from angle_train.model.load import load_backbone

DEFAULT = [*GROUPS["sts"], *GROUPS["transfer"], *GROUPS["pairs"], "nli", *GROUPS["retrieval"]]


def main() -> None:
    """Measure every task and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", nargs="+", default=DEFAULT)
    parser.add_argument("--model", default=None, help="directory; default the packaged MiniLM")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    logging.getLogger("angle").setLevel(logging.ERROR)
    import torch

    torch.set_num_threads(1)
    source = Source(data_folder() / "data")
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
    print(f"\nCPU seconds in all: {sum(row['cpu_seconds'] for row in rows.values()):.0f}")
    if arguments.task == DEFAULT and arguments.model is None:
        save_results("evaluation_suite", rows)


if __name__ == "__main__":
    main()
