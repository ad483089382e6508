"""The `principled` strategy: weigh who claimed a polarity against what graders saw.

The model is that of Dawid and Skene (1979, doi:10.2307/2346806). Every pair has a hidden polarity. Annotators
claim one and err now and then; graders give a grade whose distribution depends on it. The shares of wrong
claims, the graders' distributions and the polarities are learned in turn (expectation maximisation). Every
share is shrunk, so that few pairs teach little: that of a reply towards its annotator's, that of an annotator
towards the mean of all, that of a grader towards "its grades tell nothing".

A pair keeps the polarity that somebody asked for if that is the likelier one. It is flipped only where
grades speak clearly for it, and dropped where the evidence supports neither. Without grades only pairs that
annotators contradict each other about can be judged: a vote, weighed by how reliable each has proved.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from angle_data.ensemble.read import NO_GRADES, Grades, Offer, Source, peer_grades
from angle_data.ensemble.screen import content_words, reject, screen
from angle_data.ensemble.strategies import Choice, Merged, Outcome, keep, merge
from angle_data.records import Polarity

log = logging.getLogger("angle.ensemble")

Kind = tuple[str, Polarity]
"""An annotator and the polarity that was asked for."""

# Decisions, by the probability of the likelier polarity.
_SETTLED = 0.75  # least where annotators contradict each other
_FLIP = 0.9  # least of a polarity that nobody asked for
_TOPICAL = 0.2  # least share of an antonym's content words that its source has, to be turned into one
_DOUBTFUL = 0.6  # reliability below which the graders may be the ones that err

# Prior shares, and how many observations each is worth.
_WRONG, _WRONG_STRENGTH = 0.03, 40.0  # of wrong claims, before anything is known
_MOST_WRONG = 0.2  # bound of the mean of all annotators; _WRONG is the other
_LEAST_WRONG = 0.001  # bound of the share in any reply
_REPLY_STRENGTH = 0.5  # what an annotator's share is worth beside a reply's other sentences
_GRADER_STRENGTH = 5.0  # pairs of each polarity by which a grader's grades tell nothing
# Language models err together, so n of them count as n / (1 + (n - 1) c) times their mean. For claims c is
# fixed; for grades it is learned, from this share, which is worth so many pairs of grades.
_CLAIM_CORRELATION = 0.5
_CORRELATION, _CORRELATION_STRENGTH = 0.3, 20.0
_SURE = 0.9  # least probability of the polarity of a pair that teaches how graders err together
_LEVELS = 12  # of a grader's grades, by rank
_MISTAKEN = 0.03  # share of grades that are of the other polarity, whatever the distributions say
_ROUNDS, _TOLERANCE = 40, 5e-4


class Claim(NamedTuple):
    """`annotator` offered a pair with `polarity` in the reply named `reply`."""

    annotator: str
    polarity: Polarity
    reply: str


def principled(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep each pair with its likely polarity, flipped where need be; weigh it by how likely that is.

    Equal pairs become one with all of their supporters first; grades by a pair's own supporters do not count.
    `grades` should be of graders that tell synonyms from antonyms (`graders.judge`).
    """
    passed, dropped = screen(sources)
    pairs = merge(passed)
    beliefs = Beliefs(pairs, grades)
    beliefs.learn()
    _warn(beliefs)
    outcome = Outcome([], dropped)
    for pair, levels, synonym in zip(pairs, beliefs.levels, beliefs.synonym, strict=True):
        _settle(pair, synonym, outcome, graded=bool(levels))
    outcome.details.update(_details(beliefs, outcome.kept))
    return outcome


def claims_of(pair: Merged) -> list[Claim]:
    """Return the distinct claims about a pair, sorted."""
    sides: tuple[tuple[Polarity, tuple[Offer, ...]], ...]
    sides = ("synonym", pair.synonyms), ("antonym", pair.antonyms)
    return sorted(
        {
            Claim(offer.candidate.model, polarity, f"{offer.source.key}\n{offer.candidate.key}")
            for polarity, offered in sides
            for offer in offered
        }
    )


def levels_of(graded: Sequence[Mapping[str, float]]) -> list[list[tuple[str, int]]]:
    """Return for each pair's grades by grader their levels, 0 to 11, by rank among the grader's own grades.

    One grader's 3.5 is another's 1.2: only ranks can be compared. Half of the equal grades count as below.
    """
    own: dict[str, list[float]] = {}
    for row in graded:
        for grader, grade in row.items():
            own.setdefault(grader, []).append(grade)
    for values in own.values():
        values.sort()

    def level(grader: str, grade: float) -> int:
        below = bisect_left(own[grader], grade) + bisect_right(own[grader], grade)
        return min(_LEVELS - 1, int(_LEVELS * below / 2 / len(own[grader])))

    return [[(grader, level(grader, grade)) for grader, grade in sorted(row.items())] for row in graded]


class Beliefs:
    """What is believed of `pairs`: `synonym` holds the probability that each is synonymous.

    `levels` are those of each pair's grades (`levels_of`), less its own supporters'; `claims` counts the
    claims about it. `wrong` is the share of wrong claims by annotator and polarity asked for, `checked` how
    many of these claims anything else speaks about (0: the prior stands). `odds` holds the log-odds of
    synonym against antonym that each level of a grader's grades stands for, by grader.
    """

    def __init__(self, pairs: Sequence[Merged], grades: Grades) -> None:
        self.levels = levels_of([peer_grades(grades, pair.key, pair.models) for pair in pairs])
        claims = [claims_of(pair) for pair in pairs]
        self.claims = [len(found) for found in claims]
        self.replies: dict[Claim, list[int]] = {}
        self.checked: Counter[Kind] = Counter()
        for number, found in enumerate(claims):
            for claim in found:
                self.replies.setdefault(claim, []).append(number)
                self.checked[kind_of(claim)] += self._is_checked(number)
        self.wrong: dict[Kind, float] = dict.fromkeys(sorted(self.checked), _WRONG)
        self.odds: dict[str, list[float]] = {}
        self.correlation = _CORRELATION
        self.synonym = [
            sum(1 - _WRONG if claim.polarity == "synonym" else _WRONG for claim in found) / len(found)
            for found in claims
        ]

    def learn(self) -> None:
        """Learn polarities, distributions of grades and shares in turn until the shares change no more."""
        for _ in range(_ROUNDS):
            before = self.wrong
            self._learn_graders()
            self._learn_polarities()
            self._learn_annotators()
            self._learn_correlation()
            if max((abs(before[kind] - share) for kind, share in self.wrong.items()), default=0) < _TOLERANCE:
                break
        self._learn_polarities()

    def _learn_graders(self) -> None:
        """Learn how often synonyms and antonyms, as believed now, get each level of a grader's grades."""
        counts: dict[str, list[list[float]]] = {}
        for synonym, levels in zip(self.synonym, self.levels, strict=True):
            for grader, level in levels:
                row = counts.setdefault(grader, [[0.0, 0.0] for _ in range(_LEVELS)])[level]
                row[0] += synonym
                row[1] += 1 - synonym
        self.odds = {grader: grade_odds(rows) for grader, rows in counts.items()}

    def _learn_polarities(self) -> None:
        """Weigh every pair alone, then again with what the other sentences of its replies showed."""
        log_odds = [
            sum(self.odds[grader][level] for grader, level in levels)
            / (1 + (len(levels) - 1) * self.correlation)
            if levels
            else 0.0
            for levels in self.levels
        ]
        for claim, numbers in self.replies.items():
            for number in numbers:
                log_odds[number] += self._worth(claim, number, self.wrong[kind_of(claim)])
        self.synonym = [1 / (1 + math.exp(-odds)) for odds in log_odds]
        for claim, numbers in self.replies.items():
            usual, wrong = self.wrong[kind_of(claim)], self._wrong_in(claim)
            total = sum(wrong)
            for number, own in zip(numbers, wrong, strict=True):
                share = (total - own + _REPLY_STRENGTH * usual) / (len(numbers) - 1 + _REPLY_STRENGTH)
                log_odds[number] += self._worth(claim, number, share) - self._worth(claim, number, usual)
        self.synonym = [1 / (1 + math.exp(-odds)) for odds in log_odds]

    def _worth(self, claim: Claim, number: int, wrong: float) -> float:
        """Return the log-odds that a claim adds to a pair if `wrong` is the share of such claims that err."""
        wrong = min(1 - _LEAST_WRONG, max(_LEAST_WRONG, wrong))
        worth = math.log((1 - wrong) / wrong) / (1 + (self.claims[number] - 1) * _CLAIM_CORRELATION)
        return worth if claim.polarity == "synonym" else -worth

    def _learn_annotators(self) -> None:
        """Learn the share of wrong claims of each annotator and polarity, shrunk towards the mean of all."""
        sums: dict[Kind, float] = dict.fromkeys(self.wrong, 0.0)
        for claim, numbers in self.replies.items():
            sums[kind_of(claim)] += sum(
                wrong
                for number, wrong in zip(numbers, self._wrong_in(claim), strict=True)
                if self._is_checked(number)
            )
        mean = _shrink(sum(sums.values()), self.checked.total(), _WRONG)
        mean = min(_MOST_WRONG, max(_WRONG, mean))
        self.wrong = {kind: _shrink(total, self.checked[kind], mean) for kind, total in sums.items()}

    def _learn_correlation(self) -> None:
        """Learn the mean correlation of two grades of one pair whose polarity is known, in 0..1."""
        total, count = _CORRELATION * _CORRELATION_STRENGTH, _CORRELATION_STRENGTH
        for side in (False, True):
            rows = [
                [level for _, level in levels]
                for levels, synonym in zip(self.levels, self.synonym, strict=True)
                if len(levels) > 1 and (synonym if side else 1 - synonym) > _SURE
            ]
            values = [value for row in rows for value in row]
            if not values:
                continue
            mean = sum(values) / len(values)
            variance = sum((value - mean) ** 2 for value in values) / len(values)
            for row in rows if variance else ():
                rest = [value - mean for value in row]
                total += (sum(rest) ** 2 - sum(value * value for value in rest)) / 2 / variance
                count += len(row) * (len(row) - 1) / 2
        self.correlation = min(1.0, max(0.0, total / count))

    def _wrong_in(self, claim: Claim) -> list[float]:
        """Return, for each sentence of a reply, the probability that it has the other polarity."""
        synonym = [self.synonym[number] for number in self.replies[claim]]
        return [1 - share for share in synonym] if claim.polarity == "synonym" else synonym

    def _is_checked(self, number: int) -> bool:
        return bool(self.levels[number]) or self.claims[number] > 1


def kind_of(claim: Claim) -> Kind:
    """Return the annotator of a claim and the polarity that was asked for."""
    return claim.annotator, claim.polarity


def grade_odds(counts: Sequence[Sequence[float]]) -> list[float]:
    """Return ln(p(level | synonym) / p(level | antonym)) of each level of grades, from low to high.

    `counts` holds the synonyms and the antonyms of each level. The odds never fall as grades rise: where
    they would, neighbours are pooled, so that a grader that ranks pairs the wrong way tells nothing.
    """
    totals = [sum(side) for side in zip(*counts, strict=True)]
    blocks: list[tuple[float, float, int]] = []  # p(synonym), p(antonym), levels
    for row in counts:
        usual = _GRADER_STRENGTH * sum(row) / sum(totals)
        one, other = ((n + usual) / (total + _GRADER_STRENGTH) for n, total in zip(row, totals, strict=True))
        size = 1
        while blocks and blocks[-1][0] * other >= one * blocks[-1][1]:
            below = blocks.pop()
            one, other, size = one + below[0], other + below[1], size + below[2]
        blocks.append((one, other, size))
    return [
        math.log((one + _MISTAKEN * (other - one)) / (other + _MISTAKEN * (one - other)))
        for one, other, size in blocks
        for _ in range(size)
    ]


def _shrink(total: float, count: int, prior: float) -> float:
    return (total + _WRONG_STRENGTH * prior) / (count + _WRONG_STRENGTH)


def _settle(pair: Merged, synonym: float, outcome: Outcome, *, graded: bool) -> None:
    """Keep, flip or drop one pair that is synonymous with probability `synonym`."""
    likely: Polarity = "synonym" if synonym > 0.5 else "antonym"
    same, others = (pair.synonyms, pair.antonyms) if likely == "synonym" else (pair.antonyms, pair.synonyms)
    sure = max(synonym, 1 - synonym)
    weight = round(sure, 4)
    if same and (not others or sure >= _SETTLED):
        keep(outcome, same, weight)
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in others)
    elif same:
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in (*same, *others))
    elif graded and sure >= _FLIP and (likely == "synonym" or _is_topical(others[0])):
        keep(outcome, others, weight, polarity=likely)
    else:
        outcome.dropped.extend(reject(offer.candidate, "contradicted") for offer in others)


def _is_topical(offer: Offer) -> bool:
    """Return whether a low grade can mean an opposite: unrelated texts share no content words."""
    bag = content_words(offer.candidate.text)
    return len(bag & content_words(offer.source.text)) >= _TOPICAL * len(bag)


def _warn(beliefs: Beliefs) -> None:
    if not beliefs.odds:
        log.info(
            "no grades to go by: only contradictions between annotators are seen; --scores RUN of "
            "`angle-data llm-score` would show swapped polarities too"
        )
    for (annotator, polarity), wrong in beliefs.wrong.items():
        if beliefs.odds and 1 - wrong < _DOUBTFUL:
            log.warning(
                "%s: the graders contradict most of its %ss (reliability %.2f). Read some: either they "
                "are wrong, or the graders are; without --scores the annotator is believed",
                annotator, polarity, 1 - wrong,
            )  # fmt: skip


def _details(beliefs: Beliefs, kept: Sequence[Choice]) -> dict[str, Any]:
    """Return what `report.json` says of each annotator: reliability by polarity, flipped pairs."""
    flips = Counter(
        (model, choice.candidate.polarity)
        for choice in kept
        for model in choice.models
        if "flipped" in choice.flags
    )
    reliability: dict[str, Any] = {}
    for (name, polarity), wrong in beliefs.wrong.items():
        found = {"reliability": round(1 - wrong, 4), "checked": beliefs.checked[name, polarity]}
        reliability.setdefault(name, {})[polarity] = found
    return {
        "reliability": reliability,
        "flipped": {
            name: {
                "synonym_to_antonym": flips[name, "antonym"],
                "antonym_to_synonym": flips[name, "synonym"],
            }
            for name in reliability
        },
    }
