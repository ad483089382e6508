"""Off-topic replies, found by comparing the annotators with each other; no model, no word list to fit.

A reply is judged by its best candidate: the share of that candidate's content words that occur in the
source or in what other annotators offered for it. How much is normal differs between annotators (one rewords
plainly, another writes freely) and between synonyms and antonyms, so a reply is off topic when its share is
below `_CUT` times the median of the same annotator and polarity. The cut lies in the gap between the
off-topic and the good replies of the demo corpus; tests/angle_data/test_strategies.py names those found.

Says nothing about polarity: an antonym given where a synonym was asked for shares just as many words. What
was tried for that without a model, and failed, is in benchmarks/LOG.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from angle_data.ensemble.gate import fold
from angle_data.ensemble.sources import Offer
from angle_data.text import words

_CUT = 0.36
_FUNCTION_WORDS = words(
    """
    a about after again all also always an and another any anybody anyone anything are as at be because
    been before being both but by can could did do does doing done down during each either else ever
    every everybody everyone everything few for from further get gets got had has have having he her
    here his how i if in into is it its itself just least less let made make makes many may me might
    mine more most much must my neither never no nobody none nor not nothing now of off often on once
    one only or other others our out over own per rather s same she should so some somebody someone
    something still such t than that the their them then there these they this those though through to
    too under until up upon us very was we were what when where whether which while who whom whose why
    will with within without would yes yet you your
    """
)


def content_words(text: str) -> frozenset[str]:
    """Return the distinct words of `text` that are no English function words, without inflection."""
    return frozenset(fold(word) for word in words(text) if word not in _FUNCTION_WORDS)


def off_topic(offers: Iterable[Offer]) -> list[Offer]:
    """Return those of `offers` that belong to a reply which has lost its subject, in order.

    A reply is all candidates of one annotator for one source and polarity. It is judged only if another
    annotator offered something for that source.
    """
    by_source: dict[str, list[Offer]] = {}
    for offer in offers:
        by_source.setdefault(offer.source.key, []).append(offer)
    shares: dict[tuple[str, str], list[float]] = {}
    replies: list[tuple[float, list[Offer]]] = []
    for group in by_source.values():
        bags = [content_words(offer.candidate.text) for offer in group]
        known = content_words(group[0].source.text)
        for (model, polarity), members in _replies(group).items():
            others = [bags[i] for i, offer in enumerate(group) if offer.candidate.model != model]
            if not others:
                continue
            reference = known.union(*others)
            found = [_share(bags[i], reference) for i in members]
            shares.setdefault((model, polarity), []).extend(found)
            replies.append((max(found), [group[i] for i in members]))
    usual = {key: median(values) for key, values in shares.items()}
    return [
        offer
        for best, reply in replies
        for offer in reply
        if best < _CUT * usual[reply[0].candidate.model, reply[0].candidate.polarity]
    ]


def _replies(group: Sequence[Offer]) -> dict[tuple[str, str], list[int]]:
    replies: dict[tuple[str, str], list[int]] = {}
    for i, offer in enumerate(group):
        replies.setdefault((offer.candidate.model, offer.candidate.polarity), []).append(i)
    return replies


def _share(bag: frozenset[str], reference: frozenset[str]) -> float:
    return len(bag & reference) / len(bag) if bag else 1.0
