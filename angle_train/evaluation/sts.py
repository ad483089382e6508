"""Graded pairs as a task: SemEval STS 2012-2016, STS Benchmark, SICK relatedness.

The "all" setting of SimCSE: the pairs of all subsets of a year in one list, one correlation. (SentEval itself
averages over subsets; mteb does as here.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.data.sources import SCORES, Item, number_in, pair_in
from angle_train.evaluation.compare import Outcome, judge
from angle_train.evaluation.similarity import Encode, pair_similarity
from angle_train.evaluation.task import Source, TaskData


@dataclass(frozen=True, slots=True)
class GradedTask:
    """Graded pairs of a test split; the subsets that a file names are taken together.

    Attributes:
        data: Where they are.
        standard_size: Pairs of the published test set.
    """

    data: TaskData
    standard_size: int | None

    def load(self, source: Source) -> PairSet:
        """Read the pairs, whose scores stay on their own scale; see `Task`."""
        rows = source.rows(self.data, "test")
        scores = [number_in(row, SCORES, place) for place, row in rows]
        return scored_pairs(self.data.folder, "test", rows, scores)

    def measure(self, data: PairSet, encode: Encode) -> Outcome:
        """Compute the cosines and judge them."""
        return judge(data, pair_similarity(data, encode))


def scored_pairs(folder: str, split: str, rows: list[Item], scores: list[float]) -> PairSet:
    """Return rows of a task, with their places, as pairs of these scores; all equal is an InputError."""
    if min(scores) == max(scores):
        raise InputError(
            f"{folder}/{split}: all {len(rows)} scores are {scores[0]:g}; a correlation needs others too"
        )
    first, second = map(list, zip(*(pair_in(row, place) for place, row in rows), strict=True))
    return PairSet(
        name=folder,
        text1=first,
        text2=second,
        score=np.array(scores, np.float64),
        weight=np.ones(len(rows)),
        scale="as given",
    )


def _year(year: int, size: int) -> GradedTask:
    return GradedTask(TaskData(f"sts{year}", f"mteb/sts{year}-sts"), size)


STS12 = _year(12, 3108)
STS13 = _year(13, 1500)
STS14 = _year(14, 3750)
STS15 = _year(15, 3000)
STS16 = _year(16, 1186)
STS_B = GradedTask(TaskData("stsb", "mteb/stsbenchmark-sts"), 1379)
# mteb's own SICK-R joins all splits (9,927 pairs); the papers take the test split.
SICK_R = GradedTask(
    TaskData("sick-r", "RobZamp/sick", splits={"test": "test"}, revision="refs/convert/parquet"), 4927
)
