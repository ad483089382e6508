"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train grid --data pairs/dataset --backbone model --dev few.jsonl --out grid
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
angle-train encode --model model --texts texts.jsonl --out texts.npy
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from angle_data.calls import with_options
from angle_data.console import make_app, nothing_kept, run_app
from angle_data.errors import AngleError, InputError
from angle_train.api import check_inputs, evaluate, fit
from angle_train.options import EncodeConfig, EvalOptions, FitOptions, GridOptions

_OF_RECIPE = ("epochs", "batch_size", "learning_rate", "max_seq_length", "precision", "seed", "merge_back")

app = make_app("angle-train", "Labelled sentence pairs in, embedding model and report out.")


@app.command("fit")
@with_options(FitOptions)
def fit_model(given: FitOptions) -> tuple[str, str, *tuple[AngleError, ...]]:
    """Fine-tune a model on labelled pairs and report whether that helped.

    Example: angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev dev.jsonl --test test.jsonl --out model

    On several GPUs: torchrun --nproc-per-node 4 -m angle_train fit …
    """
    from angle_train.recipe import MERGE_BACK, parse_settings

    options = asdict(given)
    named = {name: (f"--{name.replace('_', '-')}", options.pop(name)) for name in _OF_RECIPE}
    named[MERGE_BACK] = named.pop("merge_back")
    values: dict[str, Any] = parse_settings(options.pop("setting") or (), named)
    from angle_train.report.text import results_table
    from angle_train.train.processes import is_first

    report = fit(**options, **values).report
    if not is_first():
        raise typer.Exit
    out, verdict = given.out, report.verdict()
    page = out / "report.html"
    lines = [results_table(report.results), "", *verdict, f"model: {out}   report: {page}"]
    found = (out / "report.json").read_text(encoding="utf-8").rstrip("\n"), "\n".join(lines)
    if not given.require_better or report.kept != "backbone":
        return found
    reason = verdict[0].removesuffix(".")
    return *found, InputError(f"--require-better: {reason}; {out} holds the backbone, {page} has the figures")


@app.command("grid")
@with_options(GridOptions)
def search_recipe(given: GridOptions) -> tuple[str, str]:
    """Search weights, temperatures and learning rate on a few labels by successive halving.

    Example: angle-train grid --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev few.jsonl --out grid && angle-train fit --recipe grid/recipe.toml --data pairs/dataset …
    """
    from angle_train.model.load import check_training_extra
    from angle_train.recipe import parse_settings

    values = parse_settings(given.setting or ())
    check_training_extra("angle-train grid")
    check_inputs([*given.data, *(given.human or ()), *(given.keep or ()), *given.dev], [given.backbone])
    from angle_train.data.kinds import choose_recipe

    chosen, reason = choose_recipe(given.recipe, given.data)
    from angle_train.grid import grid_table, search

    names = ("backbone", "data", "human", "keep", "dev", "scale", "drop_leaks")
    shared: dict[str, Any] = {name: getattr(given, name) for name in names}
    out, recipe, table = given.out, given.out / "recipe.toml", given.out / "grid.json"
    more: dict[str, Any] = {"out": out, "device": given.device, "overwrite": given.overwrite}
    run = FitOptions(**shared, **more, recipe=chosen.with_overrides(values))
    result = search(run, reason, given.trials, given.rungs, given.seed)
    from angle_train.report.text import command_line

    options = {"recipe": recipe} | shared | {"out": "model"}
    lines = [grid_table(result), "", result["verdict"], f"recipe: {recipe}   table: {table}"]
    lines.append(f"train with it: {command_line('angle-train fit', options)}")
    return table.read_text(encoding="utf-8").rstrip("\n"), "\n".join(lines)


@app.command("eval")
@with_options(EvalOptions)
def eval_models(given: EvalOptions) -> tuple[str, str, *tuple[AngleError, ...]]:
    """Measure models on scored pairs or on tasks, with intervals and paired differences from a baseline.

    Example: angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2
    --pairs test.jsonl

    Example: angle-train eval --model model --task sts --data-dir data
    """
    from angle_train.report.text import results_table

    with nothing_kept():
        found = evaluate(**asdict(given)).evaluation
    text = "\n".join([results_table(found.results), *found.notes])
    if not found.failed:
        return found.to_json(), text
    failed = f"not measured: {', '.join(found.failed)}; the reasons stand above"
    return found.to_json(), text, InputError(failed)


@app.command("encode")
@with_options(EncodeConfig)
def encode_texts(config: EncodeConfig) -> tuple[dict[str, Any], str]:
    """Embed the texts of a file, one embedding per row, in row order.

    Example: angle-train encode --model model --texts texts.jsonl --out texts.npy --normalize
    """
    from angle_train.model.load import check_training_extra

    check_training_extra("angle-train encode")
    check_inputs([], [config.model])
    from angle_train.encode import encode

    with nothing_kept():
        found = encode(config)
    return found, f"{found['texts']} texts, embeddings of width {found['width']}: {found['out']}"


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")


if __name__ == "__main__":
    main()  # python -m angle_train.cli, as torchrun -m may start it
