"""Duplicate search as a task: the duplicates of a report among all reports.

Each report that has some should find them first. Recall at k (share of its duplicates among the best k), mean
reciprocal rank of the first one, and mean average precision. Equally similar reports count against the model.
The queries of one cluster look for each other, so they succeed and fail together: what the bootstrap draws
are clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.sources import text_in
from angle_train.evaluation.compare import Outcome
from angle_train.evaluation.similarity import Encode, cosine_blocks, unit_rows
from angle_train.evaluation.statistics import mean_of
from angle_train.evaluation.task import Source, TaskData

_DEPTHS = (1, 5, 10, 100)
Ints = NDArray[np.int64]

Pool = tuple[Sequence[str], Ints, Sequence[Ints], Ints]
"""N reports; rows (Q,) of those with duplicates, the queries; the rows of the duplicates of each; and the
number of each query's cluster, from 0 up."""


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
        for number, (place, row) in enumerate(source.rows(self.data, self.split)):
            if "text" in row:
                texts.append(text_in(row, "text", place))
            else:
                texts.append(f"{text_in(row, 'title', place)}\n{text_in(row, 'body', place)}")
            if row.get("cluster") is None:
                raise InputError(f"{place}: no cluster; a report without duplicates needs its own")
            clusters.setdefault(str(row["cluster"]), []).append(number)
        several = [rows for rows in clusters.values() if len(rows) > 1]
        found = sorted((row, rows, cluster) for cluster, rows in enumerate(several) for row in rows)
        if not found:
            raise InputError(f"{self.data.folder}/{self.split}: no two reports are in one cluster")
        return (
            texts,
            np.array([row for row, _, _ in found]),
            [np.array([other for other in rows if other != row]) for row, rows, _ in found],
            np.array([cluster for _, _, cluster in found]),
        )

    def measure(self, data: Pool, encode: Encode) -> Outcome:
        """Rank the pool for every query."""
        texts, queries, relevant, cluster = data
        ranks = ranks_of(relevant, queries, unit_rows(encode(texts)))
        figures = {
            "map": [np.mean(np.arange(1, len(rank) + 1) / rank) for rank in ranks],
            "mrr": [1 / rank[0] for rank in ranks],
        } | {f"recall@{depth}": [np.mean(rank <= depth) for rank in ranks] for depth in _DEPTHS}
        sizes = np.bincount(cluster).astype(np.float64)  # the items are clusters
        means = {name: np.bincount(cluster, weights=v) / sizes for name, v in figures.items()}
        return Outcome({name: mean_of(values, sizes) for name, values in means.items()})


def ranks_of(relevant: Sequence[Ints], queries: Ints, embeddings: NDArray[np.float64]) -> list[Ints]:
    """Return for every query the ranks, from 1 up and ascending, of the documents it should find.

    All rows of `embeddings` are documents, except for the query itself. Of equally similar documents the
    relevant one comes last: a model that gives everything the same embedding finds nothing.

    Args:
        relevant: For every query the rows (at least one) that it should find.
        queries: Row of each query (Q,).
        embeddings: Unit rows (N, D).
    """
    ranks: list[Ints] = []
    for block, similarity in cosine_blocks(embeddings[queries], embeddings):
        similarity[np.arange(len(similarity)), queries[block]] = -np.inf
        for line, wanted in zip(similarity, relevant[block], strict=True):
            wanted_similarity = np.sort(line[wanted])[::-1]
            at_least = np.array([np.count_nonzero(line >= value) for value in wanted_similarity])
            found = np.searchsorted(-wanted_similarity, -wanted_similarity, side="right")
            ranks.append(at_least - found + np.arange(1, len(wanted) + 1))
    return ranks


BUG_DUPLICATES = DuplicateTask(TaskData("bug-duplicates"), None, split="issues-validation")
