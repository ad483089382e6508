"""`angle-train eval`: models and scored pairs or tasks in, a table of results out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError
from angle_train.command_options import PAIRS, AsJson, Device, Quiet, Scale, Verbose

_PAGES = (".html", ".htm")  # a slip must not replace a file of data
_SEED = 1111  # SentEval's
_TASKS_HELP = (
    "Task or group to measure on: sts, transfer, pairs, inference, retrieval, all, stsb, trec … Repeatable. "
    "An unknown name lists them all."
)


def eval_models(
    model: Annotated[
        list[str] | None, typer.Option(help="Model to measure: directory or hub id. Repeatable.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(help=f"Scored pairs: {PAIRS} file, dataset directory, or hub:ID. Repeatable."),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help=_TASKS_HELP)] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with the tasks' data, TASK/SPLIT.jsonl.gz.", show_default="from the hub"),
    ] = None,
    seeds_of: Annotated[
        list[str] | None,
        typer.Option(help="Models that differ in their seed alone, as one: 'gis-seed*'. Repeatable."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Model to compare the others with, or a pattern of seeds.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Rows of a file with a split column (else all), or split of a dataset (else test)."
        ),
    ] = None,
    scale: Scale = None,
    analysis: Annotated[
        bool, typer.Option("--analysis", help="Add densities, saturation, uniformity … to --json.")
    ] = False,
    query_in_index: Annotated[
        bool | None,
        typer.Option(
            "--query-in-index/--no-query-in-index",
            help="flickr30k: whether the query is among the captions to be found.",
            show_default="query-in-index",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the folds of tasks with classifiers.", show_default=str(_SEED))
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write the result as a page, FILE.html.")] = None,
    device: Device = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Measure models on scored pairs or on tasks, with intervals and paired differences to a baseline.

    Example: angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2
    --pairs test.jsonl

    Example: angle-train eval --model model --task sts --task transfer --data-dir data
    """
    configure_logging(quiet=quiet, verbose=verbose)
    for_pairs = {"--split": split, "--scale": scale}
    for_tasks = {
        "--data-dir": data_dir,
        "--seed": seed,
        "--no-query-in-index" if query_in_index is False else "--query-in-index": query_in_index,
    }
    _check_options(bool(pairs), bool(task), bool(model or seeds_of), for_tasks if pairs else for_pairs)
    if analysis and not as_json:
        raise InputError("--analysis adds to what --json prints; give --json too")
    if report:
        _check_page(report)
    if data_dir and not data_dir.is_dir():
        raise InputError(f"--data-dir {data_dir} is no folder; check the path")
    from angle_train.model.load import check_device, check_training_extra

    check_training_extra("angle-train eval")
    check_device(device)
    from angle_train.evaluate.seeds import systems_of
    from angle_train.evaluate.suite import evaluate, own_pairs
    from angle_train.evaluate.task import Settings, Task, tasks_named
    from angle_train.evaluate.tasks.sources import DataFolder, Hub
    from angle_train.places import check_inputs
    from angle_train.report.text import results_table

    settings = Settings(_SEED if seed is None else seed, query_in_index is not False, analysis, device)
    systems, base = systems_of(model or [], seeds_of or [], baseline)
    tasks: Mapping[str, Task]
    if pairs:
        check_inputs(pairs, [name for system in systems for name in system.members])
        tasks = own_pairs(pairs, split, scale)
    else:
        tasks = tasks_named(task or [], on_hub=data_dir is None)
    found = evaluate(systems, tasks, DataFolder(data_dir) if data_dir else Hub(), base, settings)
    if report:
        from angle_train.report.page import write_eval_page
        from angle_train.report.text import command_line, portable

        given = {
            "--model": [portable(name) for name in model or []],
            "--seeds-of": [portable(pattern) for pattern in seeds_of or []],
            "--baseline": portable(baseline) if baseline else None,
            "--pairs": [portable(spec) for spec in pairs or []],
            "--split": split,
            "--scale": scale,
            "--task": list(tasks) if task else None,
            "--data-dir": portable(str(data_dir)) if data_dir else None,
            "--seed": str(settings.seed) if task else None,
            "--no-query-in-index": not settings.query_in_index,
        }
        write_eval_page(report, found, command_line("angle-train eval", list(given.items())))
    if as_json or not quiet:
        typer.echo(found.to_json() if as_json else results_table([*found.results, *found.averages]))
    if found.failed:
        raise InputError(found.what_failed(tasks))


def _check_options(pairs: bool, task: bool, models: bool, unused: Mapping[str, object]) -> None:
    """Check that the options given go together; `unused`: those of the other way, None if not given."""
    if pairs == task:
        raise InputError("give either --pairs FILE or --task NAME")
    if not models:
        raise InputError("give --model DIR or --seeds-of PATTERN")
    for name, value in unused.items():
        if value is not None:
            raise InputError(f"{name} goes with {'--task' if pairs else '--pairs'} only; leave it out")


def _check_page(report: Path) -> None:
    """Check that a page can be written there; missing folders will be made."""
    if report.is_dir() or report.suffix.lower() not in _PAGES:
        raise InputError(f"--report {report}: give the name of a page, such as report.html")
    place = next(folder for folder in report.absolute().parents if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise InputError(f"--report {report}: nothing can be written in {place}; choose another place")
