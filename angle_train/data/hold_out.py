"""Pairs held out of training: a part that chooses the weights, or parts that take turns at it.

No text is on both sides, as far as the pairs can be divided so. Whether texts are the same is judged up to
normalisation. Imports no torch.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from heapq import heappop, heappush

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.text import normalise
from angle_train.data.pairs import GRADES, RANDOM, PairSet

log = logging.getLogger("angle.fit")

MAX_DROPPED_FRACTION = 0.25
"""Of all pairs: how many may be left out because they join a held-out text with another."""
MIN_PART = 8
"""Pairs in a part that takes its turn."""
_ROOTS = 4  # texts around which held-out ones are gathered

# By hand, not by scikit-learn: StratifiedGroupKFold takes 10 s for 20,000 pairs (this: 0.7 s) and its parts
# are less alike in size and scores; the shares of GroupShuffleSplit are of groups, not of pairs.


def hold_out(pairs: PairSet, fraction: float, seed: int) -> tuple[PairSet, PairSet]:
    """Divide pairs into `(train, dev)` so that no source has pairs in both, and dev a `fraction` at most.

    Without source ids, pairs that share a text, directly or through others, stay together. If that ties
    nearly everything together, texts are held out that have most of their pairs among themselves. If that
    does not help either, single pairs are, with a warning. Pairs that join texts of two sources are left out
    where one of these is held out and the other is not.
    """
    wanted = fraction * len(pairs)
    first, second = _ends(pairs)
    held = {first[position] for position in _fill(_positions(first), wanted, seed)}
    texts_held = _held(first, second, held)
    if texts_held.count(2) < wanted / 2:
        if first == second and pairs.source_ids is None:
            first, second = ([normalise(text) for text in side] for side in (pairs.text1, pairs.text2))
        texts_held = _held(first, second, _gather(first, second, wanted, seed))
    if texts_held.count(2) < wanted / 2:
        log.warning("%s: nearly all pairs share texts, so pairs are held out one by one", pairs.name)
        dev = set(_fill(_positions([str(position) for position in range(len(pairs))]), wanted, seed))
        texts_held = [2 * (position in dev) for position in range(len(pairs))]
    if 1 in texts_held:
        log.info("%s: %d pairs join held-out and training texts; left out", pairs.name, texts_held.count(1))
    train, out = ([i for i, count in enumerate(texts_held) if count == wish] for wish in (0, 2))
    return pairs.take(train, pairs.name), pairs.take(out, f"{pairs.name}/held-out")


def _held(first: Sequence[str], second: Sequence[str], held: Collection[str]) -> list[int]:
    """Return for each pair how many of its two ends are held out."""
    return [(a in held) + (b in held) for a, b in zip(first, second, strict=True)]


def _gather(first: Sequence[str], second: Sequence[str], wanted: float, seed: int) -> set[str]:
    """Return ends to hold out, so that about `wanted` pairs lie among them and few join one with another.

    Gathered around `_ROOTS` ends in hashed order: always that comes next of whose pairs most lie within.
    Of one that would bring the pairs left out above `MAX_DROPPED_FRACTION` nothing is taken.
    """
    partners: dict[str, Counter[str]] = {}
    for a, b in zip(first, second, strict=True):
        partners.setdefault(a, Counter())[b] += 1
        if a != b:
            partners.setdefault(b, Counter())[a] += 1
    roots = iter(sorted(partners, key=lambda key: _hashed(key, seed)))
    held: set[str] = set()
    seen: set[str] = set()
    within: Counter[str] = Counter()  # of an end's pairs, those with held ones
    near: list[tuple[float, bytes, str]] = []
    inside = left_out = planted = 0
    while inside < wanted and len(seen) < len(partners):
        if not near or planted * wanted <= _ROOTS * inside:
            key = next(root for root in roots if root not in seen)
            planted += 1
        elif (key := heappop(near)[-1]) in seen:
            continue
        seen.add(key)
        own, total = partners[key][key], partners[key].total()
        crossing = total - own - 2 * within[key]
        if left_out + crossing > MAX_DROPPED_FRACTION * len(first):
            continue
        held.add(key)
        inside += own + within[key]
        left_out += crossing
        for other in partners[key].keys() - seen:
            within[other] += partners[key][other]
            share = (within[other] + partners[other][other]) / partners[other].total()
            heappush(near, (-share, _hashed(other, seed), other))
    return held


def _ends(pairs: PairSet) -> tuple[list[str], list[str]]:
    """Return for each pair what its first text and what its second text belongs to.

    That is one thing, its source, but for pairs among given texts: graded and random ones whose texts both
    stand in other pairs too.
    """
    if pairs.supervision is None or GRADES not in pairs.supervision:
        keys = list(pairs.source_ids or connected(pairs))
        return keys, keys
    texts = [(normalise(a), normalise(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    often = Counter(text for pair in texts for text in pair)
    sets: DisjointSets[str] = DisjointSets()
    for position, (a, b) in enumerate(texts):
        if pairs.supervision[position] not in (GRADES, RANDOM) or min(often[a], often[b]) == 1:
            sets.join(a, b)
            if pairs.source_ids is not None:
                sets.join(a, f"\0{pairs.source_ids[position]}")
    return [sets.leader(a) for a, _ in texts], [sets.leader(b) for _, b in texts]


def _positions(keys: Sequence[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return groups


def _fill(groups: dict[str, list[int]], wanted: float, seed: int) -> list[int]:
    """Return the positions of whole groups, taken in hashed order as long as they fit."""
    taken: list[int] = []
    for key in sorted(groups, key=lambda key: _hashed(key, seed)):
        if len(taken) + len(groups[key]) <= wanted:
            taken += groups[key]
    return taken


def _hashed(key: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}/{key}".encode()).digest()


def connected(pairs: PairSet) -> list[str]:
    """Return for each pair the first of the texts, normalised, that it shares a chain of pairs with."""
    sets: DisjointSets[str] = DisjointSets()
    keys = [(normalise(a), normalise(b)) for a, b in zip(pairs.text1, pairs.text2, strict=True)]
    for a, b in keys:
        sets.join(a, b)
    return [sets.leader(a) for a, _ in keys]


def check_enough(pairs: PairSet) -> None:
    """Raise an InputError if there are too few pairs to `cut` in two parts."""
    if len(pairs) < 2 * MIN_PART:
        raise InputError(
            f"{pairs.name}: {len(pairs)} pairs are too few to choose the number of steps; "
            f"give at least {2 * MIN_PART}, or --dev pairs"
        )


def cut(pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Return the positions of `count` parts of about equal size and scores; no text is in two of them.

    Pairs that share a text, directly or through others, stay together. If that ties too many together, single
    pairs are dealt instead, with a warning. Few pairs make fewer parts; too few for two are an InputError.
    """
    check_enough(pairs)
    count = min(count, len(pairs) // MIN_PART)
    parts = _deal(list(_positions(connected(pairs)).values()), pairs, count, seed)
    if min(map(len, parts)) < max(MIN_PART, len(pairs) // (2 * count)):
        log.warning("%s: too many pairs share texts, so the parts are cut pair by pair", pairs.name)
        parts = _deal([[position] for position in range(len(pairs))], pairs, count, seed)
    return [sorted(part) for part in parts]


def _deal(groups: Sequence[list[int]], pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Deal groups, the largest first and then by score, each to the part that is smallest so far."""

    def order(group: list[int]) -> tuple[int, float, bytes]:
        score = sum(float(pairs.score[i]) for i in group) / len(group)
        first = f"{seed}/{pairs.text1[group[0]]}\0{pairs.text2[group[0]]}"
        return -len(group), score, hashlib.sha256(first.encode()).digest()

    parts: list[list[int]] = [[] for _ in range(count)]
    for group in sorted(groups, key=order):
        min(parts, key=len).extend(group)
    return parts
