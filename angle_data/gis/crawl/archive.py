"""Reads event dumps instead of the API: GH Archive's hourly JSON lines, into the same store.

Uses `IssuesEvent` and `IssueCommentEvent`; each carries the issue as it was then, and the youngest version
wins. Where a dump reports a deletion, the text goes. Dumps lack marks of duplicates and edits, have gaps, and
hold texts that were deleted since. Only files in the shape of 2015 and later are read. https://www.gharchive.org
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.gis.crawl.rows import (
    Comment,
    Event,
    Issue,
    Repo,
    comment_from_rest,
    issue_from_rest,
    login_of,
)
from angle_data.gis.crawl.store import Store
from angle_data.text import stable_hash

_EVENTS_A_PAGE = 1_000
_TYPES = ("IssuesEvent", "IssueCommentEvent")

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class ArchiveCounts:
    """How many `lines` there were: `used`, `bad`, `incomplete` and `other` add up to them.

    `bad` lines are not JSON objects, `incomplete` events lack what a row needs (such as those before 2015),
    `other` are of another type, repository or date. `damaged` counts files that ended early, `known` files
    that had been read before.
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
    """One run over the dumps: which repositories count, and the rows of the page being gathered.

    `page` is the address of the last issue; `lacking` counts the fields that the events of a file lack.
    """

    store: Store
    wanted: frozenset[str]
    since: str | None
    ids: set[int]
    counts: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    page: str = ""
    named: set[tuple[int, str]] = field(default_factory=set)
    repos: list[Repo] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def read(self, path: Path) -> bool:
        """Take every line of a file and return whether it could be read to its end."""
        before = self.counts.copy()
        try:
            for line in _lines(path):
                self.take(line)
                if len(self.issues) >= _EVENTS_A_PAGE:
                    self.flush()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.counts["damaged"] += 1
            if self.counts["lines"] == before["lines"]:
                log.warning("%s is no gzip file (%s); left out", path, error)
            else:
                log.warning("%s ends early (%s); what could be read of it is kept", path, error)
        self.flush()
        read = self.counts - before
        if read["bad"] or read["incomplete"]:
            such = f" (such as {self.lacking.most_common(1)[0][0]!r})" if self.lacking else ""
            said = "%s: %d lines are no JSON, %d events lack fields%s; left out"
            log.warning(said, path, read["bad"], read["incomplete"], such)
        self.lacking.clear()
        return not read["damaged"]

    def take(self, line: str) -> None:
        """Sort one line into the counts and, if it is of use, into the page."""
        self.counts["lines"] += 1
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        try:
            sort: str = self._sort(event) if isinstance(event, dict) else "bad"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            sort = "incomplete"
            self.lacking.update([str(error.args[0])] if isinstance(error, KeyError) else [])
        self.counts[sort] += 1

    def flush(self) -> None:
        """Write the page.

        Raises:
            InputError: The issues are of another site than those in the store.
        """
        self.store.note_site(self.page)
        for repo in self.repos:
            self.store.save_repo(repo)
        self.store.upsert_page(issues=self.issues, comments=self.comments, events=self.events)
        for rows in (self.repos, self.issues, self.comments, self.events):
            rows.clear()

    def _sort(self, event: Mapping[str, Any]) -> Literal["used", "other"]:
        if event["type"] not in _TYPES:
            return "other"
        repo_id, name = event["repo"]["id"], event["repo"]["name"]
        if self.wanted and repo_id not in self.ids and name.lower() not in self.wanted:
            return "other"
        created = event["created_at"]
        if created < (self.since or ""):
            return "other"
        payload = event["payload"]
        issue = issue_from_rest(payload["issue"], repo_id)
        action = payload["action"]
        self.page = payload["issue"].get("html_url") or self.page
        if event["type"] == "IssueCommentEvent":
            comment = comment_from_rest(payload["comment"], repo_id)
            if action == "deleted":
                # An empty row that outlives the text, in any order of the files.
                comment = replace(comment, body="", author=None, updated_at=created)
            self.comments.append(comment)
        elif action in ("closed", "reopened"):
            actor = login_of(event["actor"])
            issue = replace(issue, closed_by=actor) if action == "closed" else issue
            key = f"archive:{event['id']}"
            self.events.append(Event(key, action, repo_id, issue.number, None, None, actor, created))
        elif action == "deleted":
            issue = replace(issue, title="", body="", gone="deleted", updated_at=created)
        self.issues.append(issue)
        self.ids.add(repo_id)
        if (repo_id, name) not in self.named:
            self.named.add((repo_id, name))
            self.repos.append(Repo(repo_id, name, name))
        return "used"


def load_archives(
    store: Store, files: Sequence[Path], names: Sequence[str] = (), since: str | None = None
) -> ArchiveCounts:
    """Stream event dumps into `store`; with `names`, only of these repositories, renamed or not.

    With `since`, a time stamp, only events of that time or later. A file is read once for the same names and
    time, under any name: the hash of its bytes is noted when its last line is stored. Bad lines and a file
    that ends early are counted and reported.

    Raises:
        InputError: A file does not exist or cannot be read.
    """
    wanted = frozenset(name.lower() for name in names)
    load = _Load(store, wanted, since, {repo.id for repo in store.repos() if repo.names & wanted})
    part = f":{stable_hash(repr((sorted(wanted), since))):x}" if wanted or since else ""
    for path in files:
        if path.is_dir():
            raise InputError(f"--archive {path} is a directory; give its files")
        if not path.exists():
            raise InputError(f"--archive {path} does not exist; check the path")
        note = ""
        if path.is_file():  # a pipe can be read only once
            with path.open("rb") as stream:
                note = f"archive:{hashlib.file_digest(stream, 'sha256').hexdigest()}{part}"
        if note and store.meta(note):
            load.counts["known"] += 1
            continue
        if load.read(path) and note:
            store.set_meta(note, "read")
    return ArchiveCounts(**load.counts)


def _lines(path: Path) -> Iterator[str]:
    """The non-blank lines; bytes that are no UTF-8 spoil their line, not the file."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as stream:
        for line in stream:
            if line.strip():
                yield line.decode("utf-8", "replace")
