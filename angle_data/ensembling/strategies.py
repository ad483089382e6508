"""Which pairs are kept, with which polarity and weight: each strategy is a reading of one evidence.

A strategy is a function from an `Evidence` to an `Outcome` that accounts for every candidate once. To add
one, add an entry to `config.STRATEGIES`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from angle_data.ensembling.evidence import WRONG, Evidence, claims_of
from angle_data.ensembling.read import Offer
from angle_data.ensembling.screen import Merged, content_words, is_near_copy, models_of, reject
from angle_data.records import Polarity, Rejection
from angle_data.text import stable_hash

log = logging.getLogger("angle.ensemble")

MARGIN = 0.5  # a vote is won by more than half an annotator of full reliability

# Decisions of `principled`, by the probability of the likelier side.
_SETTLED = 0.75  # least where annotators contradict each other
_FLIP = 0.95  # least of a polarity that nobody asked for
_TOPICAL = 0.2  # least share of an antonym's content words that its source has, to be turned into one


@dataclass(frozen=True, slots=True)
class Choice(Offer):
    """A pair that a strategy keeps: the candidate that stands for it and who supports it.

    `models` are the annotators that offered it, sorted; `weight` in (0, 1] says how far it is trusted. A
    choice whose polarity was flipped has the flag `flipped`, its candidate the new one; degrees never are.
    """

    models: tuple[str, ...]
    weight: float = 1.0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was made of the candidates: each stands for one choice in `kept`, or is in `dropped`, once.

    `details` is what the strategy says about its work in `report.json`.
    """

    kept: list[Choice] = field(default_factory=list)
    dropped: list[Rejection] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def keep(self, same: Sequence[Offer], weight: float, *, polarity: Polarity | None = None) -> None:
        """Keep the first of the equal offers `same` with all of their annotators; the rest are duplicates.

        With a `polarity` other than the candidate's the pair is flipped, and flagged so.
        """
        first = same[0]
        candidate = first.candidate if polarity is None else replace(first.candidate, polarity=polarity)
        side = first.side if polarity is None else polarity
        flags = []
        if side == "antonym" and is_near_copy(first.source.text, candidate.text):
            flags.append("near_copy")
        if candidate != first.candidate:
            flags.append("flipped")
        self.kept.append(Choice(first.source, candidate, models_of(same), weight, tuple(flags)))
        self.drop(same[1:], "duplicate")

    def drop(self, offers: Iterable[Offer], reason: str) -> None:
        """Drop offers for `reason`, a key of `screen.REASONS`."""
        self.dropped.extend(reject(offer.candidate, reason) for offer in offers)


def concat(evidence: Evidence) -> Outcome:
    """Keep every pair as it was asked for, contradictions on both sides, all with weight 1.

    The likely ensemble of "LLM-supervised AnglE": the annotators' data put together. Nothing is said to be
    off topic.
    """
    outcome = Outcome(dropped=[*evidence.dropped])
    for pair in evidence.pairs:
        for same in filter(None, (pair.synonyms, pair.antonyms)):
            outcome.keep(same, 1.0)
    return outcome


def vote(evidence: Evidence) -> Outcome:
    """Keep what is not outvoted, and weigh it by who supports it.

    An annotator's reliability is the share of its candidates that pass gate and topic check, shrunk towards
    0.8. A pair's weight is the mean reliability of its supporters plus 0.1 for each after the first, clipped
    to 0.3..1: a mean, for language models err together. Grades do not count.
    """
    good = Counter(offer.candidate.model for pair in evidence.pairs for offer in pair.offers)
    offered = good + Counter(rejection.model for rejection in evidence.dropped)
    reliability = {model: (good[model] + 4) / (count + 5) for model, count in offered.items()}
    outcome = Outcome(dropped=[*evidence.dropped])
    for pair in evidence.pairs:
        polarity = winner(pair, reliability)
        for side, same in (("synonym", pair.synonyms), ("antonym", pair.antonyms)):
            if side != polarity:
                outcome.drop(same, "conflict")
                continue
            models = models_of(same)
            mean = sum(reliability[model] for model in models) / len(models)
            outcome.keep(same, round(min(1.0, max(0.3, mean + 0.1 * (len(models) - 1))), 4))
    return outcome


def winner(pair: Merged, reliability: Mapping[str, float]) -> Polarity | None:
    """Return the polarity whose supporters outweigh the other's by more than `MARGIN`, or None.

    Each annotator has one vote of its `reliability` in (0, 1]; one that said both cancels itself out. A pair
    that nobody disputes is won without a margin.
    """
    if not (pair.synonyms and pair.antonyms):
        return "synonym" if pair.synonyms else "antonym"
    # Summed in sorted order: floating-point sums depend on it, and the result must not.
    synonym = sum(reliability[model] for model in models_of(pair.synonyms))
    antonym = sum(reliability[model] for model in models_of(pair.antonyms))
    if abs(synonym - antonym) <= MARGIN:
        return None
    return "synonym" if synonym > antonym else "antonym"


def principled(evidence: Evidence) -> Outcome:
    """Keep each pair on its likely side, flipped where need be; weigh it by how likely that is.

    A pair stays what somebody asked for if that is the likelier side. A polarity is flipped only where grades
    speak clearly for it; a degree never is. What the evidence supports on neither side is dropped. Without
    grades only pairs that annotators contradict each other about can be judged.
    """
    if not evidence.graded:
        log.info(
            "no grades to go by: only contradictions between annotators are seen; --scores RUN of "
            "`angle-data llm-score` would show swapped polarities too"
        )
    outcome = Outcome(dropped=[*evidence.dropped])
    for pair, synonym in zip(evidence.pairs, evidence.sides.synonym.tolist(), strict=True):
        _settle(pair, synonym, outcome, graded=pair.key in evidence.grades)
    outcome.details.update(_details(evidence, outcome.kept))
    return outcome


def _settle(pair: Merged, synonym: float, outcome: Outcome, *, graded: bool) -> None:
    """Keep, flip or drop one pair that is synonymous with probability `synonym`."""
    likely: Polarity = "synonym" if synonym > 0.5 else "antonym"
    same, others = (pair.synonyms, pair.antonyms) if likely == "synonym" else (pair.antonyms, pair.synonyms)
    sure = max(synonym, 1 - synonym)
    weight = round(sure, 4)
    if not claims_of(pair):
        outcome.keep(pair.antonyms, 1 - WRONG)
    elif same and (not others or sure >= _SETTLED):
        outcome.keep(same, weight)
        outcome.drop(others, "conflict")
    elif same:
        outcome.drop((*same, *others), "conflict")
    elif graded and sure >= _FLIP and _can_flip(others[0], likely):
        outcome.keep(others, weight, polarity=likely)
    else:
        outcome.drop(others, "contradicted")


def _can_flip(offer: Offer, likely: Polarity) -> bool:
    """Return whether grades can tell what a sentence is: opposites share words, what is unrelated none."""
    if offer.candidate.degree or likely == "synonym":
        return offer.candidate.degree is None
    bag = content_words(offer.candidate.text)
    return len(bag & content_words(offer.source.text)) >= _TOPICAL * len(bag)


def _details(evidence: Evidence, kept: Sequence[Choice]) -> dict[str, Any]:
    """Return what `report.json` says of each annotator: reliability by what was asked for, flipped pairs."""
    sides = evidence.sides
    reliability: dict[str, Any] = {}
    for (name, asked), wrong, checked in zip(sides.kinds, sides.wrong, sides.checked, strict=True):
        found = {"reliability": round(1 - float(wrong), 4), "checked": int(checked)}
        reliability.setdefault(name, {})[asked] = found
    flipped = [choice for choice in kept if "flipped" in choice.flags]
    flips = Counter((model, choice.candidate.polarity) for choice in flipped for model in choice.models)
    by_name = {
        name: {"synonym_to_antonym": flips[name, "antonym"], "antonym_to_synonym": flips[name, "synonym"]}
        for name in reliability
    }
    return {"reliability": reliability, "flipped": by_name}


def cap(outcome: Outcome, per_source: int, *, seed: int) -> None:
    """Drop what a source has of a polarity or degree beyond `per_source`.

    Kept are the pairs that most annotators support; of equals, those of most weight, then of the smallest
    sha256 of seed and texts.
    """
    groups: dict[tuple[str, str], list[Choice]] = {}
    for choice in outcome.kept:
        groups.setdefault((choice.source.key, choice.asked), []).append(choice)

    def rank(choice: Choice) -> tuple[int, float, int]:
        drawn = stable_hash(f"{seed}\ncap\n{choice.source.key}\n{choice.candidate.text}")
        return -len(choice.models), -choice.weight, drawn

    chosen = {id(c) for group in groups.values() for c in sorted(group, key=rank)[:per_source]}
    outcome.drop((choice for choice in outcome.kept if id(choice) not in chosen), "capped")
    outcome.kept[:] = [choice for choice in outcome.kept if id(choice) in chosen]
