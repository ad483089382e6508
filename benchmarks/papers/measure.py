"""Models on the papers' tasks: every figure with its interval, means over seeds, averages, a paired t-test.

    python benchmarks/papers/measure.py --model M --task stsb --task transfer --data-dir DIR
    python benchmarks/papers/measure.py --model seed-1 --model seed-2 --against other-1 --task sts

The models of `--model` are one row of a table, trained with several seeds; those of `--against` are
another row. `±` is the standard deviation over the seeds. The t-test is that of AoE Table 1: the means
of both rows, paired by data set.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import options, plus_minus  # noqa: E402
from tasks import AVERAGES, GROUPS, tasks_of  # noqa: E402

from angle_data.errors import InputError  # noqa: E402
from angle_train.evaluation.compare import Result  # noqa: E402
from angle_train.evaluation.suite import evaluate, short_names  # noqa: E402
from angle_train.evaluation.task import Source  # noqa: E402
from angle_train.report.text import results_table  # noqa: E402

Scores = dict[str, list[float]]
"""Task, or average of a group -> the main figure x 100 of each model."""


def scores_of(results: Sequence[Result], models: Sequence[str]) -> Scores:
    """Return the main figures of models on every task, and the averages of whole groups in standard size."""
    main = [one for one in results if one.main]
    found: Scores = {}
    for model in models:
        for one in main:
            if one.model == model:
                found.setdefault(one.pairs, []).append(100 * one.score.value)
    standard = {one.pairs for one in main if one.standard_size is not False}
    for group in AVERAGES:
        if standard >= set(GROUPS[group]):
            of_tasks = zip(*(found[task] for task in GROUPS[group]), strict=True)
            found[f"average of {group}"] = [statistics.fmean(values) for values in of_tasks]
    return found


def paired_t_test(ours: Mapping[str, Sequence[float]], theirs: Mapping[str, Sequence[float]]) -> float:
    """Return the p-value of a two-sided t-test over the data sets, on the means over the seeds.

    It needs two data sets at least. Source: AoE Table 1 (which does not say whether its test is over data
    sets or over runs).
    """
    from scipy.stats import ttest_rel

    names = [name for name in ours if not name.startswith("average of ")]
    if len(names) < 2:
        raise InputError("a paired t-test needs two tasks at least")
    columns = ([statistics.fmean(row[name]) for name in names] for row in (ours, theirs))
    return float(ttest_rel(*columns).pvalue)


def report(ours: Scores, theirs: Scores | None = None) -> str:
    """Return a table: mean ± standard deviation over the seeds, and the difference to the other row."""
    lines = []
    width = max(map(len, ours))
    for name, values in ours.items():
        line = f"{name:<{width}}  {plus_minus(values):>14}"
        if theirs:
            delta = statistics.fmean(values) - statistics.fmean(theirs[name])
            line += f"  {plus_minus(theirs[name]):>14}  {delta:+.2f}"
        lines.append(line)
    if theirs and len([name for name in ours if not name.startswith("average of ")]) > 1:
        lines.append(f"paired t-test over the data sets: p = {paired_t_test(ours, theirs):.4f}")
    return "\n".join(lines)


def main() -> None:
    """Measure what was asked for and print it."""
    parser = options(__doc__)
    parser.add_argument("--model", action="append", required=True, help="of one row; repeat for its seeds")
    parser.add_argument("--against", action="append", default=[], help="a model of the row to compare with")
    parser.add_argument("--task", action="append", required=True, help="a task or a group of tasks.py")
    parser.add_argument("--data-dir", type=Path, help="folder with the data sets; default the hub")
    parser.add_argument("--device")
    parser.add_argument("--json", type=Path, help="also write the scores of every model to this file")
    given = parser.parse_args()
    try:
        source = Source(given.data_dir)
        tasks = tasks_of(given.task)
        models = list(dict.fromkeys([*given.against, *given.model]))
        found = evaluate(models, tasks, source, given.against[0] if given.against else None, given.device)
    except InputError as error:
        sys.exit(f"measure.py: error: {error}")
    print(results_table(found.results))
    names = short_names(models)
    ours = scores_of(found.results, [names[model] for model in given.model])
    theirs = scores_of(found.results, [names[model] for model in given.against])
    print(f"\n{report(ours, theirs or None)}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        rows = {"ours": ours, "against": theirs, "failed": found.failed}
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if found.failed:
        sys.exit(f"measure.py: error: not measured: {', '.join(found.failed)}; the reasons stand above")


if __name__ == "__main__":
    main()
