"""The list of repositories: one `owner/name` or URL a line, comments and blank lines allowed.

Knows names only; whether a repository exists, or what it is called today, is for the crawl to find out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from angle_data.errors import InputError
from angle_data.jsonl import open_text

__all__ = ["BadLine", "RepoList", "parse_repo", "read_repos"]

# https://github.com/owner/name[.git][/issues/…], git@host:owner/name.git, or the bare owner/name.
_ADDRESS = re.compile(r"^(?:https?://(?:[^@/]*@)?[^/]+/|(?:ssh://)?git@[^/:]+[:/])", re.IGNORECASE)
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that names no repository, with its number counted from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class RepoList:
    """The names in the order of the file, without repetitions (case does not count), and the bad lines."""

    names: tuple[str, ...]
    bad: tuple[BadLine, ...]


def parse_repo(text: str) -> str | None:
    """Return `owner/name` of a name or address, None if it is neither."""
    address = _ADDRESS.match(text)
    path = text[address.end() :] if address else text
    parts = re.split(r"[?#]", path)[0].rstrip("/").split("/")
    if len(parts) < 2 or (len(parts) > 2 and not address):
        return None
    owner, name = parts[0], parts[1].removesuffix(".git")
    if not _OWNER.match(owner) or not _NAME.match(name) or name in {"", ".", ".."}:
        return None
    return f"{owner}/{name}"


def read_repos(path: Path) -> RepoList:
    """Read a list of repositories; a `#` at the start of a line or after a space opens a comment.

    Raises:
        InputError: The file cannot be read or names no repository.
    """
    names: dict[str, str] = {}
    bad: list[BadLine] = []
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, start=1):
                entry = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
                name = parse_repo(entry)
                if name is not None:
                    names.setdefault(name.lower(), name)
                elif entry:
                    bad.append(BadLine(number, entry))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; give a list with one owner/name a line") from None
    if not names:
        raise InputError(f"{path} names no repository; write one owner/name or GitHub URL a line")
    return RepoList(tuple(names.values()), tuple(bad))
