"""The pairs of a run: which ones train, which choose the weights, which only report; and what was left out.

Composes loading and checking; knows neither model nor directory.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from angle_data.errors import InputError
from angle_train.data.leaks import Leak, find_leaks, without_near_copies, without_pairs_of
from angle_train.data.pairs import PairSet, check_stated_scale, distinct_names, hold_out, join, load_pairs
from angle_train.data.sources import dataset_splits
from angle_train.recipe import Recipe
from angle_train.settings import ObjectiveConfig
from angle_train.unused import unused_settings

log = logging.getLogger("angle.fit")

_HELD_OUT = 0.1
_SHARED_TEXTS = "%.0f %% of the texts of %s occur in %s pairs too"


@dataclass(frozen=True, slots=True)
class RunData:
    """All pairs of a run.

    Attributes:
        train: What the model is trained on.
        dev: Sets that choose the weights; none if parts of the human-graded pairs do, in turn.
        test: Sets that nothing is chosen on.
        human: The human-graded pairs among `train`, with their weight; none if none were given.
        others: The pairs of `train` that are not human-graded; none if there are none.
        dropped: How many training pairs were left out, by reason.
    """

    train: PairSet
    dev: list[PairSet]
    test: list[PairSet]
    human: PairSet | None = None
    others: PairSet | None = None
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def evaluated(self) -> list[tuple[str, PairSet]]:
        """The measured sets with their roles, dev sets first."""
        return [*(("dev", pairs) for pairs in self.dev), *(("test", pairs) for pairs in self.test)]


def load_run_data(
    data: Sequence[str],
    human: Sequence[str],
    dev: Sequence[str],
    test: Sequence[str],
    *,
    recipe: Recipe,
    scale: str | None = None,
    drop_leaks: bool = False,
) -> RunData:
    """Load all pairs and decide what each is used for.

    Without dev sources, parts of the human-graded pairs take turns; without these, the validation splits of
    the data, or else a tenth of it.

    Args:
        data: Sources of training pairs.
        human: Sources of human-graded training pairs.
        dev: Sources of the pairs that choose the weights.
        test: Sources of pairs to report on.
        recipe: Says which training pairs to leave out, and the weight of the human-graded ones.
        scale: Scale of the scores, see `pairs.load_pairs`.
        drop_leaks: Leave out training pairs that are dev or test pairs too.

    Raises:
        InputError: A source cannot be used, or nothing is left to train on.
    """
    sets = [load_pairs(spec, split="train", scale=scale, rows="train", one_score=True) for spec in data]
    graded = [load_pairs(spec, split="train", scale=scale, rows="train") for spec in human]
    dev_sets = [load_pairs(spec, split="validation", scale=scale, rows="dev") for spec in dev]
    dev_sets = distinct_names(dev_sets, dev)
    if not dev and not human:
        divided = [spec for spec in data if "validation" in dataset_splits(spec)]
        dev_sets = [load_pairs(spec, split="validation", scale=scale) for spec in divided]
        dev_sets = distinct_names(dev_sets, divided)
    test_sets = [load_pairs(spec, split="test", scale=scale, rows="test") for spec in test]
    test_sets = distinct_names(test_sets, test)
    check_stated_scale(scale, [*sets, *graded, *dev_sets, *test_sets])
    others = join(sets) if sets else None
    human_pairs = _weighted(join(graded), recipe.training.human_weight) if graded else None
    if others is not None:
        _check_scores(others if human_pairs is None else join([others, human_pairs]), recipe.objective)
    if others is not None and not dev_sets and human_pairs is None:
        others, held_out = _held_out(others, recipe.training.seed)
        dev_sets = [held_out]
    dropping = _Dropping()
    measured = [*dev_sets, *test_sets]
    if human_pairs is not None and others is not None:
        others = dropping.note("graded by humans", others, without_pairs_of(others, [human_pairs]))
    if recipe.training.skip_near_copies and others is not None:
        kept = without_near_copies(others, recipe.objective.negative_score)
        others = dropping.note("near copies", others, kept)
    if drop_leaks:
        others, human_pairs = (
            pairs and dropping.note("leaks", pairs, without_pairs_of(pairs, measured))
            for pairs in (others, human_pairs)
        )
    return RunData(
        train=together(others, human_pairs, recipe.objective),
        dev=dev_sets,
        test=test_sets,
        human=human_pairs,
        others=others,
        dropped=dropping.counts,
    )


class _Dropping:
    """Counts and logs what is left out of the training pairs."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def note(self, reason: str, before: PairSet, after: PairSet) -> PairSet:
        """Return `after`, having noted what it lacks."""
        count = len(before) - len(after)
        self.counts[reason] = self.counts.get(reason, 0) + count
        if count:
            log.info("%s: %d of %d pairs left out: %s", before.name, count, len(before), reason)
        return after


def _weighted(pairs: PairSet, weight: float) -> PairSet:
    return replace(pairs, weight=pairs.weight * weight)


def together(others: PairSet | None, human: PairSet | None, objective: ObjectiveConfig) -> PairSet:
    """Return all training pairs as one set; a source keeps its pairs together even if only some name theirs.

    Raises:
        InputError: There are none, or they all have one score that `objective` learns nothing from.
    """
    sets = [pairs for pairs in (others, human) if pairs is not None and len(pairs)]
    if not sets:
        raise InputError("no training pairs are left; give other --data, or leave out --drop-leaks")
    if len(sets) > 1 and any(pairs.source_ids is not None for pairs in sets):
        sets = [replace(pairs, source_ids=pairs.sources()) for pairs in sets]
    pairs = join(sets)
    _check_scores(pairs, objective)
    return pairs


def _check_scores(pairs: PairSet, objective: ObjectiveConfig) -> None:
    """Check that there is something to rank, or that there are positives to tell from the rest of a batch."""
    if np.ptp(pairs.score) > 0:
        return
    if objective.in_batch_weight > 0 and pairs.score[0] >= objective.positive_score:
        return
    advice = "give pairs with other scores too"
    if pairs.score[0] >= objective.positive_score:
        advice += ", or set in_batch_weight above 0, which learns from positives alone"
    raise InputError(
        f"{pairs.name}: all {len(pairs)} training pairs have score {pairs.score[0]:g} on the scale 0-1; "
        f"nothing can be learned; {advice}"
    )


def _held_out(pairs: PairSet, seed: int) -> tuple[PairSet, PairSet]:
    train, held_out = hold_out(pairs, _HELD_OUT, seed)
    log.info("no dev pairs given: %d of the training pairs are held out, by source", len(held_out))
    if np.ptp(pairs.score) == 0:
        raise InputError("pairs of one score cannot choose the weights; give --dev pairs")
    for part in (train, held_out):
        if not len(part) or np.ptp(part.score) == 0:
            raise InputError("too few training pairs to hold some out for selection; give --dev pairs")
    return train, held_out


def run_leaks(data: RunData) -> list[Leak]:
    """Return what every measured set shares with what was learned from, and warn of shared pairs."""
    found = []
    if not data.dev and data.human is not None and data.others is not None:
        # Each part is measured by a run on all of the other pairs; those that it shares were left out.
        found.append(find_leaks("training", data.others, "dev", data.human))
        log.info(_SHARED_TEXTS, 100 * found[-1].texts, data.human.name, "the other training")
    for role, pairs in data.evaluated:
        learned = [("training", data.train), *(("dev", dev) for dev in data.dev if role == "test")]
        for origin, seen in learned:
            leak = find_leaks(origin, seen, role, pairs)
            found.append(leak)
            if leak.pairs:
                log.warning("warning: %s: results on them are flattered", leak.sentence())
            elif leak.texts:
                log.info(_SHARED_TEXTS, 100 * leak.texts, pairs.name, origin)
    return found


def unused_in_run(recipe: Recipe, data: RunData) -> list[str]:
    """Return a sentence for each reason why chosen settings play no part in a run, see `unused`."""
    return unused_settings(recipe, human=data.human is not None, dev=bool(data.dev))
