"""What a report says about one set of pairs beyond the score: who moved, how spread out the cosines are.

Pure functions from a view to numbers; the papers' own analyses are `evaluate.analysis`. Shapes: B pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.analysis import BANDS, alignment, uniformity
from angle_train.evaluate.compare import Sampled, View, sample

Array = NDArray[np.float64]
Figures = dict[str, float | None]
"""Name of a figure -> value; None where it is about no pair."""


@dataclass(frozen=True, slots=True)
class Change:
    """A pair that two models rank differently.

    Attributes:
        text1, text2: Its texts.
        gold: Its gold score.
        before, after: Its cosine under the two models.
        off_before, off_after: How many places its rank lies from where the gold scores put it.
    """

    text1: str
    text2: str
    gold: float
    before: float
    after: float
    off_before: float
    off_after: float

    @property
    def growth(self) -> float:
        """How many places worse the pair is ranked after than before."""
        return self.off_after - self.off_before


@dataclass(frozen=True, slots=True)
class Band:
    """The pairs whose gold scores lie in [low, high): their number, and mean and spread of their cosines.

    Attributes:
        low, high: In the scores' own units; the last band holds its upper end too.
        count: Pairs.
        means, spreads: Of the cosines, model by model; the spread is the standard deviation.
    """

    low: float
    high: float
    count: int
    means: list[float]
    spreads: list[float]


def biggest_changes(view: View, before: str, after: str, most: int = 10) -> tuple[list[Change], list[Change]]:
    """Return the pairs whose rank got most wrong and those whose rank got most right, `most` of each at most.

    Ranks count from the lowest, ties share their mean rank. Pairs whose error did not change are in neither.
    """
    from scipy.stats import rankdata

    wanted = rankdata(view.gold)
    off = [np.abs(rankdata(view.similarity[model]) - wanted) for model in (before, after)]
    growth = off[1] - off[0]
    order = np.argsort(-growth, kind="stable")
    worse = [i for i in order[:most] if growth[i] > 0]
    better = [i for i in order[::-1][:most] if growth[i] < 0]

    def change(i: int) -> Change:
        return Change(
            text1=view.text1[i],
            text2=view.text2[i],
            gold=float(view.gold[i]),
            before=float(view.similarity[before][i]),
            after=float(view.similarity[after][i]),
            off_before=float(off[0][i]),
            off_after=float(off[1][i]),
        )

    return [change(i) for i in worse], [change(i) for i in better]


def bands(view: View) -> list[Band]:
    """Return the cosines' mean and spread in each fifth of the range of gold scores; empty ones left out."""
    low, high = float(view.gold.min()), float(view.gold.max())
    unit = (view.gold - low) / (high - low)
    number = np.minimum((unit * BANDS).astype(np.int64), BANDS - 1)
    edges = [low + (high - low) * part / BANDS for part in range(BANDS + 1)]
    columns = list(view.similarity.values())
    return [
        Band(
            edges[band],
            edges[band + 1],
            int((number == band).sum()),
            [float(column[number == band].mean()) for column in columns],
            [float(column[number == band].std()) for column in columns],
        )
        for band in range(BANDS)
        if (number == band).any()
    ]


def space_figures(similarity: Array, gold: Array, sampled: Sampled | None) -> Figures:
    """Return the papers' figures of one model on one set of pairs.

    Shares of pairs with cosines above 0.95 and 0.8 are over all pairs; the others, which need embeddings,
    over the sampled ones: see `evaluate.analysis` for what each is. Alignment is over the highest fifth of
    the gold scores.
    """
    figures: Figures = {
        "cosine above 0.95": float((similarity > 0.95).mean()),
        "cosine above 0.8": float((similarity > 0.8).mean()),
    }
    if sampled is None:
        return figures
    first, second = sampled
    chosen = gold[sample(len(gold))]
    close = chosen >= gold.max() - np.ptp(gold) / BANDS
    figures["alignment"] = alignment(first[close], second[close]) if close.any() else None
    figures["uniformity"] = uniformity(np.vstack([first, second]))
    return figures


def score_counts(scores: Sequence[float] | Array) -> dict[str, int]:
    """Return how often each score (0..1) occurs, or each tenth of the range where there are more than 11."""
    values, counts = np.unique(np.round(np.asarray(scores, dtype=np.float64), 4), return_counts=True)
    if len(values) <= 11:
        return {f"{value:g}": int(count) for value, count in zip(values, counts, strict=True)}
    numbers, _ = np.histogram(scores, bins=10, range=(0.0, 1.0))
    return {f"{i / 10:g}-{(i + 1) / 10:g}": int(count) for i, count in enumerate(numbers)}
