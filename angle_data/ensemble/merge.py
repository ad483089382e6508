"""Which offers are one pair, whoever made them: equal pairs, and near-duplicates of one source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from angle_data.disjoint import DisjointSets
from angle_data.ensemble.read import Offer
from angle_data.ensemble.screen import fold
from angle_data.records import Polarity
from angle_data.text import char_ngrams, jaccard, normalise, pair_key, words

MARGIN = 0.5  # a vote is won by more than half an annotator of full reliability
_ALIKE = 0.9  # least Jaccard index of the two sets of character 3-grams
_LIGHT = words("a an the am is are was were be been being has have had having that")
_TOKEN = re.compile(r"\w+")
_CANNOT = re.compile(r"\bcan(?:no|')t\b")  # "cannot", "can't"
_CONTRACTED = re.compile(r"n't\b")  # "isn't"


@dataclass(frozen=True, slots=True)
class Merged:
    """One pair and every offer of it, by the polarity asked for; both tuples in the order of the offers."""

    synonyms: tuple[Offer, ...]
    antonyms: tuple[Offer, ...]

    @property
    def offers(self) -> tuple[Offer, ...]:
        """All offers, synonyms first; there is at least one."""
        return self.synonyms + self.antonyms


def merge(offers: Iterable[Offer]) -> list[Merged]:
    """Return the distinct pairs among `offers`, in the order of their first offer.

    Two offers are one pair when their unordered pairs of normalised texts are equal, so that a pair occurs
    once in the whole data set even if one source is another's candidate. Nothing softer counts as equal:
    texts that differ by a token may be opposites ("with quota errors" / "without quota errors").
    """
    groups: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        groups.setdefault(pair_key(offer.source.text, offer.candidate.text), []).append(offer)
    return [
        Merged(
            tuple(offer for offer in group if offer.candidate.polarity == "synonym"),
            tuple(offer for offer in group if offer.candidate.polarity == "antonym"),
        )
        for group in groups.values()
    ]


def winner(merged: Merged, reliability: Mapping[str, float]) -> Polarity | None:
    """Return the polarity whose supporters outweigh the other's by more than `MARGIN`, or None.

    Each annotator has one vote of its `reliability` in (0, 1]; one that said both cancels itself out. A pair
    that nobody disputes is won without a margin.
    """
    synonym, antonym = _votes(merged.synonyms, reliability), _votes(merged.antonyms, reliability)
    if not merged.antonyms:
        return "synonym"
    if not merged.synonyms:
        return "antonym"
    if abs(synonym - antonym) <= MARGIN:
        return None
    return "synonym" if synonym > antonym else "antonym"


def join_near(merged: Sequence[Merged]) -> list[Merged]:
    """Return `merged` with near-duplicates of one source made one, in the order of their first members.

    Near-duplicates differ in articles, be and have, or inflection alone: "The memory leak was fixed." and
    "Memory leak had been fixed". The letters must be nearly the same, and the remaining words the same in the
    same order (`kernel`). Within one of them the offers of the member with most annotators come first, so
    that it stands for all.
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
    for pairs in members.values():
        pairs.sort(key=lambda pair: -len({offer.candidate.model for offer in pair.offers}))
    return [
        Merged(
            tuple(offer for pair in pairs for offer in pair.synonyms),
            tuple(offer for pair in pairs for offer in pair.antonyms),
        )
        for pairs in members.values()
    ]


def kernel(text: str) -> tuple[str, ...]:
    """Return the words of `text` in order, case-folded and without inflection, less the light ones."""
    spelt = _CONTRACTED.sub(" not", _CANNOT.sub("can not", normalise(text)))
    return tuple(fold(token) for token in _TOKEN.findall(spelt) if token not in _LIGHT)


def _votes(offers: Sequence[Offer], reliability: Mapping[str, float]) -> float:
    # Summed in sorted order: floating-point sums depend on it, and the result must not.
    return sum(reliability[model] for model in sorted({offer.candidate.model for offer in offers}))
