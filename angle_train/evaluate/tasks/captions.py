"""Strict accuracy of caption retrieval: are the captions nearest to a caption exactly those of its image?

The AnglE paper: five captions an image (flickr30k, test split), the first one is the query, "all the top five
sentences retrieved are equal to the five reference sentences". It does not say whether the query is among
the captions to be found. Taken literally it is, and then it always comes first, so that the task is to
find the other four. With `query_in_index` false the first captions of all images leave the index, and the top
four must be the other four. A caption that reads like one of the image's counts as it, but once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.evaluate.similarity import Encode, cosine_blocks, unit_rows
from angle_train.evaluate.statistics import MeanOf
from angle_train.evaluate.task import HubData, Outcome, Settings, Source, TaskData
from angle_train.evaluate.tasks.sources import read_rows_of


@dataclass(frozen=True, slots=True)
class Captions:
    """All captions, those of an image together, and how many each image has (the same for all)."""

    texts: Sequence[str]
    per_image: int


@dataclass(frozen=True, slots=True)
class CaptionTask:
    """Images with the same number of captions each."""

    data: TaskData
    standard_size: int | None
    split: str = "test"

    def load(self, source: Source) -> Captions:
        """Read the captions; see `Task`."""
        texts: list[str] = []
        counts: set[int] = set()
        for place, row in read_rows_of(source, self.data, self.split):
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
        return Captions(texts, counts.pop())

    def measure(self, data: Captions, encode: Encode, settings: Settings) -> Outcome:
        """Search with the first caption of every image."""
        unit = unit_rows(encode(data.texts))
        first = np.arange(0, len(unit), data.per_image)
        index = np.arange(len(unit))
        if not settings.query_in_index:
            index = np.setdiff1d(index, first)
        k = data.per_image if settings.query_in_index else data.per_image - 1
        found = index[top_k(unit[first], unit[index], k)]
        own = _own(data, found, first, k)
        where = "among" if settings.query_in_index else "not among"
        return Outcome(
            {
                "strict_accuracy": MeanOf((own == k).astype(np.float64)),
                "recall": MeanOf(own / k),
            },
            {"protocol": f"top {k}, the query {where} the captions to be found"},
        )


def _own(data: Captions, found: NDArray[np.int64], first: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return how many (Q,) of the last k captions of each query's image are among the found ones (Q, k)."""
    wanted = [Counter(data.texts[end - k : end]) for end in first + data.per_image]
    read = [Counter(data.texts[row] for row in line) for line in found]
    return np.array([(a & b).total() for a, b in zip(wanted, read, strict=True)])


def top_k(queries: NDArray[np.float64], documents: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the k documents (Q, k) most similar to each query, best first, equal ones by position.

    Args:
        queries: Unit rows (Q, D).
        documents: Unit rows (N, D), N at least k.
        k: How many.
    """
    found = np.empty((len(queries), k), dtype=np.int64)
    for rows, similarity in cosine_blocks(queries, documents):
        found[rows] = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return found


_HUB = HubData("nlphuji/flickr_1k_test_image_text_retrieval", None, {"test": "test"}, "refs/convert/parquet")
FLICKR30K = CaptionTask(TaskData("flickr30k", _HUB), 1000)
