"""Texts that kept synonyms connect, also by way of a third: they say the same, so nothing may set them apart.

Says nothing about which link of a chain is the wrong one where an antonym speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterable

from angle_data.disjoint import DisjointSets
from angle_data.ensemble.sources import Choice, Outcome, reject
from angle_data.text import normalise


def synonym_sets(kept: Iterable[Choice]) -> DisjointSets[str]:
    """Return the sets of normalised texts that the synonyms among `kept` connect."""
    groups: DisjointSets[str] = DisjointSets()
    for choice in kept:
        if choice.candidate.polarity == "synonym":
            groups.join(choice.source.key, normalise(choice.candidate.text))
    return groups


def drop_chained(outcome: Outcome) -> None:
    """Move the kept antonyms whose two texts the kept synonyms connect to the dropped ones.

    Where A means B and A means C, B is not the opposite of C. Each link of such a chain was believed by
    itself, so the antonym, one claim against two or more, goes.
    """
    groups = synonym_sets(outcome.kept)
    kept = []
    for choice in outcome.kept:
        text = normalise(choice.candidate.text)
        if choice.candidate.polarity == "antonym" and groups.leader(choice.source.key) == groups.leader(text):
            outcome.dropped.append(reject(choice.candidate, "chain_conflict"))
        else:
            kept.append(choice)
    outcome.kept[:] = kept
