"""Which split a source belongs to, so that no text and no near-copy of a source stands in two of them.

A split is drawn by hash of the source text: adding texts moves none of the others, unless a new text ties
two groups together. Knows nothing about labels or files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from angle_data.disjoint import DisjointSets
from angle_data.errors import InputError
from angle_data.text import jaccard, stable_hash, words

__all__ = ["SPLITS", "assign_splits", "check_ratios", "group_sources"]

SPLITS = ("train", "validation", "test")
_NEAR = 0.75


def check_ratios(ratios: Sequence[float]) -> None:
    """Check the shares of train, validation and test.

    Raises:
        InputError: Not one to three numbers in 0..1 that sum to 1, the first above 0.
    """
    shown = ",".join(f"{ratio:g}" for ratio in ratios)
    if not 1 <= len(ratios) <= len(SPLITS):
        raise InputError(f"ratios {shown!r}: give one to three numbers, for train, validation and test")
    if not all(0 <= ratio <= 1 for ratio in ratios) or ratios[0] == 0:
        raise InputError(f"ratios {shown!r}: each must lie in 0..1, and the first (train) above 0")
    if not math.isclose(sum(ratios), 1.0, abs_tol=1e-6):
        raise InputError(f"ratios {shown!r} sum to {sum(ratios):g}; make them sum to 1")


def assign_splits(
    members: Mapping[str, Collection[str]], *, ratios: Sequence[float], seed: int
) -> dict[str, str]:
    """Return the split of every source.

    `members` maps a source's normalised text to the normalised texts it is paired with. Sources of one group
    (see `group_sources`) share a split. A split's share of the groups is its ratio in expectation only.
    """
    return {
        key: _draw_split(f"{seed}\nsplit\n{leader}", ratios) for key, leader in group_sources(members).items()
    }


def group_sources(members: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the leader (the smallest key) of each source's group.

    Two sources share a group when a text of one (itself or a partner) is a text of the other, when their
    sets of words have a Jaccard of at least 0.75 ("scaled up" / "scaled down" in a sentence of ten words), or
    through a chain of such sources.
    """
    groups = DisjointSets(members)
    owner: dict[str, str] = {}
    for key in sorted(members):
        for text in (key, *members[key]):
            groups.join(owner.setdefault(text, key), key)
    for one, other in _near_pairs(sorted(members)):
        groups.join(one, other)
    return {key: groups.leader(key) for key in members}


def _near_pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every two of `texts` whose word Jaccard reaches `_NEAR`, by prefix filtering.

    Two sets of n words can only be that alike if they share one of their n - ceil(0.75 n) + 1 rarest words
    (Chaudhuri et al. 2006, doi:10.1109/ICDE.2006.9), so only those are indexed.
    """
    bags = {text: words(text) for text in texts}
    frequency = Counter(word for bag in bags.values() for word in bag)
    index: dict[str, list[str]] = {}
    for text in sorted(texts, key=lambda t: (len(bags[t]), t)):
        bag = bags[text]
        prefix = sorted(bag, key=lambda w: (frequency[w], w))[: len(bag) - math.ceil(_NEAR * len(bag)) + 1]
        seen: set[str] = set()
        for word in prefix:
            for other in index.setdefault(word, []):
                if other in seen or len(bags[other]) < _NEAR * len(bag):
                    continue
                seen.add(other)
                if jaccard(bag, bags[other]) >= _NEAR:
                    yield other, text
            index[word].append(text)


def _draw_split(text: str, ratios: Sequence[float]) -> str:
    point = stable_hash(text) / 2**64
    edge = 0.0
    for name, ratio in zip(SPLITS, ratios, strict=False):
        edge += ratio
        if point < edge:
            return name
    return SPLITS[len(ratios) - 1]  # the ratios may sum to a rounding error less than 1
