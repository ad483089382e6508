"""Few grades by people and many by a language model: figures that are as unbiased as people's, and surer.

The grades of people alone give a figure H of the n pairs that they graded. The language model's grades of the
very same pairs give another one, F, and its grades of all N pairs that it graded a third one, M. Whatever is
wrong with its grades is in F and in M alike, so

    H - weight × (F - M)

estimates what H does: F - M is 0 but for chance, whoever the grader is. Where its grades go with people's, so
do the errors of F and H, and the difference is surer than H. The `weight` in [0, 1] that leaves the least
variance ("power tuning", of a control variate) is read off the resamples, on which all three figures are
drawn together, and off what the pairs share. It is 0 for a grader that says nothing, and H alone is left.

The n pairs must be as if drawn at random from the N. `unlike` looks whether they are.

Source: Angelopoulos, Duchi and Zrnic 2023, PPI++ (arXiv:2311.01453); Zrnic 2024, A Note on the
Prediction-Powered Bootstrap (arXiv:2405.18379).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from angle_train.data.judged import FEWEST_JUDGED, JudgedPairs
from angle_train.data.pairs import PairSet
from angle_train.evaluation.sharing import INDEPENDENT, Sharing
from angle_train.evaluation.statistics import (
    Array,
    Difference,
    Drawn,
    Interval,
    Part,
    Ranked,
    Statistic,
    draw_figures,
    resamples_for,
    spearman_of,
)

_UNLIKE = 0.01  # how often a random sample of the judged pairs would look less like them
_TRIED = tuple(hundredth / 100 for hundredth in range(101))
"""Weights of the correction that are tried where pairs share something. Sharing never narrows an interval, so
the variance to be least is the larger of two: simpler to try than where they cross."""

Columns = Mapping[str, Drawn]
"""One figure under every model."""

FEW = "few"
DISAGREES = "disagrees"
UNLIKE = "unlike"
"""Why a language model's grades are not used: too few pairs have both grades; its grades do not go with
people's; the pairs that people graded are no random sample of those that it graded."""
NO_HELP = {
    FEW: f"fewer than {FEWEST_JUDGED} pairs have both grades",
    DISAGREES: "its grades do not go with people's",
    UNLIKE: "the pairs that people graded are no random sample of those that it graded",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a language model's grades did for one figure.

    Attributes:
        grader: Its name.
        graded: Pairs that people graded.
        both: Those of them that it graded too.
        judged: All pairs that it graded.
        agreement: Spearman of its grades with people's.
        weight: How far its grades correct the difference to the baseline, or else the figure itself: 0..1.
        counts_like: As many pairs graded by people alone would make it as sure.
        unused: Why its grades are not used, one of the words above; empty where they are.
        alone: The figure by people's grades alone.
        alone_difference: The difference by people's grades alone.
    """

    grader: str
    graded: int
    both: int
    judged: int
    agreement: float
    weight: float
    counts_like: float
    unused: str = ""
    alone: Interval | None = None
    alone_difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Grades:
    """What people and a language model said of n + m pairs; people graded the first n alone.

    Attributes:
        people: Their grades (n,).
        grader: Its grades (n + m,); NaN where it has none, which only the first n may lack.
    """

    people: Array
    grader: Array

    @property
    def both(self) -> NDArray[np.bool_]:
        """Which of the first n pairs (n,) have both grades."""
        known: NDArray[np.bool_] = ~np.isnan(self.grader[: len(self.people)])
        return known

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which pairs (n + m,) the language model graded."""
        known: NDArray[np.bool_] = ~np.isnan(self.grader)
        return known


@dataclass(frozen=True, slots=True)
class Figures:
    """Spearman under every model, and how the grades go together.

    Attributes:
        people: By people's grades of their pairs.
        few: By the language model's grades of the same pairs.
        many: By its grades of all pairs.
        agreement: Spearman of its grades with people's.
    """

    people: Columns
    few: Columns
    many: Columns
    agreement: Drawn


def figures_of(
    grades: Grades, similarities: Mapping[str, Array], seed: int = 0, resamples: int | None = None
) -> Figures:
    """Return the figures of models, all on the same resamples.

    What is drawn of people's pairs is what `statistics.draw` draws of them without the others.

    Args:
        grades: Of n + m pairs.
        similarities: Of these pairs (n + m,) under each model.
        seed: Decides the resamples.
        resamples: How many; default `resamples_for` as many pairs.
    """
    size, n = len(grades.grader), len(grades.people)
    both, judged = np.flatnonzero(grades.both), np.flatnonzero(grades.judged)

    def under_each(where: NDArray[np.int64], scores: Array) -> list[Statistic]:
        part, ranked = Part(where, size), Ranked(scores)
        return [part.lift(spearman_of(scores, column[where], ranked)) for column in similarities.values()]

    drawn = draw_figures(
        [
            *under_each(np.arange(n), grades.people),
            *under_each(both, grades.grader[both]),
            *under_each(judged, grades.grader[judged]),
            Part(both, size).lift(spearman_of(grades.people[both], grades.grader[both])),
        ],
        resamples or resamples_for(size),
        seed,
        apart=n,
    )
    people, few, many = (
        dict(zip(similarities, drawn[start:], strict=False))
        for start in range(0, 3 * len(similarities), len(similarities))
    )
    return Figures(people, few, many, drawn[-1])


def correct(human: Drawn, few: Drawn, many: Drawn, sharing: Sharing = INDEPENDENT) -> tuple[Drawn, float]:
    """Return a figure by people's grades, corrected by a language model's, and the weight of the correction.

    Args:
        human: By people's grades of their pairs.
        few: By the language model's grades of the same pairs.
        many: By its grades of all pairs.
        sharing: Which of all pairs share something: the weight leaves least variance with that in view.
    """
    gap = few.minus(many)
    spread = gap.drawn.var()
    if not spread > 0:
        return human, 0.0
    if sharing:
        weight = min(_TRIED, key=lambda tried: sharing.deviation(human.minus(gap, tried)))
    else:
        shared = np.cov(human.drawn, gap.drawn, bias=True)[0, 1]
        weight = float(np.clip(shared / spread, _TRIED[0], _TRIED[-1]))
    return human.minus(gap, weight), weight


def correct_all(
    figures: Figures, baseline: str | None, sharing: Sharing = INDEPENDENT
) -> dict[str, tuple[Drawn, float]]:
    """Return the corrected figure of every model, and the weight of its correction.

    A difference to the baseline has a weight of its own, which makes it surest. The figure of the model is
    then that of the baseline and the difference, so that the three of a table agree. `sharing` says which of
    all pairs share something.
    """
    people, few, many = figures.people, figures.few, figures.many
    found = {name: correct(people[name], few[name], many[name], sharing) for name in people}
    if baseline is None:
        return found
    base = found[baseline][0]
    for name in people.keys() - {baseline}:
        human, own, every = (columns[name].minus(columns[baseline]) for columns in (people, few, many))
        gain, weight = correct(human, own, every, sharing)
        found[name] = base.plus(gain), weight
    return {name: found[name] for name in people}


def grades_of(pairs: PairSet, judged: JudgedPairs) -> Grades:
    """Return what people say of `pairs`, and a language model of these and others."""
    return Grades(pairs.score, np.append(judged.grades, judged.rest.score))


def no_help(pairs: PairSet, judged: JudgedPairs, fewest: int) -> str:
    """Return in words why a language model's grades cannot help; empty where they can.

    It needs no model's similarities. `fewest` pairs must have both grades.
    """
    grades = grades_of(pairs, judged)
    if grades.both.sum() < fewest:
        return f"fewer than {fewest} pairs have both grades"
    both = np.flatnonzero(grades.both)
    own, its = grades.people[both], grades.grader[both]
    (agreement,) = draw_figures([spearman_of(own, its)], resamples_for(len(both)), 0)
    return NO_HELP.get(unused(grades, agreement), "")


def unused(grades: Grades, agreement: Drawn) -> str:
    """Return why a language model's grades cannot help; empty where they can.

    `agreement` is Spearman of both grades: unless it is surely above 0, the grader says nothing.
    """
    if grades.both.sum() < FEWEST_JUDGED:
        return FEW
    if np.percentile(agreement.drawn, 2.5) <= 0:
        return DISAGREES
    return UNLIKE if unlike(grades) else ""


def unlike(grades: Grades) -> bool:
    """Return whether the pairs that people graded are no random sample of those that the grader graded.

    They are not if its grades of them are surely higher or lower than of the others, or surely more or less
    spread (Mann and Whitney 1947, of the grades and of their distances from the middle one).
    """
    n = len(grades.people)
    own, others = grades.grader[:n][grades.both], grades.grader[n:]
    if not len(others) or np.ptp(grades.grader[grades.judged]) == 0:
        return False
    middle = np.median(grades.grader[grades.judged])
    sides = ((own, others), (np.abs(own - middle), np.abs(others - middle)))
    return bool(min(mannwhitneyu(*side).pvalue for side in sides) < _UNLIKE / len(sides))


def counts_like(count: int, alone: Drawn, surer: Drawn, sharing: Sharing = INDEPENDENT) -> float:
    """Return how many pairs graded by people `alone` would make a figure of `count` pairs as sure."""
    before, after = (sharing.deviation(figure) for figure in (alone, surer))
    return float(count * (before / after) ** 2) if after > 0 else float(count)


@dataclass(frozen=True, slots=True)
class Correction:
    """What a language model's grades did for the figures of one set of pairs.

    Attributes:
        figures: Under every model.
        notes: On every model, without what people's grades alone say.
    """

    figures: Mapping[str, Drawn]
    notes: Mapping[str, Judged]


def with_judge(
    pairs: PairSet,
    judged: JudgedPairs,
    similarities: Mapping[str, Array],
    baseline: str | None,
    seed: int = 0,
    resamples: int | None = None,
) -> Correction:
    """Return the figures of models by people's grades of `pairs`, with a language model's.

    Args:
        pairs: Those that people graded.
        judged: What the language model says of them and of others.
        similarities: Of both (n + m,), people's pairs first, under each model.
        baseline: The model that the others are compared with, if any.
        seed: Decides the resamples.
        resamples: How many; default `resamples_for` as many pairs.
    """
    grades = grades_of(pairs, judged)
    figures, sharing = figures_of(grades, similarities, seed, resamples), Sharing([pairs, judged.rest])
    why = unused(grades, figures.agreement)
    corrected = correct_all(figures, baseline, sharing)
    every = float(len(pairs) + len(judged.rest))  # what a grader would be worth who grades as people do

    def note(model: str) -> Judged:
        alone, (surer, weight) = figures.people[model], corrected[model]
        if baseline not in (None, model):
            alone, surer = alone.minus(figures.people[baseline]), surer.minus(corrected[baseline][0])
        like = counts_like(len(pairs), alone, surer, sharing)
        return Judged(
            grader=judged.grader,
            graded=len(pairs),
            both=int(grades.both.sum()),
            judged=int(grades.judged.sum()),
            agreement=figures.agreement.value,
            weight=0.0 if why else weight,
            counts_like=float(len(pairs)) if why else min(like, every),
            unused=why,
        )

    return Correction(
        {name: found for name, (found, _) in corrected.items()}, {name: note(name) for name in corrected}
    )
