"""Reads event dumps instead of the API: GH Archive's hourly JSON lines, into the same store.

Uses `IssuesEvent` and `IssueCommentEvent`; each carries the issue as it was then, and the youngest version
wins. Where a dump reports a deletion, the text goes. Dumps lack marks of duplicates and edits, have gaps, and
hold texts that were deleted since. Only files in the shape of 2015 and later are read. https://www.gharchive.org
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.gis.crawl.crawl import CrawlSummary, open_store
from angle_data.gis.crawl.rows import Event, RawRow, Repo, comment_from_rest, issue_from_rest, login_of
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store
from angle_data.jsonl import loads
from angle_data.text import counted, stable_hash

_ROWS_A_PAGE = 2_000
_TYPES = ("IssuesEvent", "IssueCommentEvent")
_NAMES = tuple(f'"{name}"'.encode() for name in _TYPES)

log = logging.getLogger("angle")


@dataclass
class _Load:
    """One run over the dumps: which repositories count, by name and id, and the rows of the page."""

    store: Store
    wanted: frozenset[str]
    since: str | None
    ids: set[int]
    counts: Counter[str] = field(default_factory=Counter)
    named: set[tuple[int, str]] = field(default_factory=set)
    rows: list[RawRow] = field(default_factory=list)

    def read(self, path: Path) -> bool:
        """Take every line of a file; return whether it could be read to its end."""
        bad = 0
        first = ""
        whole = True
        try:
            with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
                for line in filter(bytes.strip, stream):
                    self.counts["lines"] += 1
                    try:
                        used = not _is_other(line) and self.take(loads(line.decode(errors="replace")))
                        self.counts["used" if used else "other"] += 1
                    except (KeyError, TypeError, ValueError, AttributeError) as error:
                        self.counts["bad"] += 1
                        bad += 1
                        first = first or f"{type(error).__name__}: {error}"
                    if len(self.rows) >= _ROWS_A_PAGE:
                        self.flush()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            whole = False
            self.counts["damaged"] += 1
            log.warning("%s is damaged (%s); everything up to the damage is kept", path, error)
        self.flush()
        if bad:
            said = "%s: skipped %s that are not events from 2015 or later; the first: %s"
            log.warning(said, path, counted(bad, "line"), first)
        return whole

    def flush(self) -> None:
        """Write the page."""
        self.store.save(self.rows)
        self.rows.clear()

    def take(self, event: Mapping[str, Any]) -> bool:
        """Add the rows of an event to the page; False if it is of another type, date or repository."""
        if event["type"] not in _TYPES or (created := event["created_at"]) < (self.since or ""):
            return False
        repo_id, name = event["repo"]["id"], event["repo"]["name"]
        if self.wanted and repo_id not in self.ids and name.lower() not in self.wanted:
            return False
        payload = event["payload"]
        issue = issue_from_rest(payload["issue"], repo_id)
        rows = list[RawRow]()
        action = payload["action"]
        if event["type"] == "IssueCommentEvent":
            comment = comment_from_rest(payload["comment"], repo_id)
            if action == "deleted":
                # An empty row that outlives the text, in any order of the files.
                comment = replace(comment, body="", author=None, updated_at=created)
            rows.append(comment)
        elif action in ("closed", "reopened"):
            actor = login_of(event["actor"])
            issue = replace(issue, closed_by=actor) if action == "closed" else issue
            key = f"archive:{event['id']}"
            rows.append(Event(key, action, repo_id, issue.number, None, None, actor, created))
        elif action == "deleted":
            issue = replace(issue, title="", body="", gone="deleted", updated_at=created)
        if (repo_id, name) not in self.named:
            self.store.note_site(payload["issue"]["html_url"])
            self.store.save_repo(Repo(repo_id, name, name))
            self.named.add((repo_id, name))
        self.ids.add(repo_id)
        self.rows += [issue, *rows]
        return True


def read_archives(config: GisConfig) -> CrawlSummary:
    """Read the dumps that `config` names into its store; the counts are those of `load_archives`."""
    names = config.names()
    with open_store(config) as store:
        counts = load_archives(store, config.archives, names, config.start)
        return CrawlSummary(store.path, {}, store.counts(), archive=counts)


def load_archives(
    store: Store, paths: Sequence[Path], names: Sequence[str] = (), since: str | None = None
) -> dict[str, int]:
    """Stream event dumps, or folders of them, into `store`; with `names`, only of these repositories.

    With `since`, a time stamp, only events of that time or later. A file is read once for the same names and
    time, under any name. An `InputError` if one does not exist.

    Returns how many `lines` there were, of which `used`, `bad` (no JSON, or without what a row needs, such as
    those before 2015) and `other` (another type, repository or date) add up to them; `damaged` files ended
    early and `known` ones had been read before. What there was none of is left out.
    """
    wanted = frozenset(name.lower() for name in names)
    load = _Load(store, wanted, since, {repo.id for repo in store.repos() if repo.names & wanted})
    part = f":{stable_hash(repr((sorted(wanted), since))):x}" if wanted or since else ""

    for file in [file for path in paths for file in _files(path)]:
        with file.open("rb") as stream:
            note = f"archive:{hashlib.file_digest(stream, 'sha256').hexdigest()}{part}"
        if store.meta(note):
            load.counts["known"] += 1
        elif load.read(file):
            store.set_meta(note, "read")
    return dict(load.counts)


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InputError(f"--archive {path} is neither a file nor a folder with .json files; check the path")
    return files


def _is_other(line: bytes) -> bool:
    """Whether a line is whole and surely of none of our types; decoding it would cost most of all."""
    whole = line.startswith(b"{") and line.rstrip().endswith(b"}") and b'"type"' in line
    return whole and not any(name in line for name in _NAMES)
