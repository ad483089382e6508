"""Test scores of this toolkit and of its peers on four data sets, from two backbones, everything else equal.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/quality.py
    … --cases stsb mrpc --backbones minilm-3 --seeds 1 2 3 --only ours cosent --precision bf16
    … --table                                   # only print what has been measured so far

Training pairs: 2,000 of STS-B and SICK-R, 1,000 of MRPC, 600 of bug-duplicates, drawn once; 400 dev pairs,
all test pairs. 3 epochs in batches of 64 (the defaults), at most 128 tokens, fp32 unless said otherwise
(angle_emb always); 1e-4 for MiniLM's first three layers and 5e-5 for all six. The better of two evaluations
on dev is kept. Each run (data set, backbone, way, seed) is one file under runs/benchmarks/training/quality;
what is there with the same settings is not run again, so the script can be stopped at any time.

Ways: `ours` has the objective of the kind of labels, `papers` the papers' three terms, `cosent` the cosine
term alone. `ST …` is sentence-transformers' own trainer; for MNRL it gets the positive pairs alone, so fewer
steps. `angle_emb` is the authors' package with the weights of its README, in an environment of its own.
"""

from __future__ import annotations

from itertools import product

from cases import CASES, SHARED, Way, load_case, parser_of, run_unit
from common import RESULTS
from tables import print_tables
from ways import angle_emb, ours, stock

from angle_data.console import configure_logging

OUT = RESULTS / "training" / "quality"

WAYS: dict[str, Way] = {
    "ours": ours(loss="auto"),
    "papers": ours(),
    "cosent": ours(in_batch_weight=0.0, angle_weight=0.0),
    "ST MNRL": stock("MultipleNegativesRankingLoss", positives_only=True),
    "angle_emb": angle_emb(),
    "ST CoSENTLoss": stock("CoSENTLoss"),
    "ST AnglELoss": stock("AnglELoss"),
}


def main() -> None:
    """Run what is missing, seeds outermost, and print the tables."""
    parser = parser_of(__doc__, list(WAYS))
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    arguments = parser.parse_args()
    SHARED["precision"] = arguments.precision
    configure_logging(quiet=True)
    cases = [load_case(name) for name in arguments.cases]
    ways = {name: WAYS[name] for name in arguments.only}
    if not arguments.table:
        for seed, backbone, case in product(arguments.seeds, arguments.backbones, cases):
            for name, way in ways.items():
                run_unit(name, way, case, backbone, seed, OUT)
    print_tables(OUT, cases, arguments.backbones, ways, arguments.seeds)


if __name__ == "__main__":
    main()
