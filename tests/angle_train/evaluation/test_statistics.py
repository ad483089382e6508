"""Statistics of tasks against scikit-learn and slow loops, on whole sets and on resamples."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from angle_train.evaluation.bootstrap import difference_between, draw, interval_around
from angle_train.evaluation.similarity import spearman
from angle_train.evaluation.statistics import (
    AreaUnderCurve,
    AveragePrecision,
    FScore,
    MeanOf,
    SpearmanOf,
)

RNG = np.random.default_rng(0)
GOLD = RNG.random(40) < 0.4
TIED = RNG.integers(0, 6, size=40).astype(np.float64)  # few levels: ties between the classes and inside them
GUESS = RNG.random(40) < 0.5
WEIGHTS = RNG.random(40) + 0.5

CASES = {
    "auc": (AreaUnderCurve(GOLD, TIED), lambda rows: roc_auc_score(GOLD[rows], TIED[rows])),
    "average precision": (
        AveragePrecision(GOLD, TIED),
        lambda rows: average_precision_score(GOLD[rows], TIED[rows]),
    ),
    "f1": (FScore(GOLD, GUESS), lambda rows: f1_score(GOLD[rows], GUESS[rows])),
    "mean": (MeanOf(TIED), lambda rows: TIED[rows].mean()),
    "weighted mean": (
        MeanOf(TIED, WEIGHTS),
        lambda rows: (TIED[rows] * WEIGHTS[rows]).sum() / WEIGHTS[rows].sum(),
    ),
    "spearman": (
        SpearmanOf(GOLD.astype(float), TIED),
        lambda rows: spearman(GOLD[rows].astype(float), TIED[rows]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_every_resample_equal_the_slow_way(name):
    statistic, slow = CASES[name]
    assert statistic.size == 40
    assert statistic.value() == pytest.approx(slow(np.arange(40)))
    drawn = np.random.default_rng(3).integers(40, size=(25, 40))
    counts = np.stack([np.bincount(rows, minlength=40) for rows in drawn]).astype(np.float64)
    assert statistic.resampled(counts) == pytest.approx([slow(rows) for rows in drawn])


def test_a_resample_of_one_class_says_nothing():
    counts = np.where(GOLD, 1.0, 0.0)[None, :]
    for one_class in (counts, 1 - counts):
        assert np.isnan(AreaUnderCurve(GOLD, TIED).resampled(one_class)).tolist() == [True]
    assert np.isnan(AveragePrecision(GOLD, TIED).resampled(1 - counts)).tolist() == [True]
    assert AveragePrecision(GOLD, TIED).resampled(counts).tolist() == [1.0]  # all that there is is found
    assert FScore(GOLD, np.zeros(40, bool)).resampled(1 - counts).tolist() == [0.0]


@pytest.mark.parametrize("kind", [AreaUnderCurve, AveragePrecision])
def test_a_rare_class_does_not_widen_the_interval_of_a_perfect_ranking(kind):
    gold = np.arange(60) < 3  # a twentieth of all resamples have none of them
    perfect, poor = kind(gold, -np.arange(60.0)), kind(gold, np.arange(60.0))
    best, worst = draw([perfect, poor], resamples=500, seed=0)
    assert np.isnan(best).any()
    interval = interval_around(perfect.value(), best)
    assert (interval.value, interval.low, interval.high) == (1.0, 1.0, 1.0)
    assert difference_between(1.0, worst, best).verdict == "better"
