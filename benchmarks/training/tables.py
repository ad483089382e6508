"""Tables of measured trainings: mean ± standard deviation over seeds, and paired differences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Way, kept_result
from common import plus_minus

_RESAMPLES = 2000


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
    test pairs lies above / below 0. `folder` has the results.
    """
    for backbone in backbones:
        means: dict[str, list[float]] = {}
        for case in cases:
            results: dict[str, dict[int, dict[str, Any]]] = {}
            for name, way in ways.items():
                kept = {seed: kept_result(name, way, case, backbone, seed, folder) for seed in seeds}
                found = {seed: result for seed, result in kept.items() if result is not None}
                results |= {name: found} if found else {}
            if not results or case.test is None:
                continue
            print(f"\n{case.name}, {backbone}: Spearman x 100\n")
            print("| way | seeds | test | dev | Δ test | p | better / worse | CPU s |")
            print("| --- |" + " --- |" * 7)
            first = next(iter(results))
            for name, runs in results.items():
                cells = [str(len(runs))]
                for figure in ("spearman", "dev"):
                    cells.append(plus_minus([100 * run[figure] for run in runs.values()]))
                cells += _against(case.test.score, results[first], runs) if name != first else ["", "", ""]
                cells.append(f"{statistics.median(run['cpu_seconds'] for run in runs.values()):.0f}")
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
                mean = 100 * statistics.fmean(run["spearman"] for run in runs.values())
                means.setdefault(name, []).append(mean)
        for name, values in means.items():
            if len(values) == len(cases) > 1:
                print(f"{backbone}, {name}: {statistics.fmean(values):.2f}, mean of {len(cases)} data sets")


def _against(gold: Any, own: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> list[str]:
    from scipy.stats import ttest_rel

    from angle_train.evaluation.statistics import draw_figures, interval_around, spearman_of

    shared = sorted(own.keys() & other.keys())
    if not shared:
        return ["", "", ""]
    differences = []
    for seed in shared:
        old, new = (spearman_of(gold, np.asarray(runs[seed]["similarity"])) for runs in (other, own))
        before, after = draw_figures([old, new], _RESAMPLES)
        gain = after.minus(before)
        differences.append(interval_around(gain.value, gain.drawn))
    better = sum(difference.low > 0 for difference in differences)
    worse = sum(difference.high < 0 for difference in differences)
    p_value = ""
    if len(shared) > 1:
        test = ttest_rel(*([runs[seed]["spearman"] for seed in shared] for runs in (own, other)))
        p_value = "" if np.isnan(test.pvalue) else f"{test.pvalue:.3f}"  # equal in every seed
    spread = plus_minus([100 * difference.value for difference in differences], "+.2f")
    return [spread, p_value, f"{better} / {worse} of {len(shared)}"]
