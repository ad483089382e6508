"""How many pairs of which kind stay: limits on a source, on near copies, on polarities and on annotators.

The limits say nothing about what is right; of the pairs that could go, those of least weight go first.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from angle_data.ensemble.screen import reject
from angle_data.ensemble.strategies import Choice, Outcome
from angle_data.errors import InputError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a data set may hold; the defaults limit nothing.

    `per_source`: most pairs of a source and polarity. `near_copies`: largest share of near copies among the
    antonyms. `equal`: as many synonyms as antonyms of a source, as far as neither side loses more than half.
    `share`: largest share of the pairs that one annotator alone may supply.

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
        InputError: `limits.share` cannot hold: too few annotators supply the pairs.
    """
    outcome = Outcome(list(kept), [])
    _cut(outcome, _surplus_copies(outcome.kept, limits.near_copies, seed), "near_copies")
    if limits.per_source is not None:
        _cut(outcome, _surplus_per_source(outcome.kept, limits.per_source, seed), "capped")
    if limits.equal:
        _cut(outcome, _surplus_side(outcome.kept, seed), "unequal")
    if limits.share < 1:
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
    if len(copies) <= share * len(antonyms):
        return []
    covered = {choice.source.key for choice in antonyms if "near_copy" not in choice.flags}
    allowed = math.floor(share / (1 - share) * (len(antonyms) - len(copies)) + 1e-9)
    spare = []
    for choice in sorted(copies, key=lambda c: (-c.weight, _rank(c, seed))):
        if choice.source.key in covered:
            spare.append(choice)
        else:
            covered.add(choice.source.key)
            allowed -= 1
    return spare[max(0, allowed) :]


def _surplus_per_source(kept: Sequence[Choice], count: int, seed: int) -> list[Choice]:
    return [choice for sides in _sides(kept) for group in sides for choice in _pick(group, seed)[count:]]


def _surplus_side(kept: Sequence[Choice], seed: int) -> list[Choice]:
    surplus = []
    for sides in _sides(kept):
        fewer, more = sorted(sides, key=len)
        if fewer:
            surplus += _pick(more, seed)[max(len(fewer), math.ceil(len(more) / 2)) :]
    return surplus


def _surplus_share(kept: Sequence[Choice], share: float, seed: int) -> list[Choice]:
    """Return what each annotator alone supplies beyond its share; a pair of several counts for nobody."""
    own: dict[str, list[Choice]] = {}
    for choice in sorted(kept, key=lambda c: (-c.weight, _rank(c, seed))):
        if len(choice.models) == 1:
            own.setdefault(choice.models[0], []).append(choice)
    shared = len(kept) - sum(map(len, own.values()))
    most = max(map(len, own.values()), default=0)
    while most and most > share * (shared + sum(min(most, len(group)) for group in own.values())):
        most -= 1
    if own and not most:
        raise InputError(
            f"max share {share:g} cannot hold for {len(own)} annotators; give at least "
            f"{math.ceil(100 / len(own)) / 100:g}"
        )
    return [choice for group in own.values() for choice in group[most:]]


def _sides(kept: Sequence[Choice]) -> Iterable[tuple[list[Choice], list[Choice]]]:
    """Return the synonyms and the antonyms of each source."""
    groups: dict[str, tuple[list[Choice], list[Choice]]] = {}
    for choice in kept:
        synonym = choice.candidate.polarity == "synonym"
        groups.setdefault(choice.source.key, ([], []))[0 if synonym else 1].append(choice)
    return groups.values()


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
