"""The same pair from several annotators becomes one, and annotators that contradict each other vote.

Two offers are one pair when their unordered pairs of normalised texts are equal, so that a pair occurs once
in the whole data set even if one source is another's candidate. Nothing softer counts as equal here: texts
that differ by a token may be opposites ("with quota errors" / "without quota errors"). `near` joins those of
which the words tell that they are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from angle_data.ensemble.sources import Offer
from angle_data.records import Polarity
from angle_data.text import pair_key

MARGIN = 0.5  # a vote is won by more than half an annotator of full reliability


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
    """Return the distinct pairs among `offers`, in the order of their first offer."""
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


def _votes(offers: Sequence[Offer], reliability: Mapping[str, float]) -> float:
    # Summed in sorted order: floating-point sums depend on it, and the result must not.
    return sum(reliability[model] for model in sorted({offer.candidate.model for offer in offers}))
