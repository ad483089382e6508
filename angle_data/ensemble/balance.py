"""How many pairs of which kind stay: limits on a source, on near copies, on polarities and on annotators.

The limits say nothing about what is right; of the pairs that could go, those of least weight go first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from angle_data.ensemble.screen import reject
from angle_data.ensemble.strategies import Choice, Outcome
from angle_data.errors import InputError
from angle_data.text import stable_hash


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
    outcome = Outcome(list(kept))
    for reason, surplus in (
        ("near_copies", _surplus_copies),
        ("capped", _surplus_of_sources),
        ("unequal", _surplus_of_polarities),
        ("annotator_share", _surplus_of_annotators),
    ):
        gone = {id(choice) for choice in surplus(outcome.kept, limits, seed)}
        outcome.dropped.extend(reject(c.candidate, reason) for c in outcome.kept if id(c) in gone)
        outcome.kept[:] = [choice for choice in outcome.kept if id(choice) not in gone]
    return outcome


def _surplus_copies(kept: Sequence[Choice], limits: Limits, seed: int) -> list[Choice]:
    share = limits.near_copies
    antonyms = [choice for choice in kept if choice.candidate.polarity == "antonym"]
    copies = [choice for choice in antonyms if "near_copy" in choice.flags]
    if len(copies) <= share * len(antonyms):
        return []
    covered = {choice.source.key for choice in antonyms if "near_copy" not in choice.flags}
    allowed = math.floor(share / (1 - share) * (len(antonyms) - len(copies)) + 1e-9)
    spare = []
    for choice in _by_weight(copies, seed):
        if choice.source.key in covered:
            spare.append(choice)
        else:
            covered.add(choice.source.key)
            allowed -= 1
    return spare[max(0, allowed) :]


def _surplus_of_sources(kept: Sequence[Choice], limits: Limits, seed: int) -> list[Choice]:
    if limits.per_source is None:
        return []
    return [c for sides in _sides(kept) for group in sides for c in _pick(group, seed)[limits.per_source :]]


def _surplus_of_polarities(kept: Sequence[Choice], limits: Limits, seed: int) -> list[Choice]:
    surplus = []
    for sides in _sides(kept) if limits.equal else ():
        fewer, more = sorted(sides, key=len)
        if fewer:
            surplus += _pick(more, seed)[max(len(fewer), math.ceil(len(more) / 2)) :]
    return surplus


def _surplus_of_annotators(kept: Sequence[Choice], limits: Limits, seed: int) -> list[Choice]:
    """Return what each annotator alone supplies beyond its share; a pair of several counts for nobody."""
    share = limits.share
    own: dict[str, list[Choice]] = {}
    for choice in _by_weight(kept, seed) if share < 1 else ():
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
    left = _by_weight(group, seed)
    picks: Counter[str] = Counter()
    chosen: list[Choice] = []
    while left:
        # min() keeps the first of equals, so the order above breaks the ties.
        best = min(left, key=lambda c: (-len(c.models), sum(picks[m] for m in c.models)))
        left.remove(best)
        chosen.append(best)
        picks.update(best.models)
    return chosen


def _by_weight(choices: Sequence[Choice], seed: int) -> list[Choice]:
    """Return the choices from the weightiest on, equals in an order drawn by the seed."""

    def rank(choice: Choice) -> tuple[float, int]:
        source, candidate = choice.source.key, choice.candidate
        return -choice.weight, stable_hash(
            f"{seed}\nbalance\n{source}\n{candidate.polarity}\n{candidate.text}"
        )

    return sorted(choices, key=rank)
