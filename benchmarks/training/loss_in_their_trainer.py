"""`AngleLoss` beside sentence-transformers' own losses, in sentence-transformers' own trainer.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/loss_in_their_trainer.py
    … --table                                   # only print what has been measured so far

The rule, written down before the first run:

1.  STS-B (graded), 1,000 training pairs, and bug-duplicates (binary), 400, drawn once; 400 dev pairs, at most
    1,000 test pairs. MiniLM's first three layers, 3 epochs, batches of 64, 1e-4, at most 64 tokens, fp32,
    seeds 1, 2, 3. The best of one evaluation per epoch on dev is kept.
2.  Every way has the library's trainer and collator; only the loss differs. `AngleLoss` is its default, which
    has to do for any labels; `AngleLoss, graded` is what its docstring says for graded pairs. The library's
    losses have their defaults. MNRL gets the positive pairs alone (score at least 0.8), without equal texts
    in a batch, and so takes fewer steps.
3.  Nothing is chosen. A loss is called better on a set if the difference of the means over the seeds exceeds
    twice the standard error of the paired differences.
"""

from __future__ import annotations

from itertools import product

from cases import SHARED, Case, Way, load_case, parser_of, run_unit, sample
from common import RESULTS
from tables import print_tables
from ways import stock

from angle_data.console import configure_logging

OUT = RESULTS / "training" / "loss-in-their-trainer"
SIZES = {"stsb": 1000, "bug-duplicates": 400}
_TEST = 1000

WAYS: dict[str, Way] = {
    "AngleLoss": stock("AngleLoss"),
    "AngleLoss, graded": stock("AngleLoss", weights={"cosine": 1.0}, temperatures={"cosine": 0.1}),
    "CoSENTLoss": stock("CoSENTLoss"),
    "AnglELoss": stock("AnglELoss"),
    "MNRL": stock("MultipleNegativesRankingLoss", positives_only=True),
}


def case_of(name: str) -> Case:
    """Return a case with so many pairs that all of it is measured in a quarter of an hour."""
    case = load_case(name, SIZES[name])
    assert case.test is not None
    return Case(name, case.train, case.dev, sample(case.test, _TEST))


def main() -> None:
    """Run what is missing, seeds outermost, and print the tables."""
    parser = parser_of(__doc__, list(WAYS))
    parser.set_defaults(backbones=["minilm-3"])
    arguments = parser.parse_args()
    SHARED["max_seq_length"] = 64
    configure_logging(quiet=True)
    cases = [case_of(name) for name in SIZES]
    ways = {name: WAYS[name] for name in arguments.only}
    if not arguments.table:
        for seed, backbone, case in product(arguments.seeds, arguments.backbones, cases):
            for name, way in ways.items():
                run_unit(name, way, case, backbone, seed, OUT)
    print_tables(OUT, cases, arguments.backbones, ways, arguments.seeds)


if __name__ == "__main__":
    main()
