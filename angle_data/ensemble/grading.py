"""The grades of one build: read and judged, what they cover, and what report and card say about them.

Grades that would change nothing, or that cannot be trusted where all rests on them, end the build. Knows
nothing about splits or files other than those of the grades.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.ensemble.judging import Judgement, judge
from angle_data.ensemble.labels import grade_choices
from angle_data.ensemble.scores import GradeSet, read_scores
from angle_data.ensemble.sources import Choice, Grades, Source, offers
from angle_data.errors import InputError
from angle_data.text import pair_key

log = logging.getLogger("angle.ensemble")


@dataclass(frozen=True, slots=True)
class Labelled:
    """How many kept pairs have a score by their grades, and how many an ordinal one for want of a grade."""

    graded: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Grading:
    """The grades that were `read`, the judgement on them, and how many graded pairs are no candidates."""

    read: GradeSet
    judgement: Judgement
    unknown: int

    @property
    def grades(self) -> Grades:
        """The grades of the graders that are used."""
        return self.judgement.grades

    def combine(self, kept: Sequence[Choice]) -> Mapping[tuple[str, str], float]:
        """Return the grade of each kept pair that has one, for `graded` labels; see `labels.grade_choices`.

        Raises:
            InputError: No kept pair has one.
        """
        combined = grade_choices(kept, self.grades)
        if not combined:
            raise InputError(
                f"--labels graded: none of the {len(kept)} pairs that are kept is graded ({self._share}); "
                "grade more candidates, or choose --labels ordinal"
            )
        return combined

    def notes(self, labelled: Labelled | None) -> list[str]:
        """Return a line for whatever the grades lack; `labelled` is None for labels other than `graded`."""
        notes = [f"{grader} {why}: its grades are not used" for grader, why in self.judgement.unused.items()]
        notes += [f"{annotator}: {what}" for annotator, what in self.judgement.odd.items()]
        if self.read.unfinished:
            notes.append(f"the grades are unfinished: {self.read.unfinished}")
        return [*notes, *self.gaps(labelled)]

    def gaps(self, labelled: Labelled | None) -> list[str]:
        """Return a line about the pairs that have no grade, if there are any and some have."""
        judgement, missing = self.judgement, labelled.ordinal if labelled else 0
        if not judgement.used or (judgement.graded == judgement.pairs and not missing):
            return []
        if labelled is None:
            return [self._share]
        kept = labelled.graded + missing
        return [f"{self._share}; {missing} of the {kept} pairs kept have the score of ordinal labels"]

    def report(self, details: Mapping[str, Any], labelled: Labelled | None) -> dict[str, Any]:
        """Return `details`, what the strategy said, with what `report.json` says about the grades."""
        if not self.read.grades:
            return dict(details)
        judgement, unfinished = self.judgement, self.read.unfinished
        tables = details.get("graders", {})
        graders = {
            grader: {
                "auc": None if verdict.auc is None else round(verdict.auc, 4),
                "auc_by_annotator": {name: round(area, 4) for name, area in verdict.annotators.items()},
                "used": verdict.used,
                **tables.get(grader, {}),
            }
            for grader, verdict in judgement.verdicts.items()
        }
        scores = {
            "rows": self.read.rows,
            "pairs": len(self.read.grades),
            "unknown_pairs": self.unknown,
            "candidate_pairs": judgement.pairs,
            "graded_pairs": judgement.graded,
            **({"labelled": {"graded": labelled.graded, "ordinal": labelled.ordinal}} if labelled else {}),
            **({"finished": False, "open": unfinished.open} if unfinished else {}),
            "sha256": self.read.digest,
        }
        return {**details, "graders": graders, "scores": scores}

    @property
    def _share(self) -> str:
        return f"graded {self.judgement.graded} of {self.judgement.pairs} candidate pairs"


def read_grading(paths: Sequence[Path], sources: Sequence[Source], *, labels: str) -> Grading:
    """Read and judge the grades in `paths` of the candidates of `sources`; warn of what is odd about them.

    That is a grader that is not used, and an annotator whose polarities the grades contradict.

    Raises:
        InputError: A path cannot be used, the grades are of none of the candidates, or `labels` is `graded`
            and no grader can be used.
    """
    read = read_scores(paths)
    if paths and not read.grades:
        raise InputError("--scores holds no grades; see rejected.jsonl in that folder for the reasons")
    candidates = {pair_key(offer.source.text, offer.candidate.text) for offer in offers(sources)}
    unknown = read.unknown(candidates)
    judgement = judge(sources, read.grades)
    if judgement.pairs and not any(verdict.graded for verdict in judgement.verdicts.values()):
        raise InputError(_no_overlap(read, unknown, len(candidates)))
    unused = judgement.unused
    if unused and not judgement.used and labels == "graded":
        reasons = "; ".join(f"{grader} {why}" for grader, why in unused.items())
        raise InputError(
            f"--labels graded has no grader to go by: {reasons}. Grade with another model or prompt, or "
            "choose --labels ordinal"
        )
    if unknown:
        log.info("%d of %d graded pairs are no candidates", unknown, len(read.grades))
    for grader, why in unused.items():
        log.warning("%s %s: its grades are not used", grader, why)
    for annotator, what in judgement.odd.items():
        log.warning("%s: %s", annotator, what)
    return Grading(read, judgement, unknown)


def _no_overlap(read: GradeSet, unknown: int, candidates: int) -> str:
    if unknown == len(read.grades):
        return (
            f"--scores grades none of the {candidates} candidate pairs, but {unknown} others; grade these "
            "with `angle-data llm-score --pairs RUN/candidates.jsonl`"
        )
    return (
        "--scores grades no candidate that counts: nobody grades their own sentences, nor any that the gate "
        "drops; grade the other candidates, or grade with another model"
    )
