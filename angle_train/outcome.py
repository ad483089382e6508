"""What a run finds out: the figures before training; then what tuning came to, and which weights were chosen.

The model itself holds the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from angle_train.data.pairs import PairSet
from angle_train.data.search_set import SearchSet
from angle_train.data.splits import RunData
from angle_train.evaluation.compare import SearchView
from angle_train.evaluation.dev_sets import mean_figure
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.search import NDCG, Ranking
from angle_train.report.result import Trained
from angle_train.report.verdict import BACKBONE, TUNED
from angle_train.training.choosing import Candidate, Choice, Columns
from angle_train.training.trainer import Training


class BaseFigures(NamedTuple):
    """What the base model makes of the texts of a run, before anything is trained.

    Attributes:
        columns: The similarities of every measured set, see `RunData.evaluated`.
        guards: Those of the guards' pairs.
        human: Those of the human-graded pairs, where parts of them choose the weights.
        kept: The embeddings (P, D) of the texts to keep, if there are any.
        found: What it finds in the test searches.
        dev_found: What it finds in the dev searches.
    """

    columns: Columns
    guards: Columns
    human: NDArray[np.float64] | None
    kept: NDArray[np.float32] | None
    found: Sequence[Ranking]
    dev_found: Sequence[Ranking]


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


def columns_that_choose(data: RunData, columns: Columns, found: Sequence[Ranking]) -> Columns:
    """Return the columns of `RunData.choosing` and `beside`; `found` is what the dev searches found."""
    pairs = len(data.dev)
    searches = [ranking.figures[NDCG] for ranking in found]
    return [*columns[:pairs], *searches, *columns[pairs : pairs + len(data.beside)]]


def checkpoint_candidates(
    training: Training, measured: Mapping[int, Columns], before: Columns, share: float
) -> list[Candidate]:
    """Return the base model, the end of the training, and the evaluations before it."""
    *between, end = (point["step"] for point in training.curve if point["step"] in measured)
    # A run that stopped early did not end as planned: its end is one of the evaluations, and no simpler.
    later = 2 if training.steps == training.planned_steps else 1
    return [
        Candidate(0, 0, before),
        Candidate(end, 1, measured[end], share),
        # Of the weights between, only the best were kept.
        *(Candidate(s, later, measured[s], share, available=s == training.best_step) for s in between),
    ]


def views_of(
    searches: Sequence[SearchSet], before: Sequence[Ranking], after: Sequence[Ranking], role: str
) -> list[SearchView]:
    """Return searches of that role as the base model and tuned weights do them."""
    rows = zip(searches, before, after, strict=True)
    return [SearchView(one, {BACKBONE: old, TUNED: new}, role) for one, old, new in rows]


def what_was_found(
    data: RunData, before: BaseFigures, outcome: TuningResult, after: Columns, dev_found: Sequence[Ranking]
) -> Trained:
    """Return the figures of a run before and after tuning.

    `after` and `dev_found` are what tuned weights make of the evaluated sets and of the dev searches.
    """
    choice = outcome.choice
    held_out = outcome.held_out
    details = outcome.findings
    if held_out is None:
        old, new = (
            mean_figure(data.choosing, columns_that_choose(data, columns, found))
            for columns, found in ((before.columns, before.dev_found), (after, dev_found))
        )
        return Trained(outcome.training, data.evaluated, before.columns, after, old, new, details)
    return Trained(
        outcome.training,
        [("dev", held_out.pairs), *data.evaluated],
        [held_out.before, *before.columns],
        [held_out.after, *after],
        choice.scores[0],
        choice.scores[max(choice.chosen, 1)],
        details,
    )
