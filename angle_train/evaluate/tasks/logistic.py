"""Logistic regression on frozen features by SentEval's three protocols, with scikit-learn.

Folds, grids of C (inverse strength of the L2 penalty) and the choice of the first C with the best rounded
accuracy are those of SentEval's `tools/validation.py` for scikit-learn; the solver is scikit-learn's
default of today (lbfgs, multinomial), where SentEval took the default of its time. SimCSE and the AnglE
papers ran SentEval's other classifier, a layer trained by Adam for 4 epochs: their figures are not the same
measurement.

Source: Conneau and Kiela, SentEval (https://arxiv.org/abs/1803.05449).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDS = 10
_NESTED_GRID = tuple(2.0**t for t in range(-2, 4))
_CROSS_GRID = tuple(2.0**t for t in range(-1, 6))
_MAX_ITERATIONS = 1000
Features = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Examples:
    """Features (N, D) and classes (N,)."""

    features: Features
    labels: Labels

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """Return the examples at `rows`."""
        return Examples(self.features[rows], self.labels[rows])


@dataclass(frozen=True, slots=True)
class Classified:
    """What a protocol said of every judged example, in their order.

    Attributes:
        predicted: Classes (n,).
        weights: (n,), what each example counts for in the accuracy: folds count alike, whatever their size.
        regularisation: The chosen C of every fold, or of the one classifier.
        dev_accuracy: Mean accuracy that the choice was made by, 0..1.
    """

    predicted: Labels
    weights: NDArray[np.float64]
    regularisation: tuple[float, ...]
    dev_accuracy: float


def nested_cross_validation(data: Examples, seed: int, folds: int = FOLDS) -> Classified:
    """Judge every example by a classifier trained on the other folds; C is chosen inside those (MR, CR …)."""
    predicted = np.zeros_like(data.labels)
    weights = np.zeros(len(data.labels))
    chosen, accuracies = [], []
    for train_rows, test_rows in _folds(data, seed, folds):
        train = data.take(train_rows)
        inner = list(_folds(train, seed, folds))
        best, accuracy = _choose(_NESTED_GRID, [(train.take(a), train.take(b)) for a, b in inner], seed)
        predicted[test_rows] = _fit(train, best, seed).predict(data.features[test_rows])
        weights[test_rows] = 1 / len(test_rows)
        chosen.append(best)
        accuracies.append(accuracy)
    return Classified(predicted, weights, tuple(chosen), float(np.mean(accuracies)))


def cross_validated(train: Examples, test: Features, seed: int, folds: int = FOLDS) -> Classified:
    """Judge a test set by a classifier whose C is chosen by cross-validation on train (TREC, MRPC)."""
    parts = [(train.take(a), train.take(b)) for a, b in _folds(train, seed, folds)]
    return _judge(train, test, *_choose(_CROSS_GRID, parts, seed), seed=seed)


def split_validated(train: Examples, dev: Examples, test: Features, seed: int) -> Classified:
    """Judge a test set by a classifier trained on train whose C is chosen on dev (SST2)."""
    return _judge(train, test, *_choose(_NESTED_GRID, [(train, dev)], seed), seed=seed)


def _judge(train: Examples, test: Features, best: float, accuracy: float, *, seed: int) -> Classified:
    predicted: Labels = _fit(train, best, seed).predict(test)
    return Classified(predicted, np.ones(len(test)), (best,), accuracy)


def _folds(data: Examples, seed: int, folds: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    from sklearn.model_selection import StratifiedKFold

    parts: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]] = StratifiedKFold(
        n_splits=folds, shuffle=True, random_state=seed
    ).split(data.features, data.labels)
    return parts


def _choose(
    grid: Sequence[float], parts: Sequence[tuple[Examples, Examples]], seed: int
) -> tuple[float, float]:
    """Return the C with the best mean accuracy over (train, dev) parts, and that accuracy."""
    means = [
        float(np.mean([_fit(train, c, seed).score(dev.features, dev.labels) for train, dev in parts]))
        for c in grid
    ]
    best = int(np.argmax([round(100 * mean, 2) for mean in means]))
    return grid[best], means[best]


def _fit(data: Examples, c: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, random_state=seed, max_iter=_MAX_ITERATIONS).fit(
        data.features, data.labels
    )
