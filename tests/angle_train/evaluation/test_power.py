"""What so many graded pairs find: the formula against simulated gains, and the sentence before training."""

import numpy as np
import pytest

from angle_train.evaluation.power import SPREAD, pairs_needed, power_sentence, share_found, worth_of_judged


@pytest.mark.parametrize(("gain", "pairs"), [(0.1, 64), (0.1, 280), (0.05, 400), (0.2, 30), (0.0, 100)])
def test_a_gain_is_found_as_often_as_in_simulated_runs(gain, pairs):
    measured = np.random.default_rng(pairs).normal(gain, SPREAD / np.sqrt(pairs), 20_000)
    low = measured - 1.959964 * SPREAD / np.sqrt(pairs)
    assert share_found(gain, pairs) == pytest.approx((low > 0).mean(), abs=0.01)


def test_pairs_needed_is_the_inverse_and_falls_with_the_gain():
    for gain in (0.05, 0.1, 0.2):
        assert share_found(gain, pairs_needed(gain, 0.8)) == pytest.approx(0.8, abs=0.01)
    assert pairs_needed(0.05, 0.8) == pytest.approx(4 * pairs_needed(0.1, 0.8), rel=0.01)


def test_judged_pairs_count_as_was_measured():
    for graded, counted in ((30, 51), (50, 81), (100, 147)):  # the means of benchmarks/log/judged.md
        assert worth_of_judged(graded, 600) == pytest.approx(counted, rel=0.06)
    assert worth_of_judged(50, 0) == 50
    assert worth_of_judged(50, 10**9) < 90


def test_the_sentence_says_what_would_find_more():
    said = power_sentence(64)
    assert said.startswith("with your 64 test pairs a gain of 10 (Spearman x 100) is found 3 times in 10")
    assert "would make it 4 times in 10; 283 pairs of your own would make it 8" in said
    with_judged = power_sentence(64, judged=600)
    assert "is found 4 times in 10, if the language model's grades go with yours; 283" in with_judged
    assert "--judged" not in with_judged
    assert "is found 3 times in 10, if" in power_sentence(64, judged=20)
    assert power_sentence(200, judged=600).endswith(
        "8 times in 10, if the language model's grades go with yours"
    )
    assert "--judged" not in power_sentence(64, judged=0)
    assert power_sentence(2000).endswith("is found nearly always")
    assert "is found hardly ever" in power_sentence(4)
