"""Texts that are to keep their similarities: what a batch takes of them, and the term that holds them.

In every step some of the texts are encoded beside the pairs, and all cosines among them are held near the
backbone's: M texts give M · (M - 1) / 2 similarities to keep, where a pair of texts would give one. So few
texts a step keep much (benchmarks/log/no-harm.md).

Source: similarities of examples as what is distilled, Park et al. 2019, https://arxiv.org/abs/1904.05068; the
model's own answers against forgetting, Li and Hoiem 2016, https://arxiv.org/abs/1606.09282.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from angle_train.objective.terms import unit_rows

# Ranks of neighbours: two of the near ones are drawn with a text, and one of those beyond.
_NEAR = 8
_FAR = 40
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """P texts with what the backbone says of them.

    Attributes:
        texts: The texts.
        vectors: Their embeddings (P, D), of length 1.
        neighbours: Places (P, K) of the most similar other texts, the most similar first.
    """

    texts: Sequence[str]
    vectors: NDArray[np.float32]
    neighbours: NDArray[np.int64]

    def draw(self, count: int, generator: torch.Generator) -> list[int]:
        """Return the places of `count` distinct texts, or of all, the shortest first.

        Some are random, each with three others: two are near and one is farther away, so that a batch holds
        similarities of all sizes.
        """
        count = min(count, len(self.texts))
        near = min(_NEAR, self.neighbours.shape[1])
        places: dict[int, None] = {}
        while len(places) < count:
            one = int(torch.randint(len(self.texts), (1,), generator=generator))
            order = torch.randperm(near, generator=generator)[:2].tolist()
            rest = torch.randint(near - 1, self.neighbours.shape[1], (1,), generator=generator).tolist()
            group = (one, *(int(self.neighbours[one, rank]) for rank in (*order, *rest)))
            for place in group[: count - len(places)]:
                places.setdefault(place)
        return sorted(places, key=lambda place: (len(self.texts[place]), place))

    def at(self, places: Sequence[int]) -> list[str]:
        """Return the texts at these places."""
        return [self.texts[place] for place in places]

    def table(self, places: Sequence[int]) -> Tensor:
        """Return the backbone's cosines (M, M) of the texts at these places with each other."""
        own = torch.from_numpy(self.vectors[list(places)])
        return own @ own.T


def kept_of(texts: Sequence[str], embeddings: NDArray[np.float32]) -> Kept:
    """Return texts, at least two, with the backbone's embeddings (P, D) of them."""
    vectors = unit_rows(torch.from_numpy(embeddings)).numpy()
    most = min(_FAR, len(texts) - 1)
    neighbours = np.empty((len(texts), most), dtype=np.int64)
    for start in range(0, len(texts), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf  # a text is no neighbour of its own
        neighbours[start : start + _BLOCK] = np.argsort(-cosines, axis=1, kind="stable")[:, :most]
    return Kept(texts, vectors, neighbours)


def kept_objective(embeddings: Tensor, table: Tensor) -> Tensor:
    """Return the mean squared difference of the cosines of texts (M, D) from those of a table (M, M)."""
    unit = unit_rows(embeddings)
    apart = ~torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    with torch.autocast(unit.device.type, enabled=False):
        return (unit @ unit.T - table)[apart].square().mean()
