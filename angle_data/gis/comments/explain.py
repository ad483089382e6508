"""Shows what the grammar finds in a file of comments (JSON Lines): why a pair exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.comments.reading import MarkerLink, read_comment
from angle_data.gis.comments.references import PUBLIC_HOSTS
from angle_data.gis.comments.threads import read_thread
from angle_data.jsonl import read_jsonl
from angle_data.text import whole_characters

# Finds: "lumen/editor"
_REPO = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ExplainedComment:
    """A comment as it stands in the file; further fields of the line are ignored."""

    repo: str
    number: int
    author: str | None
    body: str
    author_association: str = ""


def read_comments(path: Path) -> Iterator[ExplainedComment]:
    """Yield the comments of a file with `repo` (`owner/name`), `number`, `author` and `body` a line.

    `author` and `body` may be null (a deleted account, an empty comment).

    Raises:
        InputError: The file is missing, or a line is not such an object; names `file:line`.
    """
    for line, row in read_jsonl(path):
        where = f"{path}:{line}"
        missing = [name for name in ("repo", "number", "author", "body") if name not in row]
        if missing:
            raise InputError(f"{where}: the comment lacks {', '.join(missing)}")
        repo, number, author, body = row["repo"], row["number"], row["author"], row["body"]
        if not isinstance(repo, str) or not _REPO.fullmatch(repo):
            raise InputError(f"{where}: repo must be owner/name, got {repo!r}")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InputError(f"{where}: number must be a positive integer, got {number!r}")
        if not isinstance(author, str | None):
            raise InputError(f"{where}: author must be a login or null, got {author!r}")
        if not isinstance(body, str | None):
            raise InputError(f"{where}: body must be a text or null, got {type(body).__name__}")
        association = row.get("author_association")
        yield ExplainedComment(
            repo,
            number,
            author,
            whole_characters(body or ""),
            association if isinstance(association, str) else "",
        )


def explain_comments(
    path: Path, *, why: bool = False, hosts: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield one row a comment: `repo`, `number` and the `links` that the comment alone states.

    With `why`, every link has the `text` it was read from, and the row `denials` and `retracts`.

    Raises:
        InputError: See `read_comments`.
    """
    for comment in read_comments(path):
        reading = read_comment(
            comment.body, comment.repo, comment.number, author=comment.author, hosts=PUBLIC_HOSTS | hosts
        )
        row: dict[str, Any] = {"repo": comment.repo, "number": comment.number}
        row["links"] = [_shown(link, comment.body, why) for link in reading.links]
        if why:
            row["denials"] = [_shown(link, comment.body, why) for link in reading.denials]
            row["retracts"] = reading.retracts or reading.denies
        yield row


def explain_threads(
    path: Path, *, why: bool = False, hosts: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield rows as `explain_comments`, without the links that a later comment of the thread took back.

    With `why`, those are in `cancelled`, each with the position `by` of that comment in the thread, from 1.
    The comments of an issue must follow one another in the file, oldest first.

    Raises:
        InputError: See `read_comments`.
    """
    for (repo, number), group in groupby(read_comments(path), key=lambda c: (c.repo, c.number)):
        comments = list(group)
        thread = read_thread(comments, repo, number, hosts=PUBLIC_HOSTS | hosts)
        rows: list[dict[str, Any]] = [{"repo": repo, "number": number, "links": []} for _ in comments]
        if why:
            for position, row in enumerate(rows):
                row |= {"denials": [], "retracts": position in thread.taking_back, "cancelled": []}
        for found in thread.links:
            shown = _shown(found.link, comments[found.comment].body, why)
            if found.retracted_by is None:
                rows[found.comment]["links"].append(shown)
            elif why:
                rows[found.comment]["cancelled"].append({**shown, "by": found.retracted_by + 1})
        for denial in thread.denials if why else ():
            shown = _shown(denial.link, comments[denial.comment].body, why)
            rows[denial.comment]["denials"].append(shown)
        yield from rows


def _shown(link: MarkerLink, body: str, why: bool) -> dict[str, Any]:
    start, end = link.span
    return {**link.to_dict(), "text": body[start:end]} if why else link.to_dict()
