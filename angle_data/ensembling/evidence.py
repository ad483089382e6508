"""The evidence: one model of annotators and graders, which says of every merged pair what it is.

Hidden is each pair's side: its texts mean the same (`synonym`) or not (`antonym`). Two kinds of witnesses
speak about it (the model is that of Dawid and Skene 1979, doi:10.2307/2346806):

- An **annotator** claims a side by what it was asked for, a polarity or a degree; only degree 3 claims
  neither. For each annotator and what it was asked for there is one reliability: the share of right claims.
- A **grader**'s grades are spread normally about a mean of each side, but for a share of mistakes. What it
  misses otherwise, a style of writing say, it misses in many pairs alike, which no model of chance errors
  allows for. So a grader is believed only if it tells apart what was asked for as one side and as the other
  (`Verdict`), and else is no witness at all.

All of these shares, means and spreads, and the sides, are learned in turn (expectation maximisation). They
are shrunk, so that few pairs teach little: the share of a reply towards its annotator's, that of an annotator
towards the mean of all, a grader towards what the scale from 0 to 5 means.

Out come, for every pair, the probability that it is `synonym` (its side, and its weight), and for every
grader its means, by which `scale` reads its grades as a level. The strategies read this one evidence, each in
its own way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median_high
from typing import Any

import numpy as np

from angle_data.ensembling.read import NO_GRADES, Grades
from angle_data.ensembling.screen import Merged, Screened
from angle_data.records import QUERY, Polarity

Array = np.ndarray[Any, np.dtype[Any]]

# Belief in a grader.
LEAST_AUC = 0.75  # against what was asked for
LEAST_GRADES = 20  # of either side, to know that a grader is too weak
_ALL = ""  # stands for all annotators together

# Prior shares, and how many observations each is worth.
WRONG, _WRONG_STRENGTH = 0.03, 40.0  # of wrong claims or mistaken grades, before anything is known
_MOST_WRONG = 0.2  # bound of the mean of all annotators; WRONG is the other
_LEAST_WRONG = 0.001  # bound of the share in any reply
_LEAST_MISTAKEN = 0.005  # bound of a grader's share
_REPLY_STRENGTH = 0.5  # what an annotator's share is worth beside a reply's other sentences
USUAL_MEANS = (4.5, 1.5)  # of grades of synonyms and of antonyms
_SPREAD, _GRADER_STRENGTH = 1.0, 5.0  # the variance of grades about these
# Language models err together, so n of them count as n / (1 + (n - 1) c) times their mean. For claims c is
# fixed; for grades it is learned, from this share, which is worth so many pairs of grades.
_CLAIM_CORRELATION = 0.5
_CORRELATION, _CORRELATION_STRENGTH = 0.3, 20.0
_SURE = 0.9  # least probability of the side of a pair that teaches how graders err together
_ROUNDS = 40
_TOLERANCE = 5e-4


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a grader is believed; `reason` says why it is not, in words that follow its name.

    `auc` is the area under the curve: how often it grades a pair asked for as synonym (or degree 4 or 5)
    above one asked for as antonym (or degree 1 or 2), None without either. `annotators` holds that for each
    annotator of whom it has 20 grades of either side. `trusted`: it graded given pairs, and too few others
    for anything to show how well.
    """

    auc: float | None = None
    annotators: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = "graded none of the candidates, or only those it wrote itself"
    trusted: bool = False


class Evidence:
    """What is known about the `pairs` of a screening, from their annotators and from `grades`.

    `grades` are of others than the authors; those of graders that are not believed are left out. `given`
    are the keys of further pairs: who graded those alone is believed, as nothing speaks against it. `graders`
    names all graders, if some have no grade that counts. `dropped` are the rejections of the screening.
    """

    def __init__(
        self,
        screened: Screened,
        grades: Grades = NO_GRADES,
        given: Collection[tuple[str, str]] = (),
        graders: Iterable[str] = (),
    ) -> None:
        self.pairs, self.dropped = screened
        names = sorted({*graders, *(name for row in grades.values() for name in row)})
        others = {name for key in given for name in grades.get(key, {})}
        self.verdicts = {name: _judge(name, self.pairs, grades, given=name in others) for name in names}
        believed = set(self.used)
        kept = ((key, {name: row[name] for name in row if name in believed}) for key, row in grades.items())
        self.grades: Grades = {key: row for key, row in kept if row}
        self.graded = sum(pair.key in self.grades for pair in self.pairs)

    @property
    def used(self) -> list[str]:
        """The graders that are believed, sorted."""
        return [name for name, verdict in self.verdicts.items() if verdict.reason is None]

    @property
    def share(self) -> str:
        """How many of the pairs are graded, in words."""
        return f"graded {self.graded} of {len(self.pairs)} candidate pairs"

    @cached_property
    def sides(self) -> Sides:
        """What was learned about pairs, annotators and graders; learned when it is first asked for."""
        sides = Sides(self.pairs, self.grades)
        sides.learn()
        return sides


def _judge(grader: str, pairs: Sequence[Merged], grades: Grades, *, given: bool) -> Verdict:
    """Judge a grader by what was asked for; one that graded pairs that are `given` alone is believed.

    It is believed with an area under the curve of at least 0.75 for one of the annotators, and more than
    0.25 for most of them, or with fewer than 20 grades of either side. So an annotator that errs cannot make
    a good grader look weak: what counts is the annotator whose sentences the grader tells apart best, unless
    it has most of them the wrong way round. Pairs that annotators contradict each other about say nothing.
    """
    graded = [(pair, grades[pair.key][grader]) for pair in pairs if grader in grades.get(pair.key, {})]
    if not (graded or given):
        return Verdict()
    found: dict[str, dict[Polarity, list[float]]] = {}
    for pair, grade in graded:
        side: Polarity = "synonym" if pair.synonyms else "antonym"
        between = all(offer.candidate.degree == 3 for offer in pair.offers)
        if not between and not (pair.synonyms and pair.antonyms):
            for name in (_ALL, *pair.models):
                found.setdefault(name, {"synonym": [], "antonym": []})[side].append(grade)
    areas = {name: _area_under_curve(**sides) for name, sides in sorted(found.items())}
    enough = {name for name, sides in found.items() if min(map(len, sides.values())) >= LEAST_GRADES}
    auc = areas.get(_ALL)
    single = {name: area for name, area in areas.items() if name in enough - {_ALL} and area is not None}
    if auc is None or _ALL not in enough:
        return Verdict(auc, single, None, trusted=given)
    fair = list(single.values()) or [auc]
    if max(fair) >= LEAST_AUC and median_high(fair) > 1 - LEAST_AUC:
        return Verdict(auc, single, None)
    each = f", {shown_areas(single)}" if len(single) > 1 else ""
    what = "grades antonyms above synonyms" if auc < 0.5 else "hardly tells synonyms from antonyms"
    return Verdict(auc, single, f"{what} (area under the curve {auc:.2f}{each}, {LEAST_AUC:g} is needed)")


def _area_under_curve(synonym: Sequence[float], antonym: Sequence[float]) -> float | None:
    """Return how often a synonym's grade is above an antonym's, ties counting half; None without both."""
    if not synonym or not antonym:
        return None
    ordered = sorted(antonym)
    wins = sum(bisect_left(ordered, grade) + bisect_right(ordered, grade) for grade in synonym)
    return wins / 2 / len(synonym) / len(antonym)


def shown_areas(areas: Mapping[str, float]) -> str:
    """Return areas under the curve by name, for a message."""
    return ", ".join(f"{name} {area:.2f}" for name, area in areas.items())


class Sides:
    """What is learned about `pairs` from what was asked for and from the grades of believed graders.

    `synonym` holds the probability that the texts of each pair mean the same. A kind is an annotator and what
    it was asked for: of the `kinds`, `wrong` is the share of wrong claims, and `checked` how many claims
    anything else speaks about (0: the prior stands). `means` (2 x graders, of synonyms and of antonyms), the
    variance about them and the share of mistakes say how the grades of each of `graders` are to be read.
    """

    def __init__(self, pairs: Sequence[Merged], grades: Grades) -> None:
        rows = [grades.get(pair.key, {}) for pair in pairs]
        self.graders = sorted({name for row in rows for name in row})
        shape = len(pairs), len(self.graders)
        table = np.array([[row.get(name, np.nan) for name in self.graders] for row in rows]).reshape(shape)
        # B x graders; a grade is 0 where none is given.
        self._given = np.isfinite(table)
        self._grades = np.nan_to_num(table)
        self._number = self._given.sum(axis=1)
        self.means = np.tile(np.array(USUAL_MEANS)[:, None], len(self.graders))
        self._spread = np.full(len(self.graders), _SPREAD)
        self._mistaken = np.full(len(self.graders), WRONG)
        self._correlation = _CORRELATION
        # Of each claim the numbers of its pair, kind and reply, and its sign: 1 for `synonym`, else -1.
        claims = [(number, *claim) for number, pair in enumerate(pairs) for claim in claims_of(pair)]
        self._pair = np.array([claim[0] for claim in claims], dtype=int)
        self._sign = np.array([1 if claim[4] == "synonym" else -1 for claim in claims])
        self.kinds, self._kind = _numbered([claim[1:3] for claim in claims])
        _, self._reply = _numbered([claim[1:] for claim in claims])
        claimed = np.bincount(self._pair, minlength=len(pairs))
        # What stands between the sides says nothing about how a grader grades either.
        self._telling = self._given & (claimed > 0)[:, None]
        self._share = 1 / (1 + (claimed[self._pair] - 1) * _CLAIM_CORRELATION)
        self._checked = ((self._number > 0) | (claimed > 1))[self._pair]
        self.checked = np.bincount(self._kind, self._checked, len(self.kinds))
        self.wrong = np.full(len(self.kinds), WRONG)
        said = np.bincount(self._pair, self._sign * (0.5 - WRONG), len(pairs))
        self.synonym = 0.5 + said / np.maximum(claimed, 1)

    def learn(self) -> None:
        """Learn sides, grades and shares in turn until the shares change no more."""
        for _ in range(_ROUNDS):
            before = self.wrong
            self._learn_graders()
            self._learn_sides()
            self._learn_annotators()
            self._learn_correlation()
            if np.abs(before - self.wrong).max(initial=0) < _TOLERANCE:
                break
        self._learn_sides()

    def _seen(self) -> Array:
        """Return the probability of `synonym` by each grade if it is no mistake; 0.5 if it tells nothing."""
        high, low = self.means
        odds = np.maximum(0, high - low) * (self._grades - (high + low) / 2) / self._spread
        return _logistic(np.clip(odds, -30, 30))

    def _learn_graders(self) -> None:
        """Learn each grader's means, spread and mistakes from its grades and the sides as believed now."""
        seen = self._seen()
        likely = np.stack([seen, 1 - seen])
        right = (1 - self._mistaken) * likely
        # Shares of each grade that belong to either side, and are no mistakes.
        fair = np.stack([self.synonym, 1 - self.synonym])[:, :, None] * self._telling
        fair *= right / (right + self._mistaken * (1 - likely))
        totals, number = fair.sum(axis=1), self._telling.sum(axis=0)
        usual = np.array(USUAL_MEANS)[:, None]
        self.means = shrink((fair * self._grades).sum(axis=1), totals, usual, _GRADER_STRENGTH)
        squares = (fair * (self._grades - self.means[:, None]) ** 2).sum(axis=(0, 1))
        self._spread = shrink(squares, totals.sum(axis=0), _SPREAD, _GRADER_STRENGTH)
        mistaken = shrink(number - totals.sum(axis=0), number, WRONG, _WRONG_STRENGTH)
        self._mistaken = np.maximum(_LEAST_MISTAKEN, mistaken)

    def _learn_sides(self) -> None:
        """Weigh every pair alone, then again with what the other sentences of its replies showed."""
        seen = self._seen()
        share = seen + self._mistaken * (1 - 2 * seen)
        graded = (np.log(share / (1 - share)) * self._given).sum(axis=1)
        graded /= 1 + np.maximum(self._number - 1, 0) * self._correlation
        usual = self.wrong[self._kind]
        self.synonym = _logistic(graded + self._claimed(usual))
        wrong, fellows = self._wrong(), np.bincount(self._reply)[self._reply] - 1
        others = np.bincount(self._reply, wrong)[self._reply] - wrong
        self.synonym = _logistic(graded + self._claimed(shrink(others, fellows, usual, _REPLY_STRENGTH)))

    def _claimed(self, wrong: Array) -> Array:
        """Return the log-odds that claims add to each pair if `wrong` is the share of such that err."""
        wrong = np.clip(wrong, _LEAST_WRONG, 1 - _LEAST_WRONG)
        worth = self._sign * np.log((1 - wrong) / wrong) * self._share
        return np.bincount(self._pair, worth, len(self.synonym))

    def _wrong(self) -> Array:
        """Return for each claim the probability that its pair is on the other side."""
        synonym = self.synonym[self._pair]
        return np.where(self._sign > 0, 1 - synonym, synonym)

    def _learn_annotators(self) -> None:
        """Learn the share of wrong claims of each kind, shrunk towards the mean of all."""
        sums = np.bincount(self._kind, self._wrong() * self._checked, len(self.kinds))
        mean = shrink(sums.sum(), self.checked.sum(), WRONG, _WRONG_STRENGTH)
        self.wrong = shrink(sums, self.checked, np.clip(mean, WRONG, _MOST_WRONG), _WRONG_STRENGTH)

    def _learn_correlation(self) -> None:
        """Learn the mean correlation of two grades of one pair whose side is known, in 0..1."""
        sure = (self._number > 1) & (np.maximum(self.synonym, 1 - self.synonym) > _SURE)
        means = np.where(self.synonym[:, None] < 0.5, self.means[1], self.means[0])
        rest = ((self._grades - means) / np.sqrt(self._spread) * self._given)[sure]
        own = (rest**2).sum(axis=1)
        products = (rest.sum(axis=1) ** 2 - own).sum() / 2  # of every two
        squares = ((self._number[sure] - 1) * own).sum() / 2
        found = shrink(products, squares, _CORRELATION, _CORRELATION_STRENGTH)
        self._correlation = min(1.0, max(0.0, found))


def claims_of(pair: Merged) -> list[tuple[str, str, str, Polarity]]:
    """Return the distinct claims about a pair: annotator, what was asked for, reply, and side.

    None is made where degree 3 was asked for. Sentences of one reply are wrong together, as where it has the
    polarity the wrong way round; queries are not: each counts as a reply of its own.
    """
    claims = set()
    for offer in pair.offers:
        candidate = offer.candidate
        reply = f"{offer.source.key}\n{candidate.key}"
        if candidate.kind == QUERY:
            reply += f"\n{offer.text_key}"
        if candidate.degree != 3:
            claims.add((candidate.model, offer.asked, reply, offer.side))
    return sorted(claims)


def shrink(total: Any, count: Any, prior: Any, strength: float) -> Any:
    """Return means of `count` observations, drawn towards `prior` as by `strength` more of them."""
    return (total + strength * prior) / (count + strength)


def _numbered(names: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], Array]:
    """Return the distinct names, sorted, and the place of each name among them."""
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    return distinct, np.array([places[name] for name in names], dtype=int)


def _logistic(log_odds: Array) -> Array:
    return 1 / (1 + np.exp(-log_odds))
