"""`fit` and `evaluate` as functions for notebooks and scripts: what `import angle_train` offers.

Each is the command of its name: same options (with `_` for `-`), same files, same one-line errors, raised as
`AngleError`. Nothing is printed, and logging is left alone: `logging.basicConfig(level="INFO")` shows
progress. Figures are those of the terminal: Spearman x 100. Imports nothing heavy.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.calling.notebook import check_names
from angle_data.calling.options import is_path, path_of
from angle_data.calling.rows import sources
from angle_data.errors import InputError
from angle_train.options import FitOptions

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from angle_train.evaluation.compare import Evaluation, Result
    from angle_train.recipe import Recipe
    from angle_train.report.result import FitReport

_RUN_OPTIONS = ("judged", "scale", "drop_leaks", "overwrite", "device", "report_to", "require_better")
_EVAL_OPTIONS = ("judged", "split", "scale", "data_dir", "report", "device")
_PAGES = (".html", ".htm")  # a slip must not replace a file of data


@dataclass(frozen=True, repr=False)
class Fitted:
    """A tuned model and what is known of it; shows itself in a notebook, and is a path for `evaluate`.

    Attributes:
        path: The folder of the model, with `report.html` and `report.json`.
        report: The findings; `report.kept` says whether the tuned weights or the backbone's were saved.
        already_finished: Whether an earlier call had made all of it.
        device: Where `model` computes; None for the fastest there is.
    """

    path: Path
    report: FitReport
    already_finished: bool = False
    device: str | None = None

    @cached_property
    def model(self) -> SentenceTransformer:
        """The saved model, loaded when it is first asked for."""
        from angle_train.model.load import load_backbone

        return load_backbone(str(self.path), device=self.device)

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The rows of the table, a dictionary each; see `figures_of`."""
        return figures_of(self.report.results)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        from angle_train.report.text import results_table

        lines = [
            self.report.verdict.headline,
            *self.report.verdict.lines,
            "",
            results_table(self.report.results),
        ]
        return "\n".join([*lines, f"model: {self.path}   report: {self.path / 'report.html'}"])

    def _repr_html_(self) -> str:
        lines = [self.report.verdict.advice, *self.report.verdict.evidence]
        end = f"model: {self.path}, report: {self.path / 'report.html'}"
        return _html(self.report.verdict.headline, lines, self.report.results, [end])


@dataclass(frozen=True, slots=True, repr=False)
class Evaluated:
    """What models did; shows itself in a notebook.

    Attributes:
        evaluation: All findings, see `evaluation.suite.Evaluation`.
        path: The page, where one was asked for (`report`).
    """

    evaluation: Evaluation
    path: Path | None = None

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The rows of the table, a dictionary each; see `figures_of`."""
        return figures_of(self._results)

    @property
    def failed(self) -> Mapping[str, str]:
        """The tasks and models that could not be measured, with the reasons."""
        return self.evaluation.failed

    @property
    def _results(self) -> list[Result]:
        return self.evaluation.results

    @property
    def _notes(self) -> list[str]:
        failed = [f"{name} was not measured: {reason}" for name, reason in self.failed.items()]
        return [*failed, *self.evaluation.notes]

    def __repr__(self) -> str:
        from angle_train.report.text import results_table

        return "\n".join([results_table(self._results), *self._notes])

    def _repr_html_(self) -> str:
        return _html("", [], self._results, self._notes)


def fit(
    data: Any = None,
    *,
    backbone: Any = None,
    out: Any = None,
    dev: Any = None,
    test: Any = None,
    recipe: str | os.PathLike[str] | Recipe | None = None,
    **options: Any,
) -> Fitted:
    """Fine-tune a model on labelled pairs and report whether that helped: the command `angle-train fit`.

    Pairs are a path (or `hub:ID`), a list of paths, what `angle_data.ensemble` returned, a list of
    dictionaries (`text1, text2, score`), a `datasets.Dataset` or a pandas data frame.

    Args:
        data: Training pairs; may be left out where `human` is given. An `angle_data.Project` stands for all
            options in its folder's angle.toml; those given here come first.
        backbone: Directory or hub id of the model to start from; must be given, unless a project says it.
        out: Directory for model and report; the same call goes on there, or reopens what is finished. As
            `backbone`.
        dev: Pairs that choose the checkpoint.
        test: Pairs to report on.
        recipe: Name of a built-in recipe, a .toml file, or a `Recipe`; default the one for what `ensemble`
            was told that the pairs are for (`purpose`), else `default`.
        **options: `human` (human-graded training pairs), `keep` (texts that stay as similar to each other as
            the backbone finds them), `guard` (labelled pairs of other text that must not get worse), `judged`
            (many pairs that a language model graded, the test pairs among them), the command's other options
            (`scale`, `drop_leaks`, `overwrite`, `device`, `report_to`, `require_better`, `merge_back`), and
            any value of the recipe by its name: `epochs=3`,
            `learning_rate=2e-5`, `seed=1`, `weight_decay=0.1` …

    Raises:
        InputError: Something about the pairs, the backbone, the recipe or the directory is wrong.
        MissingExtraError: torch or sentence-transformers is not installed.
        TypeError: There is no such option.
        KeyboardInterrupt: Ctrl-C, or the notebook's stop button; the same call goes on.
    """
    if hasattr(data, "options_of"):
        given = {"backbone": backbone, "out": out, "dev": dev, "test": test, "recipe": recipe, **options}
        return _fit_project(data, {name: value for name, value in given.items() if value is not None})
    if missing := [name for name, value in (("backbone", backbone), ("out", out)) if value is None]:
        raise InputError(f"{missing[0]}: got None; give a path")
    from angle_train.model.load import check_training_extra
    from angle_train.recipe import MERGE_BACK, SECTIONS, Recipe

    keys = [field.name for section in SECTIONS.values() for field in fields(section)]
    check_names("fit", options, ["human", "keep", "guard", *_RUN_OPTIONS, "merge_back", *keys])
    if "merge_back" in options:
        options[MERGE_BACK] = options.pop("merge_back")
    overrides = {key: options.pop(key) for key in keys if key in options}
    if recipe is not None and not isinstance(recipe, Recipe):
        recipe = os.path.expanduser(recipe)
    check_training_extra("angle-train fit")
    backbone = _several(backbone)[0]
    out = path_of(out)
    given = {"data": data, "human": options.pop("human", None), "dev": dev, "test": test}
    given |= {name: options.pop(name, None) for name in ("keep", "guard")}
    if given["data"] is None and given["human"] is None:
        raise InputError("nothing to train on: give --data, or --human, or both")
    check_inputs(given.values(), [backbone])
    from angle_train.train.run_directory import HIDDEN, check_out

    check_out(out)
    files: dict[str, Any] = {
        name: sources(value, out / HIDDEN, "train" if name == "data" else name)
        for name, value in given.items()
    }
    files["judged"] = _one_judged(options.pop("judged", None), out / HIDDEN)
    from angle_train.purpose import choose_recipe

    chosen = {name: value for name, value in options.items() if value is not None}
    recipe, reason = choose_recipe(recipe, files["data"])
    from angle_train.run import fit as run

    asked = FitOptions(**files, backbone=backbone, out=out, recipe=recipe.with_overrides(overrides), **chosen)
    return Fitted(out, *run(asked, reason), options.get("device"))


def _fit_project(project: Any, given: Mapping[str, Any]) -> Fitted:
    """Return what `fit` does with the options of a project, whose folder is the current one meanwhile."""
    from angle_train.recipe import parse_settings

    options = project.options_of("fit")
    values = parse_settings(options.pop("set", ()), {})
    options |= {"out": project.folder / options.get("out", "model")} | values | dict(given)
    with chdir(project.folder):
        return fit(**options)


def evaluate(
    model: Any, *, pairs: Any = None, task: Any = None, baseline: Any = None, **options: Any
) -> Evaluated:
    """Measure models on scored pairs or on tasks, with intervals and paired differences: `angle-train eval`.

    Args:
        model: Directory or hub id, what `fit` returned, or a list of these.
        pairs: Scored pairs, as for `fit`; either these or `task`.
        task: Name of a task or group, such as `sts`, or a list of names.
        baseline: Model to compare the others with.
        **options: The command's others: `judged` (many pairs that a language model graded, the `pairs` among
            them, as of `fit`), `split`, `scale`, `data_dir`, `device`, and
            `report="page.html"`, which also writes the page.

    Raises:
        InputError: A model, the pairs or a task cannot be used, or nothing can be measured. Where only some
            can, the result says so (`failed`).
        MissingExtraError: torch or sentence-transformers is not installed.
        TypeError: There is no such option.
    """
    begun = time.monotonic()
    check_names("evaluate", options, ["pairs", "task", "baseline", *_EVAL_OPTIONS])
    given: dict[str, Any] = dict.fromkeys(_EVAL_OPTIONS) | options
    given |= {"model": _several(model), "task": _several(task)}
    given["baseline"] = _several(baseline)[0] if baseline is not None else None
    given |= {name: path_of(given[name]) for name in ("data_dir", "report") if given[name] is not None}
    _check_choice(given, pairs=pairs is not None)
    from angle_train.evaluation.suite import evaluate as measure
    from angle_train.evaluation.suite import own_pairs
    from angle_train.evaluation.task import Source, Task, expand_names, load_task

    base = given["baseline"]
    check_inputs([pairs], [*given["model"], *([base] if base else [])])
    with tempfile.TemporaryDirectory() as folder:
        given["pairs"] = sources(pairs, Path(folder), "pairs")
        given["judged"] = _one_judged(given["judged"], Path(folder))
        tasks: Mapping[str, Task] = (
            own_pairs(given["pairs"], given["split"], given["scale"], given["judged"])
            if given["pairs"]
            else {name: load_task(name) for name in expand_names(given["task"])}
        )
    found = measure(given["model"], tasks, Source(given["data_dir"]), base, given["device"])
    if given["report"]:
        given |= {"task": list(tasks)} if given["task"] else {}
        from angle_train.report.eval_page import write_eval_page
        from angle_train.report.text import command_line, made_line

        names = ("model", "baseline", "pairs", "judged", "split", "scale", "task", "data_dir")
        command = command_line("angle-train eval", {name: given[name] for name in names}, moved=True)
        write_eval_page(given["report"], found, command, made_line(time.monotonic() - begun))
        logging.getLogger("angle.eval").info("report: %s", given["report"])
    return Evaluated(found, given["report"])


def figures_of(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return results as rows of plain values, figures and differences times 100 as everywhere for readers.

    `low` and `high` are the ends of the 95 % interval of `score`; `difference`, with its own, is to the
    `baseline`, and all of these are None where nothing was compared.
    """
    rows = []
    for result in results:
        row = {name: getattr(result, name) for name in ("pairs", "role", "count", "model", "metric")}
        score = result.score
        found = result.difference
        row |= {"score": 100 * score.value, "low": 100 * score.low, "high": 100 * score.high}
        row["baseline"] = result.baseline
        for name, part in (("difference", "delta"), ("difference_low", "low"), ("difference_high", "high")):
            row[name] = 100 * getattr(found, part) if found else None
        rows.append(row | {"verdict": found.verdict if found else None})
    return rows


def check_inputs(pairs: Iterable[Any], models: Iterable[str]) -> None:
    """Raise an InputError unless pairs and models exist, before slow imports; the hub is asked for models."""
    from angle_train.data.sources import check_source
    from angle_train.model.load import check_model

    for value in pairs:
        paths = [value] if is_path(value) else value if isinstance(value, list | tuple) else ()
        for path in filter(is_path, paths):
            check_source(os.path.expanduser(path))
    for model in models:
        check_model(model)


def _one_judged(value: Any, folder: Path) -> str | None:
    """Return where the pairs are that a language model graded, rows in memory in a file of `folder`."""
    found = sources(value, folder, "judged")
    if len(found) > 1:
        raise InputError("give one --judged: the grades of several language models are on no common scale")
    return found[0] if found else None


def _several(value: Any) -> list[str]:
    """Return one path or name, or several, as strings; what is no path is a model in memory, or a slip."""
    found = [value] if is_path(value) else value if isinstance(value, list | tuple) else [value]
    for item in found:
        if item is not None and not is_path(item):
            said = f"{type(item).__name__} is neither a path nor a name"
            raise InputError(f"{said}; save a model that is in memory, and give its folder")
    return [os.path.expanduser(item) for item in found if item is not None]


def _check_choice(given: Mapping[str, Any], *, pairs: bool) -> None:
    """Check that the options of an evaluation go together, before anything heavy is loaded."""
    if pairs == bool(given["task"]):
        raise InputError("give either --pairs FILE or --task NAME")
    if not given["model"]:
        raise InputError("give at least one model")
    for name in ("data_dir",) if pairs else ("judged", "split", "scale"):
        if given[name] is not None:
            option = name.replace("_", "-")
            way = "--task" if pairs else "--pairs"
            raise InputError(f"--{option} goes with {way} only; leave it out")
    if report := given["report"]:
        if report.is_dir() or report.suffix.lower() not in _PAGES:
            raise InputError(f"--report {report}: give the name of a page, such as report.html")
        place = next(folder for folder in report.absolute().parents if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            raise InputError(f"--report {report}: {place} is not writable; choose another folder")
    if given["data_dir"] and not given["data_dir"].is_dir():
        raise InputError(f"--data-dir {given['data_dir']} is not a folder; check the path")
    from angle_train.model.load import check_device, check_training_extra

    check_training_extra("angle-train eval")
    check_device(given["device"])


def _html(headline: str, lines: Sequence[str], results: Sequence[Result], end: Sequence[str]) -> str:
    """Return a headline, sentences and the table of results as a part of a page, without scripts."""
    from angle_train.report.page import render
    from angle_train.report.text import notes_on, table_of

    notes = [*notes_on(results), *end]
    return render("notebook.html", headline=headline, lines=lines, table=table_of(results), notes=notes)
