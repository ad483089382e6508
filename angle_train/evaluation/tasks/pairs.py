"""Pairs that are graded, or that are duplicates (paraphrases, answers) or not; figures by `compare.judge`.

Graded pairs: the "all" setting of SimCSE, the pairs of all subsets of a year in one list, one correlation.
(SentEval itself averages over subsets; mteb does as here.) Data: SemEval STS 2012-2016, STS Benchmark, SICK.
Pairs of two kinds: the papers' Table 3, and thresholds found on other pairs than those they are judged on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from angle_data.errors import InputError
from angle_train.data.columns import SCORES, class_in, number_in, pair_in
from angle_train.data.pairs import PairSet
from angle_train.evaluation.compare import judge
from angle_train.evaluation.similarity import Encode, pair_similarity
from angle_train.evaluation.task import Outcome, Source, TaskData

MOST_DEV_PAIRS = 10_000  # enough to place one threshold; QQP's training pairs would be encoded for nothing


@dataclass(frozen=True, slots=True)
class PairTask:
    """Graded pairs, whose subsets, where a file names some, are taken together; or pairs of two kinds.

    Attributes:
        data: Where they are.
        standard_size: Pairs of the published test set.
        split: The split that is judged.
        dev_splits: Splits to find thresholds on; the first that exists is taken.
        positive: The label of the pairs that belong together; None where pairs are graded.
    """

    data: TaskData
    standard_size: int | None
    split: str = "test"
    dev_splits: tuple[str, ...] = ("validation", "train")
    positive: int | None = 1

    def load(self, source: Source) -> tuple[PairSet, PairSet | None]:
        """Read the split that is judged, and the one, if any, that the threshold is found on; see `Task`."""
        test = self._read(source, self.split)
        split = next((name for name in self.dev_splits if source.has(self.data, name)), None)
        dev = self._read(source, split) if split else None
        if dev is not None and len(dev) > MOST_DEV_PAIRS:
            chosen = np.sort(np.random.default_rng(0).permutation(len(dev))[:MOST_DEV_PAIRS])
            dev = dev.take(chosen.tolist(), dev.name)
        return test, dev and replace(dev, name=str(split))

    def measure(self, data: tuple[PairSet, PairSet | None], encode: Encode, seed: int) -> Outcome:
        """Compute the cosines and judge them."""
        test, dev = data
        similarity = pair_similarity(test, encode)
        return judge(test, similarity, (dev, pair_similarity(dev, encode)) if dev is not None else None)

    def _read(self, source: Source, split: str) -> PairSet:
        """Return a split with its scores, which stay on their own scale."""
        rows = source.rows(self.data, split)
        scores = [self._score(row, place) for place, row in rows]
        if min(scores) == max(scores):
            raise InputError(
                f"{self.data.folder}/{split}: all {len(rows)} scores are {scores[0]:g}; a correlation needs "
                "different ones"
            )
        first, second = map(list, zip(*(pair_in(row, place) for place, row in rows), strict=True))
        score, weight = np.array(scores, np.float64), np.ones(len(rows))
        return PairSet(self.data.folder, first, second, score, weight, scale="as given")

    def _score(self, row: dict[str, Any], place: str) -> float:
        if self.positive is None:
            return number_in(row, SCORES, place)
        label = class_in(row, place)
        if label not in ("0", "1"):  # a grade, or a label that is kept secret (-1 in GLUE)
            raise InputError(f"{place}: label must be 0 or 1, got {label}; leave out pairs without a label")
        return float(int(label) == self.positive)


def _graded(data: TaskData, size: int) -> PairTask:
    return PairTask(data, size, dev_splits=(), positive=None)


def _year(year: int, size: int) -> PairTask:
    return _graded(TaskData(f"sts{year}", f"mteb/sts{year}-sts"), size)


STS12, STS13, STS14 = _year(12, 3108), _year(13, 1500), _year(14, 3750)
STS15, STS16 = _year(15, 3000), _year(16, 1186)
STS_B = _graded(TaskData("stsb", "mteb/stsbenchmark-sts"), 1379)
# mteb's own SICK-R joins all splits (9,927 pairs); the papers take the test split.
SICK_R = _graded(
    TaskData("sick-r", "RobZamp/sick", splits={"test": "test"}, revision="refs/convert/parquet"),
    4927,
)
_GIS_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
GIS = PairTask(TaskData("gis", "WhereIsAI/github-issue-similarity", splits=_GIS_SPLITS), 1548)
MRPC = PairTask(TaskData("mrpc", "nyu-mll/glue", "mrpc"), 1725)
QQP = PairTask(TaskData("qqp", "nyu-mll/glue", "qqp"), 40_430, split="validation", dev_splits=("train",))
QNLI = PairTask(  # label 0 is "the sentence answers the question"
    TaskData("qnli", "nyu-mll/glue", "qnli"),
    5463,
    split="validation",
    dev_splits=("train",),
    positive=0,
)
BUG_DUPLICATES = PairTask(TaskData("bug-duplicates"), None, split="validation", dev_splits=("train",))
CQA_QATARLIVING = PairTask(TaskData("cqa-qatarliving"), None)
