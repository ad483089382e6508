"""Which graders are believed, what their grades cover, and what report and card say about them.

Graders are judged once, before anything is kept, by the polarities that were asked for. One that hardly tells
synonyms from antonyms is left out of strategy and labels alike: what such a grader misses, a style of writing
say, it misses in many pairs alike, which no model of chance errors allows for. Annotators swap polarities,
too, so a grader that seems weak on all pairs together is judged annotator by annotator.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from angle_data.ensemble.read import (
    NO_GRADES,
    NOTHING_READ,
    Grades,
    GradeSet,
    Offer,
    Source,
    offers,
    peer_grades,
    read_scores,
)
from angle_data.ensemble.screen import screen
from angle_data.ensemble.strategies import Merged, join_near, merge
from angle_data.errors import InputError
from angle_data.records import Polarity
from angle_data.text import pair_key

log = logging.getLogger("angle.ensemble")

_LEAST_AUC = 0.75  # of a grader that is believed, against the polarities as they were asked for
_LEAST_GRADES = 20  # of either polarity, to know that a grader is too weak
_MOST_BIAS = 0.15  # for one annotator, of a grader that is used although it seems weak
_ODD = 0.15  # how far an annotator's area lies below the others' to be worth a warning
_LONE = ""  # stands for all graders that graded the pairs of one annotator alone

_Sides = dict[Polarity, list[float]]


class Claim(NamedTuple):
    """`annotator` offered a pair with `polarity` in the reply named `reply`."""

    annotator: str
    polarity: Polarity
    reply: str


class Item(NamedTuple):
    """One pair as it was claimed and graded: the distinct claims about it (sorted), its grades by grader."""

    claims: tuple[Claim, ...]
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a grader; `reason` says why it is not used, in words that follow its name.

    `auc` is how often it grades a pair offered as synonym above one offered as antonym, None if it graded one
    polarity alone. `annotators` holds the `auc` on the pairs of each annotator of whom it has 20 grades of
    either polarity.
    """

    auc: float | None = None
    annotators: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = "graded none of the candidates, or only those it wrote itself"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each grader, the `grades` of those that are used, and what these cover.

    `pairs` counts the distinct candidate pairs that pass gate and topic check, `graded` those of them with a
    grade that is used. `read` is what the files held, `unknown` counts the graded pairs that are no
    candidates.
    """

    verdicts: Mapping[str, Verdict]
    grades: Grades
    graded: int
    pairs: int
    read: GradeSet = NOTHING_READ
    unknown: int = 0

    @property
    def used(self) -> list[str]:
        """The graders that are used, sorted."""
        return [grader for grader, verdict in self.verdicts.items() if verdict.reason is None]

    @property
    def remarks(self) -> list[str]:
        """A line on each grader that is not used, then one on each annotator whose polarities are odd."""
        lines = [
            f"{grader} {verdict.reason}: its grades are not used"
            for grader, verdict in self.verdicts.items()
            if verdict.reason is not None
        ]
        odd: dict[str, dict[str, float]] = {}
        for grader in self.used:
            areas = self.verdicts[grader].annotators
            for annotator, area in areas.items():
                usual = median([value for other, value in areas.items() if other != annotator] or [0.0])
                if area < _LEAST_AUC <= usual and usual - area >= _ODD:
                    odd.setdefault(annotator, {})[grader] = area
        return lines + [
            f"{annotator}: its polarities disagree with grades that fit the other annotators' "
            f"(area under the curve: {_shown(areas)}). Read some of its candidates: replies may be swapped"
            for annotator, areas in sorted(odd.items())
        ]

    def notes(self, labelled: Mapping[str, int] | None) -> list[str]:
        """Return the card's lines about the grades; for `labelled` see `gaps`."""
        notes = list(self.remarks)
        if self.read.unfinished:
            notes.append(f"the grades are unfinished: {self.read.unfinished}")
        return [*notes, *self.gaps(labelled)]

    def gaps(self, labelled: Mapping[str, int] | None) -> list[str]:
        """Return a line about the pairs that have no grade, if there are any and some have.

        `labelled` counts the kept pairs with a score by their grades (`graded`) and without (`ordinal`); it
        is None for labels other than `graded`.
        """
        missing = labelled["ordinal"] if labelled else 0
        if not self.used or (self.graded == self.pairs and not missing):
            return []
        if labelled is None:
            return [self.share]
        kept = labelled["graded"] + missing
        return [f"{self.share}; {missing} of the {kept} pairs kept have the score of ordinal labels"]

    def report(self, labelled: Mapping[str, int] | None) -> dict[str, Any]:
        """Return what `report.json` says about graders and grades; nothing without grades."""
        if not self.read.grades:
            return {}
        graders = {
            grader: {
                "auc": None if verdict.auc is None else round(verdict.auc, 4),
                "auc_by_annotator": {name: round(area, 4) for name, area in verdict.annotators.items()},
                "used": verdict.reason is None,
            }
            for grader, verdict in self.verdicts.items()
        }
        unfinished = self.read.unfinished
        scores = {
            "rows": self.read.rows,
            "pairs": len(self.read.grades),
            "unknown_pairs": self.unknown,
            "candidate_pairs": self.pairs,
            "graded_pairs": self.graded,
            **({"labelled": dict(labelled)} if labelled else {}),
            **({"finished": False, "open": unfinished.open} if unfinished else {}),
            "sha256": self.read.digest,
        }
        return {"graders": graders, "scores": scores}

    @property
    def share(self) -> str:
        """How many of the candidate pairs are graded, in words."""
        return f"graded {self.graded} of {self.pairs} candidate pairs"


def read_grading(paths: Sequence[Path], sources: Sequence[Source], *, labels: str) -> Judgement:
    """Read and judge the grades in `paths` of the candidates of `sources`; warn of what is odd about them.

    Raises:
        InputError: A path cannot be used, the grades are of none of the candidates, or `labels` is `graded`
            and no grader can be used.
    """
    read = read_scores(paths)
    if paths and not read.grades:
        raise InputError("--scores holds no grades; see rejected.jsonl in that folder for the reasons")
    candidates = {pair_key(offer.source.text, offer.candidate.text) for offer in offers(sources)}
    unknown = sum(pair not in candidates for pair in read.grades)
    judgement = judge(sources, read.grades)
    if judgement.pairs and all(verdict == Verdict() for verdict in judgement.verdicts.values()):
        if unknown == len(read.grades):
            raise InputError(
                f"--scores grades none of the {len(candidates)} candidate pairs, but {unknown} others; grade "
                "these with `angle-data llm-score --pairs RUN/candidates.jsonl`"
            )
        raise InputError(
            "--scores grades no candidate that counts: nobody grades their own sentences, nor any that the "
            "gate drops; grade the other candidates, or grade with another model"
        )
    if judgement.verdicts and not judgement.used and labels == "graded":
        reasons = "; ".join(f"{grader} {verdict.reason}" for grader, verdict in judgement.verdicts.items())
        raise InputError(
            f"--labels graded has no grader to go by: {reasons}. Grade with another model or prompt, or "
            "choose --labels ordinal"
        )
    if unknown:
        log.info("%d of %d graded pairs are no candidates", unknown, len(read.grades))
    for remark in judgement.remarks:
        log.warning("%s", remark)
    return replace(judgement, read=read, unknown=unknown)


def judge(sources: Sequence[Source], grades: Grades) -> Judgement:
    """Judge each grader by the polarities that were asked for.

    It is used if it graded candidates of others with an area under the curve of at least 0.75, or fewer than
    20 of either polarity. It is also used if that area is low because of single annotators (`_sees`).
    Graders that graded one annotator alone are judged together.
    """
    if not grades:
        return Judgement({}, NO_GRADES, 0, 0)
    passed, _ = screen(sources)
    merged = merge(passed)
    items = make_items(join_near(merged), grades)
    families = share_families(items)
    by_family = {family: _verdict(items, families, family) for family in sorted(set(families.values()))}
    names = sorted({grader for row in grades.values() for grader in row})
    verdicts = {name: by_family[families[name]] if name in families else Verdict() for name in names}
    used = {name for name, verdict in verdicts.items() if verdict.reason is None}
    if len(used) < len(names):
        kept = ((pair, {name: row[name] for name in row if name in used}) for pair, row in grades.items())
        grades = {pair: row for pair, row in kept if row}
    graded = sum(bool(_grades_of(pair.offers, grades)) for pair in merged)
    return Judgement(verdicts, grades, graded, len(merged))


def make_items(pairs: Iterable[Merged], grades: Grades) -> list[Item]:
    """Return for each pair the claims about it and the grades of all its texts, each grader's averaged.

    Grades by a pair's own supporters do not count.
    """
    items = []
    for pair in pairs:
        claims = {
            Claim(
                offer.candidate.model, offer.candidate.polarity, f"{offer.source.key}\n{offer.candidate.key}"
            )
            for offer in pair.offers
        }
        found = _grades_of(pair.offers, grades)
        means = {grader: sum(values) / len(values) for grader, values in sorted(found.items())}
        items.append(Item(tuple(sorted(claims)), means))
    return items


def share_families(items: Sequence[Item]) -> dict[str, str]:
    """Return the name under which each grader is judged and learned.

    A grader that graded one annotator alone cannot be told apart from that annotator's errors, so all such
    graders share one name.
    """
    common: dict[str, set[str]] = {}  # annotators that offered every pair the grader graded
    annotators: set[str] = set()
    for item in items:
        names = {claim.annotator for claim in item.claims}
        annotators |= names
        for grader in item.grades:
            common.setdefault(grader, set(names)).intersection_update(names)
    lone = len(annotators) > 1
    return {grader: _LONE if lone and names else grader for grader, names in sorted(common.items())}


def rank_shares(items: Iterable[Item]) -> dict[str, dict[float, float]]:
    """Return, for each grader, the share of its grades below each of its grades, half of the equal included.

    One grader's 3.5 is another's 1.2: only ranks among a grader's own grades can be compared.
    """
    grades: dict[str, list[float]] = {}
    for item in items:
        for grader, grade in item.grades.items():
            grades.setdefault(grader, []).append(grade)
    shares = {}
    for grader, values in sorted(grades.items()):
        values.sort()
        shares[grader] = {
            value: (bisect_left(values, value) + bisect_right(values, value)) / 2 / len(values)
            for value in set(values)
        }
    return shares


def area_under_curve(synonyms: Sequence[float], antonyms: Sequence[float]) -> float | None:
    """Return how often a synonym's grade is above an antonym's, ties counting half; None without both."""
    if not synonyms or not antonyms:
        return None
    low = sorted(antonyms)
    wins = sum(bisect_left(low, grade) + bisect_right(low, grade) for grade in synonyms)
    return wins / 2 / len(synonyms) / len(low)


def _grades_of(offers: Sequence[Offer], grades: Grades) -> dict[str, list[float]]:
    models = {offer.candidate.model for offer in offers}
    found: dict[str, list[float]] = {}
    for key in sorted({pair_key(offer.source.text, offer.candidate.text) for offer in offers}):
        for grader, grade in peer_grades(grades, key, models).items():
            found.setdefault(grader, []).append(grade)
    return found


def _verdict(items: Sequence[Item], families: Mapping[str, str], family: str) -> Verdict:
    """Return the verdict on the graders of one family; pairs with contradicting claims say nothing."""
    shares = rank_shares(items)
    sides: _Sides = {"synonym": [], "antonym": []}
    single: dict[str, _Sides] = {}
    for item in items:
        polarities = {claim.polarity for claim in item.claims}
        if len(polarities) > 1:
            continue
        (polarity,) = polarities
        values = [
            shares[grader][grade] for grader, grade in item.grades.items() if families[grader] == family
        ]
        sides[polarity] += values
        for annotator in {claim.annotator for claim in item.claims}:
            single.setdefault(annotator, {"synonym": [], "antonym": []})[polarity] += values
    known = {name: own for name, own in sorted(single.items()) if _is_known(own)}
    areas = {
        name: area
        for name, own in known.items()
        if (area := area_under_curve(own["synonym"], own["antonym"])) is not None
    }
    auc = area_under_curve(sides["synonym"], sides["antonym"])
    if auc is None or auc >= _LEAST_AUC or not _is_known(sides) or _sees(areas, known):
        return Verdict(auc, areas, None)
    shown = f", {_shown(areas)}" if len(areas) > 1 else ""
    shown = f"(area under the curve {auc:.2f}{shown}, {_LEAST_AUC:g} is needed)"
    if auc <= 1 - _LEAST_AUC:
        what = f"grades antonyms above synonyms {shown}: either grades or polarities are swapped"
    else:
        what = f"hardly tells synonyms from antonyms {shown}"
    return Verdict(auc, areas, what)


def _is_known(sides: _Sides) -> bool:
    return min(map(len, sides.values())) >= _LEAST_GRADES


def _sees(areas: Mapping[str, float], known: Mapping[str, _Sides]) -> bool:
    """Return whether single annotators, and not the grader, make it look weak.

    On an annotator whose polarities are all swapped a good grader has an area near 0, so the distance from
    1/2 shows what it sees: the median must be 0.25 or more. But it must side with as many annotators as it
    contradicts, and favour nobody's style (`_bias`), however well it ranks the pairs of each.
    """
    if not areas or _bias(known) > _MOST_BIAS:
        return False
    sides = sum(area >= _LEAST_AUC for area in areas.values())
    against = sum(area <= 1 - _LEAST_AUC for area in areas.values())
    return median(max(area, 1 - area) for area in areas.values()) >= _LEAST_AUC and sides >= against


def _bias(known: Mapping[str, _Sides]) -> float:
    """Return how far one annotator's grades lie above or below the others', for both polarities alike.

    The probability that a grade of its pairs exceeds one of the others' pairs of the same polarity, the mean
    of the two polarities; its distance from 1/2, of the annotator with the largest. Swapped polarities lower
    the grades of its synonyms and raise those of its antonyms, which cancels out in that mean.
    """
    largest = 0.0
    for annotator, sides in known.items():
        shares = []
        for polarity, values in sides.items():
            others = [x for name, found in known.items() if name != annotator for x in found[polarity]]
            if (share := area_under_curve(values, others)) is not None:
                shares.append(share)
        if shares:
            largest = max(largest, abs(sum(shares) / len(shares) - 0.5))
    return largest


def _shown(areas: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {area:.2f}" for name, area in areas.items())
