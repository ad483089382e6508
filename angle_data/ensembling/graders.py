"""Which graders are believed, what their grades cover, and what report and card say about them.

Graders are judged once, before anything is kept, by what was asked for. One that hardly tells synonyms (and
degrees 4 and 5) from antonyms (and degrees 1 and 2) is left out of strategy and labels alike: what such a
grader misses, a style of writing say, it misses in many pairs alike, which no model of chance errors allows
for. An annotator that errs cannot make a good grader look weak: what counts is the annotator whose sentences
the grader tells apart best, unless it has most of them the wrong way round.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_high
from typing import Any

from angle_data.ensembling.read import Grades, GradeSet, Offer, Run, read_scores
from angle_data.ensembling.screen import screen
from angle_data.ensembling.strategies import Merged, merge
from angle_data.errors import InputError
from angle_data.records import Polarity, same_model

log = logging.getLogger("angle.ensemble")

_LEAST_AUC = 0.75  # of a grader that is believed, against the polarities as they were asked for
_LEAST_GRADES = 20  # of either polarity, to know that a grader is too weak
_ALL = ""  # stands for all annotators together

_Sides = dict[Polarity, list[float]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a grader; `reason` says why it is not used, in words that follow its name.

    `auc` is how often it grades a pair offered as synonym above one offered as antonym, None without either;
    `annotators` holds that for each annotator of whom it has 20 grades of either polarity. `trusted`: it
    graded given pairs, and too few others for anything to show how well.
    """

    auc: float | None = None
    annotators: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = "graded none of the candidates, or only those it wrote itself"
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each grader, and the `grades` of those that are used.

    `pairs` counts the distinct candidate pairs that pass gate and topic check, `graded` those of them with a
    grade that is used. `read` is what the files held, `unknown` counts graded pairs that are no candidates.
    """

    verdicts: Mapping[str, Verdict]
    grades: Grades
    graded: int
    pairs: int
    read: GradeSet = GradeSet({}, {}, {}, {})  # noqa: RUF009 - nobody changes it
    unknown: int = 0

    @property
    def used(self) -> list[str]:
        """The graders that are used, sorted."""
        return [grader for grader, verdict in self.verdicts.items() if verdict.reason is None]

    def notes(self, labelled: Mapping[str, int]) -> list[str]:
        """Return what to know about the grades, a line each, for the terminal and the card.

        With labels that rest on grades `labelled` counts the kept pairs whose score rests on their own
        (`graded`) and on those of others (`expected`); else it is empty.
        """
        known = self.verdicts.items()
        lines = [
            f"{name} {verdict.reason}: its grades are not used" for name, verdict in known if verdict.reason
        ]
        lines += [
            f"{grader} graded given pairs and fewer than {_LEAST_GRADES} candidates of either polarity: "
            "its grades are believed, and nothing shows how good they are"
            for grader, verdict in known
            if verdict.trusted
        ]
        odd: dict[str, dict[str, float]] = {}
        for grader in self.used:
            for annotator, area in self.verdicts[grader].annotators.items():
                if area < _LEAST_AUC:
                    odd.setdefault(annotator, {})[grader] = area
        lines += [
            f"{annotator}: its polarities disagree with the grades (area under the curve: {_shown(areas)}). "
            "Read some of its candidates: replies may be swapped"
            for annotator, areas in sorted(odd.items())
        ]
        if expected := labelled.get("expected"):
            kept = sum(labelled.values())
            lines.append(
                f"{self.share}; {expected} of the {kept} pairs kept have the score expected of such pairs"
            )
        elif self.graded and self.graded < self.pairs:
            lines.append(self.share)
        return lines

    def report(self, labelled: Mapping[str, int]) -> dict[str, Any]:
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
        scores = {
            "rows": self.read.rows,
            "pairs": len(self.read.grades),
            "unknown_pairs": self.unknown,
            "candidate_pairs": self.pairs,
            "graded_pairs": self.graded,
            **({"labelled": dict(labelled)} if labelled else {}),
            **self.read.facts,
        }
        return {"graders": graders, "scores": scores}

    @property
    def share(self) -> str:
        """How many of the candidate pairs are graded, in words."""
        return f"graded {self.graded} of {self.pairs} candidate pairs"


def read_grading(
    paths: Sequence[Path], runs: Sequence[Run], offers: Sequence[Offer], given: Collection[tuple[str, str]]
) -> Judgement:
    """Read and judge the grades in `paths` of the candidates of `runs`, and of pairs whose keys are `given`.

    Raises:
        InputError: A path cannot be used, or the grades are of none of these pairs.
    """
    read = read_scores(paths)
    candidates = {offer.key for offer in offers}
    unknown = sum(pair not in candidates and pair not in given for pair in read.grades)
    own: dict[str, set[str]] = {}
    for grader, behind in read.models.items():
        own[grader] = {grader, *(run.model for run in runs if any(same_model(run.behind, b) for b in behind))}
        if others := ", ".join(sorted(own[grader] - {grader})):
            said = "warning: %s is one model with %s (%s): its grades of these sentences do not count"
            log.warning(said, grader, others, ", ".join(sorted(behind)))
    judgement = judge(offers, read.grades, given, own)
    if (judgement.pairs or given) and all(verdict == Verdict() for verdict in judgement.verdicts.values()):
        mend = "" if given else "name the file of the graded pairs with --pairs, or "
        raise InputError(
            f"--scores grades none of the {len(candidates)} candidate pairs, or only what does not count "
            f"({unknown} other pairs; nobody grades their own sentences, nor any that the gate drops); "
            f"{mend}grade candidates with `angle-data llm-score RUN`, and other pairs with `--pairs FILE`, "
            "by another model"
        )
    if unknown:
        said = "%d of %d graded pairs are no candidates%s"
        log.info(said, unknown, len(read.grades), " and not given" * bool(given))
    return replace(judgement, read=read, unknown=unknown)


def judge(
    offers: Sequence[Offer],
    grades: Grades,
    given: Collection[tuple[str, str]] = (),
    own: Mapping[str, Collection[str]] = {},
) -> Judgement:
    """Judge each grader by what was asked for; one that graded pairs that are `given` alone is believed.

    What a model says of its own sentences does not count; `own` has the names that each grader has as
    annotator, if that is not its name as grader alone.

    A grader is used if it graded candidates of others with an area under the curve of at least 0.75 for one
    of the annotators, and more than 0.25 for most of them, or fewer than 20 of either side. Pairs that
    annotators contradict each other about say nothing.
    """
    if not grades:
        return Judgement({}, grades, 0, 0)
    pairs = merge(screen(offers)[0])
    graders = sorted({grader for row in grades.values() for grader in row})
    authors: dict[tuple[str, str], set[str]] = {}
    for offer in offers:
        authors.setdefault(offer.key, set()).add(offer.candidate.model)
    counted = {
        pair: {name: row[name] for name in row if authors.get(pair, set()).isdisjoint(own.get(name, (name,)))}
        for pair, row in grades.items()
    }
    others = {name for key in given for name in counted.get(key, {})}
    verdicts = {name: _verdict(name, pairs, counted, given=name in others) for name in graders}
    used = {name for name, verdict in verdicts.items() if verdict.reason is None}
    kept = ((pair, {name: row[name] for name in row if name in used}) for pair, row in counted.items())
    believed = {pair: row for pair, row in kept if row}
    graded = sum(pair.key in believed for pair in pairs)
    return Judgement(verdicts, believed, graded, len(pairs))


def _verdict(grader: str, pairs: Sequence[Merged], grades: Grades, *, given: bool) -> Verdict:
    graded = [(pair, grades[pair.key][grader]) for pair in pairs if grader in grades.get(pair.key, {})]
    if not (graded or given):
        return Verdict()
    found: dict[str, _Sides] = {}
    for pair, grade in graded:
        side: Polarity = "synonym" if pair.synonyms else "antonym"
        between = all(offer.candidate.degree == 3 for offer in (*pair.synonyms, *pair.antonyms))
        if not between and not (pair.synonyms and pair.antonyms):
            for name in (_ALL, *pair.models):
                found.setdefault(name, {"synonym": [], "antonym": []})[side].append(grade)
    areas = {name: _area_under_curve(sides) for name, sides in sorted(found.items())}
    enough = {name for name, sides in found.items() if min(map(len, sides.values())) >= _LEAST_GRADES}
    auc = areas.get(_ALL)
    single = {name: area for name, area in areas.items() if name in enough - {_ALL} and area is not None}
    if auc is None or _ALL not in enough:
        return Verdict(auc, single, None, trusted=given)
    fair = list(single.values()) or [auc]
    if max(fair) >= _LEAST_AUC and median_high(fair) > 1 - _LEAST_AUC:
        return Verdict(auc, single, None)
    shown = f", {_shown(single)}" if len(single) > 1 else ""
    shown = f"(area under the curve {auc:.2f}{shown}, {_LEAST_AUC:g} is needed)"
    what = "grades antonyms above synonyms" if auc < 0.5 else "hardly tells synonyms from antonyms"
    return Verdict(auc, single, f"{what} {shown}")


def _area_under_curve(sides: _Sides) -> float | None:
    """Return how often a synonym's grade is above an antonym's, ties counting half; None without both."""
    synonyms, antonyms = sides["synonym"], sorted(sides["antonym"])
    if not synonyms or not antonyms:
        return None
    wins = sum(bisect_left(antonyms, grade) + bisect_right(antonyms, grade) for grade in synonyms)
    return wins / 2 / len(synonyms) / len(antonyms)


def _shown(areas: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {area:.2f}" for name, area in areas.items())
