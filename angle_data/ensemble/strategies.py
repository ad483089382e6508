"""The strategies that ask no grader, and the steps that all strategies share.

A strategy is a function from sources and grades to an `Outcome` that accounts for every candidate once. It
knows nothing of labels, splits or files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from angle_data.ensemble.chains import drop_chained
from angle_data.ensemble.gate import gate, is_near_copy
from angle_data.ensemble.merge import merge, winner
from angle_data.ensemble.sources import NO_GRADES, Choice, Grades, Offer, Outcome, Source, offers, reject
from angle_data.ensemble.topic import off_topic
from angle_data.records import Polarity, Rejection
from angle_data.text import pair_key


def concat(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep every candidate that passes the gate; the same pair with the same polarity once.

    The likely ensemble of "LLM-supervised AnglE": the annotators' data put together. Where annotators
    contradict each other, both pairs stay. Grades are not looked at.
    """
    passed, dropped = _pass_gate(sources)
    outcome = Outcome([], dropped)
    for merged in merge(passed):
        for same in (merged.synonyms, merged.antonyms):
            if same:
                keep(outcome, same, 1.0)
    return outcome


def vote(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep what passes the gate, is on topic and is not outvoted; weigh it by who supports it.

    An annotator's reliability is the share of its candidates that pass gate and topic check, shrunk towards
    0.8: (passed + 4) / (offered + 5). A pair's weight is the mean reliability of its supporters plus 0.1 for
    each after the first, clipped to 0.3..1: a mean, because language models err together. An antonym of two
    texts that kept synonyms connect is dropped. Grades are not looked at.
    """
    passed, dropped = screen(sources)
    reliability = pass_rates(sources, passed)
    outcome = Outcome([], dropped)
    for merged in merge(passed):
        polarity = winner(merged, reliability)
        for side, same in (("synonym", merged.synonyms), ("antonym", merged.antonyms)):
            if side == polarity:
                keep(outcome, same, _weight(same, reliability))
            else:
                outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in same)
    drop_chained(outcome)
    return outcome


def screen(sources: Sequence[Source]) -> tuple[list[Offer], list[Rejection]]:
    """Return the offers that pass the gate and are on topic, and the rejections of the others."""
    passed, dropped = _pass_gate(sources)
    lost = {id(offer) for offer in off_topic(passed)}
    dropped += [reject(offer.candidate, "off_topic") for offer in passed if id(offer) in lost]
    return [offer for offer in passed if id(offer) not in lost], dropped


def pass_rates(sources: Sequence[Source], passed: Sequence[Offer]) -> dict[str, float]:
    """Return each annotator's share of offers that `passed`, shrunk towards 0.8 as by five offers."""
    offered = Counter(offer.candidate.model for offer in offers(sources))
    good = Counter(offer.candidate.model for offer in passed)
    return {model: (good[model] + 4) / (count + 5) for model, count in offered.items()}


def keep(
    outcome: Outcome,
    same: Sequence[Offer],
    weight: float,
    *,
    polarity: Polarity | None = None,
) -> None:
    """Keep the first of the equal offers `same` with all of their annotators; the rest are duplicates.

    With a `polarity` other than the candidate's the pair is turned round and flagged `flipped`.
    """
    first = same[0]
    asked = first.candidate.polarity
    polarity = polarity or asked
    candidate = first.candidate if polarity == asked else replace(first.candidate, polarity=polarity)
    flags = []
    if polarity == "antonym" and is_near_copy(first.source.text, candidate.text):
        flags.append("near_copy")
    if polarity != asked:
        flags.append("flipped")
    models = tuple(sorted({offer.candidate.model for offer in same}))
    outcome.kept.append(Choice(first.source, candidate, models, weight, tuple(flags)))
    key = pair_key(first.source.text, first.candidate.text)
    for offer in same[1:]:
        equal = pair_key(offer.source.text, offer.candidate.text) == key
        outcome.dropped.append(reject(offer.candidate, "duplicate" if equal else "near_duplicate"))


def _pass_gate(sources: Sequence[Source]) -> tuple[list[Offer], list[Rejection]]:
    passed, dropped = [], []
    for offer in offers(sources):
        reason = gate(offer.source.text, offer.candidate.text)
        if reason is None:
            passed.append(offer)
        else:
            dropped.append(reject(offer.candidate, reason))
    return passed, dropped


def _weight(same: Sequence[Offer], reliability: dict[str, float]) -> float:
    models = sorted({offer.candidate.model for offer in same})
    mean = sum(reliability[model] for model in models) / len(models)
    return round(min(1.0, max(0.3, mean + 0.1 * (len(models) - 1))), 4)
