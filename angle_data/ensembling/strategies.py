"""Which offers are one pair, and which pairs are kept with which polarity and weight.

A strategy is a function from sources and grades to an `Outcome` that accounts for every candidate once. To
add one, add an entry to `STRATEGIES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import Any, cast, get_args

from angle_data.disjoint import DisjointSets
from angle_data.ensembling.read import NO_GRADES, Grades, Offer, Source, offers
from angle_data.ensembling.screen import is_near_copy, pass_gate, reject, screen
from angle_data.errors import InputError
from angle_data.records import Candidate, Polarity, Rejection
from angle_data.text import normalise, pair_key, stable_hash

STRATEGIES: dict[str, str] = {
    "concat": "angle_data.ensembling.strategies:concat",
    "principled": "angle_data.ensembling.principled:principled",
    "vote": "angle_data.ensembling.strategies:vote",
}
SAME_DEGREE = 4  # the least degree, and grade, of pairs that mean the same
MARGIN = 0.5  # a vote is won by more than half an annotator of full reliability


@dataclass(frozen=True, slots=True)
class Merged:
    """One pair and every offer of it, by what was asked for (`side_of`), in the order of the offers.

    `key` is its `text.pair_key`, `models` are the annotators that offered it, sorted.
    """

    key: tuple[str, str]
    models: tuple[str, ...]
    synonyms: tuple[Offer, ...]
    antonyms: tuple[Offer, ...]

    @property
    def side(self) -> Polarity | None:
        """The side that its offers agree on, None if they do not; degree 3 is between the two."""
        if (self.synonyms and self.antonyms) or all(
            o.candidate.degree == 3 for o in self.antonyms + self.synonyms
        ):
            return None
        return "synonym" if self.synonyms else "antonym"


def merge(offers: Iterable[Offer]) -> list[Merged]:
    """Return the distinct pairs among `offers`, in the order of their first offer.

    Two offers are one pair when their unordered pairs of normalised texts are equal, so that a pair occurs
    once in the whole data set even if one source is another's candidate. Nothing softer counts as equal:
    texts that differ by a token may be opposites ("with quota errors" / "without quota errors").
    """
    groups: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        groups.setdefault(pair_key(offer.source.text, offer.candidate.text), []).append(offer)
    merged = []
    for key, group in groups.items():
        sides = (
            tuple(offer for offer in group if side_of(offer.candidate) == side) for side in get_args(Polarity)
        )
        merged.append(Merged(key, models_of(group), *sides))
    return merged


def side_of(candidate: Candidate) -> Polarity:
    """Return `synonym` for what is to mean the same (synonyms, degrees 5 and 4), else `antonym`."""
    return candidate.polarity or ("synonym" if cast(int, candidate.degree) >= SAME_DEGREE else "antonym")


def asked_of(candidate: Candidate) -> str:
    """Return what was asked for, in words: `synonym`, `antonym`, `degree 5` … `degree 1`."""
    return candidate.polarity or f"degree {candidate.degree}"


def models_of(offers: Iterable[Offer]) -> tuple[str, ...]:
    """Return the annotators of some offers, sorted."""
    return tuple(sorted({offer.candidate.model for offer in offers}))


@dataclass(frozen=True, slots=True)
class Choice:
    """A pair that a strategy keeps: the candidate that stands for it and who supports it.

    `models` are the annotators that offered it, sorted; `weight` in (0, 1] says how far it is trusted. A
    choice whose polarity was flipped has the flag `flipped`, its candidate the new one; degrees never are.
    """

    source: Source
    candidate: Candidate
    models: tuple[str, ...]
    weight: float = 1.0
    flags: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Its `text.pair_key`."""
        return pair_key(self.source.text, self.candidate.text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was made of the candidates: each stands for one choice in `kept`, or is in `dropped`, once.

    `details` is what the strategy reports about its work, ready for JSON; it goes into `report.json`.
    """

    kept: list[Choice] = field(default_factory=list)
    dropped: list[Rejection] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


Strategy = Callable[[Sequence[Source], Grades], Outcome]


def load_strategy(name: str) -> Strategy:
    """Import and return the strategy registered under `name`; an `InputError` lists those there are."""
    if name not in STRATEGIES:
        raise InputError(f"unknown strategy {name!r}; choose one of {', '.join(sorted(STRATEGIES))}")
    strategy: Strategy = resolve_name(STRATEGIES[name])
    return strategy


def concat(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep every candidate that passes the gate; of the same pair, one for each side.

    The likely ensemble of "LLM-supervised AnglE": the annotators' data put together. Where annotators
    contradict each other, both pairs stay. Grades are not looked at.
    """
    passed, dropped = pass_gate(sources)
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
    each after the first, clipped to 0.3..1: a mean, for language models err together. Grades do not count.
    """
    passed, dropped = screen(sources)
    offered = Counter(offer.candidate.model for offer in offers(sources))
    good = Counter(offer.candidate.model for offer in passed)
    reliability = {model: (good[model] + 4) / (count + 5) for model, count in offered.items()}
    outcome = Outcome([], dropped)
    for merged in merge(passed):
        polarity = winner(merged, reliability)
        for side, same in (("synonym", merged.synonyms), ("antonym", merged.antonyms)):
            if side == polarity:
                models = models_of(same)
                mean = sum(reliability[model] for model in models) / len(models)
                keep(outcome, same, round(min(1.0, max(0.3, mean + 0.1 * (len(models) - 1))), 4))
            else:
                outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in same)
    return outcome


def winner(merged: Merged, reliability: Mapping[str, float]) -> Polarity | None:
    """Return the polarity whose supporters outweigh the other's by more than `MARGIN`, or None.

    Each annotator has one vote of its `reliability` in (0, 1]; one that said both cancels itself out. A pair
    that nobody disputes is won without a margin.
    """
    if not (merged.synonyms and merged.antonyms):
        return "synonym" if merged.synonyms else "antonym"
    # Summed in sorted order: floating-point sums depend on it, and the result must not.
    synonym, antonym = (
        sum(reliability[model] for model in models_of(side)) for side in (merged.synonyms, merged.antonyms)
    )
    if abs(synonym - antonym) <= MARGIN:
        return None
    return "synonym" if synonym > antonym else "antonym"


def keep(outcome: Outcome, same: Sequence[Offer], weight: float, *, polarity: Polarity | None = None) -> None:
    """Keep the first of the equal offers `same` with all of their annotators; the rest are duplicates.

    With a `polarity` other than the candidate's the pair is flipped, and flagged so.
    """
    first = same[0]
    candidate = first.candidate if polarity is None else replace(first.candidate, polarity=polarity)
    flags = []
    if side_of(candidate) == "antonym" and is_near_copy(first.source.text, candidate.text):
        flags.append("near_copy")
    if candidate != first.candidate:
        flags.append("flipped")
    outcome.kept.append(Choice(first.source, candidate, models_of(same), weight, tuple(flags)))
    outcome.dropped.extend(reject(offer.candidate, "duplicate") for offer in same[1:])


def synonym_sets(kept: Iterable[Choice]) -> DisjointSets[str]:
    """Return the sets of normalised texts that those of the same meaning among `kept` connect."""
    groups: DisjointSets[str] = DisjointSets()
    for choice in kept:
        if side_of(choice.candidate) == "synonym":
            groups.join(choice.source.key, normalise(choice.candidate.text))
    return groups


def cap(outcome: Outcome, per_source: int, *, seed: int) -> None:
    """Drop what a source has of a polarity or degree beyond `per_source`.

    Kept are the pairs that most annotators support; of equals, those of most weight, then of the smallest
    sha256 of seed and texts.
    """
    groups: dict[tuple[str, str], list[Choice]] = {}
    for choice in outcome.kept:
        groups.setdefault((choice.source.key, asked_of(choice.candidate)), []).append(choice)

    def rank(choice: Choice) -> tuple[int, float, int]:
        drawn = stable_hash(f"{seed}\ncap\n{choice.source.key}\n{choice.candidate.text}")
        return -len(choice.models), -choice.weight, drawn

    chosen = {id(c) for group in groups.values() for c in sorted(group, key=rank)[:per_source]}
    outcome.dropped.extend(reject(c.candidate, "capped") for c in outcome.kept if id(c) not in chosen)
    outcome.kept[:] = [choice for choice in outcome.kept if id(choice) in chosen]
