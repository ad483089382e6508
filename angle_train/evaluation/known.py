"""Embeddings by text, so that no text is embedded twice while a model's weights stay what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 28
"""So much memory the embeddings take: 256 MB, which is 175,000 texts of width 384."""


class KnownVectors:
    """Embeddings of distinct texts under one state of a model's weights.

    Whoever changes the weights takes a new one. When `most` bytes are exceeded, all are forgotten and the
    texts at hand are embedded again: so one call of `missing` may hold more, and the next one does not.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._rows: dict[str, NDArray[np.float32]] = {}

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct texts that must be embedded, in their order, and `add`ed."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new and self._rows:
            a_row = next(iter(self._rows.values())).nbytes
            if (len(self._rows) + len(new)) * a_row > self._most:
                self._rows.clear()
                return list(dict.fromkeys(texts))
        return new

    def add(self, texts: Sequence[str], embeddings: NDArray[np.float32]) -> None:
        """Keep the embeddings (N, D) of N distinct texts."""
        self._rows |= zip(texts, embeddings, strict=True)

    def rows_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of N texts in their order; none may be missing."""
        # Row by row: stacking them would hold them twice more.
        found = np.empty((len(texts), len(self._rows[texts[0]])), dtype=np.float32)
        for number, text in enumerate(texts):
            found[number] = self._rows[text]
        return found
