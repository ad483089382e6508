"""A search for the recipe that ranks the dev pairs best, by successive halving; test pairs are not read.

Finished trainings are kept in a journal, so that a search that was interrupted goes on with the next one.
"""

from __future__ import annotations

import json
import logging
import math
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, replace_file, write_jsonl
from angle_data.locking import hold
from angle_train.data.splits import RunData, run_leaks
from angle_train.evaluate.bootstrap import Difference, paired_bootstrap
from angle_train.evaluate.similarity import evaluate_model
from angle_train.fit import FitConfig, fingerprint, load_at_length, load_data, load_for_run, untouched
from angle_train.model.load import check_device
from angle_train.recipe import SECTIONS, Recipe, changed_parts, read_toml
from angle_train.report.result import mean_spearman
from angle_train.train.arguments import warn_of_emulation
from angle_train.train.checkpoints import HIDDEN
from angle_train.train.processes import process_count
from angle_train.train.trainer import DevEvaluator, train
from angle_train.train.watch import memory_errors_in_one_line

log = logging.getLogger("angle.fit")

_JOURNAL, _RESULT, _RECIPE = "grid.jsonl", "grid.json", "recipe.toml"
_SIMILARITIES = "similarities"
_FACTOR = 3  # each round keeps the best third and trains it three times as long
_MOST_REFUSED = 1000  # draws in a row
_NOT_SEARCHED = {
    "epochs": "the rounds decide how long a trial trains",
    "average_with_backbone": "trials are compared before the backbone is mixed in",
    "human_weight": "it is given to the pairs before the search",
    "folds": "a grid has dev pairs",
    "seed": "it is no better for being lucky on the dev pairs",
}


@pydantic_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class Range:
    """A positive value on a logarithmic scale.

    Attributes:
        low: The least.
        high: The most.
        zero: Share of the draws that are 0 instead: a term that is switched off.
    """

    low: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    high: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    zero: Annotated[float, Field(ge=0, le=1)] = 0.0

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError("low must be below high")

    def draw(self, generator: random.Random) -> float:
        """Return a value, rounded to three digits."""
        if generator.random() < self.zero:
            return 0.0
        value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        return float(f"{value:.3g}")


SPACE: dict[str, Range] = {
    **{weight: Range(0.02, 2.0, zero=0.2) for weight in ("cosine_weight", "in_batch_weight", "angle_weight")},
    "cosine_tau": Range(0.02, 0.2),
    "in_batch_tau": Range(0.02, 0.2),
    "angle_tau": Range(0.2, 5.0),
    "learning_rate": Range(5e-6, 3e-4),
}
"""The default: the three weights, the temperatures and the learning rate, around the papers' values."""


@dataclass(frozen=True, slots=True)
class GridConfig:
    """What to search.

    Attributes:
        run: The run whose recipe is searched around; needs dev pairs, its test pairs are not read.
        trials: Recipes to try, the given one among them.
        rungs: Rounds; each trains the best third, and the given recipe, for three times as long.
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
    """One training.

    Attributes:
        rung: Round, from 0.
        trial: Number of the recipe; 0 is the given one.
        epochs: How long it trained at most.
        dev: Best mean Spearman on the dev sets.
        best_step: The step it came from.
        steps: Steps taken.
        values: What the trial changes in the recipe.
    """

    rung: int
    trial: int
    epochs: float
    dev: float
    best_step: int
    steps: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class GridResult:
    """What was found.

    Attributes:
        rows: Every training, in order.
        best: The winning row of the last round.
        recipe: Its recipe, for training in full.
        backbone: Mean Spearman of the untouched backbone.
        differences: The winner minus the given recipe by dev set; empty if the given one won.
    """

    rows: list[Row]
    best: Row
    recipe: Recipe
    backbone: float
    differences: dict[str, Difference]

    def verdict(self) -> str:
        """Return in one sentence whether the winner is worth taking."""
        if not self.best.trial:
            return "No trial was better than the recipe as given."
        gains = ", ".join(
            f"{name}: {100 * d.delta:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}]"
            for name, d in self.differences.items()
        )
        better = any(difference.low > 0 for difference in self.differences.values())
        found, advice = (
            ("better than", ", on the pairs that it was chosen on")
            if better
            else ("within the noise of", "; nothing is lost by keeping that one")
        )
        return f"Trial {self.best.trial} is {found} the recipe as given ({gains}){advice}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "format": 1,
            "best": asdict(self.best),
            "backbone": self.backbone,
            "differences": {
                name: asdict(difference) | {"verdict": difference.verdict}
                for name, difference in self.differences.items()
            },
            "verdict": self.verdict(),
            "rows": [asdict(row) for row in self.rows],
        }


def search(config: GridConfig) -> GridResult:
    """Search, or go on searching, and write `grid.jsonl`, `grid.json` and `recipe.toml`.

    Raises:
        InputError: Something about the inputs or the directory is wrong, or several processes run.
        KeyboardInterrupt: Ctrl-C; the same call goes on with the training that was cut off.
    """
    run, out = config.run, config.run.out
    if not run.dev:
        raise InputError("a grid needs dev pairs to choose on; give --dev")
    if process_count() > 1:
        raise InputError("a grid runs in one process; start it without torchrun")
    if config.rungs > most_rungs(config.trials):
        raise InputError(
            f"--rungs {config.rungs} is more than {config.trials} trials need; "
            f"give at most {most_rungs(config.trials)}"
        )
    check_device(run.device, numbered=False)
    check_space(config.space, run.recipe)
    draw_trials(config.space, config.trials, config.seed, run.recipe)  # refuses before anything is loaded
    data = load_data(replace(run, test=()))
    run = replace(run, recipe=data.recipe)
    config = replace(config, run=run)
    sizes = planned(config.trials, config.rungs)
    cost = sum(size * _share(rung, config.rungs) for rung, size in enumerate(sizes))
    log.info(
        "rounds of %s trainings at most, the given recipe in each: as long as %.1f trainings in full",
        ", ".join(map(str, sizes)),
        cost,
    )
    run_leaks(data)
    if run.recipe.training.average_with_backbone:
        log.info("trials are compared before the backbone is mixed in; fit does that with what is found")
    with memory_errors_in_one_line(), hold(out / HIDDEN):
        rows = _read_journal(config, data)
        _write_journal(config, data, rows)
        result = _Grid(config, data, rows).finish()
        shutil.rmtree(out / "trials", ignore_errors=True)
        with replace_file(out / _RESULT) as stream:
            json.dump(result.to_dict(), stream, indent=1)
            stream.write("\n")
        with replace_file(out / _RECIPE) as stream:  # the last file: it says that the grid is finished
            stream.write(result.recipe.to_toml_text())
    return result


class _Grid:
    """A search under way: its inputs and the trainings so far."""

    def __init__(self, config: GridConfig, data: RunData, rows: list[Row]) -> None:
        self.config, self.data, self.rows = config, data, rows
        self.run, model, _ = load_at_length(config.run, data)
        warn_of_emulation(config.run.recipe.training.precision, model.device)
        backbone = untouched(self.run, model)
        self.backbone = mean_spearman(data.dev, [evaluate_model(backbone, pairs) for pairs in data.dev])
        log.info("the untouched backbone: dev Spearman %.2f", 100 * self.backbone)

    def finish(self) -> GridResult:
        """Take the trainings that remain and return what was found."""
        config = self.config
        recipes = draw_trials(config.space, config.trials, config.seed, config.run.recipe)
        chosen = list(range(len(recipes)))
        for rung in range(config.rungs):
            scores = self._round(rung, {trial: recipes[trial] for trial in chosen})
            chosen = survivors(scores)
        best = ranked(scores)[0]
        recipe = config.run.recipe.with_overrides(recipes[best])
        return GridResult(
            rows=self.rows,
            best=next(row for row in self.rows if (row.rung, row.trial) == (config.rungs - 1, best)),
            recipe=replace(recipe, description=f"Trial {best} of a grid of {len(recipes)}."),
            backbone=self.backbone,
            differences=self._differences(best) if best else {},
        )

    def _round(self, rung: int, recipes: Mapping[int, dict[str, float]]) -> dict[int, float]:
        """Train every recipe of a round that is not in the journal and return the dev score of each."""
        epochs = self.run.recipe.training.epochs * _share(rung, self.config.rungs)
        log.info("round %d of %d: %d recipes, %.2f epochs", rung + 1, self.config.rungs, len(recipes), epochs)
        done = {row.trial: row for row in self.rows if row.rung == rung}
        with Progress(f"round {rung + 1}", len(recipes)) as progress:
            progress.skip(len(done))
            for trial, values in recipes.items():
                if trial not in done:
                    done[trial] = row = self._train(rung, trial, values, epochs)
                    self.rows.append(row)
                    _write_journal(self.config, self.data, self.rows)
                    log.info("trial %d: dev Spearman %.2f", trial, 100 * row.dev)
                    progress.advance()
        return {trial: done[trial].dev for trial in recipes}

    def _train(self, rung: int, trial: int, values: dict[str, float], epochs: float) -> Row:
        run = replace(self.run, recipe=self.run.recipe.with_overrides({**values, "epochs": epochs}))
        folder = run.out / "trials" / f"round-{rung + 1}-trial-{trial}"
        shutil.rmtree(folder, ignore_errors=True)
        model = load_for_run(run)
        with _quiet():
            evaluator = DevEvaluator(self.data.dev, self.backbone)
            done = train(model, self.data.train, run.recipe, folder, evaluator=evaluator)
        columns = [evaluate_model(model, pairs) for pairs in self.data.dev]
        if rung == self.config.rungs - 1:
            similarities = run.out / _SIMILARITIES
            similarities.mkdir(parents=True, exist_ok=True)
            np.save(similarities / f"trial-{trial}.npy", np.concatenate(columns))
        shutil.rmtree(folder, ignore_errors=True)
        dev = mean_spearman(self.data.dev, columns)
        return Row(rung, trial, epochs, dev, done.best_step, done.steps, values)

    def _differences(self, best: int) -> dict[str, Difference]:
        """Return how much better trial `best` ranks each dev set than the given recipe."""
        folder = self.run.out / _SIMILARITIES
        before, after = (np.load(folder / f"trial-{trial}.npy") for trial in (0, best))
        found, start = {}, 0
        for pairs in self.data.dev:
            part = slice(start, start := start + len(pairs))
            found[pairs.name] = paired_bootstrap(pairs.score, before[part], after[part])
        return found


def _share(rung: int, rungs: int) -> float:
    """Return the share of the full training that a round takes, from 0; the last takes all."""
    return float(_FACTOR) ** (rung + 1 - rungs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out the log lines of single trainings, unless debugging."""
    level = log.level
    if not log.isEnabledFor(logging.DEBUG):
        log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(level)


def _fingerprint(config: GridConfig, data: RunData) -> dict[str, str]:
    space = {name: asdict(found) for name, found in config.space.items()}
    return {part: text for part, text in fingerprint(config.run, data).items() if text} | {
        "ranges": json.dumps(space),
        "number of trials, rounds or seed": f"{config.trials} {config.rungs} {config.seed}",
    }


def _read_journal(config: GridConfig, data: RunData) -> list[Row]:
    """Return the trainings in the journal of `--out`, having checked that they are of this search.

    Raises:
        InputError: The directory holds something else, or another search.
    """
    out = config.run.out
    journal = out / _JOURNAL
    if not journal.is_file():
        if any(item.name != HIDDEN for item in out.iterdir()) and not config.run.overwrite:
            raise InputError(f"--out {out} is not empty and holds no earlier grid; give another one")
        return []
    (_, head), *lines = read_jsonl(journal)
    changed = changed_parts(head.get("fingerprint", {}), _fingerprint(config, data))
    finished = (out / _RECIPE).is_file()
    if config.run.overwrite and (finished or changed or not head.get("overwrite")):
        for name in (_RECIPE, _RESULT, _JOURNAL):
            (out / name).unlink(missing_ok=True)
        return []
    if changed:
        raise InputError(
            f"--out {out} holds a grid with different {', '.join(changed)}; "
            "give another directory, or --overwrite to replace that grid"
        )
    return [Row(**row) for _, row in lines]


def _write_journal(config: GridConfig, data: RunData, rows: Sequence[Row]) -> None:
    # That it began with --overwrite is noted, so that the same command goes on with it.
    head = {"fingerprint": _fingerprint(config, data), "overwrite": config.run.overwrite}
    write_jsonl(config.run.out / _JOURNAL, [head, *map(asdict, rows)])


# Successive halving (Jamieson and Talwalkar 2016, https://arxiv.org/abs/1502.07943).


def ranked(scores: Mapping[int, float]) -> list[int]:
    """Return the trials by their dev scores, the best first and the earlier of equals before the later."""
    return sorted(scores, key=lambda trial: (-scores[trial], trial))


def survivors(scores: Mapping[int, float]) -> list[int]:
    """Return the trials that go on to the next round: the best third and always trial 0, in order of number.

    Trial 0, to compare the winner with, does not take another one's place: of 27 go on 9, or 10 with it.
    """
    return sorted({0, *ranked(scores)[: math.ceil(len(scores) / _FACTOR)]})


def planned(trials: int, rungs: int) -> list[int]:
    """Return how many trials each round trains at most, which is where trial 0 is never among the best."""
    sizes = [trials]
    while len(sizes) < rungs:
        sizes.append(min(sizes[-1], math.ceil(sizes[-1] / _FACTOR) + 1))
    return sizes


def most_rungs(trials: int) -> int:
    """Return how many rounds make sense: in one after that, none could drop out any more."""
    sizes = planned(trials, trials + 1)
    return sum(size > sizes[-1] for size in sizes) + 2


def read_space(path: Path) -> dict[str, Range]:
    """Read ranges from a TOML file of lines such as `learning_rate = { low = 1e-5, high = 1e-4 }`.

    `zero` may be given too. Any number of a recipe can be searched that a trial follows, whole ones too.

    Raises:
        InputError: The file is missing or malformed, or a value is unknown, out of its range or not searched.
    """
    tables = read_toml(path, "file of ranges")
    if not tables:
        raise InputError(f"{path}: no ranges in it; write KEY = {{ low = …, high = … }}")
    space = {}
    for name, table in tables.items():
        try:
            space[name] = Range(**table)
        except (TypeError, ValueError):
            raise InputError(
                f"{path}: {name} must be {{ low = …, high = … }} with 0 < low < high, "
                "and zero in 0..1 if given"
            ) from None
        try:
            for value in [table["low"], table["high"], *([0] if space[name].zero else [])]:
                Recipe().with_overrides({name: value})
            check_space(space, Recipe())
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    return space


def check_space(space: Mapping[str, Range], recipe: Recipe) -> None:
    """Check that every range makes a difference to the trials of a grid around `recipe`.

    Raises:
        InputError: One does not; says why.
    """
    refused = dict(_NOT_SEARCHED)
    if recipe.training.skip_near_copies:
        refused["negative_score"] = "skip_near_copies leaves pairs out by it before the search"
    for name in space:
        if name in refused:
            raise InputError(f"{name} cannot be searched: {refused[name]}; set it in the recipe")


def draw_trials(space: Mapping[str, Range], count: int, seed: int, recipe: Recipe) -> list[dict[str, float]]:
    """Return the values of `count` trials; the first has none, which is `recipe` as it is.

    Args:
        space: What to draw from.
        count: How many trials.
        seed: Decides the draws; more trials begin with the same ones.
        recipe: What the values will be set in. Draws that it does not allow (all weights 0) are drawn again.

    Raises:
        InputError: It allows hardly any draw, or none.
    """
    generator = random.Random(seed)
    hints = {name: hint for section in SECTIONS.values() for name, hint in get_type_hints(section).items()}
    whole = {name for name, hint in hints.items() if hint is int or int in get_args(hint)}
    trials: list[dict[str, float]] = [{}]
    refused = 0
    while len(trials) < count:
        drawn = {name: space[name].draw(generator) for name in space}
        values = {name: round(value) if name in whole else value for name, value in drawn.items()}
        try:
            recipe.with_overrides(values)
            trials.append(values)
            refused = 0
        except InputError as error:
            refused += 1
            if refused == _MOST_REFUSED:
                raise InputError(
                    f"{refused} draws in a row from the ranges are no recipe ({error}); give other ranges"
                ) from None
    return trials


def grid_table(result: GridResult) -> str:
    """Return every training as a line, the last round and the best first."""
    names = list(dict.fromkeys(name for row in result.rows for name in row.values))
    cells = [["round", "trial", "epochs", "step", "dev", *names]]
    for row in sorted(result.rows, key=lambda row: (-row.rung, -row.dev)):
        values = [f"{row.values[name]:g}" if name in row.values else "as given" for name in names]
        figures = [row.rung + 1, row.trial, f"{row.epochs:.2f}", row.best_step, f"{100 * row.dev:.2f}"]
        cells.append([*map(str, figures), *values])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(
        [*lines, f"Spearman x 100 on the dev pairs; the backbone has {100 * result.backbone:.2f}."]
    )
