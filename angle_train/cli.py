"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train grid --data pairs/dataset --backbone model --dev few.jsonl --out grid
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
angle-train encode --model model --texts texts.jsonl --out texts.npy
"""

from __future__ import annotations

import typer

from angle_data.console import run_app
from angle_train.command_encode import encode_texts
from angle_train.command_eval import eval_models
from angle_train.command_fit import fit_model
from angle_train.command_grid import search_recipe

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


app.command("fit")(fit_model)
app.command("grid")(search_recipe)
app.command("eval")(eval_models)
app.command("encode")(encode_texts)


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")


if __name__ == "__main__":
    main()  # python -m angle_train.cli, as torchrun -m may start it
