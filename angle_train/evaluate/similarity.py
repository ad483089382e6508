"""Similarities of pairs by a model or by word overlap, and their Spearman correlation with the gold scores.

Correlations are in [-1, 1] here; only reports and tables multiply by 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_data.text import jaccard, words
from angle_train.data.pairs import PairSet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

COSINE_DECIMALS = 10
"""Cosines that agree to so many places are ties. Equal texts have a cosine of 1, but 1 ± 4e-16 is what comes
out, and where they differ in case alone and stood in other batches, 1 - 5e-13: their order would be chance.
It is far finer than the embeddings, whose single precision moves other cosines by 2e-7."""
_BLOCK = 4096


def evaluate_model(model: SentenceTransformer, pairs: PairSet, batch_size: int = 32) -> NDArray[np.float64]:
    """Return the cosine similarity (B,) of the two texts of every pair under `model`."""
    return cosine_rows(*embed_pairs(model, pairs, batch_size))


def embed_pairs(
    model: SentenceTransformer, pairs: PairSet, batch_size: int = 32
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the embeddings (B, D) of the first and of the second texts of all pairs under `model`.

    Each distinct text is encoded once; `encode` sorts them by length and applies the model's own prompt.
    """
    texts = sorted({*pairs.text1, *pairs.text2})
    row = {text: number for number, text in enumerate(texts)}
    embeddings = model.encode(texts, batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True)
    first = [row[text] for text in pairs.text1]
    second = [row[text] for text in pairs.text2]
    return embeddings[first], embeddings[second]


def cosine_rows(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cosine (B,) of the rows of two (B, D) matrices; 0 for zero rows.

    In double precision, to `COSINE_DECIMALS`. Works through blocks of rows: no second copy of the matrices
    is held.
    """
    similarity = np.empty(len(first))
    for start in range(0, len(first), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similarity[rows] = (unit_rows(first[rows]) * unit_rows(second[rows])).sum(axis=1)
    return similarity.round(COSINE_DECIMALS)


def unit_rows(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    """Return the rows (N, D) scaled to length 1 in double precision; zero rows stay zero."""
    rows = embeddings.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths == 0, 1, lengths)
    return rows


def check_finite(similarity: NDArray[np.float64], pairs: PairSet, model: str) -> None:
    """Check that a model gave a number (B,) for every pair.

    Raises:
        InputError: It did not; names the model, the pairs and how many of them.
    """
    broken = int((~np.isfinite(similarity)).sum())
    if broken:
        raise InputError(
            f"{model}: {broken} of {len(pairs)} similarities of {pairs.name} are not numbers; its weights "
            "are damaged or its training diverged: take another model, a lower learning rate or fp32"
        )


def word_overlap(pairs: PairSet) -> NDArray[np.float64]:
    """Return the Jaccard overlap (B,) of the two texts' words: the baseline that understands nothing."""
    return np.array(
        [jaccard(words(a), words(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)], dtype=np.float64
    )


def spearman(gold: Sequence[float] | NDArray[np.float64], similarity: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation, ties ranked by their mean.

    0 where one side is constant or a similarity is not finite (a model that diverged): it ranks nothing.
    """
    from scipy.stats import spearmanr

    if np.ptp(gold) == 0 or not np.isfinite(similarity).all() or np.ptp(similarity) == 0:
        return 0.0
    return float(spearmanr(gold, similarity).statistic)
