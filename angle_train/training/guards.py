"""What tuned weights lose on guards, and how much of the backbone must be mixed in so that they lose nothing.

* **A labelled guard** loses the Spearman correlation with its labels: before minus after.
* **A guard without labels** has the rank agreement A of the tuned cosines with the backbone's, 1 where
  tuning changed no order. A change that knows nothing of meaning costs r · (1 - A): if the new order is the
  old one plus noise, what was r with any labels becomes A · r. r is how well the backbone ranks general text,
  of which it is known how each pair was written. Tuning is not blind, so the loss is an estimate (`SPENT`).
  It is 0 where the tuned weights rank these pairs no worse, and sure only where they surely rank them worse.

Tuning is to change the order of the user's own texts, and the dev pairs say whether for the better. So their
guard is measured and told, and refuses nothing. A backbone that ranks general text no better than shared
words do (one that never was trained for similarity) has no order to keep: then neither does general text.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_train.data.guards import Guard
from angle_train.data.pairs import PairSet
from angle_train.evaluation.dev_sets import DevSet, mean_figure, measure_sets
from angle_train.evaluation.known import KnownVectors
from angle_train.evaluation.sharing import Sharing
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import (
    Array,
    Interval,
    draw_figures,
    interval_around,
    spearman_of,
)
from angle_train.training.choosing import MOST_RESAMPLES, Candidate, Columns
from angle_train.training.merging import blended
from angle_train.training.processes import rank_zero
from angle_train.training.trainer import VectorsByWeights, restore

log = logging.getLogger("angle.fit")

SPENT = 0.4
"""Of what a blind change costs, the share that it cost labelled pairs in trainings that lost something: 0.04
to 0.53, the median 0.34; of what it would cost general text the median is 0.48
(benchmarks/log/shares-of-guards.md)."""
_TO_SPEAK_OF = 0.01  # a point of Spearman x 100
_SPOILED = 0.1  # ten points: no chance of few pairs, and no price that is paid for something
SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
"""Shares of the backbone that are tried where the weights as planned lose too much."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What tuned weights lose on one guard; losses are in units of Spearman, above 0 where it got worse.

    Attributes:
        kind: That of the guard.
        name: Its name.
        pairs: How many it has.
        before: Spearman of the backbone with the labels; 1, the backbone's agreement with itself, where there
            are none.
        after: The same of the tuned weights.
        loss, low, high: The loss and its 95 % interval, wider where pairs share a text or a source; without
            labels an estimate, and the interval of the agreement alone, from 0 where it may be no loss.
        refuses: Whether weights that surely lose too much here are refused.
    """

    kind: Literal["labelled", "general", "own"]
    name: str
    pairs: int
    before: float
    after: float
    loss: float
    low: float
    high: float
    refuses: bool = True

    def sentence(self) -> str:
        """Return the loss, times 100, such as `titles by 10.9 [7.7, 14.6]`; an estimate has no interval."""
        loss, low, high = (100 * value for value in (self.loss, self.low, self.high))
        if self.kind != "labelled":
            return f"{self.name} by an estimated {loss:.1f}"
        return f"{self.name} by {loss:.1f} [{low:.1f}, {high:.1f}]"

    @property
    def seen(self) -> bool:
        """Whether there is a loss to tell of: 0.1 points or more, and with labels surely above 0."""
        return round(100 * self.loss, 1) > 0 and (self.low > 0 or self.kind != "labelled")

    def too_much(self, most: float) -> bool:
        """Return whether it is surely more than `most` points (Spearman × 100), and counts."""
        return self.refuses and 100 * self.low > most

    def within(self, most: float) -> bool:
        """Return whether it is at most so many points as measured."""
        return 100 * self.loss <= most


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of a run as the backbone sees them.

    Attributes:
        guards: What must not get worse.
        before: The backbone's similarities of their pairs.
        most: Points (Spearman × 100) that a guard may lose.
        worth: r, see above; 0 where the backbone has no order to keep.
        sharing: Which pairs of every guard share something.
    """

    guards: Sequence[Guard]
    before: Columns
    most: float
    worth: float
    sharing: Sequence[Sharing]

    @property
    def sets(self) -> list[PairSet]:
        """The pairs of every guard."""
        return [guard.pairs for guard in self.guards]

    def refuse(self, losses: Sequence[Loss]) -> bool:
        """Return whether weights with these losses are refused."""
        return any(loss.too_much(self.most) for loss in losses)

    def losses(self, after: Columns) -> list[Loss]:
        """Return what weights lose that give these similarities."""
        rows = zip(self.guards, self.sharing, self.before, after, strict=True)
        return [self._loss(guard, sharing, old, new) for guard, sharing, old, new in rows]

    def _loss(self, guard: Guard, sharing: Sharing, before: Array, after: Array) -> Loss:
        labelled = guard.kind == "labelled"
        gold, weight = (guard.pairs.score, 1.0) if labelled else (before, SPENT * self.worth)
        old, new, lost = _compared(gold, before, after, sharing)
        loss, low = lost.value, lost.low
        if guard.kind == "general":
            fell = fall_of_known(guard.pairs, before, after)
            loss, low = loss if fell.value > 0 else 0.0, low if fell.low > 0 else 0.0
        return Loss(
            kind=guard.kind,
            name=guard.pairs.name,
            pairs=len(guard.pairs),
            before=old,
            after=new,
            loss=weight * loss,
            low=weight * low,
            high=weight * lost.high,
            refuses=labelled or (guard.kind == "general" and self.worth > 0),
        )


def guards_of(guards: Sequence[Guard], before: Columns, most: float) -> Guards:
    """Return the guards with the backbone's similarities of their pairs; arguments as of `Guards`."""
    rows = zip(guards, before, strict=True)
    worth = next((worth_of(guard.pairs, column) for guard, column in rows if guard.kind == "general"), 0.0)
    return Guards(guards, before, most, worth, [Sharing([guard.pairs]) for guard in guards])


def _compared(gold: Array, one: Array, other: Array, sharing: Sharing) -> tuple[float, float, Interval]:
    """Return Spearman of both columns (n,) with gold scores, and how far the first is ahead, surely."""
    first, second = draw_figures([spearman_of(gold, column) for column in (one, other)], MOST_RESAMPLES)
    less = first.minus(second)
    return first.value, second.value, interval_around(less.value, sharing.widened(less))


def worth_of(pairs: PairSet, similarity: Array) -> float:
    """Return how well a backbone ranks pairs that were written near or far, 0 if no better than shared words.

    That is Spearman with how near they were written, unless it is not surely above that of shared words.
    """
    chosen, columns = _clear(pairs, similarity)
    known, _, ahead = _compared(chosen.score, columns, word_overlap(chosen), Sharing([chosen]))
    return max(known, 0.0) if ahead.low > 0 else 0.0


def fall_of_known(pairs: PairSet, before: Array, after: Array) -> Interval:
    """Return how far Spearman of pairs that were written near or far, with how near they are, fell."""
    chosen, old = _clear(pairs, before)
    return _compared(chosen.score, old, _clear(pairs, after)[1], Sharing([chosen]))[2]


def _clear(pairs: PairSet, similarity: Array) -> tuple[PairSet, Array]:
    """Return the pairs that were written near or far, with their similarities.

    Near copies that say something else (score 0.5) are left out: how near they are is a matter of purpose.
    """
    clear = np.flatnonzero(pairs.score != 0.5)
    return pairs.take(clear.tolist(), pairs.name), similarity[clear]


@dataclass(frozen=True, slots=True)
class WhereChosen:
    """The figures of the sets that choose, such as dev pairs, where guards asked for more of the backbone.

    Attributes:
        planned: Of the weights with the planned share.
        mixed: Of the weights with the share that guards asked for.
        backbone: Of the backbone.
    """

    planned: float
    mixed: float
    backbone: float

    @property
    def left(self) -> str:
        """What is left of the gain as planned, where that is less than half; empty where it is more.

        A gain of less than a point is none to speak of.
        """
        gained, kept = self.planned - self.backbone, self.mixed - self.backbone
        if gained < _TO_SPEAK_OF or kept >= gained / 2:
            return ""
        return "less than half" if kept > 0 else "nothing"

    @property
    def spoiled(self) -> bool:
        """Whether training made much worse what chooses, which the backbone that is mixed in then hides."""
        return self.backbone - self.planned >= _SPOILED


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a candidate loses on guards.

    Attributes:
        losses: On every guard, with the share of the backbone that it has.
        spared: Where it would surely lose too much with the planned share; empty where it has that share.
        where_chosen: What either share is worth; None where it has the planned one.
    """

    losses: list[Loss]
    spared: list[Loss] = field(default_factory=list)
    where_chosen: WhereChosen | None = None


def within_guards(
    candidate: Candidate, guards: Guards, measured: Callable[[float, Sequence[PairSet]], Columns]
) -> tuple[Candidate, Weighed]:
    """Return a candidate with as much of the backbone as guards ask for, and what it loses then.

    That is the planned share, unless guards surely lose too much with it: then the least at which these lose
    no more than they may, as measured, and no other surely more. The first at which no loss is *sure* would
    stop at the edge, where few pairs let several points pass (benchmarks/log/shares-of-guards.md). If there
    is none, it is the largest share with no sure loss; one that surely loses too much at every share is
    returned as planned, and as refused. The similarity stays that of the planned share.

    Args:
        candidate: Tuned weights, with the share that the recipe asks for.
        guards: What must not get worse.
        measured: Gives the similarities of sets of pairs with a share mixed in.
    """
    planned = guards.losses(measured(candidate.share, guards.sets))
    if not guards.refuse(planned):
        return candidate, Weighed(planned)
    spared = [loss for loss in planned if loss.too_much(guards.most)]
    found = replace(candidate, refused=True), Weighed(planned)
    for share in SHARES:
        if share <= candidate.share:
            continue
        losses = guards.losses(measured(share, guards.sets))
        if not guards.refuse(losses):
            found = replace(candidate, share=share), Weighed(losses, spared)
            lost = [loss for loss, was in zip(losses, planned, strict=True) if was.too_much(guards.most)]
            if all(loss.within(guards.most) for loss in lost):
                break
    return found


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a training left.

    Attributes:
        model: What weights are put in.
        backbone: The backbone's, see `merging.snapshot`.
        directory: Has the checkpoints.
        vectors: What weights made of texts; those that `within` returns are added.
    """

    model: SentenceTransformer
    backbone: Mapping[str, Tensor]
    directory: Path
    vectors: VectorsByWeights

    @rank_zero
    def within(
        self,
        guards: Guards,
        candidates: Sequence[Candidate],
        choosing: Sequence[DevSet],
        beside: Sequence[PairSet] = (),
    ) -> tuple[list[Candidate], dict[int, Weighed]]:
        """Return the candidates as guards allow them, and by position what those that can be had lose.

        Where another share is mixed in than planned, the sets that choose and those beside them are measured
        with it.
        """
        found, weighed, dev = list(candidates), dict[int, Weighed](), [*choosing, *beside]
        for number, candidate in enumerate(candidates):
            if not candidate.step or not candidate.available:
                continue
            restore(self.model, self.directory, candidate.step)
            measured = partial(self._measure, candidate)
            if (candidate.step, candidate.share) not in self.vectors:
                # A resumed run measured these earlier; it must embed the same texts together to end the same.
                measured(candidate.share, dev)
            allowed, weighed[number] = within_guards(candidate, guards, measured)
            worse = worse_sentence(weighed[number].losses, guards.most)
            log.info("step %d%s: %s", allowed.step, allowed.mixed, worse)
            if allowed.share != candidate.share:
                allowed = replace(allowed, similarity=measured(allowed.share, dev))
                columns = (candidate.similarity, allowed.similarity, candidates[0].similarity)
                figures = WhereChosen(*(mean_figure(choosing, column) for column in columns))
                weighed[number] = replace(weighed[number], where_chosen=figures)
            found[number] = allowed
            for key in [key for key in self.vectors if key[0] == allowed.step and key[1] != allowed.share]:
                del self.vectors[key]
        return found, weighed

    def _measure(self, candidate: Candidate, share: float, sets: Sequence[DevSet]) -> Columns:
        """Return the columns of sets under the model's weights, which are those of the candidate."""
        known = self.vectors.setdefault((candidate.step, share), KnownVectors())
        if share > candidate.share:
            mixed = 100 * share
            log.info("step %d: measuring with %.0f %% of the backbone, for the guards", candidate.step, mixed)
        with blended(self.model, self.backbone, share):
            return measure_sets(self.model, sets, known=known)


def worse_sentence(losses: Sequence[Loss], most: float) -> str:
    """Return what got worse, of guards whose losses count; also where it is nothing, or cannot be told.

    A labelled guard of which a loss of twice `most` points cannot be ruled out has too few pairs to tell. A
    `most` below 1 would ask for more pairs than people label, so it is taken for 1.
    """
    counted = [loss for loss in losses if loss.refuses]
    if not counted:
        return "What got worse: not known; give --guard pairs"
    seen = sorted((loss for loss in counted if loss.seen), key=lambda loss: -loss.loss)
    rest = [loss for loss in counted if loss.kind == "labelled" and not loss.seen]
    vague = [loss for loss in rest if 100 * loss.high > 2 * max(most, 1.0)]
    held = [loss for loss in rest if loss not in vague]
    unknown = "".join(
        f"; {loss.name}: not known, {loss.pairs:,} pairs cannot rule out a loss of {_at_most([loss])}"
        for loss in vague
    )
    if seen:
        told = {loss.name: _at_most([loss]) for loss in held}
        also = "".join(
            f"; {name} did not" if high == "0.0" else f"; {name} by less than {high}, if at all"
            for name, high in told.items()
        )
        return f"What got worse: {', '.join(loss.sentence() for loss in seen)}{also}{unknown}"
    if held:
        names = ", ".join(loss.name for loss in held)
        return f"What got worse: nothing, surely less than {_at_most(held)} ({names}){unknown}"
    if vague:
        return f"What got worse: nothing surely{unknown}"
    return "What got worse: nothing that general text shows; give --guard pairs to be sure"


def _at_most(losses: Sequence[Loss]) -> str:
    """Return the most that any of them loses, surely, rounded up."""
    return f"{math.ceil(max(1000 * max(loss.high, 0.0) for loss in losses)) / 10:.1f}"


def spared_sentence(weighed: Weighed, most: float, share: float, chosen_by: str) -> str:
    """Return why more of the backbone is mixed in than planned, and what it costs; empty where it is not.

    Args:
        weighed: What the weights lose.
        most: Points that a guard may lose.
        share: Of the backbone, as mixed in.
        chosen_by: What chose the weights and has the figures told, such as `dev pairs`.
    """
    if not weighed.spared:
        return ""
    found = weighed.where_chosen
    allows = "" if found is not None and found.spoiled else "; --guard-loss allows more"
    said = (
        f"{100 * share:.0f} % of the backbone is mixed into the tuned weights: as planned, "
        f"{costs_sentence(weighed.spared, most)}{allows}"
    )
    if found is None:  # a report of before these were kept
        return said
    figures = (found.mixed, found.planned, found.backbone)
    mixed, planned, backbone = (f"{100 * figure:.1f}" for figure in figures)
    return (
        f"{said}. On the {chosen_by} the tuned weights have {mixed} with this share, {planned} as planned; "
        f"the backbone has {backbone}"
    )


def costs_sentence(losses: Sequence[Loss], most: float) -> str:
    """Return that tuning costs too much; surely, unless all that is known is an estimate."""
    how = "surely " if any(loss.kind == "labelled" for loss in losses) else ""
    by = "" if how else " by the estimate"
    lost = ", ".join(loss.sentence() for loss in losses)
    return f"tuning {how}costs more than --guard-loss {most:g} elsewhere{by}: {lost}"


def agreement_sentence(losses: Sequence[Loss]) -> str:
    """Return how far the order of pairs without labels stayed the backbone's; nothing if there are none."""
    told = [f"{100 * loss.after:.1f} on {loss.name}" for loss in losses if loss.kind != "labelled"]
    if not told:
        return ""
    own = any(loss.kind == "own" for loss in losses)
    meant = "; among your own texts the order is meant to change" if own else ""
    return f"Rank agreement with the backbone (100 is the same order): {', '.join(told)}{meant}"


def as_details(weighed: Weighed, most: float) -> dict[str, Any]:
    """Return what the report keeps of guards."""
    found = {name: value for name, value in asdict(weighed).items() if value is not None}
    return {"most": most, **found}


def from_details(found: Mapping[str, Any]) -> Weighed:
    """Return what `as_details` kept; no losses of an empty mapping."""
    losses, spared = ([Loss(**loss) for loss in found.get(kind, ())] for kind in ("losses", "spared"))
    figures = found.get("where_chosen")
    return Weighed(losses, spared, None if figures is None else WhereChosen(**figures))
