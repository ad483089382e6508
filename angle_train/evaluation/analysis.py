"""What a report shows beyond scores: comparisons that come out right, saturation, alignment, uniformity.

Pure functions from embeddings, cosines and gold scores to numbers.
Shapes: B pairs, D width, N texts.

Sources: AoE (https://aclanthology.org/2024.acl-long.101), section 4; Wang and Isola, Understanding
contrastive representation learning through alignment and uniformity on the hypersphere
(https://arxiv.org/abs/2005.10242); Somers, A new asymmetric measure of association for ordinal variables
(https://doi.org/10.2307/2090408).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from angle_train.evaluation.similarity import unit_rows

BANDS = 5
_BLOCK = 1024
_MOST_SPREAD = 20_000  # rows; 200 million pairs tell the mean well
Array = NDArray[np.float64]


def right_comparisons(gold: Array, similarity: Array) -> float | None:
    """Return the share (0..1) of comparisons of two pairs that come out as the gold scores (B,) say.

    Compared are all two pairs with different gold scores; the one with the higher gold score is to have the
    higher similarity (B,), and equal similarities count half. Chance has 0.5: it is (1 + Somers' D) / 2.
    None where all gold scores are equal.
    """
    unequal, apart = _unequal(gold), _unequal(similarity)
    if not unequal:
        return None
    # Kendall's tau-b is right minus wrong ones, divided by this root; it takes B log B steps, not B².
    excess = kendalltau(gold, similarity).statistic * np.sqrt(unequal * apart) if apart else 0.0
    return float(0.5 + excess / unequal / 2)


def _unequal(values: Array) -> float:
    """Return how many of all two values (B,) differ."""
    _, counts = np.unique(values, return_counts=True)
    return float((len(values) ** 2 - (counts.astype(np.float64) ** 2).sum()) / 2)


def right_where(better: NDArray[np.bool_], similarity: Array) -> float:
    """Return the share of right comparisons among those that `better` (B, B) holds, at least one.

    Args:
        better: Whether the pair of the row is to have a higher similarity than that of the column.
        similarity: (B,).
    """
    first, second = np.nonzero(better)
    gap = similarity[first] - similarity[second]
    return float((gap > 0).mean() + (gap == 0).mean() / 2)


def saturation(similarity: Array) -> dict[str, float]:
    """Return the shares of cosines (B,) above 0.95 and above 0.8, where the cosine is flat."""
    return {"above_95": float((similarity > 0.95).mean()), "above_80": float((similarity > 0.8).mean())}


def alignment(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the mean of |x - y|² over positive pairs (B, D) of unit embeddings; smaller is closer."""
    apart = np.linalg.norm(unit_rows(first) - unit_rows(second), axis=1)
    return float((apart**2).mean())


def uniformity(embeddings: NDArray[np.float32]) -> float:
    """Return log of the mean of exp(-2·|x - y|²) over all pairs of different rows (N, D).

    Smaller is spread wider. N must be at least 2; of more than 20,000 rows as many are taken, evenly spread.
    Works in blocks of rows: N² similarities are never held at once. Rows that are there several times, as
    texts of several pairs, count each time.
    """
    rows = np.linspace(0, len(embeddings) - 1, min(len(embeddings), _MOST_SPREAD)).astype(np.int64)
    unit = unit_rows(embeddings[rows])
    total = 0.0
    for start in range(0, len(unit), _BLOCK):
        block = unit[start : start + _BLOCK]
        square = 2 - 2 * block @ unit.T
        potential = np.exp(-2.0 * square)
        # A row and itself are no pair.
        potential[np.arange(len(block)), np.arange(start, start + len(block))] = 0.0
        total += float(potential.sum())
    return float(np.log(total / (len(unit) * (len(unit) - 1))))
