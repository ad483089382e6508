"""The report of one training run as data: written to report.json, read back, and put into words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from angle_data.jsonl import replace_file
from angle_train.data.leaks import Leak
from angle_train.data.pairs import PairSet
from angle_train.evaluate.compare import Result
from angle_train.recipe import AUTO
from angle_train.report.advice import Compared, advice
from angle_train.report.insight import score_counts
from angle_train.report.text import verdict_sentence

BACKBONE, TUNED = "backbone", "tuned"
_MANY_LEAKS = 0.01  # of the pairs: from then on they cannot decide
_NOT_SAVED = "best checkpoint, not saved"
NAMING_NOTES = (
    "the results called tuned are those of the best checkpoint, which was not saved",
    "no run on all pairs was made, and the results called tuned are those of the model as it would start",
)
"""Notes for readers of report.json where the backbone was kept; elsewhere `FitReport.shown` has the names."""
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
        results: Word overlap, backbone and tuned model on every dev and test set. Where the backbone was
            kept, `tuned` is what was not saved: see `shown`.
        notes: Warnings of the run.
        details: What else was found out, by topic: `leaks` (see `leaks.Leak`), `dropped` training pairs by
            reason, `folds` (see `crossfit.CrossFit`), `merge` (the share of the backbone, and the dev score
            of each share that was tried), `lengths` (tokens per text), `processes`, `analysis` (for each
            set of pairs that is shown, model -> what `insight.space_figures` returns), `command` (which
            repeats the run). Where `folds` chose the backbone no run on all pairs was made: 0 steps.
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

    @property
    def leaks(self) -> list[Leak]:
        """What the sets that the verdict rests on share with what was learned from, where that is pairs."""
        judged = {(result.role, result.pairs) for result in self.judged}
        leaks = [Leak(**leak) for leak in self.details.get("leaks", ())]
        return [leak for leak in leaks if leak.pairs and (leak.role, leak.name) in judged]

    @property
    def tuned_name(self) -> str | None:
        """What readers are to call the tuned weights; none where there are none, as nothing was trained."""
        if self.kept == TUNED:
            return TUNED
        return _NOT_SAVED if self.steps else None

    def shown(self) -> list[Result]:
        """Return the results for readers: what was not saved is called that, what is not there left out."""
        name = self.tuned_name
        return [
            replace(result, model=name) if result.model == TUNED and name else result
            for result in self.results
            if name or result.model != TUNED
        ]

    def advice(self) -> str:
        """Return the conclusion in a manager's words: use the tuned model, or keep the backbone."""
        if self.kept == BACKBONE:
            pairs = "dev pairs" if self.steps else "pairs held out in turn"
            return f"No checkpoint ranked the {pairs} better: keep the backbone."
        if not self.compared:
            return "Nothing was compared with the backbone."
        chosen_by = all(result.role == "dev" for result in self.judged)
        learned_from = any(leak.pairs > _MANY_LEAKS * leak.count for leak in self.leaks)
        return advice(self.compared, "the backbone", seen=chosen_by or learned_from)

    def verdict(self) -> list[str]:
        """Return the verdict in sentences: the conclusion first, then one line for each set of pairs.

        Where the backbone was kept there is the conclusion alone: the other figures are of no saved model.
        """
        if self.kept == BACKBONE:
            return [self._why_kept()]
        differences = [(result.pairs, result.difference) for result in self.judged if result.difference]
        found = {difference.verdict for _, difference in differences}
        if "better" not in found and "worse" in found:
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
            chose = "the number of steps" if "folds" in self.details else "the checkpoint"
            lines.append(f"these pairs also chose {chose}, so the gain is flattered; give --test pairs")
        lines += [f"{leak.sentence()}, which flatters the model" for leak in self.leaks]
        return [head, *lines]

    def _why_kept(self) -> str:
        folds, merge = self.details.get("folds"), self.details.get("merge")
        share = (merge or folds or {}).get("share", 0.0)
        mixed = f" with {100 * share:g} % of it mixed in" if share else ""
        if folds and not self.steps:
            # The curve is that of one share of the backbone; where several were tried it is without any.
            best = max((point["dev"] for point in self.curve[1:]), default=self.dev_before)
            pairs, tried = "held-out parts", self.recipe.get("training", {}).get("average_with_backbone")
            mixed = " with nothing mixed in" if tried == AUTO else mixed
        else:
            best, pairs = self.dev_after, "dev pairs"
        than = "chance" if best > self.dev_before else "the backbone"
        return (
            f"Tuning did not help: no checkpoint ranked the {pairs} better than {than} "
            f"({100 * best:.1f} at best{mixed}, backbone {100 * self.dev_before:.1f}), "
            "so the untouched backbone was saved."
        )

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
