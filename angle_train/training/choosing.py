"""The one place that chooses: a simple model gives way to a more complex one only on evidence.

Checkpoints and k-fold look at several candidates on the same few held-out pairs. The best of many noisy
figures is high by chance, so the highest figure is no evidence.
Held-out are sets of pairs, by Spearman, and searches, by nDCG@10 (`evaluation.dev_sets`); of several sets the
mean counts, each alike.
Candidates stand on levels, from the simplest (the untouched backbone, the recipe as given) to the most
complex, and one replaces a simpler one only if it is better by more than chance explains, with all that were
looked at taken into account.

* **Paired.** Candidates are compared on the same resamples of the same pairs.
* **Corrected.** Among several candidates a difference, in units of its standard error, has to exceed the
  largest that resamples would show if none were better: White 2000, "A Reality Check for Data Snooping";
  Romano and Wolf 2005, "Stepwise Multiple Testing as Formalized Data Snooping".
* **Surer with a judge.** Where a language model graded many pairs of their kind, the gains over the simplest
  are those that `evaluation.judged` corrects by its grades.
* **In order.** The first level above the simplest has most of the error to itself, so that the plan (to train
  to the end) pays little for looking at alternatives: Wiens 2003, "A fixed sequence Bonferroni procedure".

`benchmarks/training/operating_curve.py` measures how often the rule errs and what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.text import counted
from angle_train.data.judged import JudgedPairs
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.dev_sets import (
    DevSet,
    counted_items,
    figure_of,
    groups_of_queries,
    name_of_figure,
)
from angle_train.evaluation.judged import correct_all, figures_of, grades_of
from angle_train.evaluation.power import SPREAD
from angle_train.evaluation.sharing import INDEPENDENT, Sharing
from angle_train.evaluation.statistics import Drawn, Ranked, draw, draw_figures
from angle_train.training.processes import rank_zero

ERROR = 0.1
"""The chance to choose a checkpoint that is no better than the simplest candidate, at most."""
SURE = 0.975
"""The confidence with which tuned weights take the backbone's place: that of a 95 % interval above 0."""

MOST_RESAMPLES = 2_000
_FEWEST = 5  # sources of a set, or pairs without a common text: of fewer, resamples tell nothing
TOO_FEW = (
    f"are too few to choose by; give --dev pairs of at least {_FEWEST} sources, or {_FEWEST} without a "
    "common text, in each set, better 50"
)
"""What is said of pairs that cannot choose, after what they are."""
TOO_FEW_QUERIES = (
    f"are too few to choose by; give each --dev-search at least {_FEWEST} queries for different documents, "
    "better 50"
)
"""The same where searches choose, or searches too."""

_CELLS = 20_000_000  # resamples × pairs: with more pairs than 10,000 half as many resamples do
_OF_FIRST = 0.8  # of the error, for the first level where there are others
_QUANTILE_80 = 0.842  # of the normal distribution: 8 times in 10
_QUANTILE_SURE = 1.960  # at SURE

Array = NDArray[np.float64]
Columns = Sequence[Array]
"""One column for each held-out set: similarities of its pairs (B,), or nDCG@10 of its queries (Q,)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which candidate to keep.

    Attributes:
        chosen: Its position; 0 is the simplest.
        compared: How many candidates there were besides the simplest.
        confidence: 1 - p, where p says how often chance alone would give one of the compared so large a lead
            over the simplest one as the chosen candidate has; where the simplest was chosen, as the best has.
            None where the pairs are of too few sources to know.
        scores: The figure of every candidate: Spearman, or nDCG@10 of searches, the mean over the sets.
        best: Position of the highest score among the others that can be had; 0 if there is none.
        refused: Whether guards refused all that could have been had.
        judged: How many pairs that a language model alone graded helped to choose.
        figure: What the scores are called.
    """

    chosen: int
    compared: int
    confidence: float | None
    scores: list[float]
    best: int = 0
    refused: bool = False
    judged: int = 0
    figure: str = "Spearman"

    def to_dict(self) -> dict[str, Any]:
        """Return what the report keeps; `best` is the score of the chosen candidate, or of the best one."""
        confidence = None if self.confidence is None else round(self.confidence, 4)
        found = {"chosen": self.chosen, "compared": self.compared, "confidence": confidence}
        found |= {"simplest": self.scores[0], "best": self.scores[self.chosen or self.best]}
        found |= {"refused": True} if self.refused else {}
        return found | ({"judged": self.judged} if self.judged else {})

    def beside(self) -> str:
        """Return what else helped to choose, behind the name of the pairs that did; empty if nothing did."""
        return beside_sentence(self.judged)

    def sentence(self, taken: str, pairs: str, number: int = 1) -> str:
        """Return in words what `taken` does on the `pairs` that chose it.

        Args:
            taken: Which weights these are.
            pairs: What chose them.
            number: Their position among the candidates; that of the planned end is 1.
        """
        simple, own, highest = self.scores[0], self.scores[number], self.scores[self.best]
        figures = f"{taken}: {self.figure} {100 * own:.2f} on the {pairs}, the backbone's {100 * simple:.2f}"
        if self.refused:
            return f"{figures}; it surely loses too much on guards, with any share of the backbone"
        if self.confidence is None:
            return f"{figures}; the {pairs} {too_few_to_choose(pairs)}"
        count = f"{self.compared} compared" if self.compared > 1 else "nothing else was compared"
        sure = f"better with confidence {self.confidence:.2f} ({count})"
        if self.chosen and highest > own:
            return f"{figures}; {sure}; another step had {100 * highest:.2f}, which chance explains"
        if highest > own:
            return f"{figures}; another step had {100 * highest:.2f}, {sure}"
        return f"{figures}; {sure}"


def beside_sentence(judged: int) -> str:
    """Return that so many pairs that a language model graded helped to choose; empty of 0."""
    return f" and {judged:,} that a language model graded" if judged else ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Weights that might be kept, and what they were measured to do.

    Attributes:
        step: Optimiser steps that led to them; 0 for the base model.
        level: How complex they are: 0 for the base model, above 0 for the others.
        similarity: Of the pairs of every held-out set; of a search nDCG@10 of its queries. Last come pairs
            that a language model alone graded.
        share: Of the backbone, as mixed in when they were measured.
        available: Whether they can still be had; looked at, they count either way.
        refused: Whether they could be had, but surely lose too much on a guard, see `guards`.
    """

    step: int
    level: int
    similarity: Columns
    share: float = 0.0
    available: bool = True
    refused: bool = False

    @property
    def mixed(self) -> str:
        """What to say of the share, behind the step."""
        return f" with {100 * self.share:.0f} % of the backbone" if self.share else ""


@rank_zero
def choose(
    candidates: Sequence[Candidate], sets: Sequence[DevSet], judged: JudgedPairs | None = None
) -> Choice:
    """Return which candidate to keep, by what they do on held-out sets; the first is the simplest.

    Of a single set of pairs, `judged` is what a language model says of these and of others.
    """
    columns = [candidate.similarity for candidate in candidates]
    sole = sets[0] if judged else None
    found = with_grades(sole, judged, columns) if judged and isinstance(sole, PairSet) else None
    measured = found or resampled(sets, columns)
    levels = [candidate.level for candidate in candidates]
    lost = [position for position, c in enumerate(candidates) if c.refused or not c.available]
    choice = replace(select_simplest(measured, levels, lost), figure=name_of_figure(sets))
    if judged and found:
        choice = replace(choice, judged=len(judged.rest))
    refused = [position for position, c in enumerate(candidates) if c.refused]
    if not refused or len(lost) < len(candidates) - 1:
        return choice
    return replace(
        choice, best=max(refused, key=lambda position: float(measured.scores[position])), refused=True
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """What C candidates do on held-out sets, the simplest first.

    Attributes:
        scores: The mean figure of each over the sets (C,).
        sets: Of every set the figure of each candidate, all in the same resamples, and which items share
            something. Empty where a set has fewer than 5 sources: resamples of these say nothing.
    """

    scores: Array
    sets: Sequence[tuple[Sequence[Drawn], Sharing]]

    def gains(self, simple: int, family: Collection[int]) -> Array:
        """Return how far each of a family (F,) is ahead of a candidate, in resamples (F, R), widened."""
        drawn = [
            [sharing.widened(figures[one].minus(figures[simple])) for one in family]
            for figures, sharing in self.sets
        ]
        found: Array = np.mean(drawn, axis=0)
        return found


def resampled(sets: Sequence[DevSet], candidates: Sequence[Columns]) -> Measured:
    """Return what candidates do on held-out sets; they are their columns of the sets.

    Queries for the same documents are drawn together: they say the same thing several times. So do pairs of
    one source, or that share texts: they are drawn singly, and gains widened, as `eval` does (`sharing`).
    """
    resamples = max(MOST_RESAMPLES // 2, min(MOST_RESAMPLES, *(_CELLS // len(pairs) for pairs in sets)))
    values, drawn = np.zeros(len(candidates)), list[tuple[Sequence[Drawn], Sharing]]()
    for number, one in enumerate(sets):
        ranked = Ranked(one.score) if isinstance(one, PairSet) else None
        found = [figure_of(one, columns[number], ranked) for columns in candidates]
        values += [statistic.value() for statistic in found]
        if isinstance(one, SearchSet):
            rows = draw(found, resamples, seed=number, groups=groups_of_queries(one))
            figures = [Drawn(of.value(), row, of.pull()) for of, row in zip(found, rows, strict=True)]
            drawn.append((figures, INDEPENDENT))
        else:
            drawn.append((draw_figures(found, resamples, seed=number), Sharing([one])))
    return Measured(values / len(sets), drawn if min(_sizes(sets)) >= _FEWEST else [])


def with_grades(pairs: PairSet, judged: JudgedPairs, candidates: Sequence[Columns]) -> Measured | None:
    """Return what `resampled` does, made surer by a language model's grades; None of too few sources.

    Args:
        pairs: Those that people graded.
        judged: What the language model says of them and of others.
        candidates: Of each the similarities of both, the simplest first.
    """
    if pairs.source_count < _FEWEST:
        return None
    grades, sharing = grades_of(pairs, judged), Sharing([pairs, judged.rest])
    similarities = {str(number): np.concatenate(columns) for number, columns in enumerate(candidates)}
    figures = figures_of(grades, similarities, resamples=MOST_RESAMPLES)
    corrected = [figure for figure, _ in correct_all(figures, "0", sharing).values()]
    return Measured(np.array([figure.value for figure in corrected]), [(corrected, sharing)])


def _sizes(sets: Sequence[DevSet]) -> list[int]:
    """Return how many sources each set has, or different documents that its queries look for."""
    return [
        len(set(groups_of_queries(one))) if isinstance(one, SearchSet) else one.source_count for one in sets
    ]


def select_simplest(measured: Measured, levels: Sequence[int], lost: Collection[int] = ()) -> Choice:
    """Return which candidate to keep, see the text above; the first is the simplest.

    Args:
        measured: What every candidate does.
        levels: How complex each candidate is: 0 for the first, above 0 for the others.
        lost: Positions of candidates that were looked at, which counts, but cannot be had any more.
    """
    above, scores = np.asarray(levels), measured.scores
    if len(scores) == 1:
        return Choice(0, 0, 0.0, scores.tolist())
    first = np.flatnonzero(above == above[1:].min())
    rest = np.flatnonzero(above > above[first[0]])
    chance = np.ones(len(scores))
    allowed = np.zeros(len(scores))
    for family, share in ((first, _OF_FIRST if len(rest) else 1.0), (rest, 1 - _OF_FIRST)):
        chance[family] = _by_chance(measured, 0, family)
        allowed[family] = share * ERROR
    # A model that ranks no better than chance is not worth having, even where the simplest is worse.
    worth = (scores > 0) & ~np.isin(np.arange(len(scores)), list(lost))
    better = np.flatnonzero((chance <= allowed) & worth)
    chosen = 0
    while len(better):
        simplest = better[above[better] == above[better].min()]
        chosen = int(simplest[scores[simplest].argmax()])
        family = np.flatnonzero(above > above[chosen])
        better = family[(_by_chance(measured, chosen, family) <= ERROR) & worth[family]]
    can_be_had = [i for i in range(1, len(scores)) if i not in lost]
    best = max(can_be_had, key=lambda i: float(scores[i]), default=0)
    confidence = float(1 - chance[chosen or best]) if measured.sets else None
    return Choice(chosen, len(scores) - 1, confidence, scores.tolist(), best)


def _by_chance(measured: Measured, simple: int, family: NDArray[np.int64]) -> Array:
    """Return for each of a family how often chance gives one of them such a lead over `simple`."""
    if not len(family) or not measured.sets:
        return np.ones(len(family))
    gain = measured.scores[family] - measured.scores[simple]
    resampled_gain = measured.gains(simple, family.tolist())
    error = resampled_gain.std(axis=1)
    # The same difference in every resample: 0, or surely a gain.
    error = np.where(error > 0, error, np.where(gain > 0, np.finfo(np.float64).tiny, np.inf))
    excess = (resampled_gain - resampled_gain.mean(axis=1, keepdims=True)) / error[:, None]
    largest = excess.max(axis=0)
    result: Array = (largest >= (gain / error)[:, None]).mean(axis=1)
    return result


def too_few_to_choose(items: str) -> str:
    """Return what is said of so few held-out `items`, such as `dev pairs`, after what they are."""
    return TOO_FEW_QUERIES if "queries" in items else TOO_FEW


def too_few(sets: Sequence[DevSet]) -> str | None:
    """Return in a sentence that a held-out set has too few sources to choose by; None if none has."""
    fewest, one = min(zip(_sizes(sets), sets, strict=True), key=lambda found: found[0])
    if fewest >= _FEWEST:
        return None
    if isinstance(one, SearchSet):
        what = counted(len(one), "dev query", "dev queries")
        sources, why = f"for {fewest} different documents", TOO_FEW_QUERIES
    else:
        what, sources, why = counted(len(one), "held-out pair"), one.counted_sources(), TOO_FEW
    of = f", {sources}," * (fewest < len(one))
    return f"{one.name}: {what}{of} {why}"


def what_pairs_show(sets: Sequence[DevSet]) -> str:
    """Return in a sentence which gain the held-out sets are enough for, before anything is trained.

    Nobody knows beforehand how nDCG@10 of the queries of a search will differ: of these the number is told.
    """
    if (refused := too_few(sets)) is not None:
        return f"{refused}. The backbone is kept, whatever training does"
    sizes, pairs = _sizes(sets), [one for one in sets if isinstance(one, PairSet)]
    if len(pairs) < len(sets):
        chosen = " and ".join(f"{counted_items(one)} of {one.name}" for one in sets)
        return f"{chosen} choose the weights, by {name_of_figure(sets)}"
    total = sum(map(len, sets))
    # The mean over k sets of n independent pairs each errs by sqrt(Σ 1/n) / k, as one set of so many does.
    alike = len(sizes) ** 2 / sum(1 / size for size in sizes)
    gain = min(1.0, (_QUANTILE_SURE + _QUANTILE_80) * SPREAD / math.sqrt(alike))
    sources = " and ".join(one.counted_sources() for one in pairs)
    of = "" if sum(sizes) == total else f", {sources},"
    return (
        f"{total} held-out pairs{of} show a gain of about {100 * gain:.0f} points of Spearman 8 times in 10; "
        "smaller ones are often missed, and then the backbone is kept"
    )
