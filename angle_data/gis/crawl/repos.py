"""The list of repositories: one `owner/name` or URL a line, comments and blank lines allowed.

Knows names and hosts; whether a repository exists, or what it is called today, is for the crawl to find out.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from angle_data.errors import InputError
from angle_data.jsonl import open_text

# https://github.com/owner/name[.git][/issues/…], git@host:owner/name.git, or the bare owner/name.
_ADDRESS = re.compile(
    r"(?:https?://(?:[^@/]*@)?|(?:ssh://)?git@)(?P<host>[^/:]+)(?::\d+(?=/))?[:/]", re.IGNORECASE
)
_SECRET = re.compile(r"//[^@/\s]*@")
_HOSTS = frozenset({"github.com"})
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")

log = logging.getLogger("angle")


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


def parse_repo(text: str, hosts: frozenset[str] = _HOSTS) -> str | None:
    """Return `owner/name` of a name or of an address on one of `hosts`, None if it is neither."""
    address = _ADDRESS.match(text)
    if address and re.sub(r"^(?:www|ssh)\.", "", address["host"].lower()) not in hosts:
        return None
    path = text[address.end() :] if address else text
    parts = re.split(r"[?#]", path)[0].rstrip("/").split("/")
    if len(parts) < 2 or (len(parts) > 2 and not address):
        return None
    owner, name = parts[0], parts[1].removesuffix(".git")
    if not _OWNER.match(owner) or not _NAME.match(name) or name in {"", ".", ".."}:
        return None
    return f"{owner}/{name}"


def read_repos(path: Path, api_url: str = "", *, tell: bool = False) -> RepoList:
    """Read a list of repositories; a `#` at the start of a line or after a space opens a comment.

    An address must lie on github.com or on the host of `api_url`; `tell` warns of bad lines.

    Raises:
        InputError: The file cannot be read or names no repository.
    """
    host = (urlsplit(api_url).hostname or "").lower()
    hosts = _HOSTS | {host, host.removeprefix("api.")}
    names: dict[str, str] = {}
    bad: list[BadLine] = []
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, start=1):
                text = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
                name = parse_repo(text, hosts)
                if name is not None:
                    names.setdefault(name.lower(), name)
                elif text:
                    bad.append(BadLine(number, _SECRET.sub("//***@", text)))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; give a list with one owner/name a line") from None
    if not names:
        seen = f" (line {bad[0].number}: {bad[0].text!r} is none)" if bad else ""
        raise InputError(f"{path} names no repository{seen}; write one owner/name or GitHub URL a line")
    for entry in bad if tell else ():
        log.warning("%s:%d: %r is no repository; skipped", path, entry.number, entry.text)
    return RepoList(tuple(names.values()), tuple(bad))
