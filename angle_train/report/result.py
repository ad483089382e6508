"""What a training run gave, its report as data (report.json), and what that says in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.jsonl import write_json
from angle_train.data.leaks import Leak
from angle_train.data.pairs import PairSet
from angle_train.data.splits import RunData
from angle_train.evaluation.compare import Result, View, compare
from angle_train.recipe import Recipe
from angle_train.report.right_shares import (
    RightShares,
    misled_sentence,
    power_sentences,
    shares_of,
    shares_sentence,
)
from angle_train.report.text import advice, compared_line, short_name, tone
from angle_train.train.arguments import resolve_precision
from angle_train.train.choosing import TOO_FEW, Columns
from angle_train.train.processes import process_count
from angle_train.train.run_directory import read_own
from angle_train.train.trainer import Training

BACKBONE, TUNED, NOT_SAVED = "backbone", "tuned", "tuned, not saved"
_MANY_LEAKS = 0.01  # of the pairs: with more, a set cannot decide


@dataclass(frozen=True, slots=True)
class Trained:
    """The outcome of training.

    Attributes:
        training: The log of the training.
        sets: The measured sets with their roles, dev sets first.
        before: Similarities of the sets under the untouched backbone.
        after: The same under the tuned weights.
        dev_before: The backbone's mean Spearman on the pairs that chose the weights.
        dev_after: That of the tuned weights.
        details: Further findings, see `FitReport`.
    """

    training: Training
    sets: list[tuple[str, PairSet]]
    before: Columns
    after: Columns
    dev_before: float
    dev_after: float
    details: dict[str, Any]

    def similarities(self, tuned: str | None) -> list[dict[str, NDArray[np.float64]]]:
        """Return the similarities of each set by model, the tuned weights under that name, if it is one."""
        columns = zip(self.before, self.after, strict=True)
        return [{BACKBONE: old} | ({tuned: new} if tuned else {}) for old, new in columns]

    def views(self, tuned: str | None = TUNED) -> list[View]:
        """Return the sets that the report looks at: the test sets, or all sets where there is no test set."""
        tested = any(role == "test" for role, _ in self.sets)
        return [
            View(pairs, similarity)
            for (role, pairs), similarity in zip(self.sets, self.similarities(tuned), strict=True)
            if role == "test" or not tested
        ]


@dataclass(frozen=True, slots=True)
class DataNote:
    """One set of pairs of a run: role (train, human, keep, dev, test), size, score scale and fingerprint."""

    role: str
    name: str
    pairs: int
    scale: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FitReport:
    """What one run did and found. Holds no times, so the same run writes the same bytes.

    Attributes:
        backbone: What was tuned: a hub id, or name and content of a directory, see
            `model.load.backbone_identity`.
        recipe: The recipe as run, by section.
        device: What it ran on, `cpu` or `cuda`.
        precision: What it computed in.
        data: The sets of pairs.
        curve: Evaluations on the dev sets as dictionaries, see `train.watch.Point`; the first is step 0.
        steps: Optimiser steps taken.
        planned_steps: Optimiser steps in the recipe.
        best_step: The step whose weights were chosen, 0 for the backbone.
        kept: Which weights were saved, `tuned` or `backbone`: these if no checkpoint surely ranked the pairs
            better, or if `--require-better` was given and the tuned weights are not `shown_better`.
        dev_before: Mean Spearman of the backbone on the dev sets.
        dev_after: The same of the tuned weights.
        results: Word overlap, backbone and tuned model on every dev and test set. Where the backbone was
            kept, the tuned one is `tuned, not saved`; where nothing was trained on all pairs, it is missing.
        notes: Warnings of the run.
        details: Further findings by topic: `leaks` (see `data.splits.Leak`), `dropped` training pairs by
            reason, `choice` (see `train.choosing.Choice`), `folds` (see `train.folds.CrossFit`), `merge` (the
            share of the backbone, and the dev score of each share that was tried), `lengths` (tokens a text),
            `processes`, `comparisons` (the `right_shares.RightShares` of each set shown), `base_model` (the
            backbone's id on the hub, where it has one), `command` (which repeats the run), `reason` (why
            that recipe, where the pairs said it).
            Where `folds` chose the backbone no run on all pairs was made: 0 steps.
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
        tuned = [result for result in self.results if result.model in (TUNED, NOT_SAVED)]
        return [result for result in tuned if result.role == "test"] or tuned

    @property
    def compared(self) -> list[Result]:
        """The results whose differences the verdict rests on."""
        return [result for result in self.judged if result.difference]

    @property
    def shown_better(self) -> bool:
        """Whether the tuned weights are better than the backbone on some judged set, and worse on none.

        Sets of pairs that were learned from, or chosen by, show nothing.
        """
        return tone(self.compared) == "good" and not self._learned

    @property
    def doubted(self) -> bool:
        """Whether the tuned weights are saved although they are not `shown_better`."""
        return self.kept == TUNED and not self.shown_better

    @property
    def _judges(self) -> str:
        if self.judged and self.judged[0].role == "test":
            return "test pairs"
        return "pairs held out in turn" if "folds" in self.details else "dev pairs"

    def with_backbone(self) -> Self:
        """Return the report of the same run where `--require-better` saved the backbone instead."""
        details = dict(self.details)
        if "command" in details:
            details["command"] += " --require-better"
        results = [replace(r, model=NOT_SAVED) if r.model == TUNED else r for r in self.results]
        return replace(self, kept="backbone", results=results, details=details)

    @property
    def leaks(self) -> list[Leak]:
        """The leaks of pairs or texts into the sets that the verdict rests on."""
        judged = {(result.role, result.pairs) for result in self.judged}
        leaks = [Leak(**leak) for leak in self.details.get("leaks", ())]
        return [leak for leak in leaks if (leak.role, leak.name) in judged]

    @property
    def tuned_name(self) -> str | None:
        """What the results call the tuned weights; None where nothing was trained."""
        if self.kept == TUNED:
            return TUNED
        return NOT_SAVED if self.steps else None

    @property
    def base(self) -> str:
        """What readers are to call the backbone, without owner or digest."""
        return short_name(self.details.get("base_model") or self.backbone)

    def headline(self) -> str:
        """Return the conclusion with the shares that the saved model has, in words for everybody."""
        found = {result.gain.verdict for result in self.compared}
        if self.kept == BACKBONE:
            head = "Not shown to be better, so the backbone stays"
        elif {"better", "worse"} <= found:
            head = "Better on some pairs, worse on others"
        elif "better" in found:
            head = "Seemingly better" if self._flattered else "Better"
        elif "worse" in found:
            head = "Worse"
        else:
            head = "Not shown to be better"
        shares = self.right_shares
        return f"{head}: {shares_sentence(shares, *self._told)}." if shares else f"{head}."

    @property
    def right_shares(self) -> list[RightShares]:
        """The shares of comparisons that come out right, of every set that is shown."""
        return [RightShares(**found) for found in self.details.get("comparisons", ())]

    def evidence(self) -> list[str]:
        """Return what stands behind it: words that mislead, what the sample can show, shared texts."""
        shared = [
            f"{100 * leak.texts:.0f} % of the texts of {leak.name} are in {leak.origin} pairs too"
            + ("" if leak.pairs else ", with other partners")
            for leak in self.leaks
            if leak.texts
        ]
        misled = misled_sentence(self.right_shares, *self._told)
        return [*([misled] if misled else []), *power_sentences(self.judged), *shared]

    @property
    def _told(self) -> tuple[str, str, str]:
        """The model that was saved, the one to compare it with, and what to call that."""
        return (BACKBONE, "", "") if self.kept == BACKBONE else (TUNED, BACKBONE, "before")

    def advice(self) -> str:
        """Return the conclusion in one sentence: use the tuned model, or keep the backbone and why."""
        if self.kept == BACKBONE and self._chosen:
            return (
                f"The {self._judges} {self._doubt} the tuned model to be better, so the untouched backbone "
                "was saved, as --require-better asks."
            )
        if self.kept == BACKBONE:
            return self._why_kept()
        if not self.compared:
            return "Nothing was compared with the backbone."
        return advice(self.compared, "the backbone", seen=self._flattered)

    @property
    def _flattered(self) -> bool:
        """Whether the tuned weights learned from the pairs of the verdict, or were chosen by them."""
        chosen_by = all(result.role == "dev" for result in self.judged)
        return chosen_by or self._learned

    @property
    def _learned(self) -> bool:
        return any(leak.pairs > _MANY_LEAKS * leak.count for leak in self.leaks)

    @property
    def _doubt(self) -> str:
        good = tone(self.compared) == "good"
        return "hold too many training or dev pairs to show" if good else "do not show"

    def verdict(self) -> list[str]:
        """Return the verdict in sentences: the advice, which model is saved if in doubt, then the sets.

        Where no checkpoint was chosen there is the advice alone: no saved model has the other figures.
        """
        lines = [self.advice()]
        if self.kept == BACKBONE and not self._chosen:
            return lines
        lines += map(compared_line, self.compared)
        if self.kept == BACKBONE:
            return lines
        if not self.shown_better:
            lines.insert(
                1,
                f"the saved model is the tuned one, and the {self._judges} {self._doubt} it to be better; "
                "--require-better saves the backbone instead",
            )
        if all(result.role == "dev" for result in self.judged):
            chose = "the number of steps" if "folds" in self.details else "the checkpoint"
            lines.append(f"these pairs also chose {chose}, so the gain is flattered; give --test pairs")
        return lines + [f"{leak.sentence()}, which flatters the model" for leak in self.leaks if leak.pairs]

    @property
    def _chosen(self) -> bool:
        """Whether the pairs that choose preferred the tuned weights."""
        return bool(self.details["choice"]["chosen"])

    def _why_kept(self) -> str:
        choice = self.details["choice"]
        pairs = "held-out pairs" if "folds" in self.details else "dev pairs"
        figures = f"{100 * choice['best']:.1f} at best, backbone {100 * choice['simplest']:.1f}"
        end = "so the untouched backbone was saved."
        if choice["confidence"] is None:
            known = f"Whether tuning helped is not known: the {pairs} {TOO_FEW}"
            return f"{known}. The untouched backbone was saved."
        if choice["best"] <= 0:  # however bad the backbone is
            return (
                f"Tuning did not help: the tuned weights rank the {pairs} no better than chance would "
                f"({figures}), {end}"
            )
        several = choice["compared"] > 1
        none = (
            f"of {choice['compared']} compared, none ranked" if several else "the tuned weights did not rank"
        )
        return (
            f"Tuning did not surely help: {none} the {pairs} better than the backbone by more than chance "
            f"explains (confidence {choice['confidence']:.2f}; {figures}), {end}"
        )

    def write(self, path: Path) -> None:
        """Write the report as JSON, atomically."""
        content = {"format": 1} | asdict(replace(self, results=[]))
        content["results"] = [result.to_dict() for result in self.results]
        content |= {"headline": self.headline(), "verdict": self.verdict()}
        write_json(path, content, indent=1)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; if that is damaged, raise an InputError."""
        return read_own(path, cls, "--overwrite runs it again")


def make_report(
    recipe: Recipe,
    data: RunData,
    trained: Trained,
    backbone: str,
    details: Mapping[str, Any],
    model: SentenceTransformer,
) -> FitReport:
    """Return the report of a run of this recipe, as run.

    `backbone` is its `model.load.backbone_identity`, `details` are further findings (see `FitReport`), with
    `leaks` among them, and `model`, what was trained, says the device.
    """
    training = trained.training
    notes = [Leak(**leak).sentence() for leak in details["leaks"] if leak["pairs"]]
    better = trained.details["choice"]["chosen"] > 0
    also = (("human", data.human), ("keep", data.kept))
    columns = trained.similarities(TUNED if better else NOT_SAVED if training.steps else None)
    return FitReport(
        backbone=backbone,
        recipe=json.loads(json.dumps(asdict(recipe))),  # as it is read back: lists for tuples
        device=model.device.type,
        precision=resolve_precision(recipe.training.precision, model.device),
        data=[
            DataNote(role, pairs.name, len(pairs), pairs.scale, pairs.sha256())
            for role, pairs in [("train", data.train), *also, *data.evaluated]
            if pairs is not None
        ],
        curve=[{"step": 0, "epoch": 0.0, "dev": trained.dev_before}, *training.curve],
        steps=training.steps,
        planned_steps=training.planned_steps,
        best_step=training.best_step,
        kept="tuned" if better else "backbone",
        dev_before=trained.dev_before,
        dev_after=trained.dev_after,
        results=[
            result
            for (role, pairs), column in zip(trained.sets, columns, strict=True)
            for result in compare(pairs, column, baseline=BACKBONE, role=role)
        ],
        notes=notes,
        details={
            **details,
            **trained.details,
            "dropped": data.dropped,
            "processes": process_count(),
            "comparisons": [asdict(shares_of(view)) for view in trained.views()],
        },
    )
