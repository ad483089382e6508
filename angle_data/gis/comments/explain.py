"""Shows what the grammar finds in a file of comments (JSON Lines): why a pair exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.comments.reading import MarkerLink, read_thread
from angle_data.gis.comments.references import PUBLIC_HOSTS
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
    path: Path, *, threads: bool = False, why: bool = False, hosts: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
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
        read_comments(path), key=lambda c: (c.repo, c.number, 0 if threads else next(position))
    ):
        comments = list(group)
        thread = read_thread(comments, repo, number, hosts=PUBLIC_HOSTS | hosts)
        rows: list[dict[str, Any]] = [{"repo": repo, "number": number, "links": []} for _ in comments]
        for place, row in enumerate(rows if why else ()):
            row |= {"denials": [], "retracts": place in thread.taking_back}
            row |= {"cancelled": []} if threads else {}
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
