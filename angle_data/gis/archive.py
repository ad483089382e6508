"""Event dumps instead of the API: GH Archive's hourly JSON lines, streamed into the same store.

Uses `IssuesEvent` and `IssueCommentEvent`; each carries the issue as it was then, and the youngest version
wins. Dumps have no marks of duplicates, no edits, gaps, and texts that were deleted since. Only files in
the shape of 2015 and later are read. https://www.gharchive.org
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.gis.payloads import comment_from_rest, issue_from_rest, login_of
from angle_data.gis.rows import Comment, Event, Issue, Repo
from angle_data.gis.store import Store
from angle_data.gis.streams import Window

__all__ = ["ArchiveCounts", "load_archives"]

_EVENTS_A_PAGE = 1_000
_TYPES = ("IssuesEvent", "IssueCommentEvent")

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class ArchiveCounts:
    """What became of the lines: `lines` is the sum of the others but `files`.

    `bad` lines are no JSON objects, `incomplete` events lack what a row needs (such as those before 2015),
    `other` are of another type, repository or date. `damaged` files ended early; `known` files had been
    read before.
    """

    lines: int = 0
    used: int = 0
    bad: int = 0
    incomplete: int = 0
    other: int = 0
    damaged: int = 0
    known: int = 0


@dataclass
class _Load:
    """One run over the dumps: which repositories count, and the rows of the page being gathered."""

    store: Store
    wanted: frozenset[str]
    window: Window
    ids: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    named: set[tuple[int, str]] = field(default_factory=set)
    repos: list[Repo] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Sort one line into the counts and, if it is of use, into the page."""
        self.counts["lines"] += 1
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            self.counts["bad"] += 1
            return
        try:
            self.counts[self._sort(event)] += 1
        except (KeyError, TypeError, ValueError, AttributeError):
            self.counts["incomplete"] += 1

    def flush(self) -> None:
        """Write the page."""
        for repo in self.repos:
            self.store.save_repo(repo)
        self.store.upsert_page(issues=self.issues, comments=self.comments, events=self.events)
        for rows in (self.repos, self.issues, self.comments, self.events):
            rows.clear()

    @property
    def full(self) -> bool:
        """Whether the page is due."""
        return len(self.issues) >= _EVENTS_A_PAGE

    def _sort(self, event: Mapping[str, Any]) -> Literal["used", "other"]:
        if event["type"] not in _TYPES:
            return "other"
        repo_id, name = event["repo"]["id"], event["repo"]["name"]
        if self.wanted and repo_id not in self.ids and name.lower() not in self.wanted:
            return "other"
        created = event["created_at"]
        if not self.window.holds(created) or (self.window.since and created < self.window.since):
            return "other"
        payload = event["payload"]
        issue = issue_from_rest(payload["issue"], repo_id)
        action = payload["action"]
        if event["type"] == "IssueCommentEvent":
            self.comments.append(comment_from_rest(payload["comment"], repo_id))
        elif action in ("closed", "reopened"):
            actor = login_of(event["actor"])
            issue = replace(issue, closed_by=actor) if action == "closed" else issue
            key = f"archive:{event['id']}"
            self.events.append(Event(key, action, repo_id, issue.number, None, None, actor, created))
        self.issues.append(issue)
        self.ids.add(repo_id)
        if (repo_id, name) not in self.named:
            self.named.add((repo_id, name))
            self.repos.append(Repo(repo_id, name, name))
        return "used"


def load_archives(
    store: Store, files: Sequence[Path], names: Sequence[str] = (), window: Window | None = None
) -> ArchiveCounts:
    """Stream event dumps into `store`; with `names`, only of these repositories, renamed or not.

    A file is read once: its name and size are noted when its last line is stored. Bad lines and a file that
    ends early are counted and reported.

    Raises:
        InputError: A file does not exist or cannot be read.
    """
    load = _Load(store, frozenset(name.lower() for name in names), window or Window())
    for repo in store.repos():
        if {repo.name.lower(), repo.asked.lower(), *(a.lower() for a in repo.aliases)} & load.wanted:
            load.ids.add(repo.id)
    for path in files:
        if not path.is_file():
            raise InputError(f"--archive {path} does not exist; check the path")
        note = f"archive:{path.name}:{path.stat().st_size}"
        if store.meta(note):
            load.counts["known"] += 1
            continue
        before = load.counts.copy()
        try:
            for line in _lines(path):
                load.take(line)
                if load.full:
                    load.flush()
            load.flush()
            store.set_meta(note, "read")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            load.flush()
            load.counts["damaged"] += 1
            log.warning("%s ends early (%s); what could be read of it is kept", path, error)
        lost = {name: load.counts[name] - before[name] for name in ("bad", "incomplete")}
        if any(lost.values()):
            log.warning("%s: %d lines are no JSON, %d events lack fields; left out", path, *lost.values())
    return ArchiveCounts(**load.counts)


def _lines(path: Path) -> Iterator[str]:
    """The non-blank lines; bytes that are no UTF-8 spoil their line, not the file."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        for line in stream:
            if line.strip():
                yield line.decode("utf-8", "replace")
