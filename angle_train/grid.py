"""A search for the recipe that ranks the dev pairs best, by successive halving; no test pairs come near it.

Composes drawing, training and comparing; finished trainings are kept in a journal, so that a search that was
cut off goes on with the next one.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, replace_file, write_jsonl
from angle_data.locking import hold
from angle_train.data.splits import RunData, load_run_data, run_leaks
from angle_train.evaluate.bootstrap import Difference, paired_bootstrap
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.fit import FitConfig, load_at_length, load_for_run, untouched
from angle_train.model.load import backbone_identity, check_device
from angle_train.recipe import Recipe, changed_parts
from angle_train.space import SPACE, Range, check_space, draw_trials
from angle_train.train.arguments import warn_of_emulation
from angle_train.train.checkpoints import HIDDEN
from angle_train.train.halving import most_rungs, planned, ranked, rung_share, survivors
from angle_train.train.processes import process_count
from angle_train.train.trainer import DevEvaluator, train
from angle_train.train.watch import memory_errors_in_one_line

log = logging.getLogger("angle.fit")

_JOURNAL, _RESULT, _RECIPE = "grid.jsonl", "grid.json", "recipe.toml"


@dataclass(frozen=True, slots=True)
class GridConfig:
    """What to search.

    Attributes:
        run: The run whose recipe is searched around; needs dev pairs, its test pairs are not read.
        trials: Recipes to try, the given one among them.
        rungs: Rounds; each trains the best third of the trials of the one before, and the given recipe, for
            three times as long.
        seed: Decides which recipes.
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
        told = ", ".join(
            f"{name}: {100 * d.delta:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}]"
            for name, d in self.differences.items()
        )
        trial = f"Trial {self.best.trial} is"
        if any(difference.low > 0 for difference in self.differences.values()):
            return f"{trial} better than the recipe as given ({told}), on the pairs that it was chosen on."
        return (
            f"{trial} within the noise of the recipe as given ({told}); nothing is lost by keeping that one."
        )

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
    data = load_run_data(
        run.data,
        run.human,
        run.dev,
        (),
        recipe=run.recipe,
        scale=run.scale,
        drop_leaks=run.drop_leaks,
    )
    _tell(config, data)
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


def _tell(config: GridConfig, data: RunData) -> None:
    """Log what the search costs and what its pairs share."""
    sizes = planned(config.trials, config.rungs)
    cost = sum(size * rung_share(rung, config.rungs) for rung, size in enumerate(sizes))
    log.info(
        "rounds of %s trainings at most, the given recipe in each: as long as %.1f trainings in full",
        ", ".join(map(str, sizes)),
        cost,
    )
    run_leaks(data)
    if config.run.recipe.training.average_with_backbone:
        log.info("trials are compared before the backbone is mixed in; fit does that with what is found")


class _Grid:
    """A search under way: its inputs and the trainings so far."""

    def __init__(self, config: GridConfig, data: RunData, rows: list[Row]) -> None:
        self.config, self.data, self.rows = config, data, rows
        self.run, model, _ = load_at_length(config.run, data)
        warn_of_emulation(config.run.recipe.training.precision, model.device)
        backbone = untouched(self.run, model)
        self.backbone = _mean([spearman(p.score, evaluate_model(backbone, p)) for p in data.dev])
        log.info("the untouched backbone: dev Spearman %.2f", 100 * self.backbone)

    def finish(self) -> GridResult:
        """Take the trainings that remain and return what was found."""
        config = self.config
        recipes = draw_trials(config.space, config.trials, config.seed, config.run.recipe)
        chosen = list(range(len(recipes)))
        for rung in range(config.rungs):
            scores = self._round(rung, {trial: recipes[trial] for trial in chosen})
            if rung < config.rungs - 1:
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
        last = rung == self.config.rungs - 1
        epochs = self.run.recipe.training.epochs * rung_share(rung, self.config.rungs)
        log.info("round %d of %d: %d recipes, %.2f epochs", rung + 1, self.config.rungs, len(recipes), epochs)
        done = {row.trial: row for row in self.rows if row.rung == rung}
        with Progress(f"round {rung + 1}", len(recipes)) as progress:
            progress.skip(len(done))
            for trial, values in recipes.items():
                if trial not in done:
                    row = self._train(rung, trial, values, epochs, keep=last)
                    done[trial] = row
                    self.rows.append(row)
                    _write_journal(self.config, self.data, self.rows)
                    log.info("trial %d: dev Spearman %.2f", trial, 100 * row.dev)
                    progress.advance()
        return {trial: done[trial].dev for trial in recipes}

    def _train(self, rung: int, trial: int, values: dict[str, float], epochs: float, *, keep: bool) -> Row:
        run = replace(self.run, recipe=self.run.recipe.with_overrides({**values, "epochs": epochs}))
        folder = run.out / "trials" / f"round-{rung + 1}-trial-{trial}"
        shutil.rmtree(folder, ignore_errors=True)
        model = load_for_run(run)
        with _quiet():
            evaluator = DevEvaluator(self.data.dev, self.backbone)
            done = train(model, self.data.train, run.recipe, folder, evaluator=evaluator)
        columns = [evaluate_model(model, pairs) for pairs in self.data.dev]
        if keep:
            np.save(self._column_file(trial), np.concatenate(columns))
        shutil.rmtree(folder, ignore_errors=True)
        dev = _mean([spearman(p.score, c) for p, c in zip(self.data.dev, columns, strict=True)])
        return Row(rung, trial, epochs, dev, done.best_step, done.steps, values)

    def _column_file(self, trial: int) -> Path:
        folder = self.run.out / "similarities"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"trial-{trial}.npy"

    def _differences(self, best: int) -> dict[str, Difference]:
        """Return how much better trial `best` ranks each dev set than the given recipe."""
        before, after = (np.load(self._column_file(trial)) for trial in (0, best))
        found, start = {}, 0
        for pairs in self.data.dev:
            part = slice(start, start := start + len(pairs))
            found[pairs.name] = paired_bootstrap(pairs.score, before[part], after[part])
        return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


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
    return {
        "recipe": replace(config.run.recipe, description="").to_toml_text(),
        "backbone": backbone_identity(config.run.backbone),
        "training pairs": data.train.sha256(),
        "dev pairs": " ".join(pairs.sha256() for pairs in data.dev),
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
    if config.run.overwrite and (out / _RECIPE).is_file():
        return _nothing_left(out)
    (_, head), *lines = read_jsonl(journal)
    changed = changed_parts(head.get("fingerprint", {}), _fingerprint(config, data))
    if config.run.overwrite and (changed or not head.get("overwrite")):
        return _nothing_left(out)
    if changed:
        raise InputError(
            f"--out {out} holds a grid with different {', '.join(changed)}; "
            "give another directory, or --overwrite to replace that grid"
        )
    return [Row(**row) for _, row in lines]


def _nothing_left(out: Path) -> list[Row]:
    """Delete what an earlier grid wrote into `out`, the journal last; return its trainings: none."""
    for name in (_RECIPE, _RESULT, _JOURNAL):
        (out / name).unlink(missing_ok=True)
    return []


def _write_journal(config: GridConfig, data: RunData, rows: Sequence[Row]) -> None:
    # That it began with --overwrite is noted, so that the same command goes on with it.
    head = {"fingerprint": _fingerprint(config, data), "overwrite": config.run.overwrite}
    write_jsonl(config.run.out / _JOURNAL, [head, *map(asdict, rows)])


def grid_table(result: GridResult) -> str:
    """Return every training as a line, the last round and the best first."""
    names = list(dict.fromkeys(name for row in result.rows for name in row.values))
    header = ["round", "trial", "epochs", "step", "dev", *names]
    rows = sorted(result.rows, key=lambda row: (-row.rung, -row.dev))
    cells = [
        [
            str(row.rung + 1),
            str(row.trial),
            f"{row.epochs:.2f}",
            str(row.best_step),
            f"{100 * row.dev:.2f}",
            *(f"{row.values[name]:g}" if name in row.values else "as given" for name in names),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    lines = [
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
        for line in [header, *cells]
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(
        [*lines, f"Spearman x 100 on the dev pairs; the backbone has {100 * result.backbone:.2f}."]
    )
