"""Shows what the grammar finds in a file of comments (JSON Lines): why a pair exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, groupby
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.reading import Remark, read_thread
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


def explain_comments(path: Path, *, threads: bool = False, why: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one row a comment: `repo`, `number` and the `links` that it states.

    With `threads`, links that a later comment of the same issue takes back are left out; the comments of an
    issue must follow one another in the file, oldest first. With `why`, every link has the `text` it was
    read from, and the row `denials` and `retracts`; of threads also the links `cancelled`, each with the
    position `by` of the comment that took it back, from 1.

    Raises:
        InputError: See `read_comments`.
    """
    position = count()
    for (repo, number, _), group in groupby(
        read_comments(path), key=lambda row: (*row[:2], 0 if threads else next(position))
    ):
        comments = [comment for _, _, comment in group]
        thread = read_thread(comments, repo, number)
        rows: list[dict[str, Any]] = [{"repo": repo, "number": number, "links": []} for _ in comments]
        for place, row in enumerate(rows if why else ()):
            row |= {"denials": [], "retracts": place in thread.taking_back}
            row |= {"cancelled": []} if threads else {}
        for found in thread.links:
            shown = _shown(found.link, comments[found.comment][2], why)
            if found.retracted_by is None:
                rows[found.comment]["links"].append(shown)
            elif why:
                rows[found.comment]["cancelled"].append({**shown, "by": found.retracted_by + 1})
        for denial in thread.denials if why else ():
            shown = _shown(denial.link, comments[denial.comment][2], why)
            rows[denial.comment]["denials"].append(shown)
        yield from rows


def _shown(link: MarkerLink, body: str, why: bool) -> dict[str, Any]:
    start, end = link.span
    return {**link.to_dict(), "text": body[start:end]} if why else link.to_dict()
