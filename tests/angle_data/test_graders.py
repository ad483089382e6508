import random
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import pytest

from angle_data.ensemble.graders import Moments, Shape, area_under_curve, combine, normal_scores


@dataclass(frozen=True)
class Graded:
    grades: Mapping[str, float]


def test_normal_scores_are_mean_ranks_on_the_graders_own_scale() -> None:
    items = [
        Graded({"a": 5.0}),
        Graded({"a": 5.0, "b": 0.1}),
        Graded({"a": 0.0}),
        Graded({"a": 3.0, "b": 0.2}),
    ]
    scores = normal_scores(items)
    inverse = NormalDist().inv_cdf
    # a: ranks 1, 2 and twice 3.5 of four, each less a half: 1/8, 3/8, 6/8. b: 1/4 and 3/4.
    assert scores == {
        "a": {0.0: inverse(1 / 8), 3.0: inverse(3 / 8), 5.0: inverse(6 / 8)},
        "b": {0.1: inverse(1 / 4), 0.2: inverse(3 / 4)},
    }


def test_shape_log_odds_are_those_of_two_normal_distributions() -> None:
    shape = Shape(0.7, -0.5, 0.6)
    for x in (-1.3, 0.0, 0.4):
        one, other = (NormalDist(mean, 0.6**0.5).pdf(x) for mean in (0.7, -0.5))
        assert 2.718281828459045 ** shape.log_odds(x) == pytest.approx(one / other)


def test_shape_of_a_grader_that_errs_systematically_tells_nothing() -> None:
    assert Shape(-0.5, 0.5, 0.6).log_odds(2.0) == 0


def test_shape_residuals_are_standardised() -> None:
    assert Shape(1.0, -1.0, 4.0).residuals(3.0) == (1.0, 2.0)


def test_moments_recover_the_shape_from_soft_shares() -> None:
    rng = random.Random(0)
    moments = Moments()
    for _ in range(4000):
        synonym = rng.random() < 0.5
        moments.add(rng.gauss(0.7 if synonym else -0.6, 0.5), 1.0 if synonym else 0.0)
    shape = moments.shape()
    assert (shape.synonym, shape.antonym, shape.variance) == pytest.approx((0.7, -0.6, 0.25), abs=0.03)


def test_moments_by_hand() -> None:
    moments = Moments()
    moments.add(1.0, 0.75)
    moments.add(-1.0, 0.25)
    # Synonyms: 1 pair of weight, sum 0.75 - 0.25 = 0.5, shrunk by ten pairs: 0.5 / 11. Antonyms: -0.5 / 11.
    # Squares about the means: 2 - 4 * 0.5 * m + 2 m^2 with m the mean, plus ten, over twelve.
    m = 0.5 / 11
    shape = moments.shape()
    assert (shape.synonym, shape.antonym) == pytest.approx((m, -m))
    assert shape.variance == pytest.approx((2 - 2 * 2 * 0.5 * m + 2 * m * m + 10) / 12)


def test_moments_of_few_pairs_tell_little() -> None:
    moments = Moments()
    moments.add(2.0, 1.0)
    moments.add(-2.0, 0.0)
    assert 0 < moments.shape().log_odds(2.0) < 0.6  # unshrunk it would be beyond all bounds


@pytest.mark.parametrize(
    ("synonyms", "antonyms", "expected"),
    [
        ([2, 3], [0, 1], 1.0),
        ([0, 1], [2, 3], 0.0),
        ([1, 1], [1, 1], 0.5),
        ([3, 1], [2], 0.5),
        ([3, 2], [2], 0.75),  # one win, one tie
        ([], [1], None),
        ([1], [], None),
    ],
)
def test_area_under_curve(synonyms: list[float], antonyms: list[float], expected: float | None) -> None:
    assert area_under_curve(synonyms, antonyms) == expected


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ([3.0], (3 + 2) / 1.5),  # the usual grade 4 counts half
        ([3.0, 1.0], (3 + 1 + 2) / 2.5),
        ([0.0, 4.0, 5.0], 4.0),  # one careless grader of three does not matter
        ([1.0, 2.0, 4.0, 5.0], 3.0),
    ],
)
def test_combine(grades: list[float], expected: float) -> None:
    assert combine(grades, usual=4.0) == pytest.approx(expected)
