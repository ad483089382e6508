"""The pairs of a run: which train, which choose the weights, which only report, and what is left out.

Without dev pairs, some training pairs are held out, or human-graded pairs are cut into parts that take turns.
Whether pairs share texts is judged up to normalisation, pairs in either order. Imports no torch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from angle_data.errors import InputError
from angle_data.text import counted
from angle_train.data.guards import Guard
from angle_train.data.hold_out import check_enough, hold_out
from angle_train.data.judged import JudgedPairs
from angle_train.data.keep import KeptTexts
from angle_train.data.leaks import SHARED_TEXTS, Leak, find_leaks, holding, without_pairs_of
from angle_train.data.pairs import APART, HUMAN, PairSet, distinct_names, join, load_pairs
from angle_train.data.scores import check_threshold
from angle_train.data.search_set import SearchSet
from angle_train.data.sources import dataset_splits
from angle_train.options import FitOptions
from angle_train.recipe import ObjectiveConfig, Recipe

log = logging.getLogger("angle.fit")

JUDGED = "judged"
"""The role of pairs that only a language model graded: they make the figures of the test pairs surer."""
JUDGED_DEV = "judged dev"
"""The role of those that make the choice by the dev pairs surer."""
HELD_OUT_FRACTION = 0.1
"""Of the training pairs, where no other pairs can choose the weights."""


@dataclass(frozen=True, slots=True)
class RunData:
    """All pairs of a run.

    Attributes:
        train: What the model is trained on.
        dev: Sets that choose the weights; none if parts of the human-graded pairs do, in turn.
        test: Sets that nothing is chosen on.
        human: The human-graded pairs among `train`, with their weight; none if none were given.
        others: The pairs of `train` that are not human-graded; none if there are none.
        taught: The pairs of `others` that a teacher scored, see `training.teacher`; none without a teacher.
        kept: Texts that are to stay as the backbone has them, see `keep`; none if there are none.
        guards: What must not get worse, see `guards.load_guards`.
        dropped: How many training pairs were left out, by reason.
        judged: What a language model says of the test pairs and of others, if it was asked.
        judged_dev: The same of the dev pairs; the others are none of those that `judged` has.
        searches: Searches that nothing is chosen on.
        dev_searches: Searches that choose the weights, beside `dev` or alone.
    """

    train: PairSet
    dev: list[PairSet]
    test: list[PairSet]
    human: PairSet | None = None
    others: PairSet | None = None
    taught: PairSet | None = None
    kept: KeptTexts | None = None
    guards: Sequence[Guard] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    judged: JudgedPairs | None = None
    judged_dev: JudgedPairs | None = None
    searches: Sequence[SearchSet] = ()
    dev_searches: Sequence[SearchSet] = ()

    @property
    def choosing(self) -> list[PairSet | SearchSet]:
        """What chooses the weights: pairs, then searches; none if parts of the human-graded pairs do."""
        return [*self.dev, *self.dev_searches]

    @property
    def chose(self) -> list[PairSet]:
        """The pairs that choose the weights; of dev searches each query with what it should find."""
        return [*self.dev, *(searched.pairs() for searched in self.dev_searches)]

    @property
    def beside(self) -> list[PairSet]:
        """What a language model alone graded and helps to choose, measured behind `choosing`."""
        return [self.judged_dev.rest] if self.judged_dev else []

    @property
    def judged_alone(self) -> int | None:
        """How many pairs beside the test pairs a language model alone graded; None where none was asked."""
        return len(self.judged.rest) if self.judged else None

    @property
    def evaluated(self) -> list[tuple[str, PairSet]]:
        """The measured sets with their roles: dev pairs, those of `beside`, test and other judged pairs."""
        judged = [(JUDGED, self.judged.rest)] if self.judged else []
        chose = [*(("dev", pairs) for pairs in self.dev), *((JUDGED_DEV, pairs) for pairs in self.beside)]
        return [*chose, *(("test", pairs) for pairs in self.test), *judged]

    def with_roles(self) -> RunData:
        """Return the data with text1 a query and text2 a document in all pairs but those of guards."""

        def in_roles(pairs: PairSet | None) -> PairSet | None:
            return pairs and replace(pairs, roles=True)

        return replace(
            self,
            train=replace(self.train, roles=True),
            dev=[replace(pairs, roles=True) for pairs in self.dev],
            test=[replace(pairs, roles=True) for pairs in self.test],
            human=in_roles(self.human),
            others=in_roles(self.others),
            judged=self.judged and self.judged.with_roles(),
            judged_dev=self.judged_dev and self.judged_dev.with_roles(),
        )


class LoadedPairs(NamedTuple):
    """The pairs of a run as they were given: `others`, `human` and `taught` train, see `RunData`."""

    others: PairSet | None
    human: PairSet | None
    dev: list[PairSet]
    test: list[PairSet]
    taught: PairSet | None = None

    @property
    def training(self) -> PairSet:
        """All that have labels and train, as one set; without labels, those that a teacher scored."""
        labelled = [pairs for pairs in (self.others, self.human) if pairs is not None]
        taught = [self.taught] if self.taught is not None else []
        return join(labelled or taught)

    @property
    def deciding(self) -> PairSet:
        """Those whose kind of labels decides the objective: where labels were made of scores, these alone."""
        return self.others if self.others is not None and self.others.labels else self.training


def load_sets(options: FitOptions) -> LoadedPairs:
    """Load all labelled pairs of a run.

    Without dev sources, dev searches and human-graded pairs, the validation splits of the data are the dev
    sets.

    Raises:
        InputError: A source cannot be used.
    """
    data, human, dev = options.data or (), options.human or (), options.dev or ()
    threshold = options.threshold
    check_threshold(threshold)
    if threshold is not None and not data:
        raise InputError("--threshold makes labels of the scores of --data; give --data too")

    def load(specs: Sequence[str], split: str, rows: str, **more: Any) -> list[PairSet]:
        return [load_pairs(spec, split, options.scale, rows, **more) for spec in specs]

    sets = load(data, "train", "train", threshold=threshold, one_score=True)
    graded = load(human, "train", "train")
    dev_sets = load(dev, "validation", "dev")
    if not (dev or human or options.dev_search):
        with_validation = [spec for spec in data if "validation" in dataset_splits(spec)]
        dev_sets = load(with_validation, "validation", "dev", threshold=threshold)
    dev_sets = distinct_names(dev_sets)
    test_sets = distinct_names(load(options.test or (), "test", "test"))
    human_pairs = join(graded) if graded else None
    if human_pairs is not None:  # people's scale is not that of other scores
        human_pairs = replace(human_pairs, supervision=[HUMAN] * len(human_pairs))
    return LoadedPairs(join(sets) if sets else None, human_pairs, dev_sets, test_sets)


def assign_uses(
    given: LoadedPairs,
    recipe: Recipe,
    *,
    drop_leaks: bool = False,
    searches: Sequence[SearchSet] = (),
    dev_searches: Sequence[SearchSet] = (),
) -> RunData:
    """Decide what each of the given pairs is used for; the recipe is settled.

    Without dev sets and dev searches, parts of the human-graded pairs take turns; without these, a tenth of
    the others is held out, and without any labels, of the pairs that a teacher scored.

    Raises:
        InputError: Nothing is left to train on, or to choose the weights with.
    """
    others, human, dev, test, taught = given
    if others is not None:
        _check_scores(others if human is None else join([others, human]), recipe.objective)
    if not dev and not dev_searches and human is None:
        if others is not None:
            others, held_out = _held_out(others, recipe.training.seed)
        else:
            taught, held_out = _held_out(given.training, recipe.training.seed)
        dev = [held_out]
    measured = [*dev, *test, *(searched.pairs() for searched in (*searches, *dev_searches))]
    others, human, dropped = _leave_out(others, human, measured if drop_leaks else None)
    if taught is not None:
        log.info("%s: ranked among themselves, not with other scores", taught.name)
        others = _joined([pairs for pairs in (others, taught) if pairs is not None])
    train = together(others, human, recipe.objective)
    if human is not None and not dev and not dev_searches:
        check_enough(human)
    if len({*train.scales()} - {APART}) > 1:
        log.info("human grades are ranked among themselves and against random pairs, not with other scores")
    return RunData(
        train,
        dev,
        test,
        human,
        others,
        taught,
        dropped=dropped,
        searches=searches,
        dev_searches=dev_searches,
    )


def _leave_out(
    others: PairSet | None, human: PairSet | None, measured: Sequence[PairSet] | None
) -> tuple[PairSet | None, PairSet | None, dict[str, int]]:
    """Return the training pairs that stay, and how many were left out, by reason."""
    dropped: dict[str, int] = {}

    def keep(reason: str, before: PairSet, after: PairSet) -> PairSet:
        count = len(before) - len(after)
        dropped[reason] = dropped.get(reason, 0) + count
        if count:
            log.info("%s: %d of %d pairs left out: %s", before.name, count, len(before), reason)
        return after

    if human is not None and others is not None:
        others = keep("graded by humans", others, without_pairs_of(others, [human]))
    if measured is not None:
        others = others and keep("leaks", others, without_pairs_of(others, measured))
        human = human and keep("leaks", human, without_pairs_of(human, measured))
    return others, human, dropped


def together(others: PairSet | None, human: PairSet | None, objective: ObjectiveConfig) -> PairSet:
    """Return all training pairs as one set; a source keeps its pairs together even if only some name theirs.

    Raises:
        InputError: There are none, or they all have one score that `objective` learns nothing from.
    """
    sets = [pairs for pairs in (others, human) if pairs is not None and len(pairs)]
    if not sets:
        raise InputError("no training pairs are left; give other --data, or leave out --drop-leaks")
    pairs = _joined(sets)
    _check_scores(pairs, objective)
    return pairs


def _joined(sets: Sequence[PairSet]) -> PairSet:
    """Return all pairs as one set, with the source of each if some of the sets name theirs."""
    if len(sets) > 1 and any(pairs.source_ids is not None for pairs in sets):
        sets = [replace(pairs, source_ids=pairs.sources()) for pairs in sets]
    return join(sets)


def _check_scores(pairs: PairSet, objective: ObjectiveConfig) -> None:
    """Check that there is something to rank, or that there are positives to tell from the rest of a batch."""
    if np.ptp(pairs.score) > 0:
        return
    positives = pairs.score[0] >= objective.positive_score
    if positives and objective.in_batch_weight > 0:
        return
    advice = "give pairs with other scores too"
    if positives:
        advice += ", or set in_batch_weight above 0, which learns from positives alone"
    raise InputError(
        f"{pairs.name}: all {len(pairs)} training pairs have score {pairs.score[0]:g} on the scale 0-1; "
        f"nothing can be learned; {advice}"
    )


def _held_out(pairs: PairSet, seed: int) -> tuple[PairSet, PairSet]:
    train, held_out = hold_out(pairs, HELD_OUT_FRACTION, seed)
    log.info("no dev pairs given: %d of the training pairs are held out, by source", len(held_out))
    if np.ptp(pairs.score) == 0:
        raise InputError("training pairs of one score cannot choose the checkpoint; give --dev pairs")
    for part in (train, held_out):
        if not len(part) or np.ptp(part.score) == 0:
            raise InputError(
                f"--data: {counted(len(pairs), 'training pair')}, too few to hold out dev pairs, which "
                "choose the weights; give some hundred training pairs, or graded pairs with --dev"
            )
    return train, held_out


def run_leaks(data: RunData) -> list[Leak]:
    """Return what every measured set shares with what was learned from, and warn of shared pairs."""
    found = []
    if not data.choosing and data.human is not None and data.others is not None:
        # Each part is measured by a run on all of the other pairs; those that it shares were left out.
        found.append(find_leaks("training", holding(data.others), "dev", holding(data.human)))
        log.info(SHARED_TEXTS, 100 * found[-1].texts, data.human.name, "the other training")
    train, dev = holding(data.train), [holding(pairs) for pairs in data.chose]  # once for all measured sets
    searched = [("dev", one.pairs()) for one in data.dev_searches]
    searched += [("test", one.pairs()) for one in data.searches]
    for role, pairs in [*data.evaluated, *searched]:
        measured = holding(pairs)
        for origin, seen in [("training", train), *(("dev", own) for own in dev if role == "test")]:
            leak = find_leaks(origin, seen, role, measured)
            found.append(leak)
            if leak.pairs:
                mend = "; --drop-leaks leaves them out of training" if origin == "training" else ""
                log.warning("warning: %s: results on them are flattered%s", leak.sentence(), mend)
            elif leak.texts:
                log.info(SHARED_TEXTS, 100 * leak.texts, pairs.name, origin)
    return found
