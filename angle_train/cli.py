"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train grid --data pairs/dataset --backbone model --dev few.jsonl --out grid
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
angle-train encode --model model --texts texts.jsonl --out texts.npy
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from angle_data.console import configure_logging, make_app, run_app, say_result
from angle_data.errors import InputError
from angle_train.api import SEED, check_inputs, evaluate, fit

_PAIRS = ".jsonl[.gz], .csv[.gz], .tsv[.gz] or .parquet"
_OF_PURPOSE = "opposites or topics as the data says, else default"
_TRAINING_PAIRS = f"Training pairs: dataset directory, {_PAIRS} file, or hub:ID. Repeatable."
Backbone = Annotated[str, typer.Option(help="Model to start from: directory or hub id.")]
Scale = Annotated[
    str | None,
    typer.Option(help="Scale of the scores, LOW-HIGH such as 0-5.", show_default="detected"),
]
SetValue = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any value of the recipe. Repeatable."),
]
Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda or mps (Apple).", show_default="the fastest there is"),
]
DropLeaks = Annotated[
    bool, typer.Option("--drop-leaks", help="Leave out training pairs that are dev or test pairs too.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Warnings only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="More detail.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_TASKS_HELP = (
    "Task or group to measure on: sts, transfer, pairs, inference, retrieval, all, stsb, trec … Repeatable. "
    "An unknown name lists them all."
)


def _of_recipe(text: str) -> Any:
    """Return an option that replaces a value of the recipe."""
    return typer.Option(help=text, show_default="recipe's")


app = make_app("angle-train", "Labelled sentence pairs in, embedding model and report out.")


@app.command("fit")
def fit_model(
    backbone: Backbone,
    out: Annotated[
        Path, typer.Option(help="Directory for model and report; the same command goes on there.")
    ],
    data: Annotated[list[str] | None, typer.Option(help=_TRAINING_PAIRS)] = None,
    human: Annotated[
        list[str] | None,
        typer.Option(help="Human-graded training pairs; without --dev they also choose when to stop."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Name of a built-in recipe, or a .toml file.", show_default=_OF_PURPOSE),
    ] = None,
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
    epochs: Annotated[float | None, _of_recipe("Passes over the data.")] = None,
    batch_size: Annotated[int | None, _of_recipe("Pairs per step, of all processes.")] = None,
    learning_rate: Annotated[float | None, _of_recipe("Peak rate.")] = None,
    max_seq_length: Annotated[
        str | None,
        typer.Option(
            help="Tokens per text, or auto: from the data.", show_default="recipe's or checkpoint's"
        ),
    ] = None,
    precision: Annotated[str | None, _of_recipe("auto, fp32, bf16 or fp16.")] = None,
    seed: Annotated[int | None, _of_recipe("Seeds everything random.")] = None,
    merge_back: Annotated[
        str | None, _of_recipe("Share of the backbone in the final weights, or auto.")
    ] = None,
    setting: SetValue = None,
    drop_leaks: DropLeaks = False,
    require_better: Annotated[
        bool,
        typer.Option(
            "--require-better",
            help="Save the backbone, and exit 1, unless dev chose tuned weights and test shows a gain.",
        ),
    ] = False,
    report_to: Annotated[
        str | None,
        typer.Option(
            help="tensorboard, wandb, trackio … (what transformers knows), with commas between.",
            show_default="none",
        ),
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

    On several GPUs: torchrun --nproc-per-node 4 -m angle_train fit …
    """
    if not data and not human:
        raise typer.BadParameter("give --data, or --human, or both", param_hint="--data")
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.recipe import parse_settings, toml_value

    named = {
        "epochs": ("--epochs", epochs),
        "batch_size": ("--batch-size", batch_size),
        "learning_rate": ("--learning-rate", learning_rate),
        "max_seq_length": ("--max-seq-length", max_seq_length and toml_value(max_seq_length)),
        "precision": ("--precision", precision),
        "seed": ("--seed", seed),
        "average_with_backbone": ("--merge-back", merge_back and toml_value(merge_back)),
    }
    values = parse_settings(setting or (), named)
    from angle_train.report.text import results_table
    from angle_train.train.processes import is_first

    result = fit(
        data,
        backbone=backbone,
        out=out,
        dev=dev,
        test=test,
        recipe=recipe,
        human=human,
        scale=scale,
        drop_leaks=drop_leaks,
        overwrite=overwrite,
        device=device,
        report_to=report_to,
        require_better=require_better,
        **values,
    )
    if not is_first():
        return
    if as_json:
        typer.echo((out / "report.json").read_text(encoding="utf-8"), nl=False)
    else:
        say_result(results_table(result.report.results))
        say_result("\n" + "\n".join(result.report.verdict()))
        say_result(f"model: {out}   report: {out / 'report.html'}")
    if require_better and result.report.kept == "backbone":
        raise InputError(
            f"--require-better: {result.report.verdict()[0].removesuffix('.')}; {out} holds the backbone, "
            f"{out / 'report.html'} has the figures"
        )


@app.command("grid")
def search_recipe(
    data: Annotated[list[str], typer.Option(help=_TRAINING_PAIRS)],
    backbone: Backbone,
    dev: Annotated[
        list[str], typer.Option(help="Pairs to choose on (rows with split dev, if split). Repeatable.")
    ],
    out: Annotated[
        Path, typer.Option(help="Directory for table and recipe; the same command goes on there.")
    ],
    human: Annotated[list[str] | None, typer.Option(help="Human-graded training pairs. Repeatable.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Recipe to search around: a name or .toml file.", show_default=_OF_PURPOSE),
    ] = None,
    setting: SetValue = None,
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
    from angle_train.recipe import parse_settings

    values = parse_settings(setting or ())
    check_training_extra("angle-train grid")
    check_inputs([*data, *(human or ()), *dev], [backbone])
    from angle_train.data.kinds import choose_recipe

    chosen, reason = choose_recipe(recipe, data)
    from angle_data.locking import check_free
    from angle_train.train.run_directory import HIDDEN

    check_free(out / HIDDEN)
    from angle_train.grid import GridConfig, grid_table, search
    from angle_train.run import FitConfig

    run = FitConfig(
        data,
        backbone,
        out,
        chosen.with_overrides(values),
        reason,
        dev=dev,
        human=human or (),
        scale=scale,
        drop_leaks=drop_leaks,
        overwrite=overwrite,
        device=device,
    )
    result = search(GridConfig(run, trials, rungs, seed))
    if as_json:
        typer.echo((out / "grid.json").read_text(encoding="utf-8"), nl=False)
        return
    say_result(grid_table(result))
    say_result(f"\n{result.verdict()}\nrecipe: {out / 'recipe.toml'}   table: {out / 'grid.json'}")
    from angle_train.report.text import command_line

    sources: dict[str, Any] = {"--data": data, "--human": human, "--dev": dev, "--scale": scale}
    options = [("--recipe", str(out / "recipe.toml")), ("--backbone", backbone), *sources.items()]
    options += [("--drop-leaks", drop_leaks), ("--out", "model")]
    say_result(f"train with it: {command_line('angle-train fit', options)}")


@app.command("eval")
def eval_models(
    model: Annotated[list[str], typer.Option(help="Model to measure: directory or hub id. Repeatable.")],
    pairs: Annotated[
        list[str] | None,
        typer.Option(help=f"Scored pairs: {_PAIRS} file, dataset directory, or hub:ID. Repeatable."),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help=_TASKS_HELP)] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with the tasks' data, TASK/SPLIT.jsonl.gz.", show_default="from the hub"),
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Model to compare the others with.")] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Rows of a file with a split column (else all), or split of a dataset (else test)."
        ),
    ] = None,
    scale: Scale = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Of the folds of tasks with classifiers.", show_default=str(SEED), min=0, max=2**32 - 1
        ),
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
    from angle_train.report.text import results_table

    found = evaluate(
        model,
        pairs=pairs,
        task=task,
        baseline=baseline,
        split=split,
        scale=scale,
        data_dir=data_dir,
        seed=seed,
        report=report,
        device=device,
    ).evaluation
    if as_json:
        typer.echo(found.to_json())
    else:
        say_result("\n".join([results_table([*found.results, *found.averages]), *found.notes]))
    if found.failed:
        raise InputError(f"not measured: {', '.join(found.failed)}; the reasons stand above")


@app.command("encode")
def encode_texts(
    model: Annotated[str, typer.Option(help="Model to embed with: directory or hub id.")],
    texts: Annotated[
        Path,
        typer.Option(help=f"Texts: {_PAIRS}, or .txt (one a line)."),
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
    check_inputs([], [model])
    from angle_train.encode import EncodeConfig, encode

    result = encode(
        EncodeConfig(
            model, texts, out, text_field, id_field, batch_size, normalize, prompt, max_seq_length, device
        )
    )
    if as_json:
        typer.echo(json.dumps(asdict(result), ensure_ascii=False, default=str))
    else:
        say_result(f"{result.texts} texts, embeddings of width {result.width}: {result.out}")


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")


if __name__ == "__main__":
    main()  # python -m angle_train.cli, as torchrun -m may start it
