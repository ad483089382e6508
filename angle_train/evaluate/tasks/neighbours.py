"""Nearest texts by cosine: the best k of an index, and the ranks of what should have been found.

Works through blocks of queries, so memory stays bounded. Knows embeddings only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.similarity import COSINE_DECIMALS

_BLOCK_CELLS = 10_000_000  # similarities held at once: 80 MB
Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def top_k(queries: Array, documents: Array, k: int, use_faiss: bool | None = None) -> Rows:
    """Return the k documents (Q, k) most similar to each query, best first, equal ones by position.

    Args:
        queries: Unit rows (Q, D).
        documents: Unit rows (N, D), N at least k.
        k: How many.
        use_faiss: Search with faiss, exactly; default where it is installed. Its inner products are in single
            precision, so documents that are equally similar up to 1e-7 may come in another order.
    """
    if use_faiss is None:
        use_faiss = importlib.util.find_spec("faiss") is not None
    if use_faiss:
        return _faiss_top_k(queries, documents, k)
    found = np.empty((len(queries), k), dtype=np.int64)
    for rows in _blocks(len(queries), len(documents)):
        similarity = _similarities(queries[rows], documents)
        found[rows] = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return found


def _faiss_top_k(queries: Array, documents: Array, k: int) -> Rows:
    import faiss

    index = faiss.IndexFlatIP(documents.shape[1])
    index.add(np.ascontiguousarray(documents, dtype=np.float32))
    _, found = index.search(np.ascontiguousarray(queries, dtype=np.float32), k)
    result: Rows = found.astype(np.int64)
    return result


def ranks_of(relevant: Sequence[Rows], queries: Rows, embeddings: Array) -> list[Rows]:
    """Return for every query the ranks, from 1 up and ascending, of the documents it should find.

    All rows of `embeddings` are documents, except for the query itself. Of equally similar documents the
    relevant one comes last: a model that gives everything the same embedding finds nothing.

    Args:
        relevant: For every query the rows (at least one) that it should find.
        queries: Row of each query (Q,).
        embeddings: Unit rows (N, D).
    """
    ranks: list[Rows] = []
    for rows in _blocks(len(queries), len(embeddings)):
        similarity = _similarities(embeddings[queries[rows]], embeddings)
        similarity[np.arange(len(similarity)), queries[rows]] = -np.inf
        for line, wanted in zip(similarity, relevant[rows], strict=True):
            wanted_similarity = np.sort(line[wanted])[::-1]
            at_least = np.array([np.count_nonzero(line >= value) for value in wanted_similarity])
            found = np.searchsorted(-wanted_similarity, -wanted_similarity, side="right")
            ranks.append(at_least - found + np.arange(1, len(wanted) + 1))
    return ranks


def _similarities(queries: Array, documents: Array) -> Array:
    """Return the cosines (Q, N) of unit rows; those of equal documents are equal, whatever their block."""
    similarity: Array = queries @ documents.T
    return similarity.round(COSINE_DECIMALS, out=similarity)


def _blocks(queries: int, documents: int) -> list[slice]:
    size = max(1, _BLOCK_CELLS // max(documents, 1))
    return [slice(start, min(start + size, queries)) for start in range(0, queries, size)]
