"""Pairs that belong together or not: AnglE Table 3, and two sets at hand that stand in for it.

Spearman as in the papers, and beyond them the area under the ROC curve, average precision, and accuracy
at the threshold that is best on other pairs than those that are judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from classes import class_in

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluation.compare import BEST_ACCURACY, Outcome, accuracy_of, best_threshold, judge
from angle_train.evaluation.similarity import Encode, pair_similarity
from angle_train.evaluation.sts import scored_pairs
from angle_train.evaluation.task import Source, TaskData

MOST_DEV_PAIRS = 10_000  # enough to place one threshold; QQP's training pairs would be encoded for nothing


@dataclass(frozen=True, slots=True)
class BinaryTask:
    """Pairs of two kinds.

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

    def load(self, source: Source) -> tuple[PairSet, PairSet | None]:
        """Read the split that is judged, and the one, if any, that the threshold is found on; see `Task`."""
        test = self._read(source, self.split)
        split = next((name for name in self.dev_splits if source.has(self.data, name)), None)
        dev = self._read(source, split) if split else None
        if dev is not None and len(dev) > MOST_DEV_PAIRS:
            chosen = np.sort(np.random.default_rng(0).permutation(len(dev))[:MOST_DEV_PAIRS])
            dev = dev.take(chosen.tolist(), dev.name)
        return test, dev and replace(dev, name=str(split))

    def measure(self, data: tuple[PairSet, PairSet | None], encode: Encode) -> Outcome:
        """Compute the cosines and judge them."""
        test, dev = data
        outcome = judge(test, pair_similarity(test, encode))
        if dev is None:
            return outcome
        threshold = best_threshold(dev.score == 1, pair_similarity(dev, encode))
        statistics = {name: value for name, value in outcome.statistics.items() if name != BEST_ACCURACY}
        statistics["accuracy"] = accuracy_of(test.score == 1, outcome.similarity, threshold)
        return replace(outcome, statistics=statistics)

    def _read(self, source: Source, split: str) -> PairSet:
        rows = source.rows(self.data, split)
        return scored_pairs(self.data.folder, split, rows, [self._score(row, place) for place, row in rows])

    def _score(self, row: dict[str, Any], place: str) -> float:
        label = class_in(row, place)
        if label not in ("0", "1"):  # a grade, or a label that is kept secret (-1 in GLUE)
            raise InputError(f"{place}: label must be 0 or 1, got {label}; leave out pairs without a label")
        return float(int(label) == self.positive)


_GIS_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
GIS = BinaryTask(TaskData("gis", "WhereIsAI/github-issue-similarity", splits=_GIS_SPLITS), 1548)
MRPC = BinaryTask(TaskData("mrpc", "nyu-mll/glue", "mrpc"), 1725)
QQP = BinaryTask(TaskData("qqp", "nyu-mll/glue", "qqp"), 40_430, split="validation", dev_splits=("train",))
QNLI = BinaryTask(  # label 0 is "the sentence answers the question"
    TaskData("qnli", "nyu-mll/glue", "qnli"),
    5463,
    split="validation",
    dev_splits=("train",),
    positive=0,
)
BUG_DUPLICATES = BinaryTask(TaskData("bug-duplicates"), None, split="validation", dev_splits=("train",))
CQA_QATARLIVING = BinaryTask(TaskData("cqa-qatarliving"), None)
