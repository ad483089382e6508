"""The `principled` strategy: annotators and graders check each other; a pair's polarity is what they find.

Gate and topic check, then equal and nearly equal pairs become one with all of their supporters, then
`beliefs.infer` weighs who claimed what against what graders saw. A pair keeps the polarity that somebody
asked for if that is the likelier one; it is turned round only where the evidence is strong; it is dropped
where it is neither. Its weight is the probability of the polarity it ends up with. Last, an antonym
of two texts that kept synonyms connect is dropped.

Without grades only pairs that annotators contradict each other about can be judged; a reply of the wrong
polarity that nobody contradicts stays.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from angle_data.ensemble.agreement import annotator_matrix, grader_table, krippendorff_alpha, verdict_matrix
from angle_data.ensemble.beliefs import Beliefs, infer
from angle_data.ensemble.chains import drop_chained
from angle_data.ensemble.judging import make_items
from angle_data.ensemble.merge import Merged, merge
from angle_data.ensemble.near import join_near
from angle_data.ensemble.network import Item, probability
from angle_data.ensemble.sources import NO_GRADES, Grades, Offer, Outcome, Source, reject
from angle_data.ensemble.strategies import keep, pass_rates, screen
from angle_data.ensemble.topic import content_words
from angle_data.records import Polarity

log = logging.getLogger("angle.ensemble")

_SETTLED = 0.75  # least probability of the winning side where annotators contradict each other
_DOUBTFUL = 0.6  # reliability below which the graders may be the ones that err
_FLIP = 0.9  # least probability of a polarity that nobody asked for
_TOPICAL = 0.2  # least share of an antonym's content words that its source has, to be turned into one
_WRONG = (0.02, 0.2)  # bounds of the prior share of wrong sentences


def principled(sources: Sequence[Source], grades: Grades = NO_GRADES) -> Outcome:
    """Keep each pair with its likely polarity, turned round where need be; weigh it by how likely that is.

    An annotator's prior share of wrong sentences is its share of candidates that fail gate or topic check,
    within 0.02..0.2; grades by a pair's own supporters do not count. `grades` should be of graders that can
    tell synonyms from antonyms (`judging.judge`).
    """
    passed, dropped = screen(sources)
    pairs = join_near(merge(passed))
    items = make_items(pairs, grades)
    low, high = _WRONG
    wrong = {model: min(high, max(low, 1 - rate)) for model, rate in pass_rates(sources, passed).items()}
    beliefs = infer(items, wrong)
    _say(items, beliefs)
    outcome = Outcome([], dropped)
    flips: Counter[tuple[str, str]] = Counter()
    for pair, odds in zip(pairs, beliefs.log_odds, strict=True):
        _settle(pair, probability(odds), outcome, flips)
    drop_chained(outcome)
    outcome.details.update(_details(items, beliefs, flips))
    return outcome


def _settle(pair: Merged, synonym: float, outcome: Outcome, flips: Counter[tuple[str, str]]) -> None:
    """Keep, turn round or drop one pair that is synonymous with probability `synonym`."""
    likely: Polarity = "synonym" if synonym > 0.5 else "antonym"
    sides: dict[Polarity, tuple[Offer, ...]] = {"synonym": pair.synonyms, "antonym": pair.antonyms}
    sure = max(synonym, 1 - synonym)
    weight = round(sure, 4)
    same, others = sides[likely], sides["antonym" if likely == "synonym" else "synonym"]
    if same and (not others or sure >= _SETTLED):
        keep(outcome, same, weight)
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in others)
    elif same:
        outcome.dropped.extend(reject(offer.candidate, "conflict") for offer in pair.offers)
    elif sure >= _FLIP and (likely == "synonym" or _is_topical(others[0])):
        keep(outcome, others, weight, polarity=likely)
        flips.update((model, likely) for model in {offer.candidate.model for offer in others})
    else:
        outcome.dropped.extend(reject(offer.candidate, "contradicted") for offer in others)


def _is_topical(offer: Offer) -> bool:
    """Return whether a low grade can mean an opposite: unrelated texts share no content words."""
    bag = content_words(offer.candidate.text)
    return len(bag & content_words(offer.source.text)) >= _TOPICAL * len(bag)


def _say(items: Sequence[Item], beliefs: Beliefs) -> None:
    if not any(item.grades for item in items):
        log.info(
            "no grades to go by: only contradictions between annotators are seen; --scores RUN of "
            "`angle-data llm-score` would show swapped polarities too"
        )
    for grader, shape in beliefs.shapes.items():
        if shape.synonym <= shape.antonym:
            log.warning(
                "%s has too few grades, or all alike, to learn from: they tell nothing about polarities",
                grader,
            )
    for (annotator, polarity), found in beliefs.reliability.items():
        if beliefs.shapes and found.value < _DOUBTFUL:
            log.warning(
                "%s: the graders contradict most of its %ss (reliability %.2f). Read some: either they "
                "are wrong, or the graders are; without --scores the annotator is believed",
                annotator, polarity, found.value,
            )  # fmt: skip


def _details(items: Sequence[Item], beliefs: Beliefs, flips: Counter[tuple[str, str]]) -> dict[str, Any]:
    annotators = sorted({claim.annotator for item in items for claim in item.claims})
    details: dict[str, Any] = {
        "reliability": {
            annotator: {
                polarity: {
                    "reliability": round(found.value, 4),
                    "swapped_replies": round(found.swapped, 4),
                    "wrong_sentences": round(found.wrong, 4),
                    "checked": found.checked,
                }
                for (name, polarity), found in beliefs.reliability.items()
                if name == annotator
            }
            for annotator in annotators
        },
        "flipped": {
            annotator: {
                "synonym_to_antonym": flips[annotator, "antonym"],
                "antonym_to_synonym": flips[annotator, "synonym"],
            }
            for annotator in annotators
        },
        "annotator_agreement": annotator_matrix(items),
    }
    if beliefs.shapes:
        alpha = krippendorff_alpha([list(item.grades.values()) for item in items])
        details |= {
            "graders": grader_table(items, beliefs),
            "grader_agreement": verdict_matrix(items, beliefs),
            "krippendorff_alpha": None if alpha is None else round(alpha, 4),
            "grader_confusion": round(beliefs.confusion, 4),
            "grader_correlation": round(beliefs.correlation, 4),
            "rounds": beliefs.rounds,
        }
    return details
