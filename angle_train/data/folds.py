"""Few graded pairs as their own dev set: parts of them, held out in turn, choose when to stop.

Pure: cuts pairs into parts and chooses from what the runs on the parts measured.
"""

from __future__ import annotations

import hashlib
import logging
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from angle_data.errors import InputError
from angle_data.text import normalise
from angle_train.data.pairs import PairSet, connected

log = logging.getLogger("angle.fit")

_LEAST = 3  # pairs in a part: with fewer a rank correlation says nothing


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


def cut(pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Return the positions of `count` parts of about equal size and scores; no text is in two of them.

    Pairs that share a text, directly or through others, stay together. If that ties too many together, single
    pairs are dealt instead, with a warning.

    Args:
        pairs: What to cut.
        count: Parts wanted; fewer are made if there are too few pairs.
        seed: Deals the pairs.

    Raises:
        InputError: There are too few pairs for two parts.
    """
    count = min(count, len(pairs) // _LEAST)
    if count < 2:
        raise InputError(
            f"{pairs.name}: {len(pairs)} pairs are too few to choose the number of steps on; "
            f"give at least {2 * _LEAST}, or --dev pairs"
        )
    groups: dict[str, list[int]] = {}
    for position, key in enumerate(connected(pairs)):
        groups.setdefault(key, []).append(position)
    parts = _deal(list(groups.values()), pairs, count, seed)
    if min(map(len, parts)) < max(_LEAST, len(pairs) // (2 * count)):
        log.warning("%s: too many pairs share texts, so single pairs are dealt into parts", pairs.name)
        parts = _deal([[position] for position in range(len(pairs))], pairs, count, seed)
    return [sorted(part) for part in parts]


def shared_texts(pairs: PairSet, parts: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return how many distinct texts of `pairs` are in several of its parts, and how many there are."""
    places: dict[str, set[int]] = {}
    for number, part in enumerate(parts):
        for text in (text for i in part for text in (pairs.text1[i], pairs.text2[i])):
            places.setdefault(normalise(text), set()).add(number)
    return sum(len(found) > 1 for found in places.values()), len(places)


def _deal(groups: Sequence[list[int]], pairs: PairSet, count: int, seed: int) -> list[list[int]]:
    """Deal groups, the largest first and then by score, each to the part that is smallest so far."""

    def order(group: list[int]) -> tuple[int, float, bytes]:
        score = sum(float(pairs.score[i]) for i in group) / len(group)
        first = f"{seed}/{pairs.text1[group[0]]}\0{pairs.text2[group[0]]}"
        return -len(group), score, hashlib.sha256(first.encode()).digest()

    parts: list[list[int]] = [[] for _ in range(count)]
    for group in sorted(groups, key=order):
        min(parts, key=len).extend(group)
    return parts


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
