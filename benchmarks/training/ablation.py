"""What each part of the objective is worth: the paper's ablation, on human and on LLM-written labels.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/ablation.py [--cases stsb llm] [--seeds 1 2 3 4 5]
    … --only all "pooling cls"
    … --table                                   # only print what has been measured so far

MiniLM's first three layers, the settings of quality.py. `stsb`: 1,000 graded STS-B pairs train. `llm`: 1,000
of the pairs that three LLM annotators wrote to 300 STS-B sentences (the vote of llm_supervised.py: synonyms
1, antonyms 0.5, random 0). 400 STS-B dev pairs choose the better of two epochs, all 1,379 test pairs measure.
Δ is `all` minus the row. `all`: the three terms with weight 1, τ 0.05, 0.05, 1.0, symmetric angle,
identical-pair groups, random swap. MiniLM pools by the mean, so `pooling last-avg` repeats `all`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cases import Case, Way, arguments_of, load_case, run_unit, sample
from common import RESULTS
from llm_supervised import data_sets
from llm_supervised import stsb as llm_task
from tables import print_tables
from ways import ours

from angle_data.console import configure_logging
from angle_train.data.pairs import load_pairs
from angle_train.model.pooling import POOLINGS

OUT = RESULTS / "training" / "ablation"
SIZE = 1000

_ONLY_ANGLE = {"cosine_weight": 0.0, "in_batch_weight": 0.0}
WAYS: dict[str, Way] = {
    "all": ours(),
    "without in-batch": ours(in_batch_weight=0.0),
    "without angle": ours(angle_weight=0.0),
    "without cosine": ours(cosine_weight=0.0),
    "only cosine": ours(in_batch_weight=0.0, angle_weight=0.0),
    "only in-batch": ours(cosine_weight=0.0, angle_weight=0.0),
    "only angle, symmetric": ours(**_ONLY_ANGLE),
    "only angle, symmetric, τ 0.05": ours(**_ONLY_ANGLE, angle_tau=0.05),
    "only angle, published": ours(**_ONLY_ANGLE, angle_mode="published"),
    "only angle, published, τ 0.05": ours(**_ONLY_ANGLE, angle_mode="published", angle_tau=0.05),
    "only angle, published, τ 0.05, no swap": ours(
        **_ONLY_ANGLE, angle_mode="published", angle_tau=0.05, swap=False
    ),
    "all, angle τ 0.05": ours(angle_tau=0.05),
    "all, published angle": ours(angle_mode="published"),
    "all, published angle, no swap": ours(angle_mode="published", swap=False),
    "all, ISP equal texts": ours(isp="equal"),
    "all, ISP none": ours(isp="none"),
    "all, merged back": ours(merge=True),
    **{f"pooling {name}": ours(pooling=name) for name in POOLINGS},
}


@cache
def case_of(name: str, size: int) -> Case:
    """Return the pairs of a case, cached per process."""
    graded = load_case("stsb", size)
    if name == "stsb":
        return graded
    return replace(graded, name="llm", train=sample(load_pairs(str(data_sets(llm_task())["vote"])), size))


def main() -> None:
    """Run what is missing, seeds outermost, and print the tables."""
    arguments = arguments_of(
        __doc__, list(WAYS), cases=("stsb", "llm"), backbones=("minilm-3",), seeds=range(1, 6)
    )
    configure_logging(quiet=True)
    size = arguments.size or SIZE
    if not arguments.table:
        for seed in arguments.seeds:
            for backbone in arguments.backbones:
                for name in arguments.cases:
                    for way in arguments.only:
                        run_unit(way, WAYS[way], case_of(name, size), backbone, seed, OUT)
    cases = [case_of(name, size) for name in arguments.cases]
    ways = {name: WAYS[name] for name in arguments.only}
    print_tables(OUT, cases, arguments.backbones, lambda case, backbone: ways, arguments.seeds)


if __name__ == "__main__":
    main()
