"""A search for a recipe that ranks the dev pairs better than the given one; test pairs are not read.

Successive halving (Jamieson and Talwalkar 2016, https://arxiv.org/abs/1502.07943): every trial begins its
training in full, and after each round only the best go on with theirs. Every trial is a run in a directory of
its own, which keeps the similarities that were measured, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from angle_data.console import Progress, at_level
from angle_data.errors import InputError
from angle_data.jsonl import write_json, write_text
from angle_data.locking import hold
from angle_train.data.splits import RunData, run_leaks
from angle_train.evaluation.bootstrap import Difference, difference_between
from angle_train.evaluation.similarity import evaluate_model
from angle_train.model.load import check_device
from angle_train.recipe import Recipe
from angle_train.report.result import mean_spearman
from angle_train.report.text import Table, aligned, interval_text
from angle_train.run import (
    FitConfig,
    fingerprint,
    keep_similarities,
    load_at_length,
    load_data,
    load_for_run,
    untouched,
)
from angle_train.train.arguments import Schedule
from angle_train.train.choosing import Choice, Columns, climb, resampled, what_pairs_show
from angle_train.train.processes import process_count
from angle_train.train.ranges import SPACE, Range, draw_trials, usable
from angle_train.train.run_directory import HIDDEN, RunDirectory, check_out
from angle_train.train.trainer import NO_PATIENCE, DevEvaluator, TrainOptions, train
from angle_train.train.watch import memory_errors_in_one_line

log = logging.getLogger("angle.fit")

_FACTOR = 3  # each round keeps the best third, and lasts until three times as much is trained


@dataclass(frozen=True, slots=True)
class GridConfig:
    """What to search.

    Attributes:
        run: The run whose recipe is searched around; needs dev pairs, its test pairs are not read.
        trials: Recipes to try, the given one among them.
        rungs: Rounds; each goes on with the best third and the given recipe, up to three times as many steps.
        seed: Decides which recipes are drawn.
        space: What they are drawn from.
    """

    run: FitConfig
    trials: int = 27
    rungs: int = 3
    seed: int = 0
    space: Mapping[str, Range] = field(default_factory=lambda: SPACE)


@dataclass(frozen=True, slots=True)
class Row:
    """A trial at the end of a round.

    Attributes:
        rung: Round, from 0.
        trial: Number of the recipe; 0 is the given one.
        steps: Steps taken so far.
        dev: Mean Spearman on the dev sets there.
        gain: That minus the same of the given recipe, as `delta`, and its interval; none for that one.
        values: What the trial changes in the recipe.
    """

    rung: int
    trial: int
    steps: int
    dev: float
    gain: Difference | None
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class GridResult:
    """What was found.

    Attributes:
        rows: Every trial at the end of every round that it was in, in order.
        best: The chosen trial's row of the last round.
        choice: How it was chosen among all trials, see `train.choosing`.
        recipe: Its recipe.
        backbone: Mean Spearman of the untouched backbone.
    """

    rows: list[Row]
    best: Row
    choice: Choice
    recipe: Recipe
    backbone: float

    def verdict(self) -> str:
        """Return in one sentence what was chosen, and how sure that is."""
        last = [row for row in self.rows if row.rung == self.best.rung]
        row = self.best if self.best.trial else max(last, key=lambda row: (row.dev, -row.trial))
        chance = f"confidence {self.choice.confidence:.2f}, {self.choice.compared} compared"
        if self.best.trial:
            return f"Trial {row.trial} is better than the recipe as given: {_in_points(row.gain)} ({chance})."
        if not row.trial:
            return f"No trial was better than the recipe as given ({chance}): that one is kept."
        return (
            f"No trial is surely better than the recipe as given, which is kept: at best trial {row.trial}, "
            f"{_in_points(row.gain)} ({chance})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "format": 2,
            "best": asdict(self.best),
            "choice": self.choice.to_dict(),
            "backbone": self.backbone,
            "verdict": self.verdict(),
            "rows": [asdict(row) for row in self.rows],
        }


def search(config: GridConfig) -> GridResult:
    """Search, or go on searching, and write `grid.json` and `recipe.toml`.

    Raises:
        InputError: Something about the inputs or the directory is wrong, or several processes run.
        KeyboardInterrupt: Ctrl-C; the same call goes on with the training that was cut off.
    """
    run, out = config.run, config.run.out
    if not run.dev:
        raise InputError("a grid needs dev pairs to choose on; give --dev")
    if process_count() > 1:
        raise InputError("a grid runs in one process; start it without torchrun")
    check_device(run.device, numbered=False)
    check_out(out)
    data = load_data(replace(run, test=()))
    run = replace(run, recipe=data.recipe)
    config = replace(config, run=run, space=usable(config.space, run.recipe))
    pairs = len(data.train) + (len(data.kept) if data.kept else 0)
    ends = round_ends(run.recipe, pairs, config.rungs)
    if len(set(ends)) < len(ends):
        raise InputError(
            f"--rungs {config.rungs}: rounds end at evaluations, and the recipe has too few of them; "
            f"give --rungs {len(set(ends))}, or --set evals_per_epoch=N with a larger N"
        )
    sizes = planned(config.trials, config.rungs)
    parts = zip(sizes, ends, [0, *ends], strict=False)
    shares = [size * (end - start) / ends[-1] for size, end, start in parts]
    log.info(
        "rounds of %s trials at most, the given recipe in each: as long as %.1f trainings in full",
        ", ".join(map(str, sizes)),
        sum(shares),
    )
    log.info("%s", what_pairs_show(data.dev))
    run_leaks(data)
    if run.recipe.training.average_with_backbone:
        log.info("trials are compared before the backbone is mixed in; fit does that with what is found")
    with memory_errors_in_one_line(), hold(out / HIDDEN):
        directory = RunDirectory(out, _fingerprint(config, data), ("trials", "grid.json", "recipe.toml"))
        status = directory.status(overwrite=run.overwrite)
        grid = _Grid(config, data, directory.trials)  # refuses what cannot be, before anything is replaced
        directory.claim(status, overwrite=run.overwrite)
        result = grid.finish()
        write_json(out / "grid.json", result.to_dict(), indent=1)
        write_text(out / "recipe.toml", result.recipe.to_toml_text())
        directory.finish()
    return result


class _Grid:
    """A search under way, with a directory for the run of each trial in `trials`.

    Attributes:
        measured: Round and trial -> similarities of every dev set at the end of the round.
        steps: Round and trial -> steps taken until then.
    """

    def __init__(self, config: GridConfig, data: RunData, trials: Path) -> None:
        self.config, self.trials = config, trials
        self.run, model, _ = load_at_length(config.run, data)
        self.data = data = keep_similarities(self.run, data, model)
        backbone = untouched(self.run, model)
        self.backbone = mean_spearman(data.dev, [evaluate_model(backbone, pairs) for pairs in data.dev])
        self.recipes = draw_trials(config.space, config.trials, config.seed, config.run.recipe)
        self.measured: dict[tuple[int, int], Columns] = {}
        self.steps: dict[tuple[int, int], int] = {}
        log.info("the untouched backbone: dev Spearman %.2f", 100 * self.backbone)

    def finish(self) -> GridResult:
        """Take the trainings that remain and return what was found."""
        trials, last = list(range(len(self.recipes))), self.config.rungs - 1
        for rung in range(self.config.rungs):
            scores = self._round(rung, trials)
            going_on = survivors(scores) if rung < last else []
            for trial in set(trials) - set(going_on):
                self._directory(trial).tidy()
            trials = going_on or trials
        return self._result(last, trials)

    def _round(self, rung: int, trials: Sequence[int]) -> dict[int, float]:
        """Train every trial of a round up to its end and return the dev score of each."""
        scores = {}
        log.info("round %d of %d: %d trials", rung + 1, self.config.rungs, len(trials))
        with Progress(f"round {rung + 1}", len(trials)) as progress:
            for trial in trials:
                self._train(rung, trial)
                scores[trial] = mean_spearman(self.data.dev, self.measured[rung, trial])
                log.info("trial %d: dev Spearman %.2f", trial, 100 * scores[trial])
                progress.advance()
        return scores

    def _directory(self, trial: int) -> RunDirectory:
        values = json.dumps(self.recipes[trial], sort_keys=True)
        return RunDirectory(self.trials / f"trial-{trial}", {"values": values})

    def _train(self, rung: int, trial: int) -> None:
        """Train a trial up to the end of a round, unless it has been measured there."""
        run = replace(self.run, recipe=self.run.recipe.with_overrides(self.recipes[trial]))
        directory = self._directory(trial)
        end = round_ends(run.recipe, len(self.data.train), self.config.rungs)[rung]
        evaluator = DevEvaluator(self.data.dev, self.backbone, directory.path / "measured.jsonl")
        self.steps[rung, trial] = end
        if end not in evaluator.measured():
            resume = directory.claim(directory.status(overwrite=False), overwrite=False)
            debugging = log.isEnabledFor(logging.DEBUG)
            with nullcontext() if debugging else at_level(logging.WARNING, log.name):
                train(
                    load_for_run(run),
                    self.data.train,
                    run.recipe.with_overrides({"patience": NO_PATIENCE}),
                    directory.checkpoints,
                    evaluator=evaluator,
                    resume=resume,
                    options=TrainOptions(stop_at=end),
                )
        self.measured[rung, trial] = evaluator.measured()[end]

    def _result(self, last: int, finalists: Sequence[int]) -> GridResult:
        """Choose among the trials of the last round; those that dropped out count as compared."""
        places = list(self.measured)
        scores, drawn = resampled(self.data.dev, [self.measured[place] for place in places])
        at = {place: number for number, place in enumerate(places)}
        left = {trial: rung for rung, trial in places}  # the last round that each was in
        rivals = [trial for trial in left if trial]
        base = at[last, 0]
        # What a trial that dropped out was ahead of the given recipe then, it counts as ahead of it now.
        ahead = [(at[left[trial], trial], at[left[trial], 0]) for trial in rivals]
        choice = climb(
            np.array([scores[base], *(scores[base] + scores[i] - scores[j] for i, j in ahead)]),
            np.array([drawn[base], *(drawn[base] + drawn[i] - drawn[j] for i, j in ahead)]),
            [0, *(1 for _ in rivals)],
            [1 + number for number, trial in enumerate(rivals) if trial not in finalists],
        )
        rows = [
            Row(
                rung,
                trial,
                self.steps[rung, trial],
                float(scores[i]),
                difference_between(float(scores[i] - scores[at[rung, 0]]), drawn[at[rung, 0]], drawn[i])
                if trial
                else None,
                self.recipes[trial],
            )
            for (rung, trial), i in at.items()
        ]
        best = rivals[choice.chosen - 1] if choice.chosen else 0
        recipe = self.config.run.recipe.with_overrides(self.recipes[best])
        if best:
            recipe = replace(recipe, description=f"Trial {best} of a grid of {len(self.recipes)}.")
        (row,) = (row for row in rows if (row.rung, row.trial) == (last, best))
        return GridResult(rows, row, choice, recipe, self.backbone)


def round_ends(recipe: Recipe, pairs: int, rungs: int) -> list[int]:
    """Return the steps at which rounds end: evaluations, each near a third of the next; the last of all."""
    schedule = Schedule(recipe.training, pairs)
    evaluations = math.ceil(schedule.steps / schedule.every)
    shares = [float(_FACTOR) ** (rung + 1 - rungs) for rung in range(rungs)]
    return [schedule.step_of(max(1, round(evaluations * share))) for share in shares]


def _fingerprint(config: GridConfig, data: RunData) -> dict[str, str]:
    space = {name: asdict(found) for name, found in config.space.items()}
    return {part: text for part, text in fingerprint(config.run, data).items() if text} | {
        "ranges": json.dumps(space),
        "seed": str(config.seed),
    }


def ranked(scores: Mapping[int, float]) -> list[int]:
    """Return the trials by their dev scores, the best first and the earlier of equals before the later."""
    return sorted(scores, key=lambda trial: (-scores[trial], trial))


def survivors(scores: Mapping[int, float]) -> list[int]:
    """Return the trials that go on to the next round: the best third and always trial 0, in order of number.

    Trial 0, to compare the others with, does not take another one's place: of 27 go on 9, or 10 with it.
    """
    return sorted({0, *ranked(scores)[: math.ceil(len(scores) / _FACTOR)]})


def planned(trials: int, rungs: int) -> list[int]:
    """Return how many trials are in each round at most, which is where trial 0 is never among the best."""
    sizes = [trials]
    while len(sizes) < rungs:
        sizes.append(min(sizes[-1], math.ceil(sizes[-1] / _FACTOR) + 1))
    return sizes


def _in_points(gain: Difference | None) -> str:
    if gain is None:
        return ""
    return f"{100 * gain.delta:+.1f} {interval_text(gain)}"


def grid_table(result: GridResult) -> str:
    """Return every trial of every round as a line, the last round and the best first."""
    names = list(dict.fromkeys(name for row in result.rows for name in row.values))
    cells = []
    for row in sorted(result.rows, key=lambda row: (-row.rung, -row.dev)):
        values = [f"{row.values[name]:g}" if name in row.values else "as given" for name in names]
        figures = [row.rung + 1, row.trial, row.steps, f"{100 * row.dev:.2f}", _in_points(row.gain)]
        cells.append([*map(str, figures), *values])
    columns = ["round", "trial", "steps", "dev", "against given", *names]
    lines = aligned(Table(columns, cells, range(len(columns))))
    return "\n".join(
        [
            *lines,
            "Spearman x 100 on the dev pairs, and the difference to the recipe as given, in the same round, "
            f"with its 95 % interval; the backbone has {100 * result.backbone:.2f}.",
        ]
    )
