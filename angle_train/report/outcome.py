"""What a training run gave, and the report made of it.

Knows neither the run's directory nor how it was trained.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_train.data.leaks import Leak
from angle_train.data.pairs import PairSet
from angle_train.data.splits import RunData
from angle_train.evaluate.compare import Sampled, View, compare, sampled_embeddings
from angle_train.evaluate.similarity import Embedder, check_finite, pair_similarity, spearman
from angle_train.recipe import Recipe
from angle_train.report.sections import analyses_of
from angle_train.report.summary import BACKBONE, NAMING_NOTES, TUNED, DataNote, FitReport
from angle_train.train.arguments import resolve_precision
from angle_train.train.processes import process_count
from angle_train.train.trainer import Training

log = logging.getLogger("angle.fit")

Columns = list[NDArray[np.float64]]
"""Similarities of pairs, one column for each set."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one model makes of sets of pairs.

    Attributes:
        columns: Similarities of the pairs, set by set.
        sampled: Embeddings of the pairs that the report's analyses look at, set by set; None where the
            pairs of a set were not all measured by one model.
    """

    columns: Columns
    sampled: list[Sampled | None]

    def after(self, columns: Columns) -> Measured:
        """Return the same with sets before the others that were measured elsewhere."""
        return Measured([*columns, *self.columns], [*(None for _ in columns), *self.sampled])


@dataclass(frozen=True, slots=True)
class Trained:
    """What training gave.

    Attributes:
        training: Its log.
        sets: The measured sets with their roles, dev sets first.
        before: What the untouched backbone makes of them.
        after: The same under the tuned weights.
        dev_before: The backbone's mean Spearman on what chose the weights.
        dev_after: That of the tuned weights.
        details: What else was found out, for the report.
    """

    training: Training
    sets: list[tuple[str, PairSet]]
    before: Measured
    after: Measured
    dev_before: float
    dev_after: float
    details: dict[str, Any]

    def views(self) -> list[View]:
        """Return the sets for the report: those of the tests, or all where there is none."""
        tested = any(role == "test" for role, _ in self.sets)
        found = []
        for number, (role, pairs) in enumerate(self.sets):
            if tested and role != "test":
                continue
            both = {BACKBONE: self.before, TUNED: self.after}
            similarity = {model: measured.columns[number] for model, measured in both.items()}
            sampled = {model: measured.sampled[number] for model, measured in both.items()}
            embeddings = {model: rows for model, rows in sampled.items() if rows is not None}
            found.append(View(pairs.name, pairs.text1, pairs.text2, pairs.score, similarity, embeddings))
        return found


def measure(name: str, model: SentenceTransformer, sets: Sequence[tuple[str, PairSet]]) -> Measured:
    """Return the similarities of the pairs of every set under `model`, and some of the embeddings.

    Raises:
        InputError: Some are not numbers; calls the model by `name`.
    """
    found = Measured([], [])
    embed = Embedder(model, name, finite=False)
    for _, pairs in sets:
        found.columns.append(pair_similarity(pairs, embed))
        check_finite(found.columns[-1], pairs, name)
        found.sampled.append(sampled_embeddings(pairs, embed))
    return found


def spearmans(dev: Sequence[PairSet], columns: Columns) -> list[float]:
    """Return the Spearman on each dev set; their columns stand first."""
    return [spearman(pairs.score, column) for pairs, column in zip(dev, columns, strict=False)]


def mean_spearman(dev: Sequence[PairSet], columns: Columns) -> float:
    """Return the mean over the dev sets of `spearmans`."""
    scores = spearmans(dev, columns)
    return sum(scores) / len(scores)


def make_report(
    recipe: Recipe,
    data: RunData,
    trained: Trained,
    backbone: str,
    details: Mapping[str, Any],
    model: SentenceTransformer,
) -> FitReport:
    """Return the report of a run.

    Args:
        recipe: As run.
        data: The pairs.
        trained: What training gave.
        backbone: What was tuned, see `backbones.backbone_identity`.
        details: What was found out besides; `leaks` must be among it.
        model: What was trained, for the device.
    """
    training = trained.training
    notes = [Leak(**leak).sentence() for leak in details["leaks"] if leak["pairs"]]
    texts, total = trained.details.get("folds", {}).get("shared_texts", (0, 0))
    if texts:
        notes.append(
            f"{texts} of the {total} texts of the human-graded pairs are in several of the parts that were "
            "held out in turn: the dev scores are flattered"
        )
    # What ranks no better than chance is not worth saving, even where the backbone is worse: a model that
    # gives all texts one embedding has 0.
    better = trained.dev_after > max(trained.dev_before, 0.0)
    kept: Literal["tuned", "backbone"] = "tuned" if better else "backbone"
    if kept == BACKBONE:
        notes.append(NAMING_NOTES[0 if training.steps else 1])
    if training.equal_batches:
        notes.append(f"{training.equal_batches} batches had equal scores throughout and taught no ranking")
        log.warning("warning: %s", notes[-1])
    results = [
        result
        for (role, pairs), old, new in zip(
            trained.sets, trained.before.columns, trained.after.columns, strict=True
        )
        for result in compare(pairs, {BACKBONE: old, TUNED: new}, baseline=BACKBONE, role=role)
    ]
    start = {"step": 0, "epoch": 0.0, "dev": trained.dev_before, "terms": {}}
    return FitReport(
        backbone=backbone,
        recipe=json.loads(json.dumps(asdict(recipe))),  # as it is read back: lists for tuples
        device=model.device.type,
        precision=resolve_precision(recipe.training.precision, model.device),
        data=[DataNote.of(role, pairs) for role, pairs in _sets_used(data)],
        curve=[start, *map(asdict, training.curve)],
        steps=training.steps,
        planned_steps=training.planned_steps,
        best_step=training.best_step,
        kept=kept,
        dev_before=trained.dev_before,
        dev_after=trained.dev_after,
        results=results,
        notes=notes,
        details={
            **details,
            **trained.details,
            "dropped": data.dropped,
            "processes": process_count(),
            "analysis": [{"pairs": view.name, "models": analyses_of(view)} for view in trained.views()],
        },
    )


def _sets_used(data: RunData) -> list[tuple[str, PairSet]]:
    human = [("human", data.human)] if data.human is not None else []
    return [("train", data.train), *human, *data.evaluated]
