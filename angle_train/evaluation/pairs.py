"""What cosines of scored pairs are worth: their rank correlation, and how well they tell two kinds apart.

Pairs of two kinds (scores 0 and 1 alone) have the area under the ROC curve, average precision, and accuracy
at the best threshold too. The threshold is found on other pairs where there are some.
Intervals take pairs as independent; where a text is in several pairs they are somewhat too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_train.data.pairs import PairSet
from angle_train.evaluation.compare import SPEARMAN
from angle_train.evaluation.similarity import Encode, pair_similarity
from angle_train.evaluation.statistics import (
    Ranked,
    area_under_curve,
    average_precision,
    mean_of,
    spearman_of,
)
from angle_train.evaluation.task import Outcome, Source

BEST_ACCURACY = "best_accuracy"
"""Accuracy at the threshold that is best on the very pairs it is judged on."""
Array = NDArray[np.float64]


def judge(
    pairs: PairSet,
    similarity: Array,
    dev: tuple[PairSet, Array] | None = None,
    ranked: Ranked | None = None,
) -> Outcome:
    """Return the figures of cosines, or of other similarities.

    Args:
        pairs: Pairs with gold scores, not all equal.
        similarity: Of each pair (B,).
        dev: Other pairs of two kinds, with their similarities, that the threshold is found on; default the
            pairs themselves.
        ranked: The gold scores', where several models share it.
    """
    statistics = {SPEARMAN: spearman_of(pairs.score, similarity, ranked)}
    if set(np.unique(pairs.score).tolist()) == {0.0, 1.0}:
        gold = pairs.score == 1
        statistics["auc"] = area_under_curve(gold, similarity)
        statistics["average_precision"] = average_precision(gold, similarity)
        known, found = (dev[0].score == 1, dev[1]) if dev else (gold, similarity)
        threshold = best_threshold(known, found)
        correct = mean_of(((similarity > threshold) == gold).astype(np.float64))
        statistics["accuracy" if dev else BEST_ACCURACY] = correct
    return Outcome(statistics, pairs, similarity)


def best_threshold(gold: NDArray[np.bool_], similarity: Array) -> float:
    """Return the threshold above which calling pairs positive is right most often.

    It lies halfway between two neighbouring similarities (B,), or beyond the last one; of several equally
    good ones it is the highest. `gold` (B,) says which pairs are positive.
    """
    levels, level = np.unique(similarity, return_inverse=True)
    gained = np.bincount(level, weights=2.0 * gold - 1, minlength=len(levels))[::-1].cumsum()
    right = np.append(0, gained)  # more than calling none positive, after calling 0, 1, 2 … levels positive
    below = np.append(levels[::-1], levels[0] - 1)  # next lower level then
    above = np.append(levels[-1] + 1, levels[::-1])
    return float((above + below)[int(right.argmax())] / 2)


@dataclass(frozen=True, slots=True)
class OwnPairs:
    """The task that a set of the user's own pairs is; `ranked` are its gold scores."""

    pairs: PairSet
    ranked: Ranked
    standard_size: int | None = None

    def load(self, source: Source) -> PairSet:
        """Return the pairs."""
        return self.pairs

    def measure(self, data: PairSet, encode: Encode, seed: int) -> Outcome:
        """Judge the cosines."""
        return judge(data, pair_similarity(data, encode), ranked=self.ranked)
