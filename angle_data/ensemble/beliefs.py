"""Is a pair synonymous or opposite? What annotators claim and what graders saw, weighed against each other.

The model, in the manner of Dawid and Skene (1979, doi:10.2307/2346806). Every pair has a hidden polarity. A
reply claims one for each of its sentences; now and then a whole reply is swapped (the model answered the
other question), now and then one sentence alone is wrong. A grader sees the polarity, mistaking it now and
then for the other, and gives a grade drawn about the mean of what it saw (`graders.Shape`). Shares of swapped
replies and wrong sentences, by annotator and polarity, and the graders' shapes are learned in turn with the
pairs' polarities: expectation maximisation, each share shrunk towards a prior, with messages between replies
and pairs (`network`).

Language models err together, so evidence does not simply add up: n graders count as n / (1 + (n - 1) c) times
their mean, with c their measured correlation once polarity is known; claims likewise with c = 0.5. Knows
nothing about texts, files or thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from angle_data.ensemble.graders import Shape, normal_scores
from angle_data.ensemble.network import Item, Kind, Network, State
from angle_data.text import stable_hash

_SAMPLE = 50_000  # items that the shares are learned from; beyond, a stable sample of the sources
_LONE = ""  # stands for all graders that graded the pairs of one annotator alone


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far the claims of an annotator hold, for one polarity.

    `swapped` is the share of swapped replies, `wrong` of sentences wrong by themselves, `checked` the number
    of sentences that something other than their own reply speaks about; 0 means that the prior stands.
    """

    swapped: float
    wrong: float
    checked: int

    @property
    def value(self) -> float:
        """Probability that a sentence has the polarity that was asked for."""
        return (1 - self.swapped) * (1 - self.wrong) + self.swapped * self.wrong


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What `infer` found.

    `log_odds` of synonym against antonym, one for each item; `reliability` by annotator and polarity;
    `shapes` and `scores` (grade to normal score) by grader; `confusion` is the share of grades that mistake
    the polarity, `correlation` that of the graders' errors, `rounds` how long the learning took.
    """

    log_odds: list[float]
    reliability: dict[Kind, Reliability]
    shapes: dict[str, Shape]
    scores: dict[str, dict[float, float]]
    confusion: float
    correlation: float
    rounds: int


def infer(items: Sequence[Item], wrong: Mapping[str, float]) -> Beliefs:
    """Weigh claims against grades; `wrong` is the prior share of wrong sentences, by annotator.

    Deterministic for items in a given order. A grader that graded one annotator alone cannot be told apart
    from that annotator's errors, so all such graders are taken to have one shape (on their own scales).
    Graders that hardly tell the polarities apart must have been left out (`judging.judge`): with a taste in
    style they would condemn the annotators that write in another.
    """
    scores = normal_scores(items)
    family_of = families(items)
    state = State(dict(wrong))
    rounds = Network(_sample(items), scores, family_of, state).learn()
    network = Network(items, scores, family_of, state)
    network.settle()
    return Beliefs(
        network.beliefs(),
        {
            kind: Reliability(state.swapped[kind], state.wrong[kind], network.checked(kind))
            for kind in network.kinds
        },
        {grader: state.shapes[family] for grader, family in family_of.items()},
        scores,
        state.confusion,
        state.correlation,
        rounds,
    )


def _sample(items: Sequence[Item]) -> Sequence[Item]:
    if len(items) <= _SAMPLE:
        return items
    limit = 2**64 * _SAMPLE // len(items)
    return [item for item in items if stable_hash(item.source) < limit]


def families(items: Sequence[Item]) -> dict[str, str]:
    """Return the name under which each grader's shape is learned."""
    common: dict[str, set[str]] = {}  # annotators that offered every pair the grader graded
    annotators: set[str] = set()
    for item in items:
        names = {claim.annotator for claim in item.claims}
        annotators |= names
        for grader in item.grades:
            common.setdefault(grader, set(names)).intersection_update(names)
    lone = len(annotators) > 1
    return {grader: _LONE if lone and names else grader for grader, names in sorted(common.items())}
