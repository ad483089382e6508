"""What weights truly lose that a guard of few pairs lets pass, by how the share of the backbone is found.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/guard_shares.py runs/seed-1 runs/seed-42
    … --only bug-titles --pairs 100 1000 --draws 100

The models are folders of weights that do harm. `no_harm.py --set distil_epochs=0 keep_general=false` trains
such as lose 10 points on bug titles. Of each kind of labelled pairs (the part `train` of `no_harm.py`) so
many are drawn as a guard, and the rest say what is truly lost. Told are, in the mean of the draws in which
weights are refused as planned, without a share of MiniLM: the share that is kept, what it truly loses, and
how much of that is beyond 1.0, for three ways to find it: the least share of which no loss is sure; that of
`training.guards`; the least of which a loss above 1.0 can be ruled out. `oracle` is the least share that
truly loses at most 1.0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import minilm, options, save_results  # noqa: E402
from no_harm import PARTS, guards  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

from angle_train.data.guards import Guard  # noqa: E402
from angle_train.data.pairs import PairSet, load_pairs  # noqa: E402
from angle_train.evaluation.similarity import measure  # noqa: E402
from angle_train.evaluation.statistics import spearman  # noqa: E402
from angle_train.training.choosing import Candidate  # noqa: E402
from angle_train.training.guards import SHARES, guards_of, within_guards  # noqa: E402
from angle_train.training.merging import blended, snapshot  # noqa: E402

Array = NDArray[np.float64]
MOST = 1.0
KINDS = ("bug-titles", "community-questions", "sick")
ALL_SHARES = (0.0, *SHARES, 1.0)


def columns_of(folder: str, sets: Sequence[PairSet]) -> dict[float, list[Array]]:
    """Return the similarities of all sets by the share of MiniLM in a model's weights; 1 is MiniLM."""
    backbone = SentenceTransformer(str(minilm(6)), device="cpu")
    found = {1.0: measure(backbone, sets)}
    untouched, model = snapshot(backbone), SentenceTransformer(folder, device="cpu")
    for share in ALL_SHARES[:-1]:
        with blended(model, untouched, share):
            found[share] = measure(model, sets)
    return found


def kept_shares(pairs: PairSet, columns: dict[float, Array], drawn: NDArray[np.int64]) -> list[float] | None:
    """Return the share kept by each way with the pairs at `drawn` as guard; None if nothing is refused."""
    guard = Guard("labelled", pairs.take(drawn.tolist(), "guard"))
    seen = guards_of([guard], [columns[1.0][drawn]], MOST)
    (planned,) = seen.losses([columns[0.0][drawn]])
    if not planned.too_much(MOST):
        return None
    losses = {share: seen.losses([columns[share][drawn]])[0] for share in SHARES}
    sure = next((share for share in SHARES if not losses[share].too_much(MOST)), 1.0)
    ruled_out = next((share for share in SHARES if 100 * losses[share].high <= MOST), 1.0)
    taken, _ = within_guards(Candidate(1, 1, []), seen, lambda share, _: [columns[share][drawn]])
    return [sure, 1.0 if taken.refused else taken.share, ruled_out]


def over(
    pairs: PairSet, columns: dict[float, Array], count: int, draws: int
) -> dict[str, float | list[float]]:
    """Return the means over the draws of a guard of `count` pairs."""
    generator = np.random.default_rng(count)
    kept, lost, oracle = [], [], []
    for _ in range(draws):
        drawn = generator.choice(len(pairs), count, replace=False)
        shares = kept_shares(pairs, columns, drawn)
        if shares is None:
            continue
        rest = np.setdiff1d(np.arange(len(pairs)), drawn)
        values = {share: 100 * spearman(pairs.score[rest], columns[share][rest]) for share in ALL_SHARES}
        kept.append(shares)
        lost.append([values[1.0] - values[share] for share in shares])
        oracle.append(next(share for share in ALL_SHARES if values[1.0] - values[share] <= MOST))
    if not kept:
        return {"refused": 0.0}
    return {
        "refused": len(kept) / draws,
        "shares": np.mean(kept, axis=0).round(2).tolist(),
        "lost": np.mean(lost, axis=0).round(2).tolist(),
        "beyond": np.maximum(np.array(lost) - MOST, 0).mean(axis=0).round(2).tolist(),
        "oracle": round(float(np.mean(oracle)), 2),
    }


def main() -> None:
    """Print a row for every model, kind of pairs and size of the guard."""
    parser = options(__doc__)
    parser.add_argument("models", nargs="+", metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=list(PARTS["train"]), default=list(KINDS))
    parser.add_argument("--pairs", type=int, nargs="+", default=[100, 200, 1000], help="of the guard")
    parser.add_argument("--draws", type=int, default=50)
    asked = parser.parse_args()
    sets = [load_pairs(file) for file in guards("train", asked.only)]
    rows: list[dict[str, Any]] = []
    for folder in asked.models:
        found = columns_of(folder, sets)
        for number, pairs in enumerate(sets):
            columns = {share: column[number] for share, column in found.items()}
            before, after = (100 * spearman(pairs.score, columns[share]) for share in (1.0, 0.0))
            for count in asked.pairs:
                row = {"model": folder, "kind": pairs.name, "lost by all": round(before - after, 1)}
                row |= {"guard": count, **over(pairs, columns, count, asked.draws)}
                print(row, flush=True)
                rows.append(row)
    save_results("guard-shares", rows)


if __name__ == "__main__":
    main()
