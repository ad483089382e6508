"""The message passing behind `beliefs`: pairs and replies as a network, and what is learned on it.

An item's log-odds are the sum of what its graders saw and what the replies that claim something about it are
worth; a reply is worth what its annotator usually is, and what its other sentences make of it. Both are
worked out in turn until they settle. `beliefs` says what the model is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from angle_data.ensemble.graders import Moments, Shape
from angle_data.records import Polarity

Kind = tuple[str, Polarity]
"""An annotator and the polarity that was asked for."""

_SWAPPED, _SWAPPED_STRENGTH = 0.02, 20  # prior share of swapped replies, worth so many replies
_WRONG_STRENGTH = 40  # the prior share of wrong sentences is the caller's
_CONFUSED, _CONFUSED_STRENGTH = 0.03, 200  # prior share of grades that mistake the polarity
_GRADER_CORRELATION, _CORRELATION_STRENGTH = 0.3, 20
_CLAIM_CORRELATION = 0.5
_ROUNDS = 40
_TOLERANCE = 5e-4


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """`annotator` offered a pair with `polarity` in the reply named `reply`."""

    annotator: str
    polarity: Polarity
    reply: str


@dataclass(frozen=True, slots=True)
class Item:
    """One pair: its source, the distinct claims about it (sorted) and its grades by grader, on any scale."""

    source: str
    claims: tuple[Claim, ...]
    grades: Mapping[str, float]


def probability(log_odds: float) -> float:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def through(log_odds: float, error: float) -> float:
    """Return the log-odds that are left after a channel that turns the answer round with probability `error`.

    ln(((1 - e) eˣ + e) / (e eˣ + 1 - e)): never more than ln((1 - e) / e) either way.
    """
    odds = math.exp(max(-30.0, min(30.0, log_odds)))
    return math.log(((1 - error) * odds + error) / (error * odds + 1 - error))


def _temper(count: int, correlation: float) -> float:
    return 1 / (1 + (count - 1) * correlation) if count > 1 else 1.0


@dataclass(slots=True)
class State:
    """What is learned: shares of swapped replies and of wrong sentences, the graders' shapes, and more.

    `prior` is given: the prior share of wrong sentences by annotator. `confusion` is the share of grades that
    mistake the polarity, `correlation` that of the graders' errors.
    """

    prior: dict[str, float]
    swapped: dict[Kind, float] = field(default_factory=dict)
    wrong: dict[Kind, float] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    confusion: float = _CONFUSED
    correlation: float = _GRADER_CORRELATION

    def error(self, kind: Kind) -> float:
        """Return how likely a sentence of `kind` has the other polarity than the one asked for."""
        swapped, wrong = self.swapped[kind], self.wrong[kind]
        return swapped * (1 - wrong) + (1 - swapped) * wrong


class Network:
    """Items and replies, joined by edges (one for each claim), with a message from reply to item on each.

    `scores` gives each grader's normal scores, `families` the name under which its shape is learned. Messages
    and evidence are log-odds of synonym against antonym.
    """

    def __init__(
        self,
        items: Sequence[Item],
        scores: Mapping[str, Mapping[float, float]],
        families: Mapping[str, str],
        state: State,
    ) -> None:
        self.state = state
        self.marks = [
            [(families[grader], scores[grader][grade]) for grader, grade in sorted(item.grades.items())]
            for item in items
        ]
        self.edges: list[list[int]] = []  # of each item
        self.item_of: list[int] = []  # of each edge
        replies: dict[Claim, list[int]] = {}
        for number, item in enumerate(items):
            self.edges.append([])
            for claim in item.claims:
                replies.setdefault(claim, []).append(len(self.item_of))
                self.edges[-1].append(len(self.item_of))
                self.item_of.append(number)
        self.replies = [
            ((claim.annotator, claim.polarity), 1 if claim.polarity == "synonym" else -1, edges)
            for claim, edges in replies.items()
        ]
        self.kinds = sorted({kind for kind, _, _ in self.replies})
        self.evidence = [0.0] * len(items)
        self.messages = [0.0] * len(self.item_of)
        for kind in self.kinds:
            state.swapped.setdefault(kind, _SWAPPED)
            state.wrong.setdefault(kind, state.prior[kind[0]])
        for kind, sign, edges in self.replies:
            swapped = state.swapped[kind]
            worth = through(math.log((1 - swapped) / swapped), state.wrong[kind])
            for edge in edges:
                self.messages[edge] = sign * worth

    def learn(self) -> int:
        """Learn the state; return the number of rounds it took."""
        for number in range(1, _ROUNDS + 1):
            before = [self.state.error(kind) for kind in self.kinds]
            self._refit_graders()
            self._weigh_grades()
            self._send(learn=True)
            after = [self.state.error(kind) for kind in self.kinds]
            change = max((abs(a - b) for a, b in zip(after, before, strict=True)), default=0.0)
            if number > 3 and change < _TOLERANCE:
                break
        return number

    def settle(self) -> None:
        """Let the messages settle with the state as it is.

        A family of which nothing was learned (none of its grades fell into the sample) tells nothing.
        """
        for family, _ in (mark for marks in self.marks for mark in marks):
            if family not in self.state.shapes:
                self.state.shapes[family] = Moments().shape()
        self._weigh_grades()
        for _ in range(3):
            self._send(learn=False)

    def beliefs(self) -> list[float]:
        """Return the log-odds of synonym against antonym of each item."""
        return [
            evidence + _temper(len(edges), _CLAIM_CORRELATION) * sum(self.messages[edge] for edge in edges)
            for evidence, edges in zip(self.evidence, self.edges, strict=True)
        ]

    def checked(self, kind: Kind) -> int:
        """Return how many claims of `kind` are about an item that has grades or other claims."""
        return sum(
            self._is_checked(edge) for found, _, edges in self.replies if found == kind for edge in edges
        )

    def _is_checked(self, edge: int) -> bool:
        item = self.item_of[edge]
        return bool(self.marks[item]) or len(self.edges[item]) > 1

    def _weigh_grades(self) -> None:
        state = self.state
        self.evidence = [
            _temper(len(marks), state.correlation)
            * sum(through(state.shapes[family].log_odds(x), state.confusion) for family, x in marks)
            for marks in self.marks
        ]

    def _send(self, *, learn: bool) -> None:
        """Send a message along every edge: what the claim is worth, given the reply's other sentences."""
        swapped_sums: dict[Kind, list[float]] = {kind: [] for kind in self.kinds}
        wrong_sums: dict[Kind, list[float]] = {kind: [] for kind in self.kinds}
        messages = list(self.messages)
        for kind, sign, edges in self.replies:
            swapped, wrong = self.state.swapped[kind], self.state.wrong[kind]
            others = [sign * self._others(edge) for edge in edges]
            heard = [through(odds, wrong) for odds in others]
            sound = math.log((1 - swapped) / swapped) + sum(heard)  # log-odds that the reply is not swapped
            for edge, ear in zip(edges, heard, strict=True):
                messages[edge] = sign * through(sound - ear, wrong)
            if learn and any(self._is_checked(edge) for edge in edges):
                swapped_sums[kind].append(probability(-sound))
                deviates = math.log(wrong / (1 - wrong))
                wrong_sums[kind] += [
                    probability(deviates - through(odds, probability(ear - sound)))
                    for edge, odds, ear in zip(edges, others, heard, strict=True)
                    if self._is_checked(edge)
                ]
        self.messages = messages
        if learn:
            for kind in self.kinds:
                self.state.swapped[kind] = _shrink(swapped_sums[kind], _SWAPPED, _SWAPPED_STRENGTH)
                self.state.wrong[kind] = _shrink(wrong_sums[kind], self.state.prior[kind[0]], _WRONG_STRENGTH)

    def _others(self, edge: int) -> float:
        """Return the log-odds of the edge's item by all but the edge's own claim."""
        item = self.item_of[edge]
        edges = self.edges[item]
        if len(edges) == 1:
            return self.evidence[item]
        claims = sum(self.messages[other] for other in edges if other != edge)
        return self.evidence[item] + _temper(len(edges) - 1, _CLAIM_CORRELATION) * claims

    def _refit_graders(self) -> None:
        """Learn shapes, confusion and correlation from the beliefs as they are."""
        state, old = self.state, self.state.shapes
        moments: dict[str, Moments] = {}
        confused, grades = _CONFUSED * _CONFUSED_STRENGTH, float(_CONFUSED_STRENGTH)
        beliefs = self.beliefs()
        for belief, marks in zip(beliefs, self.marks, strict=True):
            weight = _temper(len(marks), state.correlation)
            for family, x in marks:
                moment = moments.setdefault(family, Moments())
                if not old:
                    moment.add(x, probability(belief))
                    continue
                odds = old[family].log_odds(x)
                rest = belief - weight * through(odds, state.confusion)  # what all but this grade say
                moment.add(x, probability(through(rest, state.confusion) + odds))
                confused += probability(
                    math.log(state.confusion / (1 - state.confusion)) - through(odds, probability(-rest))
                )
                grades += 1
        state.shapes = {family: moment.shape() for family, moment in sorted(moments.items())}
        state.confusion = confused / grades
        state.correlation = self._correlate(beliefs)

    def _correlate(self, beliefs: Sequence[float]) -> float:
        """Return the mean correlation of two grades of one item once its polarity is known, in 0..1."""
        total, count = _GRADER_CORRELATION * _CORRELATION_STRENGTH, _CORRELATION_STRENGTH
        for belief, marks in zip(beliefs, self.marks, strict=True):
            if len(marks) < 2:
                continue
            shares = (probability(belief), probability(-belief))
            rest = [self.state.shapes[family].residuals(x) for family, x in marks]
            for share, column in zip(shares, zip(*rest, strict=True), strict=True):
                total += share * (sum(column) ** 2 - sum(r * r for r in column)) / 2
            count += len(marks) * (len(marks) - 1) // 2
        return min(1.0, max(0.0, total / count))


def _shrink(values: Sequence[float], prior: float, strength: float) -> float:
    return (sum(values) + prior * strength) / (len(values) + strength)
