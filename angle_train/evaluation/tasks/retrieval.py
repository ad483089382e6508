"""Search: the captions of a picture among all captions, the duplicates of a report among all reports.

Captions (flickr30k, test split, five an image; the AnglE paper): the first one is the query, "all the top
five sentences retrieved are equal to the five reference sentences". It does not say whether the query is
among the captions to be found. Taken literally it is, and then it always comes first, so that the task is to
find the other four: `strict_accuracy`. Without it, the first captions of all images leave the index, and the
top four must be the other four: `strict_accuracy_without_query`.

Duplicates: each report that has some should find them first. Recall at k (share of its duplicates among the
best k), mean reciprocal rank of the first one, and mean average precision. Equally similar reports count
against the model. The queries of one cluster look for each other, so they succeed and fail together: what the
bootstrap draws are clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.columns import text_in
from angle_train.evaluation.similarity import Encode, cosine_blocks, unit_rows
from angle_train.evaluation.statistics import mean_of
from angle_train.evaluation.task import Outcome, Source, TaskData

_DEPTHS = (1, 5, 10, 100)
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CaptionTask:
    """Images with the same number of captions each."""

    data: TaskData
    standard_size: int | None
    split: str = "test"

    def load(self, source: Source) -> tuple[list[str], int]:
        """Read the captions, those of an image together, and how many each has; see `Task`."""
        texts: list[str] = []
        counts: set[int] = set()
        for place, row in source.rows(self.data, self.split):
            captions = row.get("captions", row.get("caption"))
            if not isinstance(captions, list) or not all(isinstance(text, str) for text in captions):
                raise InputError(f"{place}: captions must be a list of texts, got {captions!r}")
            texts += captions
            counts.add(len(captions))
        if len(counts) != 1 or max(counts) < 2:
            raise InputError(
                f"{self.data.folder}/{self.split}: images have {sorted(counts)} captions; all must have the "
                "same number, at least two"
            )
        return texts, counts.pop()

    def measure(self, data: tuple[list[str], int], encode: Encode, seed: int) -> Outcome:
        """Search with the first caption of every image."""
        texts, per_image = data
        unit = unit_rows(encode(texts))
        first = np.arange(0, len(unit), per_image)
        others = np.setdiff1d(np.arange(len(unit)), first)
        found = {
            "strict_accuracy": top_k(unit[first], unit, per_image),
            "strict_accuracy_without_query": others[top_k(unit[first], unit[others], per_image - 1)],
        }
        own = {
            name: (rows // per_image == first[:, None] // per_image).all(1) for name, rows in found.items()
        }
        return Outcome({name: mean_of(correct.astype(np.float64)) for name, correct in own.items()})


def top_k(queries: NDArray[np.float64], documents: NDArray[np.float64], k: int) -> Ints:
    """Return the k documents (Q, k) most similar to each query, best first, equal ones by position.

    Queries (Q, D) and documents (N, D), at least k, are unit rows.
    """
    found = np.empty((len(queries), k), dtype=np.int64)
    for rows, similarity in cosine_blocks(queries, documents):
        found[rows] = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return found


_IMAGES = "nlphuji/flickr_1k_test_image_text_retrieval"
FLICKR30K = CaptionTask(TaskData("flickr30k", _IMAGES, None, {"test": "test"}, "refs/convert/parquet"), 1000)


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
                raise InputError(f"{place}: no cluster; a report without duplicates has one of its own")
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

    def measure(self, data: Pool, encode: Encode, seed: int) -> Outcome:
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
