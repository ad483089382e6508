"""Search among the captions of pictures: flickr30k, test split, five captions an image (AnglE 4.5).

The first caption of an image is the query, and all of the five best must be the five captions of the
image. The paper does not say whether the query is among the captions to be found. Taken literally it is,
and then it always comes first, so that the task is to find the other four: `strict_accuracy`. Without
it, the first captions of all images leave the index, and the top four must be the other four:
`strict_accuracy_without_query`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.tables import load_hub_dataset
from angle_train.evaluation.compare import Outcome
from angle_train.evaluation.similarity import Encode, cosine_blocks, unit_rows
from angle_train.evaluation.statistics import mean_of
from angle_train.evaluation.task import Source, TaskData

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
        for place, row in _rows(source, self.data, self.split):
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

    def measure(self, data: tuple[list[str], int], encode: Encode) -> Outcome:
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


def _rows(source: Source, data: TaskData, split: str) -> list[tuple[str, dict[str, Any]]]:
    """Return a split's rows with their places, without its pictures, which take long to decode."""
    if source.root or data.hub is None:
        return source.rows(data, split)
    rows = load_hub_dataset(data.hub, data.splits[split], config=data.config, revision=data.revision)
    images = [name for name, kind in rows.features.items() if type(kind).__name__ == "Image"]
    rows = rows.remove_columns(images)
    return [(f"hub:{data.hub}: row {number}", dict(row)) for number, row in enumerate(rows, start=1)]


_IMAGES = "nlphuji/flickr_1k_test_image_text_retrieval"
FLICKR30K = CaptionTask(TaskData("flickr30k", _IMAGES, None, {"test": "test"}, "refs/convert/parquet"), 1000)
