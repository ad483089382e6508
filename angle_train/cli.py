"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging, run_app

__all__ = ["app", "eval_models", "fit_model", "main"]

app = typer.Typer(
    name="angle-train",
    help="Labelled sentence pairs in, embedding model and report out.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_PAIRS = ".jsonl[.gz], .csv or .parquet"
Scale = Annotated[
    str | None,
    typer.Option(help="Scale of the scores, LOW-HIGH such as 0-5.", show_default="detected"),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Warnings only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="More detail.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.callback()
def _program() -> None:
    """Labelled sentence pairs in, embedding model and report out."""


@app.command("fit")
def fit_model(
    data: Annotated[
        list[str],
        typer.Option(help=f"Training pairs: dataset directory, {_PAIRS} file, or hub:ID. Repeatable."),
    ],
    backbone: Annotated[str, typer.Option(help="Model to start from: directory or hub id.")],
    out: Annotated[
        Path, typer.Option(help="Directory for model and report; the same command goes on there.")
    ],
    recipe: Annotated[str, typer.Option(help="Name of a built-in recipe, or a .toml file.")] = "default",
    dev: Annotated[
        list[str] | None,
        typer.Option(
            help="Pairs that choose the checkpoint (rows with split dev, if split). Repeatable.",
            show_default="validation split, or a tenth of the data",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Pairs to report on (rows with split test, if split). Repeatable."),
    ] = None,
    scale: Scale = None,
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the data.", show_default="recipe's")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs per step.", show_default="recipe's")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak rate.", show_default="recipe's")] = None,
    max_seq_length: Annotated[
        int | None, typer.Option(help="Tokens per text.", show_default="recipe's or checkpoint's")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="auto, fp32, bf16 or fp16.", show_default="recipe's")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds everything random.", show_default="recipe's")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in --out.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a model on labelled pairs and report whether that helped.

    Example: angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev dev.jsonl --test test.jsonl --out model
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.backbones import check_training_extra
    from angle_train.config import Recipe, find_recipe

    overrides = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "max_seq_length": max_seq_length,
        "precision": precision,
        "seed": seed,
    }
    chosen = Recipe.from_toml(find_recipe(recipe)).with_overrides(overrides)
    check_training_extra("angle-train fit")
    from angle_train.fit import FitConfig, fit
    from angle_train.report.table import results_table

    result = fit(
        FitConfig(
            data, backbone, out, chosen, dev=dev or (), test=test or (), scale=scale, overwrite=overwrite
        )
    )
    if as_json:
        typer.echo((out / "report.json").read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(results_table(result.report.results))
    typer.echo("\n" + "\n".join(result.report.verdict()))
    typer.echo(f"model: {out}   report: {out / 'report.html'}")


@app.command("eval")
def eval_models(
    model: Annotated[list[str], typer.Option(help="Model to measure: directory or hub id. Repeatable.")],
    pairs: Annotated[
        list[str],
        typer.Option(help=f"Scored pairs: {_PAIRS} file, dataset directory, or hub:ID. Repeatable."),
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


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")
