"""The `principled` strategy: weigh who claimed something against what graders saw.

The model is that of Dawid and Skene (1979, doi:10.2307/2346806). Every pair has a hidden side: its texts mean
the same (`synonym`) or not (`antonym`). Annotators claim one of them, by a polarity or a degree, and err now
and then; only degree 3 claims neither. A grader's grades are spread normally about a mean of each side, but
for mistakes. The shares of wrong claims, means, spreads and shares of mistakes, and the sides are learned in
turn (expectation maximisation). All are shrunk, so that few pairs teach little: the share of a reply towards
its annotator's, that of an annotator towards the mean of all, a grader towards what the scale 0 to 5 means.

A pair stays what somebody asked for if that is the likelier side. A polarity is flipped only where grades
speak clearly for it; a degree never is. What the evidence supports on neither side is dropped. Without grades
only pairs that annotators contradict each other about can be judged: a vote, weighed by reliability.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from angle_data.ensembling.read import NO_GRADES, Grades, Offer
from angle_data.ensembling.scale import shrink
from angle_data.ensembling.screen import content_words, reject, screen
from angle_data.ensembling.strategies import Choice, Merged, Outcome, asked_of, keep, merge, side_of
from angle_data.records import Polarity

log = logging.getLogger("angle.ensemble")

Array = np.ndarray[Any, np.dtype[Any]]

# Decisions, by the probability of the likelier side.
_SETTLED = 0.75  # least where annotators contradict each other
_FLIP = 0.95  # least of a polarity that nobody asked for
_TOPICAL = 0.2  # least share of an antonym's content words that its source has, to be turned into one

# Prior shares, and how many observations each is worth.
_WRONG, _WRONG_STRENGTH = 0.03, 40.0  # of wrong claims or mistaken grades, before anything is known
_MOST_WRONG = 0.2  # bound of the mean of all annotators; _WRONG is the other
_LEAST_WRONG = 0.001  # bound of the share in any reply
_LEAST_MISTAKEN = 0.005  # bound of a grader's share
_REPLY_STRENGTH = 0.5  # what an annotator's share is worth beside a reply's other sentences
_MEANS, _SPREAD, _GRADER_STRENGTH = (4.5, 1.5), 1.0, 5.0  # of grades by side, and their variance
# Language models err together, so n of them count as n / (1 + (n - 1) c) times their mean. For claims c is
# fixed; for grades it is learned, from this share, which is worth so many pairs of grades.
_CLAIM_CORRELATION = 0.5
_CORRELATION, _CORRELATION_STRENGTH = 0.3, 20.0
_SURE = 0.9  # least probability of the side of a pair that teaches how graders err together
_ROUNDS, _TOLERANCE = 40, 5e-4


def principled(offers: Sequence[Offer], grades: Grades = NO_GRADES) -> Outcome:
    """Keep each pair on its likely side, flipped where need be; weigh it by how likely that is.

    Equal pairs become one with all of their supporters first. `grades` should be those that `graders.judge`
    returns: of others than the authors, who tell synonyms from antonyms.
    """
    passed, dropped = screen(offers)
    pairs = merge(passed)
    beliefs = Beliefs(pairs, grades)
    beliefs.learn()
    if not beliefs.graders:
        log.info(
            "no grades to go by: only contradictions between annotators are seen; --scores RUN of "
            "`angle-data llm-score` would show swapped polarities too"
        )
    outcome = Outcome([], dropped)
    for pair, synonym in zip(pairs, beliefs.synonym.tolist(), strict=True):
        _settle(pair, synonym, outcome, graded=pair.key in grades)
    outcome.details.update(_details(beliefs, outcome.kept))
    return outcome


class Beliefs:
    """What is believed of `pairs`: `synonym` holds the probability that the texts of each mean the same.

    `grades` are B x graders, 0 where `given` is False; `means` (of synonyms, of antonyms), `spread` (the
    variance about them) and `mistaken` (a share) say how each grader's are to be read. Of claims there are
    the numbers of pair, reply and kind, and the sign: 1 for `synonym`, -1 for `antonym`. A kind is an
    annotator and what was asked for; `wrong` is its share of wrong claims, `checked` how many of its claims
    anything else speaks about (0: the prior stands).
    """

    def __init__(self, pairs: Sequence[Merged], grades: Grades) -> None:
        rows = [grades.get(pair.key, {}) for pair in pairs]
        self.graders = sorted({name for row in rows for name in row})
        shape = len(pairs), len(self.graders)
        table = np.array([[row.get(name, np.nan) for name in self.graders] for row in rows]).reshape(shape)
        self._given, self._grades = np.isfinite(table), np.nan_to_num(table)
        self._number = self._given.sum(axis=1)
        self._means = np.tile(np.array(_MEANS)[:, None], len(self.graders))
        self._spread = np.full(len(self.graders), _SPREAD)
        self._mistaken = np.full(len(self.graders), _WRONG)
        self._correlation = _CORRELATION
        claims = [(number, *claim) for number, pair in enumerate(pairs) for claim in _claims(pair)]
        self._pair = np.array([claim[0] for claim in claims], dtype=int)
        self._sign = np.array([1 if claim[4] == "synonym" else -1 for claim in claims])
        self.kinds, self._kind = _numbered([claim[1:3] for claim in claims])
        _, self._reply = _numbered([claim[1:] for claim in claims])
        claimed = np.bincount(self._pair, minlength=len(pairs))
        self._share = 1 / (1 + (claimed[self._pair] - 1) * _CLAIM_CORRELATION)
        self._checked = ((self._number > 0) | (claimed > 1))[self._pair]
        self.checked = np.bincount(self._kind, self._checked, len(self.kinds))
        self.wrong = np.full(len(self.kinds), _WRONG)
        said = np.bincount(self._pair, self._sign * (0.5 - _WRONG), len(pairs))
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
        high, low = self._means
        odds = np.maximum(0, high - low) * (self._grades - (high + low) / 2) / self._spread
        return _logistic(np.clip(odds, -30, 30))

    def _learn_graders(self) -> None:
        """Learn each grader's means, spread and mistakes from its grades and the sides as believed now."""
        seen = self._seen()
        likely = np.stack([seen, 1 - seen])
        right = (1 - self._mistaken) * likely
        # Shares of each grade that belong to either side, and are no mistakes.
        fair = np.stack([self.synonym, 1 - self.synonym])[:, :, None] * self._given
        fair *= right / (right + self._mistaken * (1 - likely))
        totals, number = fair.sum(axis=1), self._given.sum(axis=0)
        usual = np.array(_MEANS)[:, None]
        self._means = shrink((fair * self._grades).sum(axis=1), totals, usual, _GRADER_STRENGTH)
        squares = (fair * (self._grades - self._means[:, None]) ** 2).sum(axis=(0, 1))
        self._spread = shrink(squares, totals.sum(axis=0), _SPREAD, _GRADER_STRENGTH)
        mistaken = shrink(number - totals.sum(axis=0), number, _WRONG, _WRONG_STRENGTH)
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
        mean = shrink(sums.sum(), self.checked.sum(), _WRONG, _WRONG_STRENGTH)
        self.wrong = shrink(sums, self.checked, np.clip(mean, _WRONG, _MOST_WRONG), _WRONG_STRENGTH)

    def _learn_correlation(self) -> None:
        """Learn the mean correlation of two grades of one pair whose side is known, in 0..1."""
        sure = (self._number > 1) & (np.maximum(self.synonym, 1 - self.synonym) > _SURE)
        means = np.where(self.synonym[:, None] < 0.5, self._means[1], self._means[0])
        rest = ((self._grades - means) / np.sqrt(self._spread) * self._given)[sure]
        own = (rest**2).sum(axis=1)
        products = (rest.sum(axis=1) ** 2 - own).sum() / 2  # of every two
        squares = ((self._number[sure] - 1) * own).sum() / 2
        found = shrink(products, squares, _CORRELATION, _CORRELATION_STRENGTH)
        self._correlation = min(1.0, max(0.0, found))


def _numbered(names: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], Array]:
    """Return the distinct names, sorted, and the place of each name among them."""
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    return distinct, np.array([places[name] for name in names], dtype=int)


def _logistic(log_odds: Array) -> Array:
    return 1 / (1 + np.exp(-log_odds))


def _claims(pair: Merged) -> list[tuple[str, str, str, Polarity]]:
    """Return the distinct claims about a pair: annotator, what was asked for, reply, and side.

    None is made where degree 3 was asked for.
    """
    candidates = [(offer.source.key, offer.candidate) for offer in (*pair.synonyms, *pair.antonyms)]
    return sorted(
        {
            (candidate.model, asked_of(candidate), f"{key}\n{candidate.key}", side_of(candidate))
            for key, candidate in candidates
            if candidate.degree != 3
        }
    )


def _settle(pair: Merged, synonym: float, outcome: Outcome, *, graded: bool) -> None:
    """Keep, flip or drop one pair that is synonymous with probability `synonym`."""
    likely: Polarity = "synonym" if synonym > 0.5 else "antonym"
    same, others = (pair.synonyms, pair.antonyms) if likely == "synonym" else (pair.antonyms, pair.synonyms)
    sure = max(synonym, 1 - synonym)
    weight = round(sure, 4)
    if not _claims(pair):
        keep(outcome, pair.antonyms, 1 - _WRONG)
    elif same and (not others or sure >= _SETTLED):
        keep(outcome, same, weight)
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in others)
    elif same:
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in (*same, *others))
    elif graded and sure >= _FLIP and _can_flip(others[0], likely):
        keep(outcome, others, weight, polarity=likely)
    else:
        outcome.dropped.extend(reject(offer.candidate, "contradicted") for offer in others)


def _can_flip(offer: Offer, likely: Polarity) -> bool:
    """Return whether grades can tell what a sentence is: opposites share words, what is unrelated none."""
    if offer.candidate.degree or likely == "synonym":
        return offer.candidate.degree is None
    bag = content_words(offer.candidate.text)
    return len(bag & content_words(offer.source.text)) >= _TOPICAL * len(bag)


def _details(beliefs: Beliefs, kept: Sequence[Choice]) -> dict[str, Any]:
    """Return what `report.json` says of each annotator: reliability by what was asked for, flipped pairs."""
    flipped = [choice for choice in kept if "flipped" in choice.flags]
    flips = Counter((model, choice.candidate.polarity) for choice in flipped for model in choice.models)
    reliability: dict[str, Any] = {}
    for (name, asked), wrong, checked in zip(beliefs.kinds, beliefs.wrong, beliefs.checked, strict=True):
        found = {"reliability": round(1 - float(wrong), 4), "checked": int(checked)}
        reliability.setdefault(name, {})[asked] = found
    by_name = {
        name: {"synonym_to_antonym": flips[name, "antonym"], "antonym_to_synonym": flips[name, "synonym"]}
        for name in reliability
    }
    return {"reliability": reliability, "flipped": by_name}
