"""Chooses when to stop from what the runs on parts of the graded pairs measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoldCurve:
    """What the run without one part measured on that part.

    Attributes:
        backbone: Spearman of the untouched backbone.
        dev: Spearman (E, S) after each of E evaluations, with each of S shares of the backbone mixed in.
        similarity: Similarities (E, S, B) behind them, of the part's B pairs.
    """

    backbone: float
    dev: list[list[float]]
    similarity: list[list[list[float]]]


@dataclass(frozen=True, slots=True)
class Choice:
    """How long to train, and what that was worth on pairs that were not trained on.

    Attributes:
        evaluation: Which evaluation (from 1) to stop at; 0 keeps the backbone.
        share: Position of the share of the backbone to mix in.
        scores: Spearman of each part there.
        mean: Their mean.
        spread: Their standard deviation.
        best: The evaluation with the best mean, which may be an earlier one, see `choose`.
    """

    evaluation: int
    share: int
    scores: list[float]
    mean: float
    spread: float
    best: int


def choose(curves: Sequence[FoldCurve]) -> Choice:
    """Return the last evaluation that is within one standard error of the best mean over the parts.

    The one-standard-error rule (Breiman et al. 1984, "Classification and Regression Trees"),
    with the planned end of the training for the simplest model: of a few pairs the best evaluation is largely
    chance, and a training that stops early has not run down its learning rate. The error is that of the
    difference to the best, part by part. The untouched backbone takes part as evaluation 0; what is not
    better than it is not chosen. Of one evaluation's shares the best is taken, the least of equals.
    """
    backbone = _Option(0, 0, [curve.backbone for curve in curves])
    options = [
        _Option(evaluation + 1, share, [curve.dev[evaluation][share] for curve in curves])
        for evaluation in range(min(len(curve.dev) for curve in curves))
        for share in range(len(curves[0].dev[evaluation]))
    ]
    best = max([backbone, *options], key=_Option.mean)
    if best is backbone:
        return _choice(best, 0)
    near = [option for option in options if option.mean() > backbone.mean() and option.is_near(best)]
    last = max(option.evaluation for option in near)
    return _choice(max((o for o in near if o.evaluation == last), key=_Option.mean), best.evaluation)


@dataclass(frozen=True, slots=True)
class _Option:
    """One evaluation with one share of the backbone, and the Spearman of each part there."""

    evaluation: int
    share: int
    scores: list[float]

    def mean(self) -> float:
        return statistics.fmean(self.scores)

    def is_near(self, best: _Option) -> bool:
        lacks = [high - low for high, low in zip(best.scores, self.scores, strict=True)]
        return statistics.fmean(lacks) <= statistics.stdev(lacks) / math.sqrt(len(lacks))


def _choice(option: _Option, best: int) -> Choice:
    spread = statistics.stdev(option.scores)
    return Choice(option.evaluation, option.share, option.scores, option.mean(), spread, best)
