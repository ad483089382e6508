"""`AngleLoss` beside sentence-transformers' own losses, in sentence-transformers' own trainer.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/loss_in_their_trainer.py
    … --table                                   # only print what has been measured so far

The rule, written down before the first run:

1.  STS-B (graded) and the titles of bug-duplicates (binary): 400 training pairs, 200 dev pairs and at most
    500 test pairs, drawn once. MiniLM's first three layers, 2 epochs, batches of 32, 1e-4, at most 64 tokens,
    fp32, seeds 1, 2, 3. The best of one evaluation per epoch on dev is kept. (Planned were 1,000 and 400
    pairs, 3 epochs and batches of 64; the machine was too slow, and no two losses had been compared yet.)
2.  Every way has the library's trainer and collator; only the loss differs. `AngleLoss` is its default, which
    has to do for any labels; `AngleLoss, graded` is what its docstring says for graded pairs. The library's
    losses have their defaults. MNRL gets the positive pairs alone (score at least 0.8), without equal texts
    in a batch, and so takes fewer steps.
3.  Nothing is chosen. A loss is called better on a set if the difference of the means over the seeds exceeds
    twice the standard error of the paired differences.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from cases import SHARED, Case, Way, backbone_path, load_case, parser_of, run_unit, sample
from common import RESULTS
from tables import print_tables
from ways import stock

from angle_data.console import configure_logging
from angle_train.data.pairs import PairSet

OUT = RESULTS / "training" / "loss-in-their-trainer"
NAMES = ("stsb", "bug-duplicates")
_TRAIN, _DEV, _TEST = 400, 200, 500

WAYS: dict[str, Way] = {
    "AngleLoss": stock("AngleLoss"),
    "AngleLoss, graded": stock("AngleLoss", weights={"cosine": 1.0}, temperatures={"cosine": 0.1}),
    "CoSENTLoss": stock("CoSENTLoss"),
    "AnglELoss": stock("AnglELoss"),
    "MNRL": stock("MultipleNegativesRankingLoss", positives_only=True),
}


def case_of(name: str) -> Case:
    """Return a case with so few pairs that all of it is measured in half an hour; of reports, the titles."""
    case = load_case(name, _TRAIN)
    assert case.dev is not None
    assert case.test is not None
    return Case(name, titles(case.train), sample(titles(case.dev), _DEV), sample(titles(case.test), _TEST))


def titles(pairs: PairSet) -> PairSet:
    """Return pairs of the first lines of the texts."""
    first = [tuple(text.split("\n")[0] for text in texts) for texts in (pairs.text1, pairs.text2)]
    return replace(pairs, text1=first[0], text2=first[1])


def print_untouched(cases: list[Case], backbones: list[str]) -> None:
    """Print Spearman x 100 of the backbones on the test pairs."""
    from angle_train.evaluation.similarity import measure
    from angle_train.evaluation.statistics import spearman
    from angle_train.model.load import load_for_training
    from angle_train.recipe import BackboneConfig

    for backbone, case in product(backbones, cases):
        path = str(backbone_path(backbone))
        model = load_for_training(path, BackboneConfig(), "", SHARED["max_seq_length"])
        assert case.test is not None
        value = spearman(case.test.score, measure(model, [case.test])[0])
        print(f"{case.name}, {backbone}, untouched: {100 * value:.2f}", flush=True)


def main() -> None:
    """Run what is missing, seeds outermost, and print the tables."""
    parser = parser_of(__doc__, list(WAYS))
    parser.set_defaults(backbones=["minilm-3"])
    arguments = parser.parse_args()
    SHARED.update(epochs=2, batch_size=32, max_seq_length=64)
    configure_logging(quiet=True)
    cases = [case_of(name) for name in NAMES]
    ways = {name: WAYS[name] for name in arguments.only}
    if not arguments.table:
        for seed, backbone, case in product(arguments.seeds, arguments.backbones, cases):
            for name, way in ways.items():
                run_unit(name, way, case, backbone, seed, OUT)
    print_untouched(cases, arguments.backbones)
    print_tables(OUT, cases, arguments.backbones, ways, arguments.seeds)


if __name__ == "__main__":
    main()
