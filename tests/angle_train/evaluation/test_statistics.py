"""Statistics and their bootstrap intervals against scipy, scikit-learn and slow loops; the verdicts."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from angle_train.evaluation.statistics import (
    Difference,
    Part,
    area_under_curve,
    average_precision,
    draw,
    draw_figures,
    interval_around,
    mean_of,
    resampled_counts,
    resamples_for,
    spearman,
    spearman_of,
)

RNG = np.random.default_rng(0)
GOLD = RNG.random(40) < 0.4
TIED = RNG.integers(0, 6, size=40).astype(np.float64)  # few levels: ties between the classes and inside them
WEIGHTS = RNG.random(40) + 0.5
FINE = RNG.random(40)


def slow_spearman(gold, column):
    with warnings.catch_warnings(action="ignore"):  # scipy warns of constant columns and returns nan
        return np.nan_to_num(spearmanr(gold, column).statistic)


CASES = {
    "auc": (area_under_curve(GOLD, TIED), lambda rows: roc_auc_score(GOLD[rows], TIED[rows])),
    "average precision": (
        average_precision(GOLD, TIED),
        lambda rows: average_precision_score(GOLD[rows], TIED[rows]),
    ),
    "mean": (mean_of(TIED), lambda rows: TIED[rows].mean()),
    "weighted mean": (
        mean_of(TIED, WEIGHTS),
        lambda rows: (TIED[rows] * WEIGHTS[rows]).sum() / WEIGHTS[rows].sum(),
    ),
    "spearman": (spearman_of(GOLD, TIED), lambda rows: slow_spearman(GOLD[rows], TIED[rows])),
    "spearman, fine": (spearman_of(TIED, FINE), lambda rows: slow_spearman(TIED[rows], FINE[rows])),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_every_resample_equal_the_slow_way(name):
    statistic, slow = CASES[name]
    assert statistic.size == 40
    assert statistic.value() == pytest.approx(slow(np.arange(40)))
    drawn = np.random.default_rng(3).integers(40, size=(25, 40))
    found = draw([statistic], 25, seed=3)
    assert found[0] == pytest.approx([slow(rows) for rows in drawn])
    interval = interval_around(statistic.value(), *found)
    assert [interval.low, interval.high] == pytest.approx(np.percentile(found[0], [2.5, 97.5]))


@pytest.mark.parametrize(
    ("gold", "column", "expected"),
    [
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),  # 1 - 6·(0+1+1+0)/(4·15)
        ([0, 0, 1, 1], [1, 2, 3, 4], 0.894427),  # ranks 1.5 1.5 3.5 3.5: 4 / √(4·5)
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([1, 2, 3], [5, 5, 5], 0.0),
        ([1, 2, 3], [1, float("nan"), 3], 0.0),
    ],
)
def test_spearman(gold, column, expected):
    assert spearman(gold, np.array(column, dtype=float)) == pytest.approx(expected)


def test_a_resample_of_one_class_says_nothing():
    counts = np.where(GOLD, 1.0, 0.0)[None, :]
    for one_class in (counts, 1 - counts):
        assert np.isnan(area_under_curve(GOLD, TIED).resampled(one_class)).tolist() == [True]
    assert np.isnan(average_precision(GOLD, TIED).resampled(1 - counts)).tolist() == [True]
    assert average_precision(GOLD, TIED).resampled(counts).tolist() == [1.0]  # all that there is is found


@pytest.mark.parametrize("kind", [area_under_curve, average_precision])
def test_a_rare_class_does_not_widen_the_interval_of_a_perfect_ranking(kind):
    gold = np.arange(60) < 3  # a twentieth of all resamples have none of them
    perfect, poor = kind(gold, -np.arange(60.0)), kind(gold, np.arange(60.0))
    best, worst = draw([perfect, poor], resamples=500, seed=0)
    assert np.isnan(best).any()
    interval = interval_around(perfect.value(), best)
    assert (interval.value, interval.low, interval.high) == (1.0, 1.0, 1.0)
    assert interval_around(2.0, best - worst).low > 0


def test_many_pairs_are_worked_on_in_blocks():
    gold, noise = np.random.default_rng(0).normal(size=(2, 2000))
    interval = interval_around(0.7, *draw([spearman_of(gold, gold + noise)], resamples=100, seed=5))
    # 1/√2 is the correlation of x with x + y; Spearman's is a little below, and 2,000 pairs pin it down.
    assert interval.low == pytest.approx(0.66, abs=0.04)
    assert interval.high == pytest.approx(0.71, abs=0.04)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.2, "better"),
        (0.0, 0.2, "no reliable difference"),
        (-0.2, 0.0, "no reliable difference"),
        (-0.2, -0.01, "worse"),
    ],
)
def test_verdict_follows_from_the_interval(low, high, verdict):
    assert Difference(delta=0.0, low=low, high=high).verdict == verdict


@pytest.mark.parametrize(
    ("count", "resamples"), [(100, 10_000), (20_000, 10_000), (100_000, 2000), (10**6, 1000)]
)
def test_large_sets_get_fewer_resamples_but_never_too_few(count, resamples):
    assert resamples_for(count) == resamples


def test_resamples_that_say_nothing_are_left_out():
    before, after = np.array([0.1, 0.2, np.nan, 0.3]), np.array([0.2, np.nan, np.nan, 0.3])
    assert interval_around(0.2, before) == interval_around(0.2, np.array([0.1, 0.2, 0.3]))
    difference = interval_around(0.1, after - before)
    assert (difference.low, difference.high) == pytest.approx(tuple(np.percentile([0.0, 0.1], [2.5, 97.5])))


@pytest.mark.parametrize("name", ["of some", *CASES])
def test_the_pull_is_the_derivative_by_how_often_an_item_is_drawn(name):
    some = np.arange(1, 40, 3)
    lifted = Part(some, 40).lift(spearman_of(TIED[some], FINE[some]))
    statistic = CASES[name][0] if name in CASES else lifted
    step = 1e-5 * np.eye(40)
    more, less = (statistic.resampled(1 + sign * step) for sign in (1, -1))
    assert statistic.pull() == pytest.approx((more - less) / 2e-5, abs=1e-8)
    assert np.abs(statistic.pull()).max() > 1e-3


@pytest.mark.parametrize("apart", [None, 30])
def test_the_pull_is_the_one_that_resamples_tell(apart):
    """How far a resample's value goes with how often it has an item, of all kinds of figures together."""
    statistics = [statistic for statistic, _ in CASES.values()]
    counts = np.concatenate([*resampled_counts(40, 20_000, 0, apart=apart)])
    for statistic, figure in zip(statistics, draw_figures(statistics, 20_000, apart=apart), strict=True):
        assert np.allclose(figure.drawn, statistic.resampled(counts), equal_nan=True)
        told = np.cov(counts.T, np.nan_to_num(figure.drawn, nan=figure.value))[-1, :-1]
        assert np.corrcoef(figure.pull, told)[0, 1] > 0.97
        for part in (figure.pull[:apart], figure.pull[apart or 0 :]):
            assert part.mean() == pytest.approx(0, abs=1e-12)


def test_what_is_drawn_apart_is_drawn_independently():
    """Two halves of one size: with the same draws for both, each resample would have one of them twice."""
    counts = np.concatenate([*resampled_counts(40, 500, 0, apart=20)])
    first, second = counts[:, :20], counts[:, 20:]
    assert (first.sum(axis=1) == second.sum(axis=1)).all()
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


def test_what_says_nothing_is_pulled_by_nothing():
    for said in (np.zeros(40), np.full(40, np.nan)):
        assert not spearman_of(FINE, said).pull().any()
    for figure in (area_under_curve, average_precision):
        assert not figure(np.ones(40, bool), FINE).pull().any()
