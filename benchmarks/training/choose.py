"""Chooses what `ours` is in quality.py: candidate objectives in cross-validation, without test pairs.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/choose.py [--cases stsb …] [--seeds 101 102]

The training and dev pairs of quality.py together are cut into two parts that share no text; each measures
what the other trains. The seeds are others than quality.py's. Kept and continued like there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from cases import Case, arguments_of, load_case, run_unit
from common import RESULTS
from tables import load_results
from ways import ours

from angle_data.console import configure_logging
from angle_train.data.folds import cut
from angle_train.data.pairs import join

OUT = RESULTS / "training" / "choose"
_PARTS = 2

_COSINE = {"in_batch_weight": 0.0, "angle_weight": 0.0}
CANDIDATES: dict[str, dict[str, Any]] = {
    "all terms (default)": {},
    "cosine": _COSINE,
    "cosine τ 0.1": {**_COSINE, "cosine_tau": 0.1},
    "cosine, in-batch 0.1": {"in_batch_weight": 0.1, "angle_weight": 0.0},
    "cosine 0.2, in-batch": {"cosine_weight": 0.2, "angle_weight": 0.0},
    "cosine, angle τ 0.05": {"in_batch_weight": 0.0, "angle_tau": 0.05},
    "in-batch": {"cosine_weight": 0.0, "angle_weight": 0.0},
}


def parts_of(case: Case) -> Iterator[Case]:
    """Yield the data set once for each part of its training and dev pairs; the part is what selects then."""
    pairs = join([case.train, case.dev])
    for part in cut(pairs, _PARTS, seed=7):
        rest = sorted(set(range(len(pairs))) - set(part))
        held_out = pairs.take(part, "held out")
        yield Case(case.name, pairs.take(rest, "the rest"), held_out, held_out.take(range(50), "not used"))


def main() -> None:
    """Run what is missing and print the Spearman of every candidate on the parts that were held out."""
    arguments = arguments_of(__doc__, list(CANDIDATES), backbones=("minilm-3",), seeds=[101])
    configure_logging(quiet=True)
    ways = {name: ours(**CANDIDATES[name]) for name in arguments.only}
    for backbone in arguments.backbones:
        for name in arguments.cases:
            parts = list(parts_of(load_case(name, arguments.size)))
            if not arguments.table:
                for seed in arguments.seeds:
                    for candidate, way in ways.items():
                        for part in parts:
                            run_unit(candidate, way, part, backbone, seed, OUT)
            print(f"\n{name}, {backbone}, Spearman x 100 on parts held out")
            scores: dict[str, list[float]] = {}
            for part in parts:
                for candidate, runs in load_results(OUT, part, backbone, ways, arguments.seeds).items():
                    scores.setdefault(candidate, []).extend(100 * run["dev"] for run in runs.values())
            for candidate, found in scores.items():
                each = " ".join(f"{score:.2f}" for score in found)
                print(f"  {candidate:<28} {statistics.mean(found):6.2f}   ({each})", flush=True)


if __name__ == "__main__":
    main()
