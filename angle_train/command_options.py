"""What several commands of `angle-train` share: options, and the check that named files and models exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

PAIRS = ".jsonl[.gz], .csv[.gz] or .parquet"
"""The kinds of files that hold pairs, as the help texts name them."""
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


def check_inputs(sources: Iterable[str], models: Iterable[str]) -> None:
    """Check that pairs and models exist before anything is imported that takes seconds; the hub is not asked.

    Raises:
        InputError: One does not exist, or is of another kind.
    """
    from angle_train.data.sources import check_source
    from angle_train.model.load import check_model_path

    for source in sources:
        check_source(source)
    for model in models:
        check_model_path(model)
