"""How good a model is in words for everybody: comparisons that come out right, and what a sample can show.

The share of right comparisons is (1 + D) / 2, where D is Somers' (https://doi.org/10.2307/2090408).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from angle_data.text import jaccard, words
from angle_train.evaluation.compare import SPEARMAN, Result, View
from angle_train.evaluation.statistics import UNSURE

DEFINITION = (
    "A comparison takes two pairs that people graded differently, and comes out right if the pair with the "
    "higher grade has the higher cosine; equal cosines count half, so chance gets 50 of 100."
)
_MOST_PAIRS = 3_000  # 9 million comparisons
_FEWEST_MISLED = 200  # comparisons
_COIN = (0.45, 0.55)
_WANTED = 5.0  # Spearman × 100: a smaller difference is hardly worth a new model
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RightShares:
    """The shares (0..1) of comparisons of one set that come out right, by model.

    Attributes:
        pairs: Name of the set.
        right: Of all comparisons of two pairs with different gold scores; empty where there are none.
        misled: Of those where the pair with the lower gold score shares more words, so that words mislead, as
            with opposites; empty where there are fewer than 200.
    """

    pairs: str
    right: Mapping[str, float]
    misled: Mapping[str, float] = field(default_factory=dict)


def shares_of(view: View) -> RightShares:
    """Return the shares of every model on a view; of a larger set on 3,000 pairs, drawn once and for all."""
    pairs = view.pairs
    count = len(view.pairs)
    chosen = np.sort(np.random.default_rng(0).choice(count, min(count, _MOST_PAIRS), replace=False))
    overlap = np.array([jaccard(words(pairs.text1[i]), words(pairs.text2[i])) for i in chosen])
    gold = pairs.score[chosen]
    better = gold[:, None] > gold
    misleading = better & (overlap[:, None] < overlap)

    def right(compared: NDArray[np.bool_], fewest: int) -> dict[str, float]:
        found = view.similarity.items() if compared.sum() >= fewest else ()
        return {model: right_where(compared, column[chosen]) for model, column in found}

    return RightShares(pairs.name, right(better, 1), right(misleading, _FEWEST_MISLED))


def right_where(better: NDArray[np.bool_], similarity: Array) -> float:
    """Return the share of right comparisons among those that `better` (B, B) holds, at least one.

    It says whether the pair of the row is to have a higher similarity (B,) than that of the column.
    """
    first, second = np.nonzero(better)
    gap = similarity[first] - similarity[second]
    return float((gap > 0).mean() + (gap == 0).mean() / 2)


def shares_sentence(sets: Sequence[RightShares], model: str, before: str = "", old: str = "") -> str:
    """Return how many of 100 comparisons come out right, such as `of 100 comparisons 82 come out right`.

    Args:
        sets: Of at least one set; of several the mean is told.
        model: The model to tell of.
        before: The model to compare it with, if any.
        old: What to call that, such as `before`.
    """
    shown = [name for name in (model, before) if name in sets[0].right]
    mean = {name: sum(one.right[name] for one in sets) / len(sets) for name in shown}
    now, then = _of_hundred(mean, model, before, old)
    where = f" on average over {len(sets)} sets" if len(sets) > 1 else ""
    return f"of 100 comparisons {now} come out right{where}{then}"


def misled_sentence(sets: Sequence[RightShares], model: str, before: str = "", old: str = "") -> str:
    """Return the same where words mislead, of the set on which the model does worst; nothing if unknown."""
    known = [one for one in sets if model in one.misled]
    if not known:
        return ""
    worst = min(known, key=lambda one: one.misled[model])
    now, then = _of_hundred(worst.misled, model, before, old)
    share = worst.misled[model]
    low, high = _COIN
    kind = " (worse than a coin flip)" if share < low else " (nearly a coin flip)" if share <= high else ""
    where = f" ({worst.pairs})" if len(sets) > 1 else ""
    return f"Where shared words mislead, as with opposites{where}, {now} of 100 come out right{kind}{then}"


def power_sentences(results: Sequence[Result]) -> list[str]:
    """Return for each set that is too small to show a difference of 5 what it shows, and how many would do.

    Nothing of a set on which a difference is shown, or on which two models rank alike: more pairs would not
    change that. The half width of the difference's interval shrinks with the root of the number of pairs.
    """
    halves: dict[str, tuple[float, int]] = {}
    for result in open_results(results):
        half = 100 * result.gain.half
        halves[result.pairs] = max(halves.get(result.pairs, (0.0, 0)), (half, result.count))
    return [
        f"{name}: {count:,} pairs show only differences above ±{half:.0f}; grade about "
        f"{two_digits(count * (half / _WANTED) ** 2):,} to see ±{_WANTED:.0f}"
        for name, (half, count) in halves.items()
        if half > _WANTED
    ]


def open_results(results: Sequence[Result]) -> list[Result]:
    """Return the results on scored pairs that show neither a gain nor a loss, but could with more pairs."""
    compared = [r for r in results if r.difference and r.metric == SPEARMAN]
    return [r for r in compared if r.gain.verdict == UNSURE and not r.gain.none_at_all]


def _of_hundred(shares: Mapping[str, float], model: str, before: str, old: str) -> tuple[str, str]:
    """Return the model's comparisons of 100, and those of the model before, such as `, 74 before`."""
    then = f", {100 * shares[before]:.0f} {old}" if before in shares else ""
    return f"{100 * shares[model]:.0f}", then


def two_digits(value: float) -> int:
    """Return a number rounded up to two digits, as an estimate is told."""
    step: int = 10 ** max(0, len(str(math.ceil(value))) - 2)
    return math.ceil(value / step) * step
