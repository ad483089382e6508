"""Which graders are believed, and how many candidates they graded: settled once, before anything is kept.

A grader that hardly tells synonyms from antonyms is left out of everything that follows, the strategy and the
labels alike. What such a grader misses, a style of writing say, it misses in many pairs alike, which no model
of chance errors allows for.

Graders are judged by the polarities that were asked for, and annotators turn some round. So a grader that
seems weak on all pairs together is looked at annotator by annotator: one annotator with many polarities
turned round must not condemn it. Where few annotators are graded, which of two errs is a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from angle_data.ensemble.beliefs import families
from angle_data.ensemble.graders import area_under_curve, normal_scores
from angle_data.ensemble.merge import Merged, merge
from angle_data.ensemble.near import join_near
from angle_data.ensemble.network import Claim, Item
from angle_data.ensemble.scores import peer_grades
from angle_data.ensemble.sources import NO_GRADES, Grades, Offer, Source
from angle_data.ensemble.strategies import screen
from angle_data.records import Polarity
from angle_data.text import pair_key

_LEAST_AUC = 0.75  # of a grader that is believed, against the polarities as they were asked for
_LEAST_GRADES = 20  # of either polarity, to know that a grader is too weak
_MOST_BIAS = 0.15  # for one annotator, of a grader that is used although it seems weak
_ODD = 0.15  # how far an annotator's area lies below the others' to be worth a warning

_Sides = dict[Polarity, list[float]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a grader.

    `auc` is how often it grades a pair offered as synonym above one offered as antonym, None if it graded one
    polarity alone; `synonyms` and `antonyms` are how many grades that rests on. `graded` counts its grades of
    other annotators' candidates. `annotators` holds the `auc` on the pairs of each annotator of whom it has
    20 grades of either polarity. `bias` is how far its grades favour or disfavour one annotator, 0..0.5 (see
    `_bias`).
    """

    graded: int = 0
    auc: float | None = None
    synonyms: int = 0
    antonyms: int = 0
    annotators: Mapping[str, float] = field(default_factory=dict)
    bias: float = 0.0

    @property
    def used(self) -> bool:
        """Whether its grades count: those of too few pairs to know do."""
        known = min(self.synonyms, self.antonyms) >= _LEAST_GRADES
        weak = self.auc is not None and self.auc < _LEAST_AUC
        return self.graded > 0 and not (known and weak and not self._sees)

    @property
    def reason(self) -> str:
        """Why a grader is not used, in words that follow its name."""
        if not self.graded or self.auc is None:
            return "graded none of the candidates, or only those it wrote itself"
        single = f", {_shown(self.annotators)}" if len(self.annotators) > 1 else ""
        area = f"(area under the curve {self.auc:.2f}{single}, {_LEAST_AUC:g} is needed)"
        if self.auc <= 1 - _LEAST_AUC:
            return f"grades antonyms above synonyms {area}: either grades or polarities are turned round"
        return f"hardly tells synonyms from antonyms {area}"

    @property
    def odd(self) -> dict[str, float]:
        """The area of each annotator whose polarities the grader disputes, unlike those of the others."""
        found = {}
        for name, area in self.annotators.items():
            others = [value for other, value in self.annotators.items() if other != name]
            usual = median(others) if others else 0.0
            if area < _LEAST_AUC <= usual and usual - area >= _ODD:
                found[name] = area
        return found

    @property
    def _sees(self) -> bool:
        """Whether it knows polarities, single annotators, and not it, being what makes it look weak.

        On an annotator whose polarities are all turned round a good grader has an area near 0, so the
        distance from 1/2 tells what it sees; but it must side with as many annotators as it contradicts. A
        grader that favours one annotator's style fails, however well it ranks the pairs of each.
        """
        areas = list(self.annotators.values())
        if not areas or self.bias > _MOST_BIAS:
            return False
        seen = median(max(area, 1 - area) for area in areas)
        sides = sum(area >= _LEAST_AUC for area in areas)
        return seen >= _LEAST_AUC and sides >= sum(area <= 1 - _LEAST_AUC for area in areas)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each grader, the `grades` of those that are used, and what these cover.

    `pairs` counts the distinct candidate pairs that pass gate and topic check, `graded` those of them with a
    grade that is used.
    """

    verdicts: Mapping[str, Verdict]
    grades: Grades
    graded: int
    pairs: int

    @property
    def used(self) -> list[str]:
        """The graders that are used, sorted."""
        return [grader for grader, verdict in self.verdicts.items() if verdict.used]

    @property
    def unused(self) -> dict[str, str]:
        """Why the other graders are not used, by grader."""
        return {grader: verdict.reason for grader, verdict in self.verdicts.items() if not verdict.used}

    @property
    def odd(self) -> dict[str, str]:
        """What is odd about an annotator's polarities, by annotator, in words that follow its name."""
        found: dict[str, dict[str, float]] = {}
        for grader in self.used:
            for annotator, area in self.verdicts[grader].odd.items():
                found.setdefault(annotator, {})[grader] = area
        return {
            annotator: f"its polarities disagree with grades that fit the other annotators' "
            f"(area under the curve: {_shown(areas)}). Read some of its candidates: replies may be swapped"
            for annotator, areas in sorted(found.items())
        }


def judge(sources: Sequence[Source], grades: Grades) -> Judgement:
    """Judge each grader by the polarities that were asked for.

    It is used if it graded candidates of others with an area under the curve of at least 0.75, or fewer than
    20 of either polarity. It is also used if that area is low because of single annotators: if the area of
    each annotator's pairs (with 20 grades of either polarity) is in the median 0.25 or more away from 1/2, is
    not more often near 0 than near 1, and no annotator's grades are higher or lower throughout than the
    others'. Graders that graded one annotator alone are judged together, as in `beliefs.infer`.
    """
    if not grades:
        return Judgement({}, NO_GRADES, 0, 0)
    passed, _ = screen(sources)
    merged = merge(passed)
    found = _verdicts(make_items(join_near(merged), grades))
    names = sorted({grader for row in grades.values() for grader in row})
    verdicts = {grader: found.get(grader, Verdict()) for grader in names}
    used = {grader for grader, verdict in verdicts.items() if verdict.used}
    if len(used) < len(names):
        kept = (
            (pair, {grader: row[grader] for grader in row if grader in used}) for pair, row in grades.items()
        )
        grades = {pair: row for pair, row in kept if row}
    graded = sum(bool(_grades_of(pair.offers, grades)) for pair in merged)
    return Judgement(verdicts, grades, graded, len(merged))


def make_items(pairs: Iterable[Merged], grades: Grades) -> list[Item]:
    """Return for each pair the claims about it and the grades of all its texts, each grader's averaged.

    Grades by a pair's own supporters do not count.
    """
    items = []
    for pair in pairs:
        claims = {_claim(offer) for offer in pair.offers}
        found = _grades_of(pair.offers, grades)
        means = {grader: sum(values) / len(values) for grader, values in sorted(found.items())}
        items.append(Item(pair.offers[0].source.key, tuple(sorted(claims)), means))
    return items


def _grades_of(offers: Sequence[Offer], grades: Grades) -> dict[str, list[float]]:
    models = {offer.candidate.model for offer in offers}
    found: dict[str, list[float]] = {}
    for key in sorted({pair_key(offer.source.text, offer.candidate.text) for offer in offers}):
        for grader, grade in peer_grades(grades, key, models).items():
            found.setdefault(grader, []).append(grade)
    return found


def _claim(offer: Offer) -> Claim:
    candidate = offer.candidate
    return Claim(candidate.model, candidate.polarity, f"{offer.source.key}\n{candidate.key}")


def _verdicts(items: Sequence[Item]) -> dict[str, Verdict]:
    """Return the verdict on each grader that has a grade in `items`; disputed pairs say nothing about it."""
    scores = normal_scores(items)
    family_of = families(items)
    counts = dict.fromkeys(family_of, 0)
    sides: dict[str, _Sides] = {family: _no_grades() for family in family_of.values()}
    single: dict[str, dict[str, _Sides]] = {family: {} for family in family_of.values()}
    for item in items:
        polarities = {claim.polarity for claim in item.claims}
        for grader, grade in item.grades.items():
            counts[grader] += 1
            if len(polarities) > 1:
                continue
            family, score = family_of[grader], scores[grader][grade]
            (polarity,) = polarities
            sides[family][polarity].append(score)
            for annotator in {claim.annotator for claim in item.claims}:
                single[family].setdefault(annotator, _no_grades())[polarity].append(score)
    known = {family: _known(single[family]) for family in single}
    bias = {family: _bias(found) for family, found in known.items()}
    verdicts = {}
    for grader, family in family_of.items():
        synonyms, antonyms = sides[family]["synonym"], sides[family]["antonym"]
        verdicts[grader] = Verdict(
            counts[grader],
            area_under_curve(synonyms, antonyms),
            len(synonyms),
            len(antonyms),
            {
                annotator: area
                for annotator, found in known[family].items()
                if (area := area_under_curve(found["synonym"], found["antonym"])) is not None
            },
            bias[family],
        )
    return verdicts


def _no_grades() -> _Sides:
    return {"synonym": [], "antonym": []}


def _known(single: Mapping[str, _Sides]) -> dict[str, _Sides]:
    """Return the annotators, sorted, that have enough grades of either polarity."""
    return {
        annotator: sides
        for annotator, sides in sorted(single.items())
        if min(len(scores) for scores in sides.values()) >= _LEAST_GRADES
    }


def _bias(known: Mapping[str, _Sides]) -> float:
    """Return how far one annotator's grades lie above or below the others', for both polarities alike.

    The probability that a grade of its pairs exceeds one of the others' pairs of the same polarity, the mean
    of the two polarities; its distance from 1/2, of the annotator with the largest. Polarities turned round
    lower the grades of its synonyms and raise those of its antonyms, which cancels out in that mean.
    """
    largest = 0.0
    for annotator, sides in known.items():
        shares = []
        for polarity, scores in sides.items():
            others = [x for name, found in known.items() if name != annotator for x in found[polarity]]
            share = area_under_curve(scores, others)
            if share is not None:
                shares.append(share)
        if shares:
            largest = max(largest, abs(sum(shares) / len(shares) - 0.5))
    return largest


def _shown(areas: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {area:.2f}" for name, area in areas.items())
