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
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import mul
from typing import Any, NamedTuple

from angle_data.ensembling.read import NO_GRADES, Grades, Offer, Source
from angle_data.ensembling.scale import shrink
from angle_data.ensembling.screen import content_words, reject, screen
from angle_data.ensembling.strategies import Choice, Merged, Outcome, asked_of, keep, merge, side_of
from angle_data.records import Polarity

log = logging.getLogger("angle.ensemble")

Kind = tuple[str, str]
"""An annotator and what was asked for (`strategies.asked_of`)."""

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


class Claim(NamedTuple):
    """`annotator` was asked for `asked`, which is on the side `side`, and offered a pair in `reply`."""

    annotator: str
    asked: str
    reply: str
    side: Polarity

    @property
    def kind(self) -> Kind:
        """Who claims, and what was asked for."""
        return self.annotator, self.asked


@dataclass(frozen=True, slots=True)
class Reader:
    """How a grader's grades are to be read: the means of synonyms and antonyms, the variance about them."""

    means: tuple[float, float] = _MEANS
    spread: float = _SPREAD
    mistaken: float = _WRONG

    def synonym(self, grade: float) -> float:
        """Return the probability of `synonym` by a grade that is no mistake; 0.5 if it tells nothing."""
        high, low = self.means
        odds = max(0.0, high - low) * (grade - (high + low) / 2) / self.spread
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))

    def odds(self, grade: float) -> float:
        """Return the log-odds of `synonym` against `antonym`, mistakes allowed for."""
        one = self.synonym(grade)
        share = one + self.mistaken * (1 - 2 * one)
        return math.log(share / (1 - share))

    def learn(self, rows: Sequence[tuple[float, float]]) -> Reader:
        """Return what grades, each with the probability that its pair is synonymous, say of their grader."""
        grades = [grade for grade, _ in rows]
        seen = [self.synonym(grade) for grade in grades]
        fair = (  # shares of each grade that belong to either side, and are no mistakes
            [share * self._fair(one) for (_, share), one in zip(rows, seen, strict=True)],
            [(1 - share) * self._fair(1 - one) for (_, share), one in zip(rows, seen, strict=True)],
        )
        high, low = (
            shrink(sum(map(mul, side, grades)), sum(side), usual, _GRADER_STRENGTH)
            for side, usual in zip(fair, _MEANS, strict=True)
        )
        squares = sum(
            part * (grade - mean) ** 2
            for side, mean in zip(fair, (high, low), strict=True)
            for part, grade in zip(side, grades, strict=True)
        )
        total = sum(map(sum, fair))
        return Reader(
            (high, low),
            shrink(squares, total, _SPREAD, _GRADER_STRENGTH),
            max(_LEAST_MISTAKEN, shrink(len(rows) - total, len(rows), _WRONG, _WRONG_STRENGTH)),
        )

    def _fair(self, one: float) -> float:
        """Return how likely a grade is no mistake that gives its pair's side the probability `one`."""
        right = (1 - self.mistaken) * one
        return right / (right + self.mistaken * (1 - one))


def principled(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep each pair on its likely side, flipped where need be; weigh it by how likely that is.

    Equal pairs become one with all of their supporters first. `grades` should be those that `graders.judge`
    returns: of others than the authors, who tell synonyms from antonyms.
    """
    passed, dropped = screen(sources)
    pairs = merge(passed)
    beliefs = Beliefs(pairs, grades)
    beliefs.learn()
    if not beliefs.readers:
        log.info(
            "no grades to go by: only contradictions between annotators are seen; --scores RUN of "
            "`angle-data llm-score` would show swapped polarities too"
        )
    outcome = Outcome([], dropped)
    for pair, graded, synonym in zip(pairs, beliefs.grades, beliefs.synonym, strict=True):
        _settle(pair, synonym, outcome, graded=bool(graded))
    outcome.details.update(_details(beliefs, outcome.kept))
    return outcome


def claims_of(pair: Merged) -> list[Claim]:
    """Return the distinct claims about a pair, sorted; none is made where degree 3 was asked for."""
    candidates = [(offer.source.key, offer.candidate) for offer in (*pair.synonyms, *pair.antonyms)]
    return sorted(
        {
            Claim(candidate.model, asked_of(candidate), f"{key}\n{candidate.key}", side_of(candidate))
            for key, candidate in candidates
            if candidate.degree != 3
        }
    )


class Beliefs:
    """What is believed of `pairs`: `synonym` holds the probability that the texts of each mean the same.

    `grades` are each pair's; `claims` counts the claims about it. `wrong` is the share of wrong claims by
    annotator and what was asked for, `checked` how many of these claims anything else speaks about (0: the
    prior stands). `readers` say how each grader's grades are to be read.
    """

    def __init__(self, pairs: Sequence[Merged], grades: Grades) -> None:
        self.grades = [grades.get(pair.key, {}) for pair in pairs]
        claims = [claims_of(pair) for pair in pairs]
        self.claims = [len(found) for found in claims]
        self.replies: dict[Claim, list[int]] = {}
        self.checked: Counter[Kind] = Counter()
        for number, found in enumerate(claims):
            for claim in found:
                self.replies.setdefault(claim, []).append(number)
                self.checked[claim.kind] += self._is_checked(number)
        self.wrong: dict[Kind, float] = dict.fromkeys(sorted(self.checked), _WRONG)
        self.readers = dict.fromkeys(sorted({name for row in self.grades for name in row}), Reader())
        self.correlation = _CORRELATION
        said = ([1 - _WRONG if claim.side == "synonym" else _WRONG for claim in found] for found in claims)
        self.synonym = [sum(shares) / len(shares) if shares else 0.5 for shares in said]

    def learn(self) -> None:
        """Learn sides, grades and shares in turn until the shares change no more."""
        for _ in range(_ROUNDS):
            before = self.wrong
            self._learn_graders()
            self._learn_sides()
            self._learn_annotators()
            self._learn_correlation()
            if max((abs(before[kind] - share) for kind, share in self.wrong.items()), default=0) < _TOLERANCE:
                break
        self._learn_sides()

    def _learn_graders(self) -> None:
        """Learn each grader's means, spread and mistakes from its grades and the sides as believed now."""
        graded: dict[str, list[tuple[float, float]]] = {}
        for synonym, row in zip(self.synonym, self.grades, strict=True):
            for grader, grade in row.items():
                graded.setdefault(grader, []).append((grade, synonym))
        for name, rows in graded.items():
            self.readers[name] = self.readers[name].learn(rows)

    def _learn_sides(self) -> None:
        """Weigh every pair alone, then again with what the other sentences of its replies showed."""
        log_odds = [0.0] * len(self.grades)
        for number, row in enumerate(self.grades):
            total = sum(self.readers[name].odds(grade) for name, grade in row.items())
            log_odds[number] = total / (1 + max(len(row) - 1, 0) * self.correlation)
        for claim, numbers in self.replies.items():
            for number in numbers:
                log_odds[number] += self._worth(claim, number, self.wrong[claim.kind])
        self.synonym = [1 / (1 + math.exp(-odds)) for odds in log_odds]
        for claim, numbers in self.replies.items():
            usual, wrong = self.wrong[claim.kind], self._wrong_in(claim)
            total = sum(wrong)
            for number, own in zip(numbers, wrong, strict=True):
                share = (total - own + _REPLY_STRENGTH * usual) / (len(numbers) - 1 + _REPLY_STRENGTH)
                log_odds[number] += self._worth(claim, number, share) - self._worth(claim, number, usual)
        self.synonym = [1 / (1 + math.exp(-odds)) for odds in log_odds]

    def _worth(self, claim: Claim, number: int, wrong: float) -> float:
        """Return the log-odds that a claim adds to a pair if `wrong` is the share of such claims that err."""
        wrong = min(1 - _LEAST_WRONG, max(_LEAST_WRONG, wrong))
        worth = math.log((1 - wrong) / wrong) / (1 + (self.claims[number] - 1) * _CLAIM_CORRELATION)
        return worth if claim.side == "synonym" else -worth

    def _learn_annotators(self) -> None:
        """Learn the share of wrong claims of each kind, shrunk towards the mean of all."""
        sums: dict[Kind, float] = dict.fromkeys(self.wrong, 0.0)
        for claim, numbers in self.replies.items():
            wrong = zip(numbers, self._wrong_in(claim), strict=True)
            sums[claim.kind] += sum(share for number, share in wrong if self._is_checked(number))
        mean = shrink(sum(sums.values()), self.checked.total(), _WRONG, _WRONG_STRENGTH)
        mean = min(_MOST_WRONG, max(_WRONG, mean))
        self.wrong = {
            kind: shrink(total, self.checked[kind], mean, _WRONG_STRENGTH) for kind, total in sums.items()
        }

    def _learn_correlation(self) -> None:
        """Learn the mean correlation of two grades of one pair whose side is known, in 0..1."""
        total, squares = _CORRELATION * _CORRELATION_STRENGTH, _CORRELATION_STRENGTH
        for row, synonym in zip(self.grades, self.synonym, strict=True):
            if len(row) > 1 and max(synonym, 1 - synonym) > _SURE:
                readers = [(self.readers[name], grade) for name, grade in row.items()]
                rest = [(grade - r.means[synonym < 0.5]) / math.sqrt(r.spread) for r, grade in readers]
                total += sum(one * other for one, other in combinations(rest, 2))
                squares += sum((one * one + other * other) / 2 for one, other in combinations(rest, 2))
        self.correlation = min(1.0, max(0.0, total / squares))

    def _wrong_in(self, claim: Claim) -> list[float]:
        """Return, for each sentence of a reply, the probability that it is on the other side."""
        synonym = [self.synonym[number] for number in self.replies[claim]]
        return [1 - share for share in synonym] if claim.side == "synonym" else synonym

    def _is_checked(self, number: int) -> bool:
        return bool(self.grades[number]) or self.claims[number] > 1


def _settle(pair: Merged, synonym: float, outcome: Outcome, *, graded: bool) -> None:
    """Keep, flip or drop one pair that is synonymous with probability `synonym`."""
    likely: Polarity = "synonym" if synonym > 0.5 else "antonym"
    same, others = (pair.synonyms, pair.antonyms) if likely == "synonym" else (pair.antonyms, pair.synonyms)
    sure = max(synonym, 1 - synonym)
    weight = round(sure, 4)
    if not claims_of(pair):
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
    for (name, asked), wrong in beliefs.wrong.items():
        found = {"reliability": round(1 - wrong, 4), "checked": beliefs.checked[name, asked]}
        reliability.setdefault(name, {})[asked] = found
    by_name = {
        name: {"synonym_to_antonym": flips[name, "antonym"], "antonym_to_synonym": flips[name, "synonym"]}
        for name in reliability
    }
    return {"reliability": reliability, "flipped": by_name}
