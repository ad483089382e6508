"""`angle-train fit`: pairs and a backbone in, model and report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_train.command_options import (
    PAIRS,
    AsJson,
    Device,
    DropLeaks,
    Quiet,
    Scale,
    SetValue,
    Verbose,
)


def fit_model(
    backbone: Annotated[str, typer.Option(help="Model to start from: directory or hub id.")],
    out: Annotated[
        Path, typer.Option(help="Directory for model and report; the same command goes on there.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"Training pairs: dataset directory, {PAIRS} file, or hub:ID. Repeatable."),
    ] = None,
    human: Annotated[
        list[str] | None,
        typer.Option(help="Human-graded training pairs; without --dev they also choose when to stop."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="Name of a built-in recipe, or a .toml file.")] = "default",
    dev: Annotated[
        list[str] | None,
        typer.Option(
            help="Pairs that choose the checkpoint (rows with split dev, if split). Repeatable.",
            show_default="--human in turn, or validation split, or a tenth of the data",
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
    batch_size: Annotated[
        int | None, typer.Option(help="Pairs per step, of all processes.", show_default="recipe's")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak rate.", show_default="recipe's")] = None,
    max_seq_length: Annotated[
        str | None,
        typer.Option(
            help="Tokens per text, or auto: from the data.", show_default="recipe's or checkpoint's"
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="auto, fp32, bf16 or fp16.", show_default="recipe's")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds everything random.", show_default="recipe's")
    ] = None,
    merge_back: Annotated[
        str | None,
        typer.Option(help="Share of the backbone in the final weights, or auto.", show_default="recipe's"),
    ] = None,
    setting: SetValue = None,
    drop_leaks: DropLeaks = False,
    report_to: Annotated[
        str | None,
        typer.Option(help="tensorboard, wandb, trackio, with commas between.", show_default="none"),
    ] = None,
    device: Device = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in --out.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a model on labelled pairs and report whether that helped.

    Example: angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev dev.jsonl --test test.jsonl --out model

    On several GPUs: torchrun --nproc-per-node 4 -m angle_train.cli fit …
    """
    if not data and not human:
        raise typer.BadParameter("give --data, or --human, or both", param_hint="--data")
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.model.load import check_training_extra
    from angle_train.recipe import Recipe, find_recipe, overrides_of, toml_value

    named = {
        "epochs": ("--epochs", epochs),
        "batch_size": ("--batch-size", batch_size),
        "learning_rate": ("--learning-rate", learning_rate),
        "max_seq_length": ("--max-seq-length", max_seq_length and toml_value(max_seq_length)),
        "precision": ("--precision", precision),
        "seed": ("--seed", seed),
        "average_with_backbone": ("--merge-back", merge_back and toml_value(merge_back)),
    }
    overrides = overrides_of(setting or (), named)
    chosen = Recipe.from_toml(find_recipe(recipe)).with_overrides(overrides)
    check_training_extra("angle-train fit")
    from angle_train.places import check_inputs, check_run_directory

    check_inputs([*(data or ()), *(human or ()), *(dev or ()), *(test or ())], [backbone])
    check_run_directory(out)
    from angle_train.fit import FitConfig, fit
    from angle_train.report.text import results_table
    from angle_train.train.processes import is_first

    result = fit(
        FitConfig(
            data or (),
            backbone,
            out,
            chosen,
            dev=dev or (),
            test=test or (),
            human=human or (),
            scale=scale,
            drop_leaks=drop_leaks,
            overwrite=overwrite,
            device=device,
            report_to=[name.strip() for name in (report_to or "").split(",") if name.strip()],
        )
    )
    if not is_first():
        return
    if as_json:
        typer.echo((out / "report.json").read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(results_table(result.report.shown()))
    typer.echo("\n" + "\n".join(result.report.verdict()))
    typer.echo(f"model: {out}   report: {out / 'report.html'}")
