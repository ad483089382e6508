"""What `gis explain` shows: the links that the comments of a file state, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.comments.references import hosts_of
from angle_data.jsonl import dumps, read_jsonl
from angle_data.text import whole_characters

# Finds: "lumen/editor"
_REPO = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


def explain_comments(
    path: Path, *, why: bool = False, site: str = "https://github.com"
) -> Iterator[dict[str, Any]]:
    """Yield one row a comment: `repo`, `number` and the `links` that it states.

    Of a line count `repo` (`owner/name`), `number` (1 or more), and `author` and `body`, which may be null (a
    deleted account, an empty comment); an `InputError` names `file:line`. With `why`, every link has the
    `text` it was read from, and the row `denials`, `others` (what is said of third issues) and `retracts`:
    whether it takes earlier markers back without naming any. Only addresses on `site`, where a GitHub server
    has its pages, are references.
    """
    hosts = hosts_of(site)
    for line, given in read_jsonl(path):
        repo, number, author, body = (given.get(name, ...) for name in ("repo", "number", "author", "body"))
        is_sound = {
            "repo": isinstance(repo, str) and _REPO.fullmatch(repo),
            "number": isinstance(number, int) and number is not True and number > 0,
            "author": isinstance(author, str | None),
            "body": isinstance(body, str | None),
        }
        if bad := [name for name, sound in is_sound.items() if not sound]:
            found = ", ".join(f"{name} {_short(given[name]) if name in given else 'missing'}" for name in bad)
            raise InputError(
                f"{path}:{line}: a comment has repo (owner/name), number (1 or more), author and body "
                f"(each a text or null); found: {found}"
            )
        body = whole_characters(body or "")
        said = read_comment(body, repo, number, author=author, hosts=hosts)
        row: dict[str, Any] = {"repo": repo, "number": number, "links": _shown(said.links, body, why)}
        if why:
            row["denials"] = _shown(said.denials, body, why)
            row["others"] = _shown(said.others, body, why)
            row["retracts"] = said.retracts or said.denies
        yield row


def _short(value: object) -> str:
    """Return a value as JSON has it, cut to a few words' length."""
    return shorten(dumps(value), 60, placeholder="...")


def _shown(links: Iterable[MarkerLink], body: str, why: bool) -> list[dict[str, Any]]:
    return [asdict(link) | ({"text": body[slice(*link.span)]} if why else {}) for link in links]
