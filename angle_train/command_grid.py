"""`angle-train grid`: pairs, a backbone and dev pairs in, the recipe that ranks those best out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from angle_data.console import configure_logging
from angle_train.command_options import PAIRS, AsJson, Device, DropLeaks, Quiet, Scale, SetValue, Verbose


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
    from angle_data.locking import check_free
    from angle_train.places import check_inputs

    check_inputs([*data, *(human or ()), *dev], [backbone])
    check_free(out)
    from angle_train.fit import FitConfig
    from angle_train.grid import GridConfig, grid_table, search
    from angle_train.space import read_space

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
    result = search(GridConfig(run, trials, rungs, seed, read_space(space) if space else {}))
    if as_json:
        typer.echo((out / "grid.json").read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(grid_table(result))
    typer.echo(f"\n{result.verdict()}\nrecipe: {out / 'recipe.toml'}   table: {out / 'grid.jsonl'}")
    from angle_train.report.text import command_line

    sources: dict[str, Any] = {"--data": data, "--human": human, "--dev": dev, "--scale": scale}
    options = [("--recipe", str(out / "recipe.toml")), ("--backbone", backbone), *sources.items()]
    options += [("--drop-leaks", drop_leaks), ("--out", "model")]
    typer.echo(f"train with it: {command_line('angle-train fit', options)}")
