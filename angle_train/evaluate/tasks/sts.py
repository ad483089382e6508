"""Semantic textual similarity: Spearman's correlation of cosines with graded scores.

The "all" setting of SimCSE: the pairs of all subsets of a year in one list, one correlation. (SentEval
itself averages over subsets; mteb does as here.) Data: SemEval STS 2012-2016, STS Benchmark, SICK.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from angle_data.errors import InputError
from angle_train.evaluate.similarity import cosine_rows
from angle_train.evaluate.statistics import SpearmanOf
from angle_train.evaluate.tasks.registry import Encode, Outcome, ScoredPairs, Settings
from angle_train.evaluate.tasks.sources import HubData, Source, TaskData, number_in, pair_in, read_rows_of

_SCORES = ("score", "relatedness_score", "similarity_score", "label")


@dataclass(frozen=True, slots=True)
class StsTask:
    """Graded pairs; their subsets, where a file names some, are taken together.

    Attributes:
        data: Where they stand.
        standard_size: Pairs of the published test set.
        split: The split that is scored.
    """

    data: TaskData
    standard_size: int | None
    split: str = "test"

    def load(self, source: Source) -> ScoredPairs:
        """Read the pairs; see `Task`."""
        rows = read_rows_of(source, self.data, self.split)
        texts = [pair_in(row, place) for place, row in rows]
        gold = np.array([number_in(row, _SCORES, place) for place, row in rows])
        if gold.min() == gold.max():
            raise InputError(
                f"{self.data.folder}/{self.split}: all {len(gold)} scores are {gold[0]:g}; "
                "a correlation needs different ones"
            )
        return ScoredPairs([a for a, _ in texts], [b for _, b in texts], gold)

    def pairs(self, data: ScoredPairs) -> ScoredPairs:
        """Return the pairs themselves."""
        return data

    def measure(self, data: ScoredPairs, encode: Encode, settings: Settings) -> Outcome:
        """Correlate the cosines with the gold scores."""
        similarity = cosine_rows(encode(data.text1), encode(data.text2))
        return Outcome({"spearman": SpearmanOf(data.gold, similarity)}, similarity=similarity)


def _year(year: int, size: int) -> StsTask:
    return StsTask(TaskData(f"sts{year}", HubData(f"mteb/sts{year}-sts")), size)


STS12, STS13, STS14 = _year(12, 3108), _year(13, 1500), _year(14, 3750)
STS15, STS16 = _year(15, 3000), _year(16, 1186)
STS_B = StsTask(TaskData("stsb", HubData("mteb/stsbenchmark-sts")), 1379)
# mteb's own SICK-R joins all splits (9,927 pairs); the papers take the test split.
SICK_R = StsTask(
    TaskData(
        "sick-r",
        HubData("RobZamp/sick", splits=MappingProxyType({"test": "test"}), revision="refs/convert/parquet"),
    ),
    4927,
)
