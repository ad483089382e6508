"""What the guard of general text says of models, beside what they lose on sets that people labelled.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/general_text.py runs/seed-1 runs/seed-1@0.3
    … runs/tuned-on-news --without mrpc --clones CLONES

A model is a folder, with a share of MiniLM to mix in behind an @. The sets are those of the part `train` of
`no_harm.py`, without --without, and with --clones the pairs that chose among those of `elsewhere.py`; at most
500 pairs of each, 150 of whole bug reports. Told are, Spearman x 100:

lost          by the sets in the mean, and the most that one lost
of the blind  that mean, beside r · (1 - A) of the same pairs: what a change would cost that knows nothing
estimated     what `training.guards` says of general text
fell          how far Spearman with how near its pairs were written fell, with its interval
refused       whether `fit` would refuse such weights, with guard_loss 1
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import elsewhere  # noqa: E402
import numpy as np  # noqa: E402
from common import minilm, options, save_results  # noqa: E402
from no_harm import PARTS, guards  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_train.data.guards import Guard, general_pairs  # noqa: E402
from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402
from angle_train.evaluation.similarity import measure  # noqa: E402
from angle_train.evaluation.statistics import spearman  # noqa: E402
from angle_train.training.guards import Guards, fall_of_known, guards_of  # noqa: E402
from angle_train.training.merging import blended, snapshot  # noqa: E402

Array = NDArray[np.float64]
_MOST = {"bug-reports": 150}
_OF_OTHERS = 500


def sets_of(without: list[str], clones: Path | None) -> list[PairSet]:
    """Return the labelled sets, at most so many pairs of each, drawn with a fixed seed."""
    files = guards("train", [name for name in PARTS["train"] if name not in without])
    for name in elsewhere.PAIRS if clones else ():
        if clones and name not in (*elsewhere.FURTHER, *without):
            files.append(str(elsewhere.OUT / f"{name}.jsonl"))
            write_jsonl(Path(files[-1]), elsewhere.PAIRS[name](clones))
    found = []
    for pairs in map(load_pairs, files):
        places = np.random.default_rng(0).permutation(len(pairs))[: _MOST.get(pairs.name, _OF_OTHERS)]
        found.append(pairs.take(places.tolist(), pairs.name))
    return found


def row_of(sets: list[PairSet], before: list[Array], after: list[Array], seen: Guards) -> dict[str, Any]:
    """Return what a model loses, and what general text, whose similarities come first, says of it."""
    lost, blind = [], []
    for pairs, old, new in zip(sets, before[1:], after[1:], strict=True):
        known = spearman(pairs.score, old)
        lost.append(100 * (known - spearman(pairs.score, new)))
        blind.append(100 * max(known, 0.0) * (1 - spearman(old, new)))
    (loss,) = seen.losses(after[:1])
    fell = fall_of_known(general_pairs(), before[0], after[0])
    return {
        "lost": f"{np.mean(lost):.1f} ({max(lost):.1f})",
        "of the blind": round(float(np.mean(lost) / np.mean(blind)), 2),
        "estimated": round(100 * loss.loss, 1),
        "fell": f"{100 * fell.value:.1f} [{100 * fell.low:.1f}, {100 * fell.high:.1f}]",
        "refused": seen.refuse([loss]),
    }


def main() -> None:
    """Print a row for every model."""
    parser = options(__doc__)
    parser.add_argument("models", nargs="+", metavar="DIR[@SHARE]")
    parser.add_argument("--without", nargs="+", default=[], metavar="SET", help="of the models' own domain")
    parser.add_argument("--clones", type=Path, help="see elsewhere.py; default those sets are left out")
    asked = parser.parse_args()
    sets = sets_of(asked.without, asked.clones)
    every = [general_pairs(), *sets]
    backbone = SentenceTransformer(str(minilm(6)), device="cpu")
    before, untouched = measure(backbone, every), snapshot(backbone)
    seen = guards_of([Guard("general", general_pairs())], before[:1], 1.0)
    rows = []
    for given in asked.models:
        folder, _, share = given.partition("@")
        model = SentenceTransformer(folder, device="cpu")
        with blended(model, untouched, float(share or 0)):
            rows.append({"model": given} | row_of(sets, before, measure(model, every), seen))
        print(rows[-1], flush=True)
    save_results("general-text", rows)


if __name__ == "__main__":
    main()
