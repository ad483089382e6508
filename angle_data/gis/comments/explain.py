"""Shows what the grammar finds in a file of comments (JSON Lines): why a pair exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.reading import Remark, read_comment
from angle_data.jsonl import read_jsonl
from angle_data.text import whole_characters

# Finds: "lumen/editor"
_REPO = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


def read_comments(path: Path) -> Iterator[tuple[str, int, Remark]]:
    """Yield repository, issue number and comment of each line of a file.

    `repo` is `owner/name`, `number` positive; `author` and `body` may be null (a deleted account, an empty
    comment). Further fields are ignored.

    Raises:
        InputError: The file is missing, or a line is not such an object; names `file:line`.
    """
    for line, row in read_jsonl(path):
        repo, number, author, body = (row.get(name, ...) for name in ("repo", "number", "author", "body"))
        said = isinstance(author, str | None) and isinstance(body, str | None)
        named = isinstance(repo, str) and _REPO.fullmatch(repo)
        if not (said and named and isinstance(number, int) and number is not True and number > 0):
            raise InputError(
                f"{path}:{line}: a comment has repo (owner/name), number (1 or more), author and body "
                "(a text or null)"
            )
        association = row.get("author_association")
        role = association if isinstance(association, str) else ""
        yield repo, number, (author, role, whole_characters(body or ""))


def explain_comments(path: Path, *, why: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one row a comment: `repo`, `number` and the `links` that it states.

    With `why`, every link has the `text` it was read from, and the row has `denials` and `retracts`: whether
    it takes earlier markers back without naming any. Raises what `read_comments` does.
    """
    for repo, number, (author, _, body) in read_comments(path):
        said = read_comment(body, repo, number, author=author)
        row: dict[str, Any] = {"repo": repo, "number": number, "links": _shown(said.links, body, why)}
        if why:
            row["denials"] = _shown(said.denials, body, why)
            row["retracts"] = said.retracts or said.denies
        yield row


def _shown(links: Iterable[MarkerLink], body: str, why: bool) -> list[dict[str, Any]]:
    return [{**link.to_dict(), **({"text": body[slice(*link.span)]} if why else {})} for link in links]
