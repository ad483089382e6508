"""One set of scored pairs as several models see it: what a report looks at beyond the scores.

Holds the similarities of all pairs and the embeddings of some, so that no model is needed any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SAMPLED = 500
Sampled = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Embeddings (S, D) of the first and of the second texts of the pairs at `sample`."""


@dataclass(frozen=True, slots=True)
class View:
    """B pairs under some models.

    Attributes:
        name: Of the set.
        text1: First texts.
        text2: Second texts.
        gold: Gold scores (B,), larger for more similar pairs.
        similarity: Model -> cosines (B,); the one that the others are compared with comes first.
        embeddings: Model -> embeddings of the sampled pairs; models may be missing.
    """

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    gold: NDArray[np.float64]
    similarity: Mapping[str, NDArray[np.float64]]
    embeddings: Mapping[str, Sampled]


def sample(count: int) -> NDArray[np.int64]:
    """Return the positions (S,) of at most 500 of `count` pairs, drawn once and for all.

    Every n-th pair would not do: where labels alternate, all of them would have the same one.
    """
    return np.sort(np.random.default_rng(0).choice(count, min(count, _SAMPLED), replace=False))
