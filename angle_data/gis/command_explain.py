"""The command `angle-data gis explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from angle_data.console import configure_logging
from angle_data.errors import InputError


def explain(
    comments: Annotated[
        Path,
        typer.Option(help="Comments: .jsonl[.gz] with repo, number, author and body a line; - reads stdin."),
    ],
    threads: Annotated[
        bool,
        typer.Option("--threads", help="Leave out links that a later comment of the same issue takes back."),
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Add the text that each link was read from.")] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Host or address that counts as GitHub beside github.com; repeatable."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show details.")] = False,
) -> None:
    """Show which duplicate links the comments state: one JSON object a comment, in the order of the file.

    Example: angle-data gis explain --comments comments.jsonl --why
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_data.gis.comments.explain import explain_comments
    from angle_data.jsonl import dumps

    hosts = frozenset(map(_host, host or ()))
    source = Path("/dev/stdin") if str(comments) == "-" else comments
    rows = explain_comments(source, threads=threads, why=why, hosts=hosts)
    for row in rows:
        sys.stdout.write(dumps(row) + "\n")


def _host(text: str) -> str:
    """The name of the host in a name or address."""
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
        name = parts.hostname and parts.hostname + port
    except ValueError:
        name = None
    if not name:
        raise InputError(f"--host {text!r} is no host; give one such as git.example.com")
    return name.casefold()
