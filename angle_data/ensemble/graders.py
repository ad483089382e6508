"""Graders on a common footing: what a grade says about polarity, whatever the grader's scale and habits.

One grader's 3.5 is another's 1.2, so no threshold on grades is used. A grader's grades become normal scores
(their ranks among its own grades, read off the normal distribution), and those of synonymous and of opposite
pairs are taken to be normal with two means and one variance: the binormal model of ROC analysis (Dorfman and
Alf 1969, doi:10.1016/0022-2496(69)90019-4). The log-likelihood ratio is then a straight line in the score.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Protocol

_STRENGTH = 10.0  # a shape is shrunk towards "tells nothing" as by so many pairs of each polarity
_LEAST_VARIANCE = 0.05


class Graded(Protocol):
    """Anything with grades by grader."""

    @property
    def grades(self) -> Mapping[str, float]:
        """Grades by grader."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where a grader's normal scores lie: their means for synonyms and antonyms, and the variance."""

    synonym: float
    antonym: float
    variance: float

    def log_odds(self, score: float) -> float:
        """Return ln(p(score | synonym) / p(score | antonym)); 0 if the grader ranks them the wrong way."""
        slope = max(0.0, self.synonym - self.antonym) / self.variance
        return slope * (score - (self.synonym + self.antonym) / 2)

    def residuals(self, score: float) -> tuple[float, float]:
        """Return how far `score` is from the mean of synonyms and of antonyms, in standard deviations."""
        deviation = self.variance**0.5
        return (score - self.synonym) / deviation, (score - self.antonym) / deviation


class Moments:
    """Sums from which a `Shape` is made; each score counts as synonym with a probability."""

    def __init__(self) -> None:
        self._count = [0.0, 0.0]
        self._sum = [0.0, 0.0]
        self._squares = 0.0

    def add(self, score: float, synonym: float) -> None:
        """Add a normal score of a pair that is synonymous with probability `synonym`."""
        for side, share in enumerate((synonym, 1 - synonym)):
            self._count[side] += share
            self._sum[side] += share * score
        self._squares += score * score

    def shape(self) -> Shape:
        """Return the shape, its means shrunk towards 0 and its variance towards 1."""
        one, other = (
            total / (count + _STRENGTH) for total, count in zip(self._sum, self._count, strict=True)
        )
        squares = self._squares + _STRENGTH
        for mean, total, count in zip((one, other), self._sum, self._count, strict=True):
            squares += mean * (mean * count - 2 * total)
        return Shape(one, other, max(_LEAST_VARIANCE, squares / (sum(self._count) + _STRENGTH)))


def normal_scores(items: Iterable[Graded]) -> dict[str, dict[float, float]]:
    """Return, for each grader, the normal score of each of its grades; equal grades share their mean rank.

    Where a scale leaves a gap between "clearly yes" and "clearly no" the ranks close it, so that grades next
    to the gap count for less than they could. How the values are spread can mislead the other way.
    """
    grades: dict[str, list[float]] = {}
    for item in items:
        for grader, grade in item.grades.items():
            grades.setdefault(grader, []).append(grade)
    inverse = NormalDist().inv_cdf
    scores = {}
    for grader, values in sorted(grades.items()):
        values.sort()
        scores[grader] = {
            value: inverse((bisect_left(values, value) + bisect_right(values, value)) / 2 / len(values))
            for value in set(values)
        }
    return scores


def area_under_curve(synonyms: Sequence[float], antonyms: Sequence[float]) -> float | None:
    """Return how often a synonym's grade is above an antonym's, ties counting half; None without both."""
    if not synonyms or not antonyms:
        return None
    low = sorted(antonyms)
    wins = sum(bisect_left(low, grade) + bisect_right(low, grade) for grade in synonyms)
    return wins / 2 / len(synonyms) / len(low)


def combine(grades: Sequence[float], usual: float) -> float:
    """Return one grade for a pair: the median of three or more; else their mean, shrunk towards `usual`.

    `usual`, the mean grade of pairs of the same polarity, counts as half a grade. `grades` must not be empty.
    """
    if len(grades) >= 3:
        return float(median(grades))
    return (sum(grades) + usual / 2) / (len(grades) + 0.5)
