"""Bootstrap intervals against a slow loop, and the verdicts that they lead to."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr

from angle_train.evaluation.bootstrap import (
    Difference,
    difference_between,
    draw,
    interval_around,
    resamples_for,
)
from angle_train.evaluation.statistics import SpearmanOf


def interval_of(gold, column, **how):
    statistic = SpearmanOf(gold, column)
    return interval_around(statistic.value(), *draw([statistic], **how))


def slow_correlations(gold, column, resamples, seed):
    """Draw, rank and correlate every resample by itself."""
    drawn = np.random.default_rng(seed).integers(len(gold), size=(resamples, len(gold)))
    with warnings.catch_warnings(action="ignore"):  # scipy warns of constant columns and returns nan
        return np.nan_to_num([spearmanr(gold[rows], column[rows]).statistic for rows in drawn])


def columns(seed, n=12, levels=4):
    """Small integers, so that there are many ties in the data and still more in the resamples."""
    return np.random.default_rng(seed).integers(levels, size=(3, n)).astype(np.float64)


@pytest.mark.parametrize(("seed", "levels"), [(0, 4), (1, 2), (2, 1000)])
def test_intervals_equal_those_of_a_slow_loop(seed, levels):
    gold, before, after = columns(seed, levels=levels)
    slow = [slow_correlations(gold, column, 300, seed) for column in (before, after)]
    interval = interval_of(gold, before, resamples=300, seed=seed)
    assert [interval.low, interval.high] == pytest.approx(np.percentile(slow[0], [2.5, 97.5]))
    assert interval.value == pytest.approx(spearmanr(gold, before).statistic)
    both = draw([SpearmanOf(gold, before), SpearmanOf(gold, after)], 300, seed)
    difference = difference_between(0.0, *both)
    assert [difference.low, difference.high] == pytest.approx(np.percentile(slow[1] - slow[0], [2.5, 97.5]))
    assert difference.p_not_better == pytest.approx((slow[1] - slow[0] <= 1e-12).mean(), abs=0.01)


def test_many_pairs_are_worked_on_in_blocks():
    gold, noise = np.random.default_rng(0).normal(size=(2, 2000))
    interval = interval_of(gold, gold + noise, resamples=100, seed=5)
    assert interval.low < interval.value < interval.high
    # 1/√2 is the correlation of x with x + y; Spearman's is a little below, and 2,000 pairs pin it down.
    assert interval.low == pytest.approx(0.66, abs=0.04)
    assert interval.high == pytest.approx(0.71, abs=0.04)


def test_constant_similarities_rank_nothing():
    gold, column, _ = columns(6)
    constant = interval_of(gold, np.ones(len(gold)))
    assert (constant.value, constant.low, constant.high) == (0, 0, 0)
    assert interval_of(gold, column, seed=1) == interval_of(gold, column, seed=1)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.2, "better"),
        (0.0, 0.2, "no reliable difference"),
        (-0.1, 0.2, "no reliable difference"),
        (-0.2, 0.0, "no reliable difference"),
        (-0.2, -0.01, "worse"),
    ],
)
def test_verdict_follows_from_the_interval(low, high, verdict):
    assert Difference(delta=0.0, low=low, high=high, p_not_better=0.5).verdict == verdict


@pytest.mark.parametrize(
    ("count", "wanted", "resamples"),
    [
        (200, 10_000, 10_000),
        (20_000, 10_000, 10_000),
        (100_000, 10_000, 2000),
        (10**6, 10_000, 1000),
        (10**6, 50, 50),
    ],
)
def test_large_sets_get_fewer_resamples_but_never_too_few(count, wanted, resamples):
    assert resamples_for(count, wanted) == resamples


def test_resamples_that_say_nothing_are_left_out():
    before, after = np.array([0.1, 0.2, np.nan, 0.3]), np.array([0.2, np.nan, np.nan, 0.3])
    assert interval_around(0.2, before) == interval_around(0.2, np.array([0.1, 0.2, 0.3]))
    difference = difference_between(0.1, before, after)
    assert (difference.low, difference.high) == pytest.approx(tuple(np.percentile([0.0, 0.1], [2.5, 97.5])))
    assert difference.p_not_better == 0.5
