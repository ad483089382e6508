"""The strategies: which candidates of which annotators become training pairs.

Each is a function from sources to an `Outcome` that accounts for every candidate once. They know nothing of
labels, splits or files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from angle_data.ensemble.gate import gate, is_near_copy
from angle_data.ensemble.merge import merge, winner
from angle_data.ensemble.sources import Choice, Offer, Outcome, Source, offers, reject
from angle_data.ensemble.topic import off_topic
from angle_data.records import Rejection

__all__ = ["concat", "vote"]


def concat(sources: Sequence[Source]) -> Outcome:
    """Keep every candidate that passes the gate; the same pair with the same polarity once.

    The likely ensemble of "LLM-supervised AnglE": the annotators' data put together. Where annotators
    contradict each other, both pairs stay.
    """
    passed, dropped = _pass_gate(sources)
    outcome = Outcome([], dropped)
    for merged in merge(passed):
        for same in (merged.synonyms, merged.antonyms):
            if same:
                _keep(outcome, same, 1.0)
    return outcome


def vote(sources: Sequence[Source]) -> Outcome:
    """Keep what passes the gate, is on topic and is not outvoted; weigh it by who supports it.

    An annotator's reliability is the share of its candidates that pass gate and topic check, shrunk towards
    0.8: (passed + 4) / (offered + 5). A pair's weight is the mean reliability of its supporters plus 0.1 for
    each after the first, clipped to 0.3..1: a mean, because language models err together.
    """
    passed, dropped = _pass_gate(sources)
    lost = {id(offer) for offer in off_topic(passed)}
    dropped += [reject(offer.candidate, "off_topic") for offer in passed if id(offer) in lost]
    passed = [offer for offer in passed if id(offer) not in lost]
    reliability = _reliability(sources, passed)
    outcome = Outcome([], dropped)
    for merged in merge(passed):
        polarity = winner(merged, reliability)
        for side, same in (("synonym", merged.synonyms), ("antonym", merged.antonyms)):
            if side == polarity:
                _keep(outcome, same, _weight(same, reliability))
            else:
                outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in same)
    return outcome


def _pass_gate(sources: Sequence[Source]) -> tuple[list[Offer], list[Rejection]]:
    passed, dropped = [], []
    for offer in offers(sources):
        reason = gate(offer.source.text, offer.candidate.text)
        if reason is None:
            passed.append(offer)
        else:
            dropped.append(reject(offer.candidate, reason))
    return passed, dropped


def _keep(outcome: Outcome, same: Sequence[Offer], weight: float) -> None:
    """Keep the first of the equal offers `same` with all of their annotators; the rest are duplicates."""
    first = same[0]
    models = tuple(sorted({offer.candidate.model for offer in same}))
    trivial = first.candidate.polarity == "antonym" and is_near_copy(first.source.text, first.candidate.text)
    flags = ("near_copy",) if trivial else ()
    outcome.kept.append(Choice(first.source, first.candidate, models, weight, flags))
    outcome.dropped.extend(reject(offer.candidate, "duplicate") for offer in same[1:])


def _reliability(sources: Sequence[Source], passed: Sequence[Offer]) -> dict[str, float]:
    offered = Counter(offer.candidate.model for offer in offers(sources))
    good = Counter(offer.candidate.model for offer in passed)
    return {model: (good[model] + 4) / (count + 5) for model, count in offered.items()}


def _weight(same: Sequence[Offer], reliability: dict[str, float]) -> float:
    models = sorted({offer.candidate.model for offer in same})
    mean = sum(reliability[model] for model in models) / len(models)
    return round(min(1.0, max(0.3, mean + 0.1 * (len(models) - 1))), 4)
