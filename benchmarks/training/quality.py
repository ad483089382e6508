"""Test scores of this toolkit and of its peers on four data sets, from two backbones, everything else equal.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/quality.py
    … --cases stsb mrpc --backbones minilm-3 --seeds 1 2 3 --only ours cosent
    … --table                                   # only print what has been measured so far

Training pairs: 2,000 of STS-B and SICK-R, 1,000 of MRPC, 600 of bug-duplicates, drawn once; 400 dev pairs,
all test pairs. 2 epochs in batches of 32, at most 128 tokens, fp32; learning rate 1e-4 for MiniLM's first
three layers and 5e-5 for all six. The better of two evaluations on dev is kept. Each run (data set,
backbone, way, seed) is one file under runs/benchmarks/training/quality; what is there with the same
settings is not run again, so the script can be stopped at any time.

Ways: `ours` has the weights chosen for each data set without its test pairs (CHOSEN) and averages with the
backbone in the share that dev prefers; `ours, not merged` does not average; `ours, default` has the default
weights and does not average. `cosent` is the cosine term alone; `st-angle`, `mnrl`, `simcse` and
`sbert` are stock losses of sentence-transformers on this toolkit's trainer and batches (`peers.py`). `ST …`
is sentence-transformers' own trainer; for MNRL it gets the positive pairs alone, so fewer steps. `angle_emb`
is the authors' package with the weights of its README, in an environment of its own.
The peers have their default temperatures, ours were chosen on dev: like with like are `ours, default` and
the peers.
"""

from __future__ import annotations

from typing import Any

from cases import Way, arguments_of, load_case, run_unit
from common import RESULTS
from peers import PEERS
from tables import print_tables
from ways import angle_emb, ours, stock

from angle_data.console import configure_logging

OUT = RESULTS / "training" / "quality"

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "minilm-3": {
        "stsb": {"in_batch_weight": 0.0, "angle_weight": 0.0, "cosine_tau": 0.1},
        "sick-r": {},
        "mrpc": {"in_batch_weight": 0.0, "angle_tau": 0.05},
        "bug-duplicates": {"cosine_weight": 0.2, "angle_weight": 0.0},
    },
    "minilm": {
        "stsb": {"in_batch_weight": 0.0, "angle_tau": 0.05},
        "sick-r": {},
        "mrpc": {"in_batch_weight": 0.0, "angle_tau": 0.05},
        "bug-duplicates": {"cosine_weight": 0.2, "angle_weight": 0.0},
    },
}
"""Backbone -> data set -> the objective; LOG.md says how each was chosen."""

WAYS: dict[str, Way | None] = {
    "ours": None,
    "ours, not merged": None,
    "ours, default": ours(),
    "cosent": ours(in_batch_weight=0.0, angle_weight=0.0),
    **{name: ours(peer=name) for name in PEERS},
    "ST MNRL": stock("MultipleNegativesRankingLoss", positives_only=True),
    "angle_emb": angle_emb(),
    "cosent, merged": ours(in_batch_weight=0.0, angle_weight=0.0, merge=True),
    "ST CoSENTLoss": stock("CoSENTLoss"),
    "ST AnglELoss": stock("AnglELoss"),
}
"""Name -> way; none is the toolkit with the chosen objective of the data set."""


def way_of(name: str, case: str, backbone: str) -> Way:
    """Return the way of that name for a data set and backbone."""
    return WAYS[name] or ours(merge=name == "ours", **CHOSEN[backbone].get(case, {}))


def main() -> None:
    """Run what is missing, seeds outermost, and print the tables."""
    arguments = arguments_of(__doc__, list(WAYS))
    configure_logging(quiet=True)
    cases = [load_case(name, arguments.size) for name in arguments.cases]
    if not arguments.table:
        for seed in arguments.seeds:
            for backbone in arguments.backbones:
                for case in cases:
                    for name in arguments.only:
                        run_unit(name, way_of(name, case.name, backbone), case, backbone, seed, OUT)
    names = arguments.only
    print_tables(
        OUT,
        cases,
        arguments.backbones,
        lambda case, backbone: {name: way_of(name, case, backbone) for name in names},
        arguments.seeds,
    )


if __name__ == "__main__":
    main()
