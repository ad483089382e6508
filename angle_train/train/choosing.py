"""What is chosen on graded pairs: how long the final run trains, and how much of the backbone it keeps.

Without dev pairs, parts of the human-graded pairs are held out in turn, each by a run in a directory of its
own that goes on where it was interrupted. Averaging the tuned weights with those that they started from keeps
more of what the backbone can do (Wortsman et al. 2022, WiSE-FT, https://arxiv.org/abs/2109.01903).
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_data.jsonl import read_jsonl, write_jsonl
from angle_train.data.pairs import PairSet
from angle_train.data.splits import cut, shared_texts, together
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.model.adapters import has_adapters, scale_adapters
from angle_train.recipe import AUTO, Recipe
from angle_train.train.arguments import Schedule
from angle_train.train.checkpoints import RunDirectory
from angle_train.train.processes import is_first, on_first
from angle_train.train.trainer import DevEvaluator, train

log = logging.getLogger("angle.fit")

_SHARES = tuple(step / 10 for step in range(10))
_NO_PATIENCE = 10**9  # every part is trained to the end: the means need all of them


def shares_to_try(setting: float | str) -> tuple[float, ...]:
    """Return the shares of the backbone to choose from: one where `average_with_backbone` names it."""
    return _SHARES if setting == AUTO else (float(setting),)


def snapshot(model: SentenceTransformer) -> dict[str, Tensor]:
    """Return copies of the floating-point weights of an untouched model, by name, for `blend`.

    On the CPU, where they take nothing from the training. Of a model with adapters none: the backbone is what
    they are added to.
    """
    if has_adapters(model):
        return {}
    weights = model.named_parameters()
    return {n: value.detach().to("cpu", copy=True) for n, value in weights if value.is_floating_point()}


@torch.no_grad()
def blend(model: SentenceTransformer, backbone: Mapping[str, Tensor], share: float) -> None:
    """Move the weights of `model` towards those of its backbone: (1 - share)·tuned + share·backbone."""
    if has_adapters(model):
        scale_adapters(model, 1 - share)
        return
    # Names each tensor once; a state dict lists tied ones (T5's two token embeddings) under both names.
    for name, weights in model.named_parameters():
        if weights.is_floating_point():
            weights.lerp_(backbone[name].to(weights), share)


@contextmanager
def blended(model: SentenceTransformer, backbone: Mapping[str, Tensor], share: float) -> Iterator[None]:
    """Blend a model for the length of a block; afterwards its weights are the same, to the last bit."""
    if not share:
        yield
        return
    trained = {name: weights for name, weights in model.named_parameters() if weights.requires_grad}
    tuned = {name: weights.detach().clone() for name, weights in trained.items()}
    blend(model, backbone, share)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, weights in trained.items():
                weights.copy_(tuned[name])


def best_share(scores: Sequence[float]) -> int:
    """Return the position of the highest score, the first of equals: the least of the backbone."""
    return max(range(len(scores)), key=scores.__getitem__)


@dataclass(frozen=True, slots=True)
class FoldCurve:
    """What the run without one part measured on that part.

    Attributes:
        backbone: Spearman of the untouched backbone.
        dev: Spearman (E, S) after each of E evaluations, with each of S shares of the backbone mixed in.
        similarity: Similarities (E, S, B) behind them, of the part's B pairs.
        rows: Positions of the part's pairs among all graded ones.
        progress: Share (0..1) of the run's steps that was taken at each evaluation.
    """

    backbone: float
    dev: list[list[float]]
    similarity: list[list[list[float]]]
    rows: Sequence[int] = ()
    progress: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """How long to train, and what that was worth on pairs that were not trained on.

    Attributes:
        evaluation: Which evaluation (from 1) to stop at; 0 keeps the backbone.
        share: Position of the share of the backbone to mix in.
        scores: Spearman of each part there.
        best: The evaluation with the best mean, which may be an earlier one, see `choose`.
    """

    evaluation: int
    share: int
    scores: list[float]
    best: int = 0

    @property
    def mean(self) -> float:
        """Mean Spearman of the parts."""
        return statistics.fmean(self.scores)

    @property
    def spread(self) -> float:
        """Standard deviation of the parts' Spearman."""
        return statistics.stdev(self.scores)

    def is_near(self, best: Choice) -> bool:
        """Return whether the mean is within one standard error of the difference to the best one."""
        lacks = [high - low for high, low in zip(best.scores, self.scores, strict=True)]
        return statistics.fmean(lacks) <= statistics.stdev(lacks) / math.sqrt(len(lacks))


def choose(curves: Sequence[FoldCurve]) -> Choice:
    """Return the last evaluation that is within one standard error of the best mean over the parts.

    The one-standard-error rule (Breiman et al. 1984, "Classification and Regression Trees"),
    with the planned end of the training for the simplest model: of a few pairs the best evaluation is largely
    chance, and a training that stops early has not run down its learning rate. The error is that of the
    difference to the best, part by part. The untouched backbone counts as evaluation 0; what is not better
    than it is not chosen. Of one evaluation's shares the best is taken, the least of equals.
    """
    backbone = Choice(0, 0, [curve.backbone for curve in curves])
    options = [
        Choice(evaluation + 1, share, [curve.dev[evaluation][share] for curve in curves])
        for evaluation in range(min(len(curve.dev) for curve in curves))
        for share in range(len(curves[0].dev[evaluation]))
    ]
    best = max([backbone, *options], key=lambda option: option.mean)
    if best is backbone:
        return best
    near = [option for option in options if option.mean > backbone.mean and option.is_near(best)]
    last = max(option.evaluation for option in near)
    chosen = max((o for o in near if o.evaluation == last), key=lambda option: option.mean)
    return replace(chosen, best=best.evaluation)


@dataclass(frozen=True, slots=True)
class CrossFit:
    """What the runs without one part each found.

    Attributes:
        choice: When to stop, and how much of the backbone to mix in.
        share: That share.
        before: Similarity (B,) of every graded pair under the untouched backbone.
        after: The same by the run that did not train on the pair, at the chosen evaluation.
        progress: Share (0..1) of a run's steps that is taken at every evaluation, the mean over the parts;
            all pairs are more steps, so that the number of an evaluation does not say when to stop there.
        means: Mean Spearman over the parts after every evaluation, with that share.
        backbone: Mean Spearman of the untouched backbone over the parts.
        sizes: Pairs of each part.
        shared_texts: How many texts of the graded pairs are in several parts, and how many there are.
    """

    choice: Choice
    share: float
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    progress: list[float]
    means: list[float]
    backbone: float
    sizes: list[int]
    shared_texts: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return what the report shows."""
        return {
            "sizes": self.sizes,
            "evaluation": self.choice.evaluation,
            "best": self.choice.best,
            "share": self.share,
            "scores": self.choice.scores,
            "mean": self.choice.mean,
            "spread": self.choice.spread,
            "backbone": self.backbone,
            "progress": self.progress,
            "means": self.means,
            "shared_texts": list(self.shared_texts),
        }


class _PartEvaluator(DevEvaluator):
    """Measures on one part with every share of the backbone, and keeps the similarities in a file."""

    def __init__(
        self,
        part: PairSet,
        start: float,
        backbone: Mapping[str, Tensor],
        shares: Sequence[float],
        file: Path,
    ) -> None:
        super().__init__([part], start)
        self.part, self._backbone, self._shares, self._file = part, backbone, shares, file

    def scores(self, model: Any, steps: int) -> list[float]:
        """Note the part's similarities with each share under this step; return the best share's Spearman."""
        columns = []
        for share in self._shares:
            with blended(model, self._backbone, share):
                columns.append(evaluate_model(model, self.part).tolist())
        rows = {row["step"]: row for _, row in read_jsonl(self._file)} if self._file.exists() else {}
        rows[steps] = {"step": steps, "similarity": columns}
        if is_first():
            write_jsonl(self._file, [rows[step] for step in sorted(rows)])
        return [max(spearman(self.part.score, np.array(column)) for column in columns)]


def cross_fit(
    load: Callable[[], SentenceTransformer],
    human: PairSet,
    others: PairSet | None,
    recipe: Recipe,
    directory: Path,
    fingerprint: Mapping[str, str],
    before: NDArray[np.float64],
) -> CrossFit:
    """Train without each part of the human-graded pairs in turn and choose when to stop.

    Args:
        load: Loads the model that is to be trained.
        human: The graded pairs.
        others: Pairs that all runs train on.
        recipe: How; its `folds` says how many parts.
        directory: Each part's run has a directory in it.
        fingerprint: What decides the run, see `checkpoints.RunDirectory`.
        before: Similarity (B,) of every graded pair under the untouched backbone.

    Raises:
        InputError: There are too few graded pairs, or a directory holds another run.
        KeyboardInterrupt: Ctrl-C; the same call goes on.
    """
    parts = cut(human, recipe.training.folds, recipe.training.seed)
    shares = shares_to_try(recipe.training.average_with_backbone)
    log.info(
        "no dev pairs given: %d human-graded pairs in %d parts, held out in turn, choose the number of steps",
        len(human),
        len(parts),
    )
    recipe = recipe.with_overrides({"patience": _NO_PATIENCE})
    curves = []
    for number, part in enumerate(parts, start=1):
        model = load()
        held_out = human.take(part, f"{human.name}/part {number}")
        backbone = spearman(held_out.score, before[part])
        log.info("part %d of %d: %d pairs, backbone %.2f", number, len(parts), len(part), 100 * backbone)
        rest = human.take([i for i in range(len(human)) if i not in set(part)], human.name)
        run = RunDirectory(directory / f"part-{number}", {**fingerprint, "part": f"{number} of {len(parts)}"})
        pairs = together(others, rest, recipe.objective)
        similarity = _part_run(model, pairs, held_out, recipe, run, shares, backbone)
        schedule = Schedule(recipe.training, len(pairs))
        dev = [[spearman(held_out.score, np.array(c)) for c in columns] for columns in similarity]
        progress = [schedule.step_of(i + 1) / schedule.steps for i in range(len(dev))]
        curves.append(FoldCurve(backbone, dev, similarity, part, progress))
    return _chosen(curves, shares, before, shared_texts(human, parts))


def _part_run(
    model: SentenceTransformer,
    pairs: PairSet,
    part: PairSet,
    recipe: Recipe,
    run: RunDirectory,
    shares: Sequence[float],
    backbone: float,
) -> list[list[list[float]]]:
    """Train without one part, or go on with that, and return the similarities (E, S, B) of its pairs."""
    file = run.path / "measured.jsonl"
    status = on_first(lambda: run.status(overwrite=False))

    def claim() -> Path | None:
        run.path.mkdir(parents=True, exist_ok=True)
        if status == "new":
            file.unlink(missing_ok=True)
        return run.claim(status, overwrite=False)

    if status != "finished":
        resume = on_first(claim)
        evaluator = _PartEvaluator(part, backbone, snapshot(model) if any(shares) else {}, shares, file)
        train(model, pairs, recipe, run.checkpoints, evaluator=evaluator, resume=resume)
        on_first(run.finish)
    return on_first(lambda: [row["similarity"] for _, row in read_jsonl(file)])


def _chosen(
    curves: Sequence[FoldCurve],
    shares: Sequence[float],
    before: NDArray[np.float64],
    shared: tuple[int, int],
) -> CrossFit:
    choice = choose(curves)
    after = before.copy()
    if choice.evaluation:
        for curve in curves:
            after[list(curve.rows)] = curve.similarity[choice.evaluation - 1][choice.share]
    measured = min(len(curve.dev) for curve in curves)
    means = [float(np.mean([curve.dev[i][choice.share] for curve in curves])) for i in range(measured)]
    done = [float(np.mean(at)) for at in zip(*(curve.progress for curve in curves), strict=False)]
    backbone = float(np.mean([curve.backbone for curve in curves]))
    if not choice.evaluation:
        log.info("chosen: the backbone, whose mean over the parts of %.2f no evaluation beat", 100 * backbone)
    else:
        log.info(
            "chosen: evaluation %d of %d; the parts' mean is %.2f ± %.2f there, the backbone's %.2f",
            choice.evaluation,
            measured,
            100 * choice.mean,
            100 * choice.spread,
            100 * backbone,
        )
        if shares[choice.share]:
            log.info("with %.0f %% of the backbone mixed in", 100 * shares[choice.share])
    sizes = [len(curve.rows) for curve in curves]
    return CrossFit(choice, shares[choice.share], before, after, done, means, backbone, sizes, shared)
