"""Pairs that are duplicates (paraphrases, answers) or not: how well the cosine tells them apart.

Spearman with the binary label (the papers' Table 3), area under the ROC curve, average precision, and
accuracy and F1 at the best threshold, which is found on other pairs than those it is judged on.

Intervals take pairs as independent; where a text is in several pairs they are somewhat too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluate.similarity import Encode, pair_similarity
from angle_train.evaluate.statistics import (
    AreaUnderCurve,
    AveragePrecision,
    FScore,
    MeanOf,
    SpearmanOf,
    Statistic,
)
from angle_train.evaluate.task import HubData, Outcome, Settings, Source, TaskData
from angle_train.evaluate.tasks.sources import class_in, pair_set, read_rows_of

MOST_DEV_PAIRS = 10_000  # enough to place one threshold; QQP's training pairs would be encoded for nothing
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairData:
    """The pairs that are judged, gold 1 or 0, and those, if any, that the thresholds are found on."""

    test: PairSet
    dev: PairSet | None
    dev_split: str | None


@dataclass(frozen=True, slots=True)
class PairTask:
    """Pairs with a binary label.

    Attributes:
        data: Where they are.
        standard_size: Pairs of the published test set.
        split: The split that is judged.
        dev_splits: Splits to find thresholds on; the first that exists is taken.
        positive: The label of the pairs that belong together.
    """

    data: TaskData
    standard_size: int | None
    split: str = "test"
    dev_splits: tuple[str, ...] = ("validation", "train")
    positive: int = 1

    def load(self, source: Source) -> PairData:
        """Read both splits; see `Task`."""
        test = self._read(source, self.split)
        split = next((name for name in self.dev_splits if source.has(self.data, name)), None)
        dev = self._read(source, split) if split else None
        if dev is not None and len(dev) > MOST_DEV_PAIRS:
            chosen = np.sort(np.random.default_rng(0).permutation(len(dev))[:MOST_DEV_PAIRS])
            dev = dev.take(chosen.tolist(), dev.name)
        return PairData(test, dev, split)

    def measure(self, data: PairData, encode: Encode, settings: Settings) -> Outcome:
        """Compute the cosines and judge them."""
        similarity = pair_similarity(data.test, encode)
        gold = data.test.score == 1
        statistics: dict[str, Statistic] = {
            "spearman": SpearmanOf(data.test.score, similarity),
            "auc": AreaUnderCurve(gold, similarity),
            "average_precision": AveragePrecision(gold, similarity),
        }
        details: dict[str, Any] = {"threshold_found_on": None}
        if data.dev is not None:
            dev_similarity, dev_gold = pair_similarity(data.dev, encode), data.dev.score == 1
            by_accuracy = best_threshold(dev_gold, dev_similarity, "accuracy")
            by_f1 = best_threshold(dev_gold, dev_similarity, "f1")
            statistics["accuracy"] = MeanOf(((similarity > by_accuracy) == gold).astype(np.float64))
            statistics["f1"] = FScore(gold, similarity > by_f1)
            details = {
                "threshold_found_on": f"{data.dev_split} ({len(dev_gold)} pairs)",
                "accuracy_threshold": by_accuracy,
                "f1_threshold": by_f1,
            }
        return Outcome(statistics, details, data.test, similarity)

    def _read(self, source: Source, split: str) -> PairSet:
        rows = read_rows_of(source, self.data, split)
        labels = [float(_binary(row, place) == self.positive) for place, row in rows]
        pairs = pair_set(self.data.folder, rows, labels)
        if np.ptp(pairs.score) == 0:
            raise InputError(
                f"{self.data.folder}/{split}: all {len(pairs)} labels say the same; both kinds are needed"
            )
        return pairs


def best_threshold(gold: NDArray[np.bool_], similarity: Array, measure: str) -> float:
    """Return the threshold above which calling pairs positive gives the best `accuracy` or `f1`.

    It lies halfway between two neighbouring similarities, or beyond the last one; of several equally good
    ones it is the highest.

    Args:
        gold: Whether each pair is positive (B,).
        similarity: (B,).
        measure: `accuracy` or `f1`.
    """
    levels, level = np.unique(similarity, return_inverse=True)
    positive = np.bincount(level, weights=gold, minlength=len(levels))[::-1].cumsum()
    called = np.bincount(level, minlength=len(levels))[::-1].cumsum()
    hits, wrong = np.append(0, positive), np.append(0, called - positive)
    total = gold.sum()
    if measure == "accuracy":
        quality = hits + (len(gold) - total - wrong)
    else:
        quality = 2 * hits / (hits + wrong + total)
    below = np.append(levels[::-1], levels[0] - 1)  # next lower level after calling 0, 1, 2 … levels positive
    above = np.append(levels[-1] + 1, levels[::-1])
    return float((above + below)[int(quality.argmax())] / 2)


def _binary(row: Mapping[str, Any], place: str) -> int:
    """Return 0 or 1; a grade or a label that is kept secret (-1 in GLUE) is neither."""
    label = class_in(row, ("label", "is_duplicate"), place)
    if label not in ("0", "1"):
        raise InputError(f"{place}: label must be 0 or 1, got {label}; leave out pairs without a label")
    return int(label)


_GIS_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
GIS = PairTask(TaskData("gis", HubData("WhereIsAI/github-issue-similarity", splits=_GIS_SPLITS)), 1548)
MRPC = PairTask(TaskData("mrpc", HubData("nyu-mll/glue", "mrpc")), 1725)
QQP = PairTask(
    TaskData("qqp", HubData("nyu-mll/glue", "qqp")), 40_430, split="validation", dev_splits=("train",)
)
QNLI = PairTask(  # label 0 is "the sentence answers the question"
    TaskData("qnli", HubData("nyu-mll/glue", "qnli")),
    5463,
    split="validation",
    dev_splits=("train",),
    positive=0,
)
BUG_DUPLICATES = PairTask(TaskData("bug-duplicates"), None, split="validation", dev_splits=("train",))
CQA_QATARLIVING = PairTask(TaskData("cqa-qatarliving"), None)
