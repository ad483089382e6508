"""Semantic textual similarity: Spearman's correlation of cosines with graded scores.

The "all" setting of SimCSE: the pairs of all subsets of a year in one list, one correlation. (SentEval
itself averages over subsets; mteb does as here.) Data: SemEval STS 2012-2016, STS Benchmark, SICK.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluate.similarity import Encode
from angle_train.evaluate.suite import spearman_outcome
from angle_train.evaluate.task import HubData, Outcome, Settings, Source, TaskData
from angle_train.evaluate.tasks.sources import number_in, pair_set, read_rows_of

_SCORES = ("score", "relatedness_score", "similarity_score", "label")


@dataclass(frozen=True, slots=True)
class StsTask:
    """Graded pairs; their subsets, where a file names some, are taken together.

    Attributes:
        data: Where they are.
        standard_size: Pairs of the published test set.
        split: The split that is scored.
    """

    data: TaskData
    standard_size: int | None
    split: str = "test"

    def load(self, source: Source) -> PairSet:
        """Read the pairs; see `Task`."""
        rows = read_rows_of(source, self.data, self.split)
        pairs = pair_set(self.data.folder, rows, [number_in(row, _SCORES, place) for place, row in rows])
        if np.ptp(pairs.score) == 0:
            raise InputError(
                f"{self.data.folder}/{self.split}: all {len(pairs)} scores are {pairs.score[0]:g}; "
                "a correlation needs different ones"
            )
        return pairs

    def measure(self, data: PairSet, encode: Encode, settings: Settings) -> Outcome:
        """Correlate the cosines with the gold scores."""
        return spearman_outcome(data, encode)


def _year(year: int, size: int) -> StsTask:
    return StsTask(TaskData(f"sts{year}", HubData(f"mteb/sts{year}-sts")), size)


STS12, STS13, STS14 = _year(12, 3108), _year(13, 1500), _year(14, 3750)
STS15, STS16 = _year(15, 3000), _year(16, 1186)
STS_B = StsTask(TaskData("stsb", HubData("mteb/stsbenchmark-sts")), 1379)
# mteb's own SICK-R joins all splits (9,927 pairs); the papers take the test split.
SICK_R = StsTask(
    TaskData("sick-r", HubData("RobZamp/sick", splits={"test": "test"}, revision="refs/convert/parquet")),
    4927,
)
