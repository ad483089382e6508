"""Duplicate search over a pool of reports: each report that has duplicates should find them first.

Recall at k (share of its duplicates among the best k), mean reciprocal rank of the first one, and mean
average precision. Equally similar reports count against the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.evaluate.neighbours import ranks_of
from angle_train.evaluate.sources import Source, TaskData, read_rows_of, text_in
from angle_train.evaluate.statistics import MeanOf, Statistic
from angle_train.evaluate.sts import unit_rows
from angle_train.evaluate.tasks import Encode, Outcome, ScoredPairs, Settings

__all__ = ["BUG_DUPLICATES", "DuplicateTask", "Pool"]

_DEPTHS = (1, 5, 10, 100)


@dataclass(frozen=True, slots=True)
class Pool:
    """N reports; `queries` (Q,) are the rows of those with duplicates, which `relevant` lists."""

    texts: Sequence[str]
    queries: NDArray[np.int64]
    relevant: Sequence[NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class DuplicateTask:
    """Reports (`title`, `body`, or `text`) with the `cluster` of duplicates that each belongs to."""

    data: TaskData
    standard_size: int | None
    split: str

    def load(self, source: Source) -> Pool:
        """Read the reports; see `Task`."""
        texts: list[str] = []
        clusters: dict[str, list[int]] = {}
        for number, (place, row) in enumerate(read_rows_of(source, self.data, self.split)):
            if "text" in row:
                texts.append(text_in(row, "text", place))
            else:
                texts.append(f"{text_in(row, 'title', place)}\n{text_in(row, 'body', place)}")
            if row.get("cluster") is None:
                raise InputError(f"{place}: no cluster; a report without duplicates has one of its own")
            clusters.setdefault(str(row["cluster"]), []).append(number)
        found = sorted((row, rows) for rows in clusters.values() if len(rows) > 1 for row in rows)
        if not found:
            raise InputError(f"{self.data.folder}/{self.split}: no two reports are in one cluster")
        return Pool(
            texts,
            np.array([row for row, _ in found]),
            [np.array([other for other in rows if other != row]) for row, rows in found],
        )

    def pairs(self, data: Pool) -> ScoredPairs | None:
        """Return None: there are no graded pairs."""
        return None

    def measure(self, data: Pool, encode: Encode, settings: Settings) -> Outcome:
        """Rank the pool for every query."""
        ranks = ranks_of(data.relevant, data.queries, unit_rows(encode(data.texts)))
        precision = [float(np.mean(np.arange(1, len(rank) + 1) / rank)) for rank in ranks]
        statistics: dict[str, Statistic] = {
            "map": MeanOf(np.array(precision)),
            "mrr": MeanOf(np.array([1 / rank[0] for rank in ranks])),
        }
        for depth in _DEPTHS:
            shares = [float(np.mean(rank <= depth)) for rank in ranks]
            statistics[f"recall@{depth}"] = MeanOf(np.array(shares))
        return Outcome(statistics, {"pool": len(data.texts)})


BUG_DUPLICATES = DuplicateTask(TaskData("bug-duplicates"), None, split="issues-validation")
