"""What a run finds out: the figures before training; then what tuning came to, and which weights were chosen.

The model itself holds the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from angle_train.data.pairs import PairSet
from angle_train.data.splits import RunData
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.search import Ranking
from angle_train.evaluation.similarity import mean_spearman
from angle_train.report.result import Trained
from angle_train.training.choosing import Choice, Columns
from angle_train.training.trainer import Training


class BaseFigures(NamedTuple):
    """What the base model makes of the texts of a run, before anything is trained.

    Attributes:
        columns: The similarities of every measured set, see `RunData.evaluated`.
        guards: Those of the guards' pairs.
        human: Those of the human-graded pairs, where parts of them choose the weights.
        kept: The embeddings (P, D) of the texts to keep, if there are any.
        found: What it finds in the test searches.
    """

    columns: Columns
    guards: Columns
    human: NDArray[np.float64] | None
    kept: NDArray[np.float32] | None
    found: Sequence[Ranking]


class HeldOut(NamedTuple):
    """Pairs that were held out in turn: their similarities under the base model and under tuned ones."""

    pairs: PairSet
    before: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TuningResult:
    """How training went and what was chosen; the model holds the weights, tuned ones even if the base won.

    Attributes:
        training: The log; its `best_step` is that of the tuned weights.
        choice: Why these, and whether the pairs that chose them show that they are better.
        findings: Further findings for the report, see `FitReport.details`.
        held_out: Where parts were held out in turn.
        known: What the chosen weights made of texts already; in the first process.
    """

    training: Training
    choice: Choice
    findings: dict[str, Any]
    held_out: HeldOut | None = None
    known: KnownVectors | None = None


def what_was_found(data: RunData, before: Columns, outcome: TuningResult, after: Columns) -> Trained:
    """Return the figures of a run before and after tuning."""
    choice = outcome.choice
    held_out = outcome.held_out
    details = outcome.findings
    if held_out is None:
        old, new = (mean_spearman(data.dev, columns) for columns in (before, after))
        return Trained(outcome.training, data.evaluated, before, after, old, new, details)
    return Trained(
        outcome.training,
        [("dev", held_out.pairs), *data.evaluated],
        [held_out.before, *before],
        [held_out.after, *after],
        choice.scores[0],
        choice.scores[max(choice.chosen, 1)],
        details,
    )
