"""A search for a recipe that ranks the dev pairs better than the given one; test pairs are not read.

Successive halving (Jamieson and Talwalkar 2016, https://arxiv.org/abs/1502.07943): every trial begins its
training in full, and after each round only the best go on with theirs. Every trial is a run in a directory of
its own, which keeps the similarities that were measured, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from angle_data.console import Progress, at_level
from angle_data.errors import InputError
from angle_data.jsonl import write_json, write_text
from angle_data.locking import hold
from angle_train.data.splits import RunData, run_leaks
from angle_train.evaluation.similarity import mean_spearman, measure
from angle_train.evaluation.statistics import Difference, difference_between
from angle_train.model.load import check_device
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.report.text import Table, aligned, interval_text
from angle_train.run import (
    fingerprint,
    keep_similarities,
    load_at_length,
    load_data,
    load_for_run,
    untouched,
)
from angle_train.train.arguments import Schedule
from angle_train.train.choosing import Columns, climb, resampled, too_few, what_pairs_show
from angle_train.train.folds import measured_run
from angle_train.train.processes import process_count
from angle_train.train.run_directory import HIDDEN, RunDirectory, check_free, check_out
from angle_train.train.watch import memory_errors_in_one_line

log = logging.getLogger("angle.fit")

_FACTOR = 3  # each round keeps the best third, and lasts until three times as much is trained
SPACE = {
    **{weight: (0.02, 2.0, 0.2) for weight in ("in_batch_weight", "angle_weight")},
    "cosine_tau": (0.02, 0.2, 0.0),
    "in_batch_tau": (0.02, 0.2, 0.0),
    "angle_tau": (0.03, 1.0, 0.0),  # above that the term hardly pulls
    "learning_rate": (5e-6, 3e-4, 0.0),
}
"""Weights, temperatures and learning rate, around the presets' and the papers' values: from and to, drawn on
a logarithmic scale, and the share of draws that are 0, a term left out.

The cosine weight stays: all three times the same factor are the same training, since AdamW and the clipping
of gradients take the scale of a loss out.
"""

Found = dict[tuple[int, int], tuple[int, Columns]]
"""Round and trial, both from 0 -> steps taken until its end, and the similarities of every dev set there."""


def search(
    run: FitOptions, reason: str = "", trials: int = 27, rungs: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Search around the recipe of a run, or go on searching, and write `grid.json` and `recipe.toml`.

    Args:
        run: The run; needs dev pairs, and its test pairs are not read.
        reason: Why with that recipe, see `run.fit`.
        trials: Recipes to try, the given one among them.
        rungs: Rounds; each goes on with the best third and the given recipe, up to three times as many steps.
        seed: Decides which recipes are drawn.

    Returns:
        What `grid.json` holds. `rows`: every trial at the end of every round that it was in, with its number
        (0 is the given recipe), the `steps` taken so far, the mean Spearman on the dev sets there (`dev`),
        that minus the same of the given recipe (`gain`), and what it changes in the recipe (`values`).
        `best`: the chosen trial's row of the last round. `choice`: how it was chosen, see `train.choosing`;
        `verdict`: the same in a sentence. `backbone`: mean Spearman of the untouched backbone.

    Raises:
        InputError: Something about the inputs or the directory is wrong, or several processes run.
        KeyboardInterrupt: Ctrl-C; the same call goes on with the training that was cut off.
    """
    if process_count() > 1:
        raise InputError("a grid runs in one process; start it without torchrun")
    check_device(run.device, numbered=False)
    check_out(run.out)
    check_free(run.out)
    data = load_data(replace(run, test=None), reason)
    run = replace(run, recipe=data.recipe)
    values = draw_trials(trials, seed, run.recipe)
    if (refused := too_few(data.dev)) is not None:
        raise InputError(refused)
    log.info("%s", what_pairs_show(data.dev))
    run_leaks(data)
    if run.recipe.training.average_with_backbone:
        log.info("trials are compared before the backbone is mixed in; fit does that with what is found")
    with memory_errors_in_one_line(), hold(run.out / HIDDEN):
        directory = RunDirectory(run.out, fingerprint(run, data) | {"seed of the grid": str(seed)}, grid=True)
        status = directory.status(overwrite=run.overwrite)
        run, model, _ = load_at_length(run, data)  # refuses what cannot be, before anything is replaced
        data = keep_similarities(run, data, model)
        before = mean_spearman(data.dev, measure(untouched(run, model), data.dev))
        log.info("the untouched backbone: dev Spearman %.2f", 100 * before)
        directory.claim(status)
        result = _result(_rounds(run, data, values, rungs, directory.trials), data, values, before)
        write_json(run.out / "grid.json", result, indent=1)
        best = result["best"]["trial"]
        recipe = run.recipe.with_overrides(values[best])
        if best:
            recipe = replace(recipe, description=f"Trial {best} of a grid of {trials}.")
        write_text(run.out / "recipe.toml", recipe.to_toml_text())
        directory.finish()
    return result


def draw_trials(count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials, to three digits; the first has none: `recipe` as it is.

    More trials of a seed begin with the same ones. Draws that the recipe does not allow (all weights 0) are
    drawn again, and a term that it leaves out has no temperature.
    """
    generator = random.Random(seed)
    names = [name for name in SPACE if name != "cosine_tau" or recipe.objective.cosine_weight != 0]
    trials: list[dict[str, float]] = [{}]
    while len(trials) < count:
        values = {}
        for name in names:
            low, high, zero = SPACE[name]
            left_out = generator.random() < zero
            value = 0.0 if left_out else math.exp(generator.uniform(math.log(low), math.log(high)))
            values[name] = float(f"{value:.3g}")
        with suppress(InputError):
            recipe.with_overrides(values)
            trials.append(values)
    return trials


def _rounds(
    run: FitOptions, data: RunData, values: Sequence[Mapping[str, float]], rungs: int, trials: Path
) -> Found:
    """Take the trainings that remain, each trial's in a directory of its own in `trials`."""
    found: Found = {}
    going_on = list(range(len(values)))
    ends = round_ends(run.recipe, len(data.train), rungs)
    for rung, end in enumerate(ends):
        log.info("round %d of %d: %d trials", rung + 1, len(ends), len(going_on))
        scores = {}
        with Progress(f"round {rung + 1}", len(going_on)) as progress:
            for trial in going_on:
                given = json.dumps(values[trial], sort_keys=True)
                directory = RunDirectory(trials / f"trial-{trial}", {"values": given})
                own = replace(run, recipe=run.recipe.with_overrides(values[trial]))
                with at_level(log.level if log.isEnabledFor(logging.DEBUG) else logging.WARNING, log.name):
                    measured = measured_run(
                        directory, partial(load_for_run, own), data.train, data.dev, own.recipe, end
                    )
                columns = measured[end]
                found[rung, trial] = end, columns
                scores[trial] = mean_spearman(data.dev, columns)
                log.info("trial %d: dev Spearman %.2f", trial, 100 * scores[trial])
                progress.advance()
        # Trial 0, to compare the others with, does not take another one's place.
        best = sorted(scores, key=lambda trial: (-scores[trial], trial))[: math.ceil(len(scores) / _FACTOR)]
        staying = {0, *best} if rung + 1 < len(ends) else set[int]()
        for trial in set(going_on) - staying:
            RunDirectory(trials / f"trial-{trial}", {}).tidy()
        going_on = sorted(staying)
    return found


def _result(
    found: Found, data: RunData, values: Sequence[Mapping[str, float]], backbone: float
) -> dict[str, Any]:
    """Choose among the trials of the last round; those that dropped out count as compared."""
    scores, drawn = resampled(data.dev, [columns for _, columns in found.values()])
    at = {place: number for number, place in enumerate(found)}
    left = {trial: rung for rung, trial in found}  # the last round that each was in
    last, rivals = max(left.values()), [trial for trial in left if trial]
    base = at[last, 0]
    # What a trial that dropped out was ahead of the given recipe then, it counts as ahead of it now.
    ahead = [(at[left[trial], trial], at[left[trial], 0]) for trial in rivals]
    choice = climb(
        np.array([scores[base], *(scores[base] + scores[i] - scores[j] for i, j in ahead)]),
        np.array([drawn[base], *(drawn[base] + drawn[i] - drawn[j] for i, j in ahead)]),
        [0, *(1 for _ in rivals)],
        [1 + number for number, trial in enumerate(rivals) if left[trial] < last],
    )
    rows: list[dict[str, Any]] = []
    for (rung, trial), i in at.items():
        given = at[rung, 0]
        gain = difference_between(float(scores[i] - scores[given]), drawn[given], drawn[i])
        row = {"rung": rung, "trial": trial, "steps": found[rung, trial][0], "dev": float(scores[i])}
        rows.append(row | {"gain": asdict(gain) if trial else None, "values": values[trial]})
    finalists = {row["trial"]: row for row in rows if row["rung"] == last}
    best = finalists[rivals[choice.chosen - 1] if choice.chosen else 0]
    assert choice.confidence is not None  # there are pairs enough
    chance = f"confidence {choice.confidence:.2f}, {choice.compared} compared"
    row = max(finalists.values(), key=lambda row: (row["dev"], -row["trial"]))
    if best["trial"]:
        said = f"Trial {best['trial']} is better than the recipe as given: {_in_points(best)} ({chance})."
    elif row["dev"] <= 0:
        said = "No trial ranks the dev pairs better than chance would: the recipe as given is kept."
    elif not row["trial"]:
        said = f"No trial was better than the recipe as given ({chance}): that one is kept."
    else:
        said = (
            "No trial is surely better than the recipe as given, which is kept: at best trial "
            f"{row['trial']}, {_in_points(row)} ({chance})."
        )
    return {
        "format": 2,
        "best": best,
        "choice": choice.to_dict(),
        "backbone": backbone,
        "verdict": said,
        "rows": rows,
    }


def round_ends(recipe: Recipe, pairs: int, rungs: int) -> list[int]:
    """Return the steps at which rounds end: evaluations, each near a third of the next; the last of all.

    Fewer than `rungs` where two would end at the same evaluation.
    """
    schedule = Schedule(recipe.training, pairs)
    evaluations = math.ceil(schedule.steps / schedule.every)
    shares = [float(_FACTOR) ** (rung + 1 - rungs) for rung in range(rungs)]
    return sorted({schedule.step_of(max(1, round(evaluations * share))) for share in shares})


def _in_points(row: Mapping[str, Any]) -> str:
    gain = row["gain"] and Difference(**row["gain"])
    return f"{100 * gain.delta:+.1f} {interval_text(gain)}" if gain else ""


def grid_table(result: Mapping[str, Any]) -> str:
    """Return every trial of every round as a line, the last round and the best first."""
    names = list(dict.fromkeys(name for row in result["rows"] for name in row["values"]))
    cells = []
    for row in sorted(result["rows"], key=lambda row: (-row["rung"], -row["dev"])):
        values = [f"{row['values'][name]:g}" if name in row["values"] else "as given" for name in names]
        figures = [row["rung"] + 1, row["trial"], row["steps"], f"{100 * row['dev']:.2f}", _in_points(row)]
        cells.append([*map(str, figures), *values])
    columns = ["round", "trial", "steps", "dev", "against given", *names]
    return "\n".join(
        [
            *aligned(Table(columns, cells, range(len(columns)))),
            "Spearman x 100 on the dev pairs, and the difference to the recipe as given, in the same round, "
            f"with its 95 % interval; the backbone has {100 * result['backbone']:.2f}.",
        ]
    )
