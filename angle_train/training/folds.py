"""Few graded pairs and no dev pairs: parts of them, held out in turn, choose how long to train (k-fold).

Each part is measured by a run without it, in a directory of its own, that goes on where it was interrupted.
The similarities of all parts together are one column of held-out similarities, which `choosing` judges like
those of dev pairs: a mean over parts of ten pairs each would be mostly noise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from angle_train.data.hold_out import cut
from angle_train.data.pairs import PairSet
from angle_train.data.splits import RunData, together
from angle_train.evaluation.statistics import spearman
from angle_train.objective.kept import Kept
from angle_train.recipe import Recipe
from angle_train.training.choosing import Candidate, Choice, choose, what_pairs_show
from angle_train.training.distillation import Stages, stages_of
from angle_train.training.merging import snapshot
from angle_train.training.run_directory import RunDirectory
from angle_train.training.trainer import NO_PATIENCE, DevEvaluator, TrainOptions

log = logging.getLogger("angle.fit")

PARTS = 5
"""How many parts the graded pairs are cut into; few pairs make fewer, see `hold_out.cut`."""
_FEWEST_TO_CHOOSE = 30  # with fewer pairs the planned length is kept

Array = NDArray[np.float64]
Curve = tuple[Sequence[int], Sequence[Array], Sequence[float]]
"""What the run without one part measured on that part: positions of its B pairs among all graded ones; their
similarities (B,) after each evaluation; and the share (0..1) of the run's steps that was taken there."""


@dataclass(frozen=True, slots=True)
class CrossFit:
    """What the runs without one part each found.

    Attributes:
        choice: The choice among the backbone and every evaluation.
        evaluation: Which evaluation (from 1) to stop at; where the backbone was chosen, the last one.
        share: Share of the backbone that is mixed in, where the recipe names one.
        after: Similarity (B,) of every graded pair there, by the run that did not train on the pair.
        progress: Share (0..1) of a run's steps that is taken at every evaluation, the mean over the parts;
            all pairs are more steps, so that the number of an evaluation does not say when to stop there.
        curve: Spearman of the held-out similarities after every evaluation.
        sizes: Pairs of each part.
    """

    choice: Choice
    evaluation: int
    share: float
    after: Array
    progress: list[float]
    curve: list[float]
    sizes: list[int]

    def to_dict(self) -> dict[str, Any]:
        """Return what the report shows."""
        return {name: getattr(self, name) for name in ("sizes", "evaluation", "share", "progress", "curve")}


def cross_fit(
    load: Callable[[], SentenceTransformer],
    data: RunData,
    recipe: Recipe,
    kept: Kept | None,
    directory: Path,
    fingerprint: Mapping[str, str],
    before: Array,
) -> CrossFit:
    """Train without each part of the human-graded pairs in turn and choose when to stop.

    Args:
        load: Loads the model that is to be trained.
        data: The graded pairs, and the others, which all runs train on.
        recipe: How each of the `PARTS` runs trains.
        kept: Texts that are to keep their similarities, in all runs.
        directory: Each part's run has a directory in it: after Ctrl-C the same call goes on.
        fingerprint: What decides the run, see `run_directory.RunDirectory`.
        before: Similarity (B,) of every graded pair under the untouched backbone.
    """
    human = data.human
    others = data.others
    if human is None:
        raise ValueError("no human-graded pairs")
    parts = cut(human, PARTS, recipe.training.seed)
    log.info("%s", what_pairs_show([human]))
    log.info(
        "no dev pairs given: %d human-graded pairs in %d parts, held out in turn, choose the number of steps",
        len(human),
        len(parts),
    )
    share = recipe.training.average_with_backbone
    curves: list[Curve] = []
    for number, part in enumerate(parts, start=1):
        held_out = human.take(part, f"{human.name}/part {number}")
        log.info("part %d of %d: %d pairs", number, len(parts), len(part))
        rest = human.take([i for i in range(len(human)) if i not in set(part)], human.name)
        run = RunDirectory(directory / f"part-{number}", {**fingerprint, "part": f"{number} of {len(parts)}"})
        pairs = together(others, rest, recipe.objective)
        stages = stages_of(pairs, recipe.with_overrides({"patience": NO_PATIENCE}), data.kept, load)
        measured = measured_run(run, stages, [held_out], kept)
        run.tidy()
        steps = stages.schedule.steps
        columns = [column for (column,) in measured.values()]
        curves.append((part, columns, [step / steps for step in measured]))
    return chosen(curves, share, human, before)


def measured_run(
    directory: RunDirectory, stages: Stages, sets: Sequence[PairSet], kept: Kept | None
) -> dict[int, list[Array]]:
    """Train in a directory, or go on there, and return the similarities of the sets by step, in order.

    Trains to the end of the recipe, unless that has been measured or its patience ends it earlier.
    """
    training = stages.recipe.training
    share = training.average_with_backbone
    evaluator = DevEvaluator(sets, notes=directory.path / "measured.jsonl", share=share)
    status = directory.status(overwrite=False)
    if stages.schedule.steps not in evaluator.measured():
        model = stages.load()
        evaluator.backbone = snapshot(model) if share else {}
        stages.train(
            model,
            directory,
            evaluator=evaluator,
            resume=directory.claim(status),
            options=TrainOptions(kept=kept),
        )
    return evaluator.measured()


def chosen(curves: Sequence[Curve], share: float, human: PairSet, before: Array) -> CrossFit:
    """Choose among the backbone and all evaluations, on the similarities of all parts together.

    A part that is a batch larger than another may have fewer evaluations. They are matched by how much of the
    training was done: the last of all is the planned end. `before` are the similarities (B,) of the graded
    pairs under the untouched backbone.
    """
    last = min(len(columns) for _, columns, _ in curves)

    def at(evaluation: int, columns: Sequence[Array]) -> int:
        return round(evaluation * len(columns) / last) - 1

    def held_out(evaluation: int) -> Array:
        column = before.copy()
        for rows, columns, _ in curves:
            column[rows] = columns[at(evaluation, columns)]
        return column

    options = list(range(last, 0, -1))
    if len(human) < _FEWEST_TO_CHOOSE:
        options = [last]
        log.info(
            "%d graded pairs are too few to choose the training length (%d are enough): it stays as planned",
            len(human),
            _FEWEST_TO_CHOOSE,
        )
    columns = [held_out(option) for option in options]
    candidates = [
        Candidate(0, 0, [before]),
        *(
            Candidate(option, 1 if option == last else 2, [column], share)
            for option, column in zip(options, columns, strict=True)
        ),
    ]
    choice = choose(candidates, [human])
    evaluation = options[max(choice.chosen - 1, 0)]
    found = CrossFit(
        choice=choice,
        evaluation=evaluation,
        share=share,
        after=columns[max(choice.chosen - 1, 0)],
        progress=[
            float(np.mean([done[at(e, columns)] for _, columns, done in curves])) for e in range(1, last + 1)
        ],
        curve=[spearman(human.score, held_out(e)) for e in range(1, last + 1)],
        sizes=[len(rows) for rows, _, _ in curves],
    )
    mixed = candidates[-1].mixed
    log.info(
        "%s",
        choice.sentence(f"evaluation {evaluation} of {last}{mixed}", "held-out pairs", max(choice.chosen, 1)),
    )
    return found
