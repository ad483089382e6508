"""Chooses what `ours` is in quality.py: dev Spearman of candidate objectives; test pairs are never measured.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/choose.py [--cases stsb …] [--seeds 101 102]

The pairs are those of quality.py, the seeds others. Kept and continued like there.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from cases import arguments_of, load_case, run_unit
from common import RESULTS
from tables import load_results
from ways import ours

from angle_data.console import configure_logging

OUT = RESULTS / "training" / "choose"

_COSINE = {"in_batch_weight": 0.0, "angle_weight": 0.0}
CANDIDATES = {
    "all terms (default)": {},
    "cosine": _COSINE,
    "cosine τ 0.1": {**_COSINE, "cosine_tau": 0.1},
    "cosine, in-batch 0.1": {"in_batch_weight": 0.1, "angle_weight": 0.0},
    "cosine 0.2, in-batch": {"cosine_weight": 0.2, "angle_weight": 0.0},
    "cosine, angle τ 0.05": {"in_batch_weight": 0.0, "angle_tau": 0.05},
    "in-batch": {"cosine_weight": 0.0, "angle_weight": 0.0},
}


def main() -> None:
    """Run what is missing and print the dev Spearman of every candidate."""
    arguments = arguments_of(__doc__, list(CANDIDATES), backbones=("minilm-3",), seeds=[101])
    configure_logging(quiet=True)
    ways = {name: ours(**CANDIDATES[name]) for name in arguments.only}
    for backbone in arguments.backbones:
        for name in arguments.cases:
            case = load_case(name, arguments.size)
            blind = replace(case, test=case.dev.take(range(50), "not used"))
            if not arguments.table:
                for seed in arguments.seeds:
                    for candidate in arguments.only:
                        run_unit(candidate, ways[candidate], blind, backbone, seed, OUT)
            print(f"\n{name}, {backbone}, dev Spearman x 100")
            results = load_results(OUT, blind, backbone, ways, arguments.seeds)
            for candidate, runs in results.items():
                scores = [100 * run["dev"] for run in runs.values()]
                each = " ".join(f"{score:.2f}" for score in scores)
                print(f"  {candidate:<28} {statistics.mean(scores):6.2f}   ({each})", flush=True)


if __name__ == "__main__":
    main()
