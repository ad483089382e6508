"""Candidates grouped by source text: what a strategy receives, and what it returns.

Two sources are one when their normalised texts are equal, whatever their ids. Decides nothing about which
candidates are good; the codes for why one is dropped are listed here because every step shares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from angle_data.records import Candidate, Rejection
from angle_data.text import normalise

REASONS: dict[str, str] = {
    "blank": "the candidate or its source holds no letter and no digit",
    "placeholder": "a stand-in such as '[sentence 1]' or 'Antonym 2' instead of a sentence",
    "identical": "the source itself, after normalisation",
    "wrong_script": "written mostly in another script than its source",
    "length_ratio": "less than a third or more than three times as long as its source",
    "off_topic": "shares far fewer words with source and other annotators than is usual for its annotator",
    "conflict": "the same pair was offered as synonym and as antonym, and this side did not win",
    "chain_conflict": "offered as antonym, but kept synonyms connect the two texts by way of others",
    "contradicted": "grades or annotators speak against its polarity, not clearly enough to turn it round",
    "duplicate": "the same pair is kept once; this annotator counts as its supporter",
    "near_duplicate": "a pair that differs in articles or inflection alone is kept; this one supports it",
    "near_copies": "a near copy of its source beyond --max-near-copies of the antonyms",
    "capped": "more candidates of this source and polarity than --max-per-source",
    "unequal": "more synonyms than antonyms of this source, or the other way round (--equal-polarities)",
    "annotator_share": "its annotator would supply more of the pairs than --max-share",
}


@dataclass(frozen=True, slots=True)
class Source:
    """One source text with every candidate offered for it, in canonical order.

    `key` is the normalised text; `id` and `text` are the smallest of those that share the key.
    """

    key: str
    id: str
    text: str
    candidates: tuple[Candidate, ...]


class Offer(NamedTuple):
    """One candidate together with the source it belongs to."""

    source: Source
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Choice:
    """A pair that a strategy keeps: the candidate that stands for it and who supports it.

    `models` are the annotators that offered it, sorted; `weight` in (0, 1] says how far it is trusted.
    """

    source: Source
    candidate: Candidate
    models: tuple[str, ...]
    weight: float = 1.0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was made of the candidates: each stands for one choice in `kept`, or is in `dropped`, once.

    `details` is what the strategy has to say about its work, ready for JSON; it goes into `report.json`. A
    choice whose polarity was turned round carries the flag `flipped`, and so does its candidate's polarity.
    """

    kept: list[Choice] = field(default_factory=list)
    dropped: list[Rejection] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


Grades = Mapping[tuple[str, str], Mapping[str, float]]
"""Similarity 0..5 of pairs by `merge.pair_key`, and of each pair by grader."""

NO_GRADES: Grades = MappingProxyType({})

Strategy = Callable[[Sequence[Source], Grades], Outcome]


def group_by_source(candidates: Iterable[Candidate]) -> list[Source]:
    """Return the sources in the order of their keys; the order of `candidates` does not matter."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(normalise(candidate.source), []).append(candidate)
    sources = []
    for key, group in sorted(groups.items()):
        group.sort(
            key=lambda c: (c.polarity, normalise(c.text), c.model, c.text, c.key, c.source_id, c.source)
        )
        source_id, text = min((c.source_id, c.source) for c in group)
        sources.append(Source(key, source_id, text, tuple(group)))
    return sources


def offers(sources: Iterable[Source]) -> Iterator[Offer]:
    """Yield every candidate with its source, in order."""
    for source in sources:
        for candidate in source.candidates:
            yield Offer(source, candidate)


def reject(candidate: Candidate, reason: str) -> Rejection:
    """Return the record of a candidate dropped for `reason`, a key of `REASONS`."""
    return Rejection(**candidate.to_dict(), reason=reason, raw=candidate.text)
