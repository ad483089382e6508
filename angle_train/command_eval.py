"""`angle-train eval`: models and scored pairs or tasks in, a table of results out."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError
from angle_train.command_options import PAIRS, AsJson, Device, Quiet, Scale, Verbose, check_inputs

log = logging.getLogger("angle.evaluate")

_PAGES = (".html", ".htm")  # a slip must not replace a file of data
_MOST_SEED = 2**32 - 1  # numpy's generators take no more
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
        typer.Option(help="Models that differ in their seed, as one (--task only): 'gis-seed*'. Repeatable."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Model to compare the others with; with --task also a pattern.")
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
        int | None, typer.Option(help="Of the folds of tasks with classifiers.", show_default="1111")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps embeddings for later runs.")] = None,
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
        "--seeds-of": seeds_of or None,
        "--analysis": analysis or None,
        "--cache": cache,
        "--seed": seed,
        "--no-query-in-index" if query_in_index is False else "--query-in-index": query_in_index,
    }
    _check_options(model, pairs, task, seeds_of, for_tasks if pairs else for_pairs)
    if seed is not None and not 0 <= seed <= _MOST_SEED:
        raise InputError(f"--seed {seed}: give a whole number from 0 to {_MOST_SEED}")
    if analysis and not as_json:
        raise InputError("--analysis adds to what --json prints; give --json too")
    if report and (report.is_dir() or report.suffix.lower() not in _PAGES):
        raise InputError(f"--report {report}: give the name of a page, such as report.html")
    if data_dir and not data_dir.is_dir():
        raise InputError(f"--data-dir {data_dir} is no folder; check the path")
    from angle_train.model.load import check_device, check_training_extra

    check_training_extra("angle-train eval")
    check_device(device)
    if pairs:
        check_inputs(pairs, [*([baseline] if baseline else ()), *(model or ())])
        _on_pairs(model or [], pairs, baseline, split, scale, device, report, as_json)
        return
    from angle_train.evaluate.tasks.registry import Settings, expand_names

    chosen: dict[str, Any] = {"seed": seed, "query_in_index": query_in_index}
    settings = Settings(**{name: value for name, value in chosen.items() if value is not None})
    names = expand_names(task or [])
    if data_dir is None:
        names = _on_hub(names, task or [])
    _on_tasks(
        model or [],
        seeds_of or [],
        baseline,
        names,
        data_dir,
        settings,
        cache,
        device,
        report,
        analysis,
        as_json,
    )


def _check_options(
    model: list[str] | None,
    pairs: list[str] | None,
    task: list[str] | None,
    seeds_of: list[str] | None,
    unused: dict[str, Any],
) -> None:
    """Check that options go together; `unused`: those the chosen way does not have, None if not given."""
    if bool(pairs) == bool(task):
        raise InputError("give either --pairs FILE or --task NAME")
    if not model and not seeds_of:
        raise InputError("give --model DIR, or --seeds-of PATTERN with --task")
    for name, value in unused.items():
        if value is not None:
            raise InputError(f"{name} goes with {'--task' if pairs else '--pairs'} only; leave it out")


def _on_hub(names: list[str], asked: list[str]) -> list[str]:
    """Return the tasks whose data is on the hub; of the others a group is told about, a name refused."""
    from angle_train.evaluate.tasks.registry import load_task

    local = [name for name in names if load_task(name).data.hub is None]
    named = [name for name in local if name in asked]
    if named or len(local) == len(names):
        raise InputError(f"no data on the hub: {', '.join(named or local)}; give a folder with --data-dir")
    if local:
        log.warning("left out, as their data is not on the hub: %s; --data-dir has them", ", ".join(local))
    return [name for name in names if name not in local]


def _on_pairs(
    models: list[str],
    pairs: list[str],
    baseline: str | None,
    split: str | None,
    scale: str | None,
    device: str | None,
    report: Path | None,
    as_json: bool,
) -> None:
    from angle_train.evaluate.run import evaluate_closely
    from angle_train.report.table import results_table

    found = evaluate_closely(models, pairs, baseline=baseline, split=split, scale=scale, device=device)
    if report:
        from angle_train.report.eval_html import write_eval_html
        from angle_train.report.repeat import command_line, portable

        given = [
            ("--model", [portable(name) for name in models]),
            ("--baseline", portable(baseline) if baseline else None),
            ("--pairs", [portable(spec) for spec in pairs]),
            ("--split", split),
            ("--scale", scale),
        ]
        write_eval_html(report, found.results, found.views, command_line("angle-train eval", given))
    if as_json:
        _print_json({"results": [result.to_dict() for result in found.results]})
    else:
        typer.echo(results_table(found.results))


def _on_tasks(
    models: list[str],
    patterns: list[str],
    baseline: str | None,
    names: list[str],
    data_dir: Path | None,
    settings: Any,
    cache: Path | None,
    device: str | None,
    report: Path | None,
    analysis: bool,
    as_json: bool,
) -> None:
    from angle_train.evaluate.seeds import systems_of
    from angle_train.evaluate.suite import run_suite
    from angle_train.evaluate.suite_table import suite_table
    from angle_train.evaluate.tasks.sources import DataFolder, Hub

    systems, base = systems_of(models, patterns, baseline)
    found = run_suite(
        systems,
        names,
        DataFolder(data_dir) if data_dir else Hub(),
        baseline=base,
        settings=settings,
        cache=cache,
        device=device,
        analysis=analysis,
        views=report is not None,
    )
    if report:
        from angle_train.report.eval_html import write_suite_html
        from angle_train.report.repeat import command_line, portable

        given = [
            ("--model", [portable(name) for name in models]),
            ("--seeds-of", [portable(pattern) for pattern in patterns]),
            ("--baseline", portable(baseline) if baseline else None),
            ("--task", names),
            ("--data-dir", portable(str(data_dir)) if data_dir else None),
            ("--seed", str(settings.seed)),
            ("--no-query-in-index", not settings.query_in_index),
        ]
        write_suite_html(report, found, command_line("angle-train eval", given))
    if as_json:
        _print_json(found.to_dict())
    else:
        typer.echo(suite_table([*found.scores, *found.averages]))
    tasks = [name for name in found.failed if name in names]
    others = [name for name in found.failed if name not in names]
    parts = [f"{len(tasks)} of {len(names)} tasks could not be measured: {', '.join(tasks)}"] if tasks else []
    parts += [f"not loaded: {', '.join(others)}"] if others else []
    if parts:
        raise InputError("; ".join(parts))


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(_finite(content), ensure_ascii=False, indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return plain values with null in place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
