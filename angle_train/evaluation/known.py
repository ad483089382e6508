"""Embeddings by text and role: no text is embedded twice while a model's weights stay what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from angle_train.model.roles import Role

MOST_BYTES = 1 << 28
"""So much memory the embeddings take: 256 MB, which is 175,000 texts of width 384."""


class KnownVectors:
    """Embeddings of distinct texts in their roles under one state of a model's weights.

    Whoever changes the weights takes a new one. When `most` bytes are exceeded, all are forgotten and the
    texts at hand are embedded again: so one call of `missing` may hold more, and the next one does not.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._rows: dict[tuple[Role, str], NDArray[np.float32]] = {}

    def missing(self, texts: Sequence[str], role: Role = "") -> list[str]:
        """Return the distinct texts that must be embedded in a role, in their order, and `add`ed."""
        new = [text for text in dict.fromkeys(texts) if (role, text) not in self._rows]
        if new and self._rows:
            a_row = next(iter(self._rows.values())).nbytes
            if (len(self._rows) + len(new)) * a_row > self._most:
                self._rows.clear()
                return list(dict.fromkeys(texts))
        return new

    def add(self, texts: Sequence[str], embeddings: NDArray[np.float32], role: Role = "") -> None:
        """Keep the embeddings (N, D) of N distinct texts in a role."""
        self._rows |= zip(((role, text) for text in texts), embeddings, strict=True)

    def rows_of(self, texts: Sequence[str], role: Role = "") -> NDArray[np.float32]:
        """Return the embeddings (N, D) of N texts in their order; none may be missing."""
        # Row by row: stacking them would hold them twice more.
        found = np.empty((len(texts), len(self._rows[role, texts[0]])), dtype=np.float32)
        for number, text in enumerate(texts):
            found[number] = self._rows[role, text]
        return found
