"""What part of GitHub counts: which repositories, issues of which days, and marks or words.

The list of repositories has one `owner/name` or URL a line; comments and blank lines are allowed. The crawl
finds out whether a repository exists and what it is called today. The build leaves out what lies outside a
`Selection`, so that a folder that holds more gives the same data set as one that was crawled for it alone.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from angle_data.errors import InputError
from angle_data.jsonl import open_text

Signals = Literal["events", "comments", "both"]
"""What says that issues are duplicates (`--strategy`): GitHub's marks, what people write, or both."""

# https://github.com/owner/name[.git][/issues/…], or the bare owner/name.
_ADDRESS = re.compile(r"https?://(?:[^@/]*@)?(?:www\.)?(?P<host>[^/:]+)(?::\d+)?/", re.IGNORECASE)
_SECRET = re.compile(r"//[^@/\s]*@")
_HOSTS = frozenset({"github.com"})
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")

log = logging.getLogger("angle")


def parse_repo(text: str, hosts: frozenset[str] = _HOSTS) -> str | None:
    """Return `owner/name` of a name or of an address on one of `hosts`, None if it is neither."""
    address = _ADDRESS.match(text)
    if address and address["host"].lower() not in hosts:
        return None
    path = text[address.end() :] if address else text
    parts = re.split(r"[?#]", path)[0].rstrip("/").split("/")
    if len(parts) < 2 or (len(parts) > 2 and not address):
        return None
    owner, name = parts[0], parts[1].removesuffix(".git")
    if not _OWNER.match(owner) or not _NAME.match(name) or name in {"", ".", ".."}:
        return None
    return f"{owner}/{name}"


def read_repos(path: Path | None, api_url: str = "", *, tell: bool = False) -> tuple[str, ...]:
    """Return the names in a list, once each in any case; a `#` after nothing or a space opens a comment.

    An address must lie on github.com or on the host of `api_url`; `tell` warns of lines that name no
    repository, which are left out. None is an empty list.

    Raises:
        InputError: The file cannot be read or names no repository.
    """
    if path is None:
        return ()
    host = (urlsplit(api_url).hostname or "").lower()
    hosts = _HOSTS | {host, host.removeprefix("api.")}
    names: dict[str, str] = {}
    bad: dict[int, str] = {}
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, start=1):
                text = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
                name = parse_repo(text, hosts)
                if name is not None:
                    names.setdefault(name.lower(), name)
                elif text:
                    bad[number] = _SECRET.sub("//***@", text)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; give a list with one owner/name a line") from None
    if not names:
        seen = next((f" (line {number}: {text!r} is none)" for number, text in bad.items()), "")
        raise InputError(f"{path} names no repository{seen}; write one owner/name or GitHub URL a line")
    for number, text in bad.items() if tell else ():
        log.warning("%s:%d: %r is no repository; skipped", path, number, text)
    return tuple(names.values())


@dataclass(frozen=True, slots=True)
class Selection:
    """Which issues and statements count; checks itself.

    `repos` are names as they stand in the list (None: all that were crawled). `since` and `until` are days
    (`2024-01-31`, UTC, both included) on which an issue was opened.
    """

    repos: tuple[str, ...] | None = None
    since: str | None = None
    until: str | None = None
    strategy: Signals = "both"

    def __post_init__(self) -> None:
        if self.strategy not in ("events", "comments", "both"):
            raise InputError(f"--strategy must be events, comments or both, got {self.strategy!r}")
        for option, value in (("--since", self.since), ("--until", self.until)):
            if value is not None and not _is_day(value):
                raise InputError(f"{option} {value!r} is no date; write it as 2024-01-31")
        if self.since and self.until and self.until < self.since:
            raise InputError(f"--until {self.until} lies before --since {self.since}; swap them")

    def holds(self, created_at: str) -> bool:
        """Whether an issue opened at this time counts; one of which the time is unknown does."""
        day = created_at[:10]
        return not day or ((self.since or "") <= day and (self.until is None or day <= self.until))


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
