"""Tables of measured trainings: mean ± standard deviation over seeds, and paired differences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Way, kept_result

_METRICS = ("spearman", "auc", "ap")
_RESAMPLES = 2000
Results = dict[str, dict[int, dict[str, Any]]]


def load_results(
    folder: Path, case: Case, backbone: str, ways: Mapping[str, Way], seeds: Sequence[int]
) -> Results:
    """Return the kept results of a data set and backbone, by way and seed."""
    found: Results = {}
    for name, way in ways.items():
        for seed in seeds:
            kept = kept_result(name, way, case, backbone, seed, folder)
            if kept is not None:
                found.setdefault(name, {})[seed] = kept
    return found


def print_tables(
    folder: Path,
    cases: Sequence[Case],
    backbones: Sequence[str],
    ways: Mapping[str, Way],
    seeds: Sequence[int],
) -> None:
    """Print a table for every data set and backbone: the first way is compared with each other one.

    `Δ` is the first way minus this one, mean ± standard deviation over the seeds that both have, and p that
    of a paired t-test over them; better / worse counts the seeds where a paired bootstrap interval over the
    test pairs lies above / below 0.

    Args:
        folder: Where the results are.
        cases: Data sets.
        backbones: Names.
        ways: By name.
        seeds: Which.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    for backbone in backbones:
        every: dict[str, dict[str, list[float]]] = {}
        for case in cases:
            results = load_results(folder, case, backbone, ways, seeds)
            if not results or case.test is None:
                continue
            gold = case.test.score
            for runs in results.values():
                for run in runs.values():
                    if case.binary:
                        run["auc"] = roc_auc_score(gold, run["similarity"])
                        run["ap"] = average_precision_score(gold, run["similarity"])
            metrics = [metric for metric in _METRICS if case.binary or metric == "spearman"]
            print(f"\n{case.name}, {backbone} (x 100)\n")
            print(f"| way | seeds | {' | '.join(metrics)} | dev | Δ spearman | p | better / worse | CPU s |")
            print("| --- |" + " --- |" * (len(metrics) + 6))
            first = next(iter(ways))
            own = results.get(first, {})
            for way, runs in results.items():
                cells = [str(len(runs))]
                cells += [_spread([100 * run[metric] for run in runs.values()]) for metric in metrics]
                cells.append(_spread([100 * run["dev"] for run in runs.values()]))
                cells += _against(gold, own, runs) if way != first else ["", "", ""]
                cells.append(f"{statistics.median(run['cpu_seconds'] for run in runs.values()):.0f}")
                print(f"| {way} | {' | '.join(cells)} |", flush=True)
                for run in runs.values():
                    every.setdefault(way, {}).setdefault(case.name, []).append(100 * run["spearman"])
        _print_means(backbone, every, len(cases))


def _print_means(backbone: str, every: dict[str, dict[str, list[float]]], cases: int) -> None:
    """Print the mean over the data sets of each way that was measured on all of them."""
    for way, by_case in every.items():
        if len(by_case) == cases > 1:
            mean = statistics.mean(map(statistics.mean, by_case.values()))
            print(f"{backbone}, {way}: {mean:.2f}, mean of the {cases} data sets")


def _against(gold: Any, own: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> list[str]:
    from angle_train.evaluate.bootstrap import paired_bootstrap
    from angle_train.evaluate.seeds import paired_test

    shared = sorted(own.keys() & other.keys())
    if not shared:
        return ["", "", ""]
    differences = [
        paired_bootstrap(
            gold,
            np.asarray(other[seed]["similarity"]),
            np.asarray(own[seed]["similarity"]),
            resamples=_RESAMPLES,
        )
        for seed in shared
    ]
    better = sum(difference.low > 0 for difference in differences)
    worse = sum(difference.high < 0 for difference in differences)
    test = paired_test(
        [other[seed]["spearman"] for seed in shared], [own[seed]["spearman"] for seed in shared]
    )
    p_value = f"{test.p_value:.3f}" if test and test.p_value is not None else ""
    spread = _spread([100 * d.delta for d in differences], sign="+")
    return [spread, p_value, f"{better} / {worse} of {len(shared)}"]


def _spread(values: Sequence[float], sign: str = "") -> str:
    mean = f"{statistics.mean(values):{sign}.2f}"
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean
