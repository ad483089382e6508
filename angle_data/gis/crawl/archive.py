"""Reads event dumps instead of the API: GH Archive's hourly JSON lines, into the same store.

Uses `IssuesEvent` and `IssueCommentEvent`; each carries the issue as it was then, and the youngest version
wins. Where a dump reports a deletion, the text goes. Dumps lack marks of duplicates and edits, have gaps, and
hold texts that were deleted since. Only files in the shape of 2015 and later are read. https://www.gharchive.org

With the extra `duckdb`, DuckDB finds the lines of use. The rows are the same; but gzip's checksums are not
checked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.gis.crawl.listings import Rows
from angle_data.gis.crawl.rows import Event, Repo, comment_from_rest, issue_from_rest, login_of
from angle_data.gis.crawl.store import Store
from angle_data.text import counted, stable_hash

_EVENTS_A_PAGE = 1_000
_TYPES = ("IssuesEvent", "IssueCommentEvent")
# A line is NULL where its type or time says that it is of no use. Times are compared with their quotes, so
# that no number is one: whatever looks odd is left to `_Load`.
_QUERY = f"""
SELECT json, TRY_CAST(json->>'$.repo.id' AS BIGINT), json->>'$.repo.name'
FROM (
  SELECT CASE WHEN json->>'$.type' NOT IN {_TYPES} OR CAST(json->'$.created_at' AS VARCHAR) < ? THEN NULL
    ELSE json END AS json
  FROM read_ndjson_objects(?, compression = ?))
"""
_LARGEST = 1 << 28  # bytes of a file, packed or not, whose lines of use are kept in memory
_COUNTS = ("lines", "used", "bad", "other", "damaged", "known")

log = logging.getLogger("angle")

_Row = tuple[str | None, int | None, str | None]
"""What `_QUERY` finds of a line: the line, and the id and name of its repository."""


@dataclass
class _Load:
    """One run over the dumps: which repositories count, and the rows of the page being gathered.

    `page` is the address of the last issue, `spoilt` what is wrong with the first bad line of a file.
    """

    store: Store
    wanted: frozenset[str]
    since: str | None
    ids: set[int]
    counts: Counter[str] = field(default_factory=Counter)
    page: str = ""
    spoilt: str = ""
    named: set[tuple[int, str]] = field(default_factory=set)
    repos: list[Repo] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)

    def read(self, path: Path, rows: Iterable[_Row] | None) -> bool:
        """Take every line of a file, or the `rows` of all; return whether it could be read to its end."""
        bad, whole, self.spoilt = self.counts["bad"], True, ""
        try:
            for line in _lines(path) if rows is None else self._of_use(rows):
                self.take(line)
                if len(self.rows.issues) >= _EVENTS_A_PAGE:
                    self.flush()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            whole = False
            self.counts["damaged"] += 1
            log.warning("%s is damaged (%s); what could be read of it is kept", path, error)
        self.flush()
        if bad := self.counts["bad"] - bad:
            lines = counted(bad, "line")
            log.warning("%s: %s left out; the first %s", path, lines, self.spoilt)
        return whole

    def take(self, line: str) -> None:
        """Sort one line into the counts and, if it is of use, into the page."""
        self.counts["lines"] += 1
        try:
            self.counts[self._sort(json.loads(line))] += 1
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.counts["bad"] += 1
            missing = f"lacks {error}" if isinstance(error, KeyError) else "has a value of a wrong kind"
            no_json = isinstance(error, json.JSONDecodeError)
            self.spoilt = self.spoilt or ("is no JSON" if no_json else missing)

    def _of_use(self, rows: Iterable[_Row]) -> Iterator[str]:
        """Yield the lines that may be of use, and count the others."""
        others = 0
        for line, repo_id, name in rows:
            if line is None or (repo_id is not None and name is not None and not self._holds(repo_id, name)):
                others += 1
            else:
                yield line
        self.counts.update(lines=others, other=others)

    def _holds(self, repo_id: int, name: str) -> bool:
        return not self.wanted or repo_id in self.ids or name.lower() in self.wanted

    def flush(self) -> None:
        """Write the page.

        Raises:
            InputError: The issues are of another site than those in the store.
        """
        self.store.note_site(self.page)
        for repo in self.repos:
            self.store.save_repo(repo)
        self.rows.save(self.store)
        self.repos, self.rows = [], Rows()

    def _sort(self, event: Mapping[str, Any]) -> Literal["used", "other"]:
        if event["type"] not in _TYPES:
            return "other"
        created = event["created_at"]
        if created < (self.since or ""):
            return "other"
        repo_id, name = event["repo"]["id"], event["repo"]["name"]
        if not self._holds(repo_id, name):
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
            self.rows.comments.append(comment)
        elif action in ("closed", "reopened"):
            actor = login_of(event["actor"])
            issue = replace(issue, closed_by=actor) if action == "closed" else issue
            key = f"archive:{event['id']}"
            self.rows.events.append(Event(key, action, repo_id, issue.number, None, None, actor, created))
        elif action == "deleted":
            issue = replace(issue, title="", body="", gone="deleted", updated_at=created)
        self.rows.issues.append(issue)
        self.ids.add(repo_id)
        if (repo_id, name) not in self.named:
            self.named.add((repo_id, name))
            self.repos.append(Repo(repo_id, name, name))
        return "used"


def load_archives(
    store: Store, paths: Sequence[Path], names: Sequence[str] = (), since: str | None = None
) -> dict[str, int]:
    """Stream event dumps, or folders of them, into `store`; with `names`, only of these repositories.

    With `since`, a time stamp, only events of that time or later. A file is read once for the same names and
    time, under any name: the hash of its bytes is noted when its last line is stored.

    Returns how many `lines` there were, of which `used`, `bad` (no JSON, or without what a row needs, such as
    those before 2015) and `other` (another type, repository or date) add up to them; `damaged` files ended
    early and `known` ones had been read before.

    Raises:
        InputError: A file does not exist or cannot be read.
    """
    wanted = frozenset(name.lower() for name in names)
    load = _Load(store, wanted, since, {repo.id for repo in store.repos() if repo.names & wanted})
    part = f":{stable_hash(repr((sorted(wanted), since))):x}" if wanted or since else ""

    files = [file for path in paths for file in _files(path)]
    with _searcher(since) as search:
        for file in files:
            with file.open("rb") as stream:
                note = f"archive:{hashlib.file_digest(stream, 'sha256').hexdigest()}{part}"
            if store.meta(note):
                load.counts["known"] += 1
            elif load.read(file, search(file)):
                store.set_meta(note, "read")
    return {name: load.counts[name] for name in _COUNTS if load.counts[name]}


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InputError(f"--archive {path} is no file and no folder with .json files; check the path")
    return files


@contextmanager
def _searcher(since: str | None) -> Iterator[Callable[[Path], list[_Row] | None]]:
    """Give what finds the rows of a file's lines, or None where DuckDB is missing or fails."""
    try:
        import duckdb
    except ImportError:
        yield lambda path: None
        return
    after = f'"{since}"' if since else None

    def search(path: Path) -> list[_Row] | None:
        # Brackets and stars would stand for other files.
        if path.stat().st_size > _LARGEST or set("*?[") & set(str(path)):
            return None
        compression = "gzip" if _is_gzip(path) else "none"
        try:
            rows: list[_Row] = database.execute(_QUERY, (after, str(path), compression)).fetchall()
        except duckdb.Error as error:  # damage, or a line that is no JSON
            log.debug("%s: read without DuckDB (%s)", path, error)
            return None
        return rows

    with duckdb.connect(config={"threads": 1}) as database:
        yield search


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _lines(path: Path) -> Iterator[str]:
    """The non-blank lines; bytes that are no UTF-8 spoil their line, not the file."""
    with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as stream:
        for line in stream:
            if line.strip():
                yield line.decode("utf-8", "replace")
