"""How often the 95 % interval of a mean holds the truth where pairs share a text or come from few sources.

    python benchmarks/training/sharing_coverage.py [--worlds 1500] [--only hub]

A pair is a normal number, of which a share is of its source (the text that it has in common with others)
and the rest its own. Of two sets the figure is the sum of their means, of which the second counts half, as
with people's pairs and the rest, which a language model graded; a source that both have has an effect of
its own in each. Each row is one structure and share: how often the interval of single pairs holds 0 when it
is widened by what sharing adds, without Student's t and with it, as `evaluation.sharing` does, and how many
times wider than that of single pairs it is with it (median). See ../log/few-sources-widened.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
from common import options, save_results  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from angle_train.data.pairs import PairSet  # noqa: E402
from angle_train.evaluation.sharing import Sharing  # noqa: E402
from angle_train.evaluation.statistics import Drawn, draw_figures, mean_of  # noqa: E402

SIZES: dict[str, list[list[int]]] = {
    "5 sources of 10": [[10] * 5],
    "12 sources of 10": [[10] * 12],
    "40 20 10 5 5 3 2 2 and seven of 1": [[40, 20, 10, 5, 5, 3, 2, 2, *[1] * 7]],
    "100 60 36 21 12 7 4 2 1 1": [[100, 60, 36, 21, 12, 7, 4, 2, 1, 1]],
    "100 60 36 21 12": [[100, 60, 36, 21, 12]],
    "hub: 100 of 1000": [[100, *[1] * 900]],
    "hub: 60 of 300": [[60, *[1] * 240]],
    "hub: 150 of 300": [[150, *[1] * 150]],
    "hub: 10 of 100": [[10, *[1] * 90]],
    "two hubs: 50 and 50 of 300": [[50, 50, *[1] * 200]],
    "two hubs: 100 and 100 of 300": [[100, 100, *[1] * 100]],
    "nothing shared: 5": [[1] * 5],
    "nothing shared: 10": [[1] * 10],
    "nothing shared: 20": [[1] * 20],
    "two sets: 3 sources of 10, 100 of 10": [[10] * 3, [10] * 100],
    "two sets: 5 sources of 10, 100 of 10": [[10] * 5, [10] * 100],
    "two sets: 12 sources of 10, 100 of 10": [[10] * 12, [10] * 100],
    "two sets: 5 sources of 10 each": [[10] * 5, [10] * 5],
}
"""Name -> for each set how many pairs each source has; the first sources of two sets are the same."""
_SHARES = (0.1, 0.25, 0.5)  # of what moves a pair, that is of its source
_RESAMPLES = 200
_WIDE = 1.959964  # standard errors, either side


def coverage(sets: list[list[int]], share: float, worlds: int) -> dict[str, float]:
    """Return how often intervals of so many worlds hold the truth, and how wide they are."""
    sources = [np.repeat(np.arange(len(sizes)), sizes) for sizes in sets]
    sharing = Sharing([pairs_of(number, source) for number, source in enumerate(sources)])
    held, without, widened = 0, 0, []
    for world in range(worlds):
        generator = np.random.default_rng(world)
        figures = []
        for number, source in enumerate(sources):
            own, shared = (generator.standard_normal(count) for count in (len(source), source.max() + 1))
            values = (np.sqrt(1 - share) * own + np.sqrt(share) * shared[source]) / (1 + number)
            figures += draw_figures([mean_of(values)], _RESAMPLES, len(sets) * world + number)
        figure = Drawn(
            sum(one.value for one in figures),
            np.sum([one.drawn for one in figures], axis=0),
            np.concatenate([one.pull for one in figures]),
        )
        wider, alone = sharing.widening(figure), _WIDE * float(np.nanstd(figure.drawn))
        by_t = sharing.of_few(figure) if sharing else 1.0
        held += abs(figure.value) <= alone * wider
        without += abs(figure.value) <= alone * wider / by_t
        widened.append(wider)
    return {"without t": without / worlds, "held": held / worlds, "wider": float(np.median(widened))}


def pairs_of(number: int, source: NDArray[np.int64]) -> PairSet:
    """Return the pairs of a set, each with the text of its source and one of its own."""
    texts = [f"q {of}" for of in source], [f"a {number} {n}" for n in range(len(source))]
    return PairSet(f"set {number}", *texts, np.zeros(len(source)), np.ones(len(source)))


def main() -> None:
    """Print and save the coverage of every structure."""
    parser = options(__doc__)
    parser.add_argument("--worlds", type=int, default=1500, help="for each row")
    parser.add_argument("--only", default="", help="structures with this in their name")
    asked = parser.parse_args()
    found = {}
    for name, sets in SIZES.items():
        for share in _SHARES if asked.only in name else ():
            found[f"{name}, {share:g}"] = row = coverage(sets, share, asked.worlds)
            print(
                f"{name:38s} of the source {share:.2f}: {row['without t']:.3f} without t, {row['held']:.3f} "
                f"with it, {row['wider']:.2f} times wider",
                flush=True,
            )
    save_results("sharing-coverage", found)


if __name__ == "__main__":
    main()
