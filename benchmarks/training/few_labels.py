"""What few human-graded pairs add to LLM-written ones: 0, 50 or 200 of them, and they alone.

    python benchmarks/training/few_labels.py cloud-ops
    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/few_labels.py stsb

No dev pairs: the graded pairs choose the number of steps themselves, held out in turn; with none, a tenth of
the LLM pairs is held out: a gain of graded pairs comes from training and from choosing together. They are
drawn from the dev pairs with the run's seed; test pairs only report. Graded pairs alone may train for as many
steps as the LLM pairs do, so for many more epochs.

Options: --seeds 1 2 3, and --size N for about N of the LLM pairs (a fit with graded pairs is six fits, five
of them to choose its steps). Finished runs are kept in runs/benchmarks and not repeated.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import mean

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, minilm, options, save_results, show  # noqa: E402
from llm_supervised import TASKS, Task, data_sets  # noqa: E402

from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_data.tables import read_table  # noqa: E402
from angle_train.data.pairs import load_pairs  # noqa: E402
from angle_train.options import FitOptions  # noqa: E402
from angle_train.recipe import Recipe, find_recipe  # noqa: E402
from angle_train.run import fit  # noqa: E402
from angle_train.train.arguments import Schedule  # noqa: E402


def llm_pairs(task: Task, size: int | None) -> str:
    """Return the voted pairs, or a file with those of so many source texts that they are at least `size`."""
    folder = str(data_sets(task)["vote"])
    if size is None:
        return folder
    pairs = load_pairs(folder)
    sources = pairs.sources()
    order = sorted(set(sources))
    random.Random(7).shuffle(order)
    counts = Counter(sources)
    total = list(accumulate(counts[source] for source in order))
    chosen = set(order[: bisect_left(total, size) + 1])
    rows = [
        {"text1": a, "text2": b, "label": score, "source_id": source}
        for a, b, score, source in zip(pairs.text1, pairs.text2, pairs.score.tolist(), sources, strict=True)
        if source in chosen
    ]
    file = RESULTS / "few-labels" / task.name / f"llm-{size}.jsonl"
    write_jsonl(file, rows)
    return str(file)


def graded_sample(task: Task, count: int, seed: int) -> Path:
    """Write `count` of the task's dev pairs, as many from each file, and return the file."""
    rows = []
    for path in task.dev:
        own = [row for _, row in read_table(path) if row.pop("split", "dev") == "dev"]
        rows += random.Random(seed).sample(own, min(count // len(task.dev), len(own)))
    file = RESULTS / "few-labels" / task.name / f"graded-{count}-{seed}.jsonl"
    write_jsonl(file, rows)
    return file


def test_score(
    task: Task, name: str, recipe: Recipe, data: Sequence[str], human: Sequence[Path]
) -> dict[str, float]:
    """Fit once and return Spearman x 100 of the saved model and of the backbone, means over the test sets."""
    out = RESULTS / "few-labels" / task.name / name
    files = {"human": [str(path) for path in human], "test": [str(path) for path in task.test]}
    report = fit(FitOptions(str(minilm(task.layers)), out, data, recipe=recipe, **files)).report
    test = [row for row in report.results if row.role == "test"]
    return {
        model: 100 * mean(row.score.value for row in test if row.model == name)
        for model, name in (("saved", report.kept), ("backbone", "backbone"))
    }


def main() -> None:
    """Fit everything with every seed and print the test Spearman of each."""
    parser = options(__doc__)
    parser.add_argument("task", choices=["cloud-ops", "stsb"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--size", type=int, help="LLM pairs, about; default all")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    task = TASKS[arguments.task]()
    pairs = [llm_pairs(task, arguments.size)]
    part = f"-of-{arguments.size}" if arguments.size else ""
    base = Recipe.from_toml(find_recipe(task.purpose))
    steps = Schedule(base.training, len(load_pairs(pairs[0]))).steps
    scores: dict[str, list[float]] = defaultdict(list)
    for seed in arguments.seeds:
        recipe = base.with_overrides({"seed": seed, "precision": "fp32"})
        found = test_score(task, f"llm-{seed}{part}", recipe, pairs, [])
        scores["backbone"].append(found["backbone"])
        scores["LLM pairs alone"].append(found["saved"])
        for count in (50, 200):
            human = [graded_sample(task, count, seed)]
            epochs = max(1, round(steps / Schedule(base.training, count).per_epoch))
            longer = recipe.with_overrides({"epochs": epochs, "evals_per_epoch": 1})
            found = test_score(task, f"human-{count}-{seed}-epochs-{epochs}", longer, [], human)
            scores[f"{count} graded pairs alone"].append(found["saved"])
            found = test_score(task, f"both-{count}-{seed}{part}", recipe, pairs, human)
            scores[f"LLM pairs + {count} graded"].append(found["saved"])
    show(f"{task.name}: test Spearman x 100, seeds {arguments.seeds}", scores)
    save_results(f"few-labels-{task.name}{part}", scores)


if __name__ == "__main__":
    main()
