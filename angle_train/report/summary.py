"""The report of one training run as data: written to report.json, read back, and put into words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from angle_data.jsonl import replace_file
from angle_train.evaluate.compare import Result
from angle_train.pairs import PairSet
from angle_train.report.advice import Compared, advice
from angle_train.report.insight import score_counts
from angle_train.report.table import verdict_sentence

__all__ = ["BACKBONE", "TUNED", "DataNote", "FitReport"]

BACKBONE, TUNED = "backbone", "tuned"
_DERIVED = ("format", "verdict", "advice")


@dataclass(frozen=True, slots=True)
class DataNote:
    """One set of pairs that took part: its role (train, dev, test), size, score scale and fingerprint.

    `scores` says how often each gold score occurs, see `insight.score_counts`.
    """

    role: str
    name: str
    pairs: int
    scale: str
    sha256: str
    scores: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, role: str, pairs: PairSet) -> Self:
        """Describe a set of pairs."""
        return cls(role, pairs.name, len(pairs), pairs.scale, pairs.sha256(), score_counts(pairs.score))


@dataclass(frozen=True, slots=True)
class FitReport:
    """What one run did and found. Holds no times, so the same run writes the same bytes.

    Attributes:
        backbone: What was tuned: a hub id, or name and content of a directory, see
            `backbones.backbone_identity`.
        recipe: The recipe as run, by section.
        device: What it ran on, `cpu` or `cuda`.
        precision: What it computed in.
        data: The sets of pairs.
        curve: Evaluations on the dev sets as dictionaries, see `monitor.Evaluation`; the first is step 0.
        steps: Optimiser steps taken.
        planned_steps: Optimiser steps in the recipe.
        best_step: The step whose weights were best on the dev sets.
        kept: Which weights were saved, `tuned` or `backbone`.
        dev_before: Mean Spearman of the backbone on the dev sets.
        dev_after: The same of the tuned weights.
        results: Word overlap, backbone and tuned model on every dev and test set.
        notes: Warnings of the run.
        details: What else was found out, by topic: `leaks` (see `leaks.Leak`), `dropped` training pairs by
            reason, `folds` (see `crossfit.CrossFit`), `merge` (the share of the backbone, and the dev score
            of each share that was tried), `lengths` (tokens per text), `processes`, `analysis` (for each
            set of pairs that is shown, model -> what `insight.space_figures` returns), `command` (which
            repeats the run).
    """

    backbone: str
    recipe: dict[str, Any]
    device: str
    precision: str
    data: list[DataNote]
    curve: list[dict[str, Any]]
    steps: int
    planned_steps: int
    best_step: int
    kept: Literal["tuned", "backbone"]
    dev_before: float
    dev_after: float
    results: list[Result]
    notes: list[str]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def judged(self) -> list[Result]:
        """The tuned model's results that the verdict rests on: the test sets', or else the dev sets'."""
        tuned = [result for result in self.results if result.model == TUNED]
        return [result for result in tuned if result.role == "test"] or tuned

    @property
    def compared(self) -> list[Compared]:
        """The differences that the verdict rests on."""
        return [
            Compared(result.pairs, f"{result.count:,} pairs", result.difference)
            for result in self.judged
            if result.difference
        ]

    def advice(self) -> str:
        """Return the conclusion in a manager's words: use the tuned model, or keep the backbone."""
        if self.kept == BACKBONE or not self.compared:
            return "No checkpoint was better than the backbone: keep the backbone."
        return advice(self.compared, "the backbone", seen=all(r.role == "dev" for r in self.judged))

    def verdict(self) -> list[str]:
        """Return the verdict in sentences: the conclusion first, then one line for each set of pairs."""
        differences = [(result.pairs, result.difference) for result in self.judged if result.difference]
        found = {difference.verdict for _, difference in differences}
        if self.kept == BACKBONE:
            head = (
                "Tuning did not help: no checkpoint ranked the dev pairs better than the backbone "
                f"({100 * self.dev_after:.1f} at best, backbone {100 * self.dev_before:.1f}), "
                "so the untouched backbone was saved."
            )
        elif "better" not in found and "worse" in found:
            head = "Tuning did not help: the tuned model is reliably worse on some pairs and better on none."
        elif "better" not in found:
            head = "Tuning did not help: the tuned model is not reliably better on any set of pairs."
        elif "worse" in found:
            head = "Tuning helped on some pairs and hurt on others."
        elif found == {"better"}:
            head = "Tuning helped."
        else:
            head = "Tuning helped on some pairs and made no reliable difference on others."
        lines = [verdict_sentence(pairs, difference) for pairs, difference in differences]
        if all(result.role == "dev" for result in self.judged):
            lines.append("these pairs also chose the checkpoint, so the gain is flattered; give --test pairs")
        return [head, *lines]

    def write(self, path: Path) -> None:
        """Write the report as JSON, atomically."""
        content = asdict(replace(self, results=[]))
        content |= {"results": [r.to_dict() for r in self.results], "verdict": self.verdict()}
        content["advice"] = self.advice()
        with replace_file(path) as stream:
            json.dump({"format": 1} | content, stream, ensure_ascii=False, indent=1)
            stream.write("\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        content = json.loads(path.read_text(encoding="utf-8"))
        values = {name: value for name, value in content.items() if name not in _DERIVED}
        values["data"] = [DataNote(**row) for row in values["data"]]
        values["results"] = [Result.from_dict(row) for row in values["results"]]
        return cls(**values)
