"""What a training run gave, its report as data (report.json), and what that says in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_data.jsonl import write_json
from angle_train.data.judged import JudgedPairs
from angle_train.data.leaks import Leak
from angle_train.data.pairs import PairSet
from angle_train.data.splits import JUDGED, JUDGED_DEV, RunData
from angle_train.evaluation.compare import Comparison, Result, SearchView, View, compare
from angle_train.recipe import Recipe
from angle_train.report.right_shares import shares_of
from angle_train.report.text import short_name
from angle_train.report.verdict import (
    BACKBONE,
    BESIDE,
    TUNED,
    Verdict,
    judged_results,
    reach_verdict,
    takes_tuned,
)
from angle_train.training.arguments import resolve_precision
from angle_train.training.choosing import Columns
from angle_train.training.processes import process_count
from angle_train.training.run_directory import read_own
from angle_train.training.trainer import Training


@dataclass(frozen=True, slots=True)
class Trained:
    """The outcome of training.

    Attributes:
        training: The log of the training.
        sets: The measured sets with their roles, dev sets first.
        before: Similarities of the sets under the untouched backbone.
        after: The same under the tuned weights.
        dev_before: The backbone's mean figure on the pairs and searches that chose the weights.
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

    def similarities(self, tuned: str) -> list[dict[str, NDArray[np.float64]]]:
        """Return the similarities of each set by model, the tuned weights under that name."""
        columns = zip(self.before, self.after, strict=True)
        return [{BACKBONE: old, tuned: new} for old, new in columns]

    def changed_nothing(self) -> bool:
        """Whether tuning left all similarities as they were, to a millionth: the same model."""
        columns = list(zip(self.before, self.after, strict=True))
        return bool(columns) and all(np.allclose(old, new, rtol=0, atol=1e-6) for old, new in columns)

    def views(self, tuned: str = TUNED) -> list[View]:
        """Return the sets that the report looks at: the test sets, or all sets where there is no test set."""
        shown = "test" if any(role == "test" for role, _ in self.sets) else "dev"
        return [
            View(pairs, similarity)
            for (role, pairs), similarity in zip(self.sets, self.similarities(tuned), strict=True)
            if role == shown
        ]


@dataclass(frozen=True, slots=True)
class DataNote:
    """One set of pairs of a run: role, size, score scale and fingerprint.

    Roles are train, human, teacher (what it scored), keep, guard, dev, test, search (a test search: its
    queries), dev search, and what a language model alone graded: judged, beside test pairs, and judged dev.
    """

    role: str
    name: str
    pairs: int
    scale: str
    sha256: str


@dataclass(frozen=True)
class FitReport:
    """What one run did and found. Holds no times, so the same run writes the same bytes.

    Attributes:
        backbone: What was tuned: a hub id, or name and content of a directory, see
            `model.load.backbone_identity`.
        recipe: The recipe as run, by section.
        device: What it ran on, `cpu` or `cuda`.
        precision: What it computed in.
        data: The sets of pairs.
        curve: Evaluations on the dev sets as dictionaries, see `training.watch.Point`; the first is step 0.
        steps: Optimiser steps taken.
        planned_steps: Optimiser steps in the recipe.
        best_step: The step of the tuned weights, which the dev sets chose.
        kept: Which weights are the model that was saved, `tuned` or `backbone`, by the rule of
            `report.verdict`; where it is the backbone, the tuned ones are in `tuned/`.
        dev_before: Mean figure of the backbone on the dev sets: Spearman, or nDCG@10 of dev searches.
        dev_after: The same of the tuned weights.
        results: Word overlap, backbone and tuned model on every dev and test set. Where the backbone was
            kept, the tuned one is `tuned, in tuned/`.
        notes: Warnings of the run.
        details: Further findings by topic: `leaks` (see `data.splits.Leak`), `dropped` training pairs by
            reason, `choice` (see `training.choosing.Choice`), `guards` (what they lose, see
            `training.guards`), `distillation` (of how many texts), `folds` (see `training.folds.CrossFit`),
            `merge` (the share of the backbone that is mixed in), `lengths` (tokens a text), `same` (if tuning
            changed nothing),
            `processes`, `comparisons` (the `right_shares.RightShares` of each set shown), `base_model` (the
            backbone's id on the hub, where it has one) or `base_name` (what to call it, where its folder's
            name says nothing), `command` (which repeats the run), `reason` (why
            that recipe, where the pairs said it).
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
        return judged_results(self.results)

    @cached_property
    def verdict(self) -> Verdict:
        """What all of it comes to; made once, and read by every report."""
        return reach_verdict(self.kept, self.results, self.details)

    def searches(self, views: Sequence[SearchView]) -> list[SearchView]:
        """Return the searches to look at, with the name that the results have for the tuned weights.

        These are the test searches, or the dev searches where nothing else was reported on.
        """
        tested = any(result.role == "test" for result in self.results)
        return [
            replace(view, rankings={BACKBONE: view.rankings[BACKBONE], self.tuned_name: view.rankings[TUNED]})
            for view in views
            if view.role == "test" or not tested
        ]

    @property
    def tuned_name(self) -> str:
        """What the results call the tuned weights, by where they are."""
        return TUNED if self.kept == TUNED else BESIDE

    @property
    def base(self) -> str:
        """What readers are to call the backbone, without owner or digest."""
        return short_name(self.details.get("base_model") or self.details.get("base_name") or self.backbone)

    def write(self, path: Path) -> None:
        """Write the report as JSON, atomically."""
        content = {"format": 1} | asdict(replace(self, results=[]))
        content["results"] = [result.to_dict() for result in self.results]
        content |= {"headline": self.verdict.headline, "verdict": self.verdict.lines}
        write_json(path, content, indent=1)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; if that is damaged, raise an InputError."""
        return read_own(path, cls, "--overwrite runs it again")


def make_fit_report(
    recipe: Recipe,
    data: RunData,
    trained: Trained,
    backbone: str,
    details: Mapping[str, Any],
    model: SentenceTransformer,
    searches: Sequence[SearchView] = (),
) -> FitReport:
    """Return the report of a run of this recipe, as run.

    `backbone` is its `model.load.backbone_identity`, `details` are further findings (see `FitReport`), with
    `leaks` among them, and `model`, what was trained, says the device. `searches` are the dev and test
    searches, by the backbone and by the tuned weights.
    """
    training = trained.training
    notes = [Leak(**leak).sentence() for leak in details["leaks"] if leak["pairs"]]
    notes += [
        f"the scores of {pairs.name} are its teacher's, not people's" for pairs in data.dev if pairs.taught
    ]
    notes += [f"{view.searched.name}: {note}" for view in searches for note in view.searched.notes]
    results = _results(trained.sets, trained.similarities(TUNED), data.judged)
    compared = Comparison(BACKBONE)
    results += [result for view in searches for result in compared.on_search(view)]
    better = takes_tuned(results, {**details, **trained.details})
    if not better:
        results = [replace(r, model=BESIDE) if r.model == TUNED else r for r in results]
    also = (("human", data.human), ("teacher", data.taught), ("keep", data.kept))
    guards = [("guard", guard.pairs) for guard in data.guards if guard.kind == "labelled"]
    return FitReport(
        backbone=backbone,
        recipe=json.loads(json.dumps(asdict(recipe))),  # as it is read back: lists for tuples
        device=model.device.type,
        precision=resolve_precision(recipe.training.precision, model.device),
        data=[
            DataNote(role, pairs.name, len(pairs), pairs.scale, pairs.sha256())
            for role, pairs in [("train", data.train), *also, *data.evaluated, *guards]
            if pairs is not None
        ]
        + [_note_on(view) for view in searches],
        curve=[{"step": 0, "epoch": 0.0, "dev": trained.dev_before}, *training.curve],
        steps=training.steps,
        planned_steps=training.planned_steps,
        best_step=training.best_step,
        kept="tuned" if better else "backbone",
        dev_before=trained.dev_before,
        dev_after=trained.dev_after,
        results=results,
        notes=notes,
        details={
            **details,
            **trained.details,
            "dropped": data.dropped,
            **({"same": True} if trained.changed_nothing() else {}),
            "processes": process_count(),
            "comparisons": [asdict(shares_of(view)) for view in trained.views()],
        },
    )


def _note_on(view: SearchView) -> DataNote:
    role = "search" if view.role == "test" else "dev search"
    return DataNote(role, view.searched.name, len(view.searched), "", view.searched.sha256())


def _results(
    sets: Sequence[tuple[str, PairSet]],
    columns: Sequence[Mapping[str, NDArray[np.float64]]],
    judged: JudgedPairs | None,
) -> list[Result]:
    """Return the results on every dev and test set; those of a test set know what was `judged`."""
    rest = next((column for (role, _), column in zip(sets, columns, strict=True) if role == JUDGED), None)
    return [
        result
        for (role, pairs), column in zip(sets, columns, strict=True)
        if role not in (JUDGED, JUDGED_DEV)
        for result in compare(
            pairs,
            column,
            baseline=BACKBONE,
            role=role,
            judged=judged if role == "test" else None,
            rest=rest,
        )
    ]
