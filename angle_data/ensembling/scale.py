"""One scale for all evidence: a pair's level 0 to 5, by what was asked of whom, and by what graders saw.

A level is expected from what was asked for: the mean grade that such pairs of the annotator got, drawn
towards what the words say (a synonym 5, degree 3 a 3; an antonym what antonyms got). Grades of the pair
itself move it from there, the more the less graders differ and the more pairs of its kind do: the posterior
mean of normal levels and readings. Of given pairs nothing is expected: their level is their mean grade.
Graders are read alike, by the means that the evidence has of each (`grades_alike`). Antonyms stand about the
level that the user gives them, since what an opposite is worth is for a domain to say, not for graders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from angle_data.ensembling.evidence import USUAL_MEANS, Evidence, shrink
from angle_data.ensembling.given import GivenPair
from angle_data.ensembling.strategies import Choice
from angle_data.records import TOP_GRADE, Candidate

# Before anything is seen: the variance of the levels of pairs of one kind, and of the grades of one pair;
# each is worth so many pairs.
_SPREAD = 0.5
_STRENGTH = 5.0
_NOISE = 0.15
_NOISE_STRENGTH = 20.0
_LEAST_SPREAD = 0.05

_Knots = tuple[list[float], list[float]]  # rising grades, and what they are read as
_Kind = tuple[str, str]  # an annotator and what was asked for


@dataclass(frozen=True, slots=True)
class Level:
    """Where a pair stands, 0 to 5, and the variance of that."""

    value: float
    variance: float

    @property
    def score(self) -> float:
        """The level to half a point, 0 to 1: finer steps are noise, and training ranks every step alike."""
        return round(2 * self.value) / (2 * TOP_GRADE)

    @property
    def certainty(self) -> float:
        """A weight in (0, 1]: 0.8 where the level is known to half a point."""
        return 1 / (1 + self.variance)


def asked_score(candidate: Candidate, antonym_score: float) -> float:
    """Return the score 0 to 1 that was asked for: 1 for synonyms, a fifth of a degree."""
    if candidate.degree is not None:
        return candidate.degree / TOP_GRADE
    return 1.0 if candidate.polarity == "synonym" else antonym_score


class Scale:
    """The levels of the pairs `kept` and `given`, learned from them and from the evidence on all pairs."""

    def __init__(
        self, kept: Sequence[Choice], given: Sequence[GivenPair], evidence: Evidence, *, antonym_score: float
    ) -> None:
        self._grades = evidence.grades
        self._knots = grades_alike(evidence) if evidence.graded else {}
        rows = [self._grades.get(choice.key, {}) for choice in kept]
        known = (*rows, *(self._grades.get(pair.key, {}) for pair in given))
        read = [self._read(row) for row in known if row]
        squares = sum((value - fmean(row)) ** 2 for row in read for value in row)
        # The variance of the grades of one pair.
        self._noise = shrink(squares, sum(len(row) - 1 for row in read), _NOISE, _NOISE_STRENGTH)
        number = fmean(map(len, read)) if read else 1.0  # of the grades of a pair that has some
        self._mean: dict[_Kind, float] = {}
        self._spread: dict[_Kind, float] = {}
        words: dict[str, float] = {}  # what the words say by what was asked for
        groups: dict[_Kind, list[float]] = {}
        antonyms: list[float] = []
        for choice, row in zip(kept, rows, strict=True):
            words[choice.asked] = TOP_GRADE * asked_score(choice.candidate, antonym_score)
            level = [fmean(self._read(row))] if row else []
            antonyms += level if choice.asked == "antonym" else []
            for name in choice.models:
                groups.setdefault((name, choice.asked), []).extend(level)
        self._shift = 0.0  # from what graders give antonyms to what the user does
        if antonyms:
            words["antonym"] = fmean(antonyms)
            self._shift = TOP_GRADE * antonym_score - fmean(antonyms)
        for kind, values in groups.items():
            mean = self._mean[kind] = shrink(sum(values), len(values), words[kind[1]], _STRENGTH)
            square = shrink(sum((v - mean) ** 2 for v in values), len(values), _SPREAD, _STRENGTH)
            self._spread[kind] = max(_LEAST_SPREAD, square - self._noise / number)

    def of_choice(self, choice: Choice) -> Level:
        """Return the level of a kept pair."""
        kinds = [(name, choice.asked) for name in choice.models]
        value, variance = (fmean(found[kind] for kind in kinds) for found in (self._mean, self._spread))
        if row := self._grades.get(choice.key):
            noise = self._noise / len(row)
            share = variance / (variance + noise)
            value, variance = value + share * (fmean(self._read(row)) - value), share * noise
        if choice.asked == "antonym":
            value = min(TOP_GRADE, max(0.0, value + self._shift))
        return Level(value, variance)

    def of_given(self, pair: GivenPair) -> Level:
        """Return the level of a given pair, which must be graded."""
        row = self._grades[pair.key]
        return Level(fmean(self._read(row)), self._noise / len(row))

    def _read(self, row: Mapping[str, float]) -> list[float]:
        """Return a pair's grades, 0 to 5, as they would be if all graders were alike."""
        knots = self._knots
        return [float(np.interp(g, *knots[name])) if name in knots else g for name, g in row.items()]


def grades_alike(evidence: Evidence) -> dict[str, _Knots]:
    """Return by grader some grades and what they are read as; between these it is interpolated.

    Graders are read as the one who makes most of a difference: the mean grade of pairs that mean the same is
    read as the most generous grader's, the mean grade of others as the strictest's. With a strict one, too,
    pairs that mean the same stand at 4.5 and more, where training takes them for positive.
    """
    high, low = evidence.sides.means.tolist()
    most, least = max([USUAL_MEANS[0], *high]), min(low, default=USUAL_MEANS[1])
    return {
        name: ([0.0, below, above, TOP_GRADE], [0.0, least, most, TOP_GRADE])
        for name, below, above in zip(evidence.sides.graders, low, high, strict=True)
        if below < above
    }
