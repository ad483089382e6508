"""Near-duplicates: candidates of one source that differ in articles, be and have, or inflection alone.

"The memory leak was fixed." and "Memory leak had been fixed" say one thing twice; "with quota errors" and
"without quota errors" do not, though their letters are as much alike. So character 3-grams alone never
decide: the remaining words must be the same, in the same order. Knows nothing of synonyms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from angle_data.disjoint import DisjointSets
from angle_data.ensemble.gate import fold
from angle_data.ensemble.merge import Merged
from angle_data.text import char_ngrams, jaccard, normalise, words

_ALIKE = 0.9  # least Jaccard index of the two sets of character 3-grams
_LIGHT = words("a an the am is are was were be been being has have had having that")
_TOKEN = re.compile(r"\w+")
_CANNOT = re.compile(r"\bcan(?:no|')t\b")
_CONTRACTED = re.compile(r"n't\b")


def kernel(text: str) -> tuple[str, ...]:
    """Return the words of `text` in order, case-folded and without inflection, less the light ones."""
    spelt = _CONTRACTED.sub(" not", _CANNOT.sub("can not", normalise(text)))
    return tuple(fold(token) for token in _TOKEN.findall(spelt) if token not in _LIGHT)


def join_near(merged: Sequence[Merged]) -> list[Merged]:
    """Return `merged` with near-duplicates of one source made one, in the order of their first members.

    Within one of them the offers of the member with most annotators come first, so that it stands for all.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for number, pair in enumerate(merged):
        first = pair.offers[0]
        alike.setdefault((first.source.key, kernel(first.candidate.text)), []).append(number)
    groups: DisjointSets[int] = DisjointSets(range(len(merged)))
    for numbers in alike.values():
        grams = [char_ngrams(merged[number].offers[0].candidate.text) for number in numbers]
        for i, one in enumerate(grams):
            for j in range(i):
                if jaccard(one, grams[j]) >= _ALIKE:
                    groups.join(numbers[i], numbers[j])
    members: dict[int, list[Merged]] = {}
    for number, pair in enumerate(merged):
        members.setdefault(groups.leader(number), []).append(pair)
    return [_join(pairs) for pairs in members.values()]


def _join(pairs: list[Merged]) -> Merged:
    pairs.sort(key=lambda pair: -len({offer.candidate.model for offer in pair.offers}))
    return Merged(
        tuple(offer for pair in pairs for offer in pair.synonyms),
        tuple(offer for pair in pairs for offer in pair.antonyms),
    )
