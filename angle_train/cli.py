"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train grid --data pairs/dataset --backbone model --dev few.jsonl --out grid
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
angle-train encode --model model --texts texts.jsonl --out texts.npy
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from angle_data.console import configure_logging, run_app
from angle_train.command_eval import eval_models
from angle_train.command_options import (
    PAIRS,
    AsJson,
    Device,
    DropLeaks,
    Quiet,
    Scale,
    SetValue,
    Verbose,
    check_inputs,
)

app = typer.Typer(
    name="angle-train",
    help="Labelled sentence pairs in, embedding model and report out.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _program() -> None:
    """Labelled sentence pairs in, embedding model and report out."""


@app.command("fit")
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
    check_inputs([*(data or ()), *(human or ()), *(dev or ()), *(test or ())], [backbone])
    from angle_data.locking import check_free
    from angle_train.train.checkpoints import HIDDEN, check_out
    from angle_train.train.processes import is_first, process_count

    if process_count() == 1:  # of several processes the first takes the directory
        check_out(out)
        check_free(out / HIDDEN)
    from angle_train.fit import FitConfig, fit
    from angle_train.report.text import results_table

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
    if quiet:
        return
    typer.echo(results_table(result.report.shown()))
    typer.echo("\n" + "\n".join(result.report.verdict()))
    typer.echo(f"model: {out}   report: {out / 'report.html'}")


@app.command("grid")
def search_recipe(
    data: Annotated[
        list[str],
        typer.Option(help=f"Training pairs: dataset directory, {PAIRS} file, or hub:ID. Repeatable."),
    ],
    backbone: Annotated[str, typer.Option(help="Model to start from: directory or hub id.")],
    dev: Annotated[
        list[str], typer.Option(help="Pairs to choose on (rows with split dev, if split). Repeatable.")
    ],
    out: Annotated[
        Path, typer.Option(help="Directory for table and recipe; the same command goes on there.")
    ],
    human: Annotated[list[str] | None, typer.Option(help="Human-graded training pairs. Repeatable.")] = None,
    recipe: Annotated[str, typer.Option(help="Recipe to search around: a name or .toml file.")] = "default",
    setting: SetValue = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of ranges: KEY = { low = 1e-5, high = 1e-4 }.",
            show_default="weights, temperatures, learning rate",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=2, help="Recipes to try, the given one among them.")] = 27,
    rungs: Annotated[
        int,
        typer.Option(min=1, help="Rounds; each trains the best third, and RECIPE, for three times as long."),
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Decides which recipes are tried.")] = 0,
    scale: Scale = None,
    drop_leaks: DropLeaks = False,
    device: Device = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier grid in --out.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Search weights, temperatures and learning rate on a few labels by successive halving.

    Example: angle-train grid --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev few.jsonl --out grid && angle-train fit --recipe grid/recipe.toml --data pairs/dataset …
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.model.load import check_training_extra
    from angle_train.recipe import Recipe, find_recipe, parse_settings

    chosen = Recipe.from_toml(find_recipe(recipe)).with_overrides(parse_settings(setting or ()))
    check_training_extra("angle-train grid")
    check_inputs([*data, *(human or ()), *dev], [backbone])
    from angle_data.locking import check_free
    from angle_train.train.checkpoints import HIDDEN

    check_free(out / HIDDEN)
    from angle_train.fit import FitConfig
    from angle_train.grid import SPACE, GridConfig, grid_table, read_space, search

    run = FitConfig(
        data,
        backbone,
        out,
        chosen,
        dev=dev,
        human=human or (),
        scale=scale,
        drop_leaks=drop_leaks,
        overwrite=overwrite,
        device=device,
    )
    result = search(GridConfig(run, trials, rungs, seed, read_space(space) if space else SPACE))
    if as_json:
        typer.echo((out / "grid.json").read_text(encoding="utf-8"), nl=False)
        return
    if quiet:
        return
    typer.echo(grid_table(result))
    typer.echo(f"\n{result.verdict()}\nrecipe: {out / 'recipe.toml'}   table: {out / 'grid.jsonl'}")
    from angle_train.report.repeat import command_line

    sources: dict[str, Any] = {"--data": data, "--human": human, "--dev": dev, "--scale": scale}
    options = [("--recipe", str(out / "recipe.toml")), ("--backbone", backbone), *sources.items()]
    options += [("--drop-leaks", drop_leaks), ("--out", "model")]
    typer.echo(f"train with it: {command_line('angle-train fit', options)}")


app.command("eval")(eval_models)


@app.command("encode")
def encode_texts(
    model: Annotated[str, typer.Option(help="Model to embed with: directory or hub id.")],
    texts: Annotated[
        Path,
        typer.Option(help="Texts: .jsonl[.gz], .csv[.gz], .parquet or .txt (one a line)."),
    ],
    out: Annotated[
        Path, typer.Option(help=".npy (one array, rows as in --texts) or .parquet (id, embedding).")
    ],
    text_field: Annotated[str, typer.Option(help="Field that holds the text.")] = "text",
    id_field: Annotated[
        str | None, typer.Option(help="Field that holds the id.", show_default="id, if there is one")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Texts per forward pass.")] = 32,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale every embedding to length 1.")
    ] = False,
    prompt: Annotated[
        str | None, typer.Option(help="Text before every text.", show_default="model's")
    ] = None,
    max_seq_length: Annotated[
        int | None, typer.Option(help="Tokens per text.", show_default="model's")
    ] = None,
    device: Device = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Embed the texts of a file, one embedding a row, in the order of the rows.

    Example: angle-train encode --model model --texts texts.jsonl --out texts.npy --normalize
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.model.load import check_training_extra

    check_training_extra("angle-train encode")
    from angle_train.encode import EncodeConfig, encode

    result = encode(
        EncodeConfig(
            model, texts, out, text_field, id_field, batch_size, normalize, prompt, max_seq_length, device
        )
    )
    if as_json:
        summary = {
            "out": str(result.out),
            "texts": result.texts,
            "blank": result.blank,
            "width": result.width,
        }
        typer.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        typer.echo(f"{result.texts} texts, embeddings of width {result.width}: {result.out}")


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")


if __name__ == "__main__":
    main()  # python -m angle_train.cli, as torchrun -m may start it
