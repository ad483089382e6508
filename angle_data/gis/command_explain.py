"""The command `angle-data gis explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging

__all__ = ["explain"]


def explain(
    comments: Annotated[
        Path, typer.Option(help="Comments: .jsonl[.gz] with repo, number, author and body a line.")
    ],
    threads: Annotated[
        bool,
        typer.Option("--threads", help="Leave out links that a later comment of the same issue takes back."),
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Add the text that each link was read from.")] = False,
    host: Annotated[
        list[str] | None, typer.Option(help="Host that counts as GitHub beside github.com; repeatable.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
) -> None:
    """Show which duplicate links the comments state: one JSON object a comment, in the order of the file.

    Example: angle-data gis explain --comments comments.jsonl --why
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.explain import explain_comments, explain_threads
    from angle_data.jsonl import dumps

    hosts = frozenset(name.casefold() for name in host or ())
    rows = (explain_threads if threads else explain_comments)(comments, why=why, hosts=hosts)
    for row in rows:
        sys.stdout.write(dumps(row) + "\n")
