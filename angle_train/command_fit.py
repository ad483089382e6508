"""`angle-train fit`: pairs and a backbone in, model and report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_train.command_options import PAIRS, AsJson, Quiet, Scale, Verbose

__all__ = ["fit_model"]


def fit_model(
    data: Annotated[
        list[str],
        typer.Option(help=f"Training pairs: dataset directory, {PAIRS} file, or hub:ID. Repeatable."),
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
