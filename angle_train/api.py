"""`fit`, `evaluate` and `train` as functions for notebooks and scripts: what `import angle_train` offers.

`fit` and `evaluate` are the commands of these names: same options (with `_` for `-`), same files, same
one-line errors, raised as `AngleError`. `train` is the training in the middle of `fit`, for a program.
Nothing is printed, and logging is left alone: `logging.basicConfig(level="INFO")` shows progress. Figures are
those of the terminal: Spearman x 100. Imports nothing heavy.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from angle_data.calling.defaults import PROJECT_FILE
from angle_data.calling.notebook import check_names
from angle_data.calling.options import path_of
from angle_data.calling.row_errors import errors_naming_rows
from angle_data.calling.rows import sources
from angle_data.errors import InputError
from angle_train.data.forms import with_names
from angle_train.given import (
    check_inputs,
    checked_backbone,
    files_of,
    given_pairs,
    one_judged,
    paths_of_models,
    read_section,
    refuse_empty,
    several,
    split_values,
    warn_of_nothing_kept,
)
from angle_train.keywords import FitKeywords, PathLike, TrainKeywords, check_train_keywords, rename_merge_back
from angle_train.options import FitOptions
from angle_train.recipe import ARGS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.evaluation import BaseEvaluator

    from angle_train.evaluation.compare import Evaluation, Result
    from angle_train.evaluation.task import Task
    from angle_train.in_memory import AnyLoss, TrainedModel
    from angle_train.recipe import LabelKind, Recipe
    from angle_train.report.result import FitReport

_ROLES = ("roles", "query_prompt", "document_prompt")
_EVAL_OPTIONS = ("judged", "split", "scale", "data_dir", "report", "device", *_ROLES)
_SEARCH_FILES = ("corpus", "queries", "qrels")
_WAYS = {  # what models are measured on, and the options that go with it
    "pairs": ("judged", "split", "scale", *_ROLES),
    "search": ("split", "query_prompt", "document_prompt"),
    "qrels": ("query_prompt", "document_prompt"),
    "task": ("data_dir",),
}
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
        verdict = self.report.verdict
        lines = [verdict.advice, *filter(None, [verdict.worse, verdict.next]), *verdict.evidence]
        end = f"model: {self.path}, report: {self.path / 'report.html'}"
        return _html(verdict.headline, lines, self.report.results, [end])


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
    recipe: PathLike | Recipe | None = None,
    push_to_hub: str | None = None,
    **keywords: Unpack[FitKeywords],
) -> Fitted:
    """Fine-tune a model on labelled pairs and report whether that helped: the command `angle-train fit`.

    Pairs are a path (or `hub:ID`), a list of paths, what `angle_data.ensemble` returned, a list of
    dictionaries (`text1, text2, score`) or of tuples, a `datasets.Dataset` or a pandas data frame; `data` may
    be a `DatasetDict`, whose splits `validation` and `test` then are `dev` and `test`.

    Args:
        data: Training pairs; may be left out where `human`, or a `teacher` with `teacher_pairs`, is given. An
            `angle_data.Project` stands for all options in its folder's angle.toml; those given here come
            first.
        backbone: Directory or hub id of the model to start from, or a model in memory, which stays as it is;
            must be given, unless a project says it.
        out: Directory for model and report; the same call goes on there, or reopens what is finished. As
            `backbone`.
        dev: Pairs that choose the checkpoint, beside the searches of `dev_search` if both are given.
        test: Pairs to report on.
        recipe: Name of a built-in recipe, a .toml file, or a `Recipe`; default the one for what `ensemble`
            was told that the pairs are for (`purpose`), else `default`.
        push_to_hub: Repository on the hub, `NAME/MODEL`, to which a tuned model goes, with its card and
            without the reports, which quote pairs. A new repository is private.
        **keywords: `human` (human-graded training pairs), `keep` (texts that stay as similar to each other as
            the backbone finds them), `guard` (labelled pairs of other text that must not get worse),
            `teacher` (a stronger model, or a file of its vectors) and `teacher_pairs` (what it scores),
            `judged` (many pairs that a language model graded, the test pairs among them), `dev_search` and
            `test_search` (searches that choose the checkpoint, and to report on: folders in BEIR's layout),
            the command's other options (`scale`, `threshold`, which makes labels of the scores of `pairs`,
            `drop_leaks`, `overwrite`, `device`, `report_to`, `merge_back`; `require_better` decides the
            command's exit code alone), `args` (`TrainingArguments`, or settings of the trainer by their
            names, such as `{"weight_decay": 0.1}`), and any value of the recipe by its name: `epochs=3`,
            `learning_rate=2e-5`, `seed=1` …

    Raises:
        InputError: Something about the pairs, the backbone, the recipe or the directory is wrong.
        MissingExtraError: torch or sentence-transformers is not installed.
        TypeError: There is no such option.
        KeyboardInterrupt: Ctrl-C, or the notebook's stop button; the same call goes on.
    """
    if hasattr(data, "options_of"):
        given = {"backbone": backbone, "out": out, "dev": dev, "test": test, "recipe": recipe, **keywords}
        given["push_to_hub"] = push_to_hub
        return _fit_project(data, {name: value for name, value in given.items() if value is not None})
    if missing := [name for name, value in (("backbone", backbone), ("out", out)) if value is None]:
        raise InputError(f"{missing[0]}: got None; give a path")
    from angle_train.dropped import refuse_dropped
    from angle_train.model.load import check_training_extra

    options: dict[str, Any] = dict(keywords)
    refuse_dropped(options)
    check_names("fit", options, list(FitKeywords.__annotations__))
    options |= {name: several(options.get(name)) or None for name in ("dev_search", "test_search")}
    overrides = _take_values(options)
    check_training_extra("angle-train fit")
    out = path_of(out)
    given = given_pairs(data, dev, test, options)
    teacher = next(iter(several(options.pop("teacher", None))), None)
    backbone = checked_backbone(backbone, given, teacher, out)
    from angle_train.training.processes import first_process_logs
    from angle_train.training.run_directory import HIDDEN

    log = logging.getLogger("angle.fit")
    with first_process_logs():
        log.info("reading the pairs")
    if push_to_hub is not None:
        from angle_train.report.hub import check_repository

        check_repository(push_to_hub)
    files = files_of(given, options.pop("judged", None), out / HIDDEN)
    from angle_train.inputs import load_data
    from angle_train.training.purpose import choose_recipe

    chosen = {name: value for name, value in options.items() if value is not None}
    recipe, reason = choose_recipe(recipe, files["data"])
    recipe = recipe.with_overrides(overrides)
    with first_process_logs():
        warn_of_nothing_kept(overrides, recipe, given["keep"])
    asked = FitOptions(**files, backbone=backbone, out=out, recipe=recipe, teacher=teacher, **chosen)
    with errors_naming_rows(out / HIDDEN, train="data"):
        loaded = None if teacher else load_data(asked, reason)  # a teacher scores pairs, which takes torch
        with first_process_logs():
            log.info("loading torch")
        from angle_train.run import fit as run

        fitted = Fitted(out, *run(asked, reason, loaded), options.get("device"))
    if push_to_hub is not None:
        from angle_train.report.hub import push

        push(out, push_to_hub, fitted.report.kept)
    return fitted


def _take_values(options: dict[str, Any]) -> dict[str, Any]:
    """Take what is the recipe's out of the options of `fit`: values by their keys, and training arguments."""
    from angle_train.recipe import SECTIONS
    from angle_train.training.passed import read_arguments, with_arguments

    rename_merge_back(options)
    keys = [field.name for section in SECTIONS.values() for field in fields(section)]
    values = {key: options.pop(key) for key in keys if key in options}
    passed = read_arguments(options.pop(ARGS, None))
    if passed.max_steps is not None:
        raise InputError("args: max_steps cannot be set here: give epochs; train takes max_steps")
    options["report_to"] = options.get("report_to") or passed.trackers or None
    return with_arguments(values, passed)


def _fit_project(project: Any, given: Mapping[str, Any]) -> Fitted:
    """Return what `fit` does with the options of a project, whose folder is the current one meanwhile."""
    section = {"out": "model", "backbone": ""} | project.options_of("fit")
    options, values = split_values(read_section(section, f"{project.folder / PROJECT_FILE}: [fit]"))
    options["backbone"] = options["backbone"] or None  # as for a call without a project
    if given.get(ARGS) is not None:  # what a call gives wins over the project
        from angle_train.trainer_arguments import RECIPE_KEYS
        from angle_train.training.passed import stated

        said = stated(given[ARGS])
        for name in said.keys() & RECIPE_KEYS.keys():
            if said[name] is not False:  # bf16 and fp16 that are off say nothing
                values.pop(RECIPE_KEYS[name], None)
        if "report_to" in said:
            options.pop("report_to", None)
        if "warmup_steps" in said:
            values.get(ARGS, {}).pop("warmup_ratio", None)
        values[ARGS] = values.get(ARGS, {}) | said
        given = {name: value for name, value in given.items() if name != ARGS}
    options |= {"out": project.folder / options["out"], **values, **given}
    with chdir(project.folder):
        return fit(**options)


def train(
    model: SentenceTransformer | PathLike,
    pairs: Any,
    *,
    dev: Any = None,
    evaluator: BaseEvaluator | None = None,
    loss: AnyLoss | LabelKind | None = None,
    out: PathLike | None = None,
    **keywords: Unpack[TrainKeywords],
) -> TrainedModel:
    """Train a model on pairs and return it with its learning curve; nothing is measured or decided beside.

    Pairs are as of `fit`, or tuples `(text, text, score)`, `(text, text)` or `(anchor, positive, negative)`,
    or a `DatasetDict`, whose split `validation` then is `dev`.

    Args:
        model: A model in memory, which is trained in place, or directory or hub id of one.
        pairs: Training pairs; with `loss` a data set of any columns that it reads.
        dev: Pairs that choose among the evaluations.
        evaluator: An evaluator of Sentence Transformers in place of `dev`; its `primary_metric` chooses.
        loss: A kind of labels, as the recipe's; or in place of its objective a loss of Sentence Transformers,
            or a function that makes one for the model. The batches then are those of the library's collator.
        out: Directory to save the model in. The same call goes on there after an interruption, or reopens
            what is finished. Without it nothing is kept.
        **keywords: `recipe` (as of `fit`), `args` (`TrainingArguments`; what would break resuming or batches
            is refused by name), `callbacks` (of transformers), `scale`, `device`, `overwrite`, and values of
            the recipe by their names: `epochs=3`, `learning_rate=2e-5` … Those that keep other text, guard or
            mix weights are for `fit`: a recipe's are not used here.

    Raises:
        InputError: Something about the pairs, the model or the settings is wrong, or the loss became no
            number; a model in memory then has its former weights.
        MissingExtraError: torch or sentence-transformers is not installed.
        TypeError: There is no such keyword.
        KeyboardInterrupt: Ctrl-C; with `out` the same call goes on, with a model in memory loaded again.
    """
    from angle_train.model.load import check_training_extra

    check_training_extra("angle_train.train")
    check_train_keywords(keywords)
    from angle_train.in_memory import TrainCall, train_in_memory

    where = None if out is None else path_of(out)
    given = dict(keywords)
    if isinstance(loss, str):
        given["loss"], loss = loss, None
    return train_in_memory(TrainCall(model, pairs, dev, evaluator, loss, where, given))


def evaluate(
    model: Any,
    *,
    pairs: Any = None,
    search: Any = None,
    task: Any = None,
    baseline: Any = None,
    **options: Any,
) -> Evaluated:
    """Measure models on scored pairs, a search or tasks, with intervals and paired differences.

    The command `angle-train eval`.

    Args:
        model: Directory or hub id, what `fit` or `train` returned, a model in memory, a file of vectors, or a
            list of these.
        pairs: Scored pairs, as for `fit`; either these, or `search`, or `task`.
        search: A folder in BEIR's layout, `hub:ID`, or a list of these; or the files `corpus`, `queries` and
            `qrels`.
        task: Name of a task or group, such as `sts`, or a list of names.
        baseline: Model, or file of its vectors, to compare the others with.
        **options: The command's others: `judged` (many pairs that a language model graded, the `pairs` among
            them, as of `fit`), `split`, `scale`, `data_dir`, `device`, `roles` (text1 is a query, text2 a
            document), `query_prompt` and `document_prompt` (what stands before them), and
            `report="page.html"`, which also writes the page.

    Raises:
        InputError: A model, the pairs or a task cannot be used, or nothing can be measured. Where only some
            can, the result says so (`failed`).
        MissingExtraError: torch or sentence-transformers is not installed.
        TypeError: There is no such option.
    """
    begun = time.monotonic()
    pairs = with_names(pairs, "pairs")
    check_names("evaluate", options, ["pairs", "search", "task", "baseline", *_EVAL_OPTIONS, *_SEARCH_FILES])
    given: dict[str, Any] = dict.fromkeys((*_EVAL_OPTIONS, *_SEARCH_FILES)) | options
    given |= {name: str(path_of(given[name])) for name in _SEARCH_FILES if given[name] is not None}
    given |= {"task": several(task), "search": several(search)}
    given |= {name: path_of(given[name]) for name in ("data_dir", "report") if given[name] is not None}
    with tempfile.TemporaryDirectory() as folder:
        given["model"] = paths_of_models(model, Path(folder))
        given["baseline"] = next(iter(paths_of_models(baseline, Path(folder))), None)
        _check_choice(given, pairs=pairs is not None)
        return _measured(given, pairs, Path(folder), begun)


def _measured(given: dict[str, Any], pairs: Any, folder: Path, begun: float) -> Evaluated:
    """Return what the models did on what was asked for; `folder` takes what was given in memory."""
    from angle_train.evaluation.suite import evaluate as measure
    from angle_train.evaluation.suite import role_prompts
    from angle_train.evaluation.task import Source

    base = given["baseline"]
    check_inputs([pairs], [], [*given["model"], *([base] if base else [])])
    refuse_empty("pairs", pairs)
    given["pairs"] = sources(pairs, folder, "pairs")
    given["judged"] = one_judged(given["judged"], folder)
    with errors_naming_rows(folder):
        tasks = _tasks(given)
        source = Source(given["data_dir"])
        found = measure(given["model"], tasks, source, base, given["device"], role_prompts(given))
    found = replace(found, models={n: p for n, p in found.models.items() if folder not in Path(p).parents})
    if given["report"]:
        given |= {"task": list(tasks)} if given["task"] else {}
        from angle_train.report.eval_page import write_eval_page
        from angle_train.report.text import command_line, made_line

        places = ("pairs", "judged", "search", *_SEARCH_FILES)
        names = ("model", "baseline", *places, "split", "scale", "task", "data_dir", *_ROLES)
        command = command_line("angle-train eval", {name: given[name] for name in names}, moved=True)
        write_eval_page(given["report"], found, command, made_line(time.monotonic() - begun))
        logging.getLogger("angle.eval").info("report: %s", given["report"])
    return Evaluated(found, given["report"])


def _tasks(given: Mapping[str, Any]) -> Mapping[str, Task]:
    """Return what is measured, by name."""
    from angle_train.data.search_set import load_search_files, load_searches
    from angle_train.evaluation.suite import OwnSearch, own_pairs
    from angle_train.evaluation.task import expand_names, load_task

    if given["pairs"]:
        roles = any(given[name] for name in _ROLES)
        return own_pairs(given["pairs"], given["split"], given["scale"], given["judged"], roles=roles)
    if given["task"]:
        return {name: load_task(name) for name in expand_names(given["task"])}
    if given["search"]:
        searches = load_searches(given["search"], given["split"])
        return {searched.name: OwnSearch(searched) for searched in searches}
    found = load_search_files(*(given[name] for name in _SEARCH_FILES))
    return {found.name: OwnSearch(found)}


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


def _check_choice(given: Mapping[str, Any], *, pairs: bool) -> None:
    """Check that the options of an evaluation go together, before anything heavy is loaded."""
    way = _way(given, pairs=pairs)
    if not given["model"]:
        raise InputError("give at least one model")
    for name in dict.fromkeys(option for options in _WAYS.values() for option in options):
        if given[name] not in (None, False) and name not in _WAYS[way]:
            others = " or ".join(f"--{other}" for other, options in _WAYS.items() if name in options)
            raise InputError(f"--{name.replace('_', '-')} goes with {others} only; leave it out")
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


def _way(given: Mapping[str, Any], *, pairs: bool) -> str:
    """Return which of `_WAYS` to measure was asked for: exactly one must be."""
    files = [name for name in _SEARCH_FILES if given[name] is not None]
    ways = {"pairs": pairs, "search": given["search"], "qrels": files, "task": given["task"]}
    asked = [way for way, value in ways.items() if value]
    if len(asked) != 1:
        raise InputError("give either --pairs FILE, or --search FOLDER, or --task NAME")
    if missing := [name for name in _SEARCH_FILES if files and name not in files]:
        raise InputError(f"--{files[0]} needs --{' and --'.join(missing)} too, or give --search FOLDER")
    return asked[0]


def _html(headline: str, lines: Sequence[str], results: Sequence[Result], end: Sequence[str]) -> str:
    """Return a headline, sentences and the table of results as a part of a page, without scripts."""
    from angle_train.report.page import render
    from angle_train.report.text import notes_on, table_of

    notes = [*notes_on(results), *end]
    return render("notebook.html", headline=headline, lines=lines, table=table_of(results), notes=notes)
