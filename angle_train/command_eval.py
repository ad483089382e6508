"""`angle-train eval`: models and scored pairs in, a table of results out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_train.command_options import PAIRS, AsJson, Quiet, Scale, Verbose

__all__ = ["eval_models"]


def eval_models(
    model: Annotated[list[str], typer.Option(help="Model to measure: directory or hub id. Repeatable.")],
    pairs: Annotated[
        list[str],
        typer.Option(help=f"Scored pairs: {PAIRS} file, dataset directory, or hub:ID. Repeatable."),
    ],
    baseline: Annotated[str | None, typer.Option(help="Model to compare the others with.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Rows of a file with a split column, or split of a dataset.")
    ] = None,
    scale: Scale = None,
    report: Annotated[Path | None, typer.Option(help="Also write the result as an HTML file.")] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Measure models on scored pairs, with intervals and paired differences to a baseline.

    Example: angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2
    --pairs test.jsonl
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.backbones import check_training_extra

    check_training_extra("angle-train eval")
    from angle_train.evaluate.run import evaluate
    from angle_train.report.table import results_table

    results = evaluate(model, pairs, baseline=baseline, split=split, scale=scale)
    if report:
        from angle_train.report.html import write_eval_html

        write_eval_html(report, results)
    if as_json:
        typer.echo(
            json.dumps({"results": [result.to_dict() for result in results]}, ensure_ascii=False, indent=1)
        )
    else:
        typer.echo(results_table(results))
