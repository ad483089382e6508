"""How many pairs of which kind stay: limits on a source, on near copies, on one annotator.

Knows nothing about what is right; of the pairs that could go, those of least weight go first.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from angle_data.ensemble.sources import Choice, Outcome, reject
from angle_data.errors import InputError
from angle_data.records import Polarity

_SIDES: tuple[Polarity, Polarity] = ("synonym", "antonym")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a data set may hold; the defaults limit nothing.

    `per_source`: most pairs of a source and polarity. `near_copies`: largest share of near copies among the
    antonyms. `equal`: as many synonyms as antonyms of a source, as far as neither side loses more than half.
    `share`: largest share of the pairs that one annotator may supply.

    Raises:
        InputError: A value is out of its range.
    """

    per_source: int | None = None
    near_copies: float = 1.0
    equal: bool = False
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.per_source is not None and self.per_source < 1:
            raise InputError(f"max per source must be 1 or more, got {self.per_source}")
        if not 0 <= self.near_copies <= 1:
            raise InputError(f"max near copies must lie in 0..1, got {self.near_copies:g}")
        if not 0 < self.share <= 1:
            raise InputError(f"max share must lie above 0 and up to 1, got {self.share:g}")


def balance(kept: Sequence[Choice], limits: Limits, *, seed: int) -> Outcome:
    """Return what `limits` leave of `kept`, in order; the others are dropped with the limit as reason.

    Limits apply in the order: near copies, per source, equal, share. Within a source and polarity the pairs
    that most annotators support come first; of equals, the one whose annotators have had the fewest picks,
    then the one of most weight, then the smallest sha256 of seed and texts. A source keeps one near copy if
    it has no other antonym, so their share can end above the limit.

    Raises:
        InputError: `limits.share` is less than an equal share of each annotator.
    """
    outcome = Outcome(list(kept), [])
    _cut(outcome, _surplus_copies(outcome.kept, limits.near_copies, seed), "near_copies")
    if limits.per_source is not None:
        _cut(outcome, _surplus_per_source(outcome.kept, limits.per_source, seed), "capped")
    if limits.equal:
        _cut(outcome, _surplus_side(outcome.kept, seed), "unequal")
    _cut(outcome, _surplus_share(outcome.kept, limits.share, seed), "annotator_share")
    return outcome


def _cut(outcome: Outcome, surplus: Iterable[Choice], reason: str) -> None:
    gone = {id(choice) for choice in surplus}
    if gone:
        outcome.dropped.extend(
            reject(choice.candidate, reason) for choice in outcome.kept if id(choice) in gone
        )
        outcome.kept[:] = [choice for choice in outcome.kept if id(choice) not in gone]


def _surplus_copies(kept: Sequence[Choice], share: float, seed: int) -> list[Choice]:
    antonyms = [choice for choice in kept if choice.candidate.polarity == "antonym"]
    copies = [choice for choice in antonyms if "near_copy" in choice.flags]
    others = len(antonyms) - len(copies)
    if len(copies) <= share * len(antonyms):
        return []
    covered = {choice.source.key for choice in antonyms if "near_copy" not in choice.flags}
    allowed = math.floor(share / (1 - share) * others + 1e-9)
    spare = []
    for choice in sorted(copies, key=lambda c: (-c.weight, _rank(c, seed))):
        if choice.source.key in covered:
            spare.append(choice)
        else:
            covered.add(choice.source.key)
            allowed -= 1
    return spare[max(0, allowed) :]


def _groups(kept: Sequence[Choice]) -> dict[str, dict[Polarity, list[Choice]]]:
    groups: dict[str, dict[Polarity, list[Choice]]] = {}
    for choice in kept:
        sides = groups.setdefault(choice.source.key, {side: [] for side in _SIDES})
        sides[choice.candidate.polarity].append(choice)
    return groups


def _surplus_per_source(kept: Sequence[Choice], count: int, seed: int) -> list[Choice]:
    return [
        choice
        for sides in _groups(kept).values()
        for group in sides.values()
        for choice in _pick(group, seed)[count:]
    ]


def _surplus_side(kept: Sequence[Choice], seed: int) -> list[Choice]:
    surplus = []
    for sides in _groups(kept).values():
        fewer, more = sorted(sides.values(), key=len)
        if fewer:
            surplus += _pick(more, seed)[max(len(fewer), math.ceil(len(more) / 2)) :]
    return surplus


def _surplus_share(kept: Sequence[Choice], share: float, seed: int) -> list[Choice]:
    """Return pairs that only one annotator offered, until no annotator has more than its share of the rest.

    A pair counts for its annotators in equal parts.
    """
    credit: dict[str, float] = {}
    own: dict[str, list[Choice]] = {}
    for choice in kept:
        for model in choice.models:
            credit[model] = credit.get(model, 0.0) + 1 / len(choice.models)
        if len(choice.models) == 1:
            own.setdefault(choice.models[0], []).append(choice)
    if share == 1 or not credit:
        return []
    if share * len(credit) < 1:
        raise InputError(
            f"max share {share:g} cannot hold for {len(credit)} annotators; "
            f"give at least {math.ceil(100 / len(credit)) / 100:g}"
        )
    for group in own.values():
        group.sort(key=lambda choice: (-choice.weight, _rank(choice, seed)))
    total = float(len(kept))
    surplus: list[Choice] = []
    while True:
        model = min(credit, key=lambda name: (-credit[name], name))
        excess = math.ceil((credit[model] - share * total) / (1 - share) - 1e-9)
        if excess <= 0 or not own.get(model):
            return surplus
        for _ in range(min(excess, len(own[model]))):
            surplus.append(own[model].pop())
            credit[model] -= 1
            total -= 1


def _pick(group: Sequence[Choice], seed: int) -> list[Choice]:
    """Return `group` in the order in which its members are chosen."""
    left = sorted(group, key=lambda choice: (-choice.weight, _rank(choice, seed)))
    picks: Counter[str] = Counter()
    chosen: list[Choice] = []
    while left:
        # min() keeps the first of equals, so the order above breaks the ties.
        best = min(left, key=lambda c: (-len(c.models), sum(picks[m] for m in c.models)))
        left.remove(best)
        chosen.append(best)
        picks.update(best.models)
    return chosen


def _rank(choice: Choice, seed: int) -> str:
    text = f"{seed}\nbalance\n{choice.source.key}\n{choice.candidate.polarity}\n{choice.candidate.text}"
    return hashlib.sha256(text.encode()).hexdigest()
