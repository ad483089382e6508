"""The crawl store: one SQLite file that holds what one GitHub server said, resumable at any kill.

A page of items and the cursor that leads to the next page are written in one transaction, so that a killed
crawl goes on exactly where it stopped. No call holds a whole table in memory. One process writes (see
`angle_data.locking`); any number may read at the same time (WAL journal).
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from angle_data.errors import InputError
from angle_data.gis.crawl.rows import LISTINGS, Comment, Cursor, Event, Issue, Listing, RawRow, Repo
from angle_data.text import whole_characters

STORE_NAME = "crawl.sqlite"
"""File name of the store inside the output folder."""

PUBLIC_WEB = "https://github.com"
"""The site of GitHub itself."""

_SCHEMA_VERSION = "1"
# The columns of a table are the fields of its record, in their order.
_SCHEMA = """
CREATE TABLE repos (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, asked TEXT NOT NULL, aliases TEXT NOT NULL,
  status TEXT NOT NULL, etag TEXT);
CREATE TABLE failures (asked TEXT PRIMARY KEY, status TEXT NOT NULL);
CREATE TABLE issues (
  id INTEGER PRIMARY KEY, node_id TEXT NOT NULL, repo_id INTEGER NOT NULL, number INTEGER NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, author TEXT, author_association TEXT NOT NULL,
  state TEXT NOT NULL, state_reason TEXT, labels TEXT NOT NULL, is_pull INTEGER NOT NULL,
  created_at TEXT NOT NULL, closed_at TEXT, closed_by TEXT, updated_at TEXT NOT NULL,
  locked INTEGER NOT NULL, gone TEXT,
  UNIQUE (repo_id, number));
CREATE TABLE comments (
  id INTEGER PRIMARY KEY, repo_id INTEGER NOT NULL, number INTEGER NOT NULL, author TEXT,
  author_association TEXT NOT NULL, body TEXT NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, url TEXT NOT NULL, minimized TEXT);
CREATE INDEX comments_thread ON comments (repo_id, number, created_at, id);
CREATE TABLE events (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, repo_id INTEGER NOT NULL, number INTEGER NOT NULL,
  target_repo TEXT, target_number INTEGER, actor TEXT, created_at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX events_thread ON events (repo_id, number, created_at, id);
CREATE TABLE cursors (
  repo_id INTEGER NOT NULL, stream TEXT NOT NULL, cursor TEXT, done INTEGER NOT NULL,
  start TEXT, etag TEXT, PRIMARY KEY (repo_id, stream)) WITHOUT ROWID;
CREATE TABLE set_aside (
  repo_id INTEGER NOT NULL, number INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (repo_id, number)) WITHOUT ROWID;
CREATE TABLE round (entry TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', '1');
"""

# Who closed an issue is kept when it is written again: REST lists leave that out, the timeline has it.
_CHANGES = {
    "closed_by": "CASE WHEN excluded.state = 'open' THEN NULL "
    "ELSE coalesce(excluded.closed_by, issues.closed_by) END"
}
_TABLES: dict[type[Any], str] = {
    Repo: "repos",
    Issue: "issues",
    Comment: "comments",
    Event: "events",
    Cursor: "cursors",
}

Entry = TypeVar("Entry", Repo, Issue, Comment, Event, Cursor)

# How a field comes back from its column, by its type.
_DECODE: dict[Any, Callable[[Any], Any]] = {
    "bool": bool,
    "tuple[str, ...]": lambda text: tuple(json.loads(text)),
}
_CODED = {
    record: [(n, _DECODE[field.type]) for n, field in enumerate(fields(record)) if field.type in _DECODE]
    for record in _TABLES
}


class Store:
    """The open store, from `Store.open`; a context manager.

    Iterators read as they go; whether one sees what is written meanwhile is not defined.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.database, self.path = connection, path

    @cached_property
    def _ids(self) -> dict[str, set[int]]:
        """The repositories that ever had a name, by name in lower case."""
        ids: defaultdict[str, set[int]] = defaultdict(set)
        for repo in self.repos():
            for name in repo.names:
                ids[name].add(repo.id)
        return ids

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open the store file `path`, made if missing unless `read_only`.

        Raises:
            InputError: The file is missing (`read_only`), is no store, or was written by another version.
        """
        if read_only and not path.is_file():
            raise InputError(f"{path} does not exist; run the crawl first, or check --out")
        uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        try:
            # Transactions are written out below.
            store = cls(sqlite3.connect(uri, uri=True, isolation_level=None), path)
            if not read_only and store.database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                # All at once, so that a store that was killed at birth is none.
                store.database.executescript(f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {_SCHEMA} COMMIT")
            version = store.meta("schema_version")
            if version != _SCHEMA_VERSION:
                raise sqlite3.DatabaseError(f"of version {version}, this program writes {_SCHEMA_VERSION}")
            store.database.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.DatabaseError as error:
            said = f"cannot be used as a crawl store ({error})"
            raise InputError(f"{path} {said}; give another --out") from None
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.database.close()  # pending readers must be done
        # Met wherever the block reads or writes. Misuse of the connection would be a defect of ours.
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            said = f"{self.path} cannot be read or written ({error})"
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise InputError(f"{said}; make room and run the same command again") from None
            raise InputError(f"{said}; if it is damaged, move it away and crawl again") from None

    def repos(self) -> Iterator[Repo]:
        """Yield the repositories whose id is known, by id; `status` says whether they could be read."""
        return self._read(Repo, "ORDER BY id")

    def repo(self, repo_id: int) -> Repo | None:
        """Return the repository of this id, None if it is not known."""
        return next(self._read(Repo, "WHERE id = ?", repo_id), None)

    def named(self, name: str) -> Repo | None:
        """Return the repository listed or known under this name, None if none is.

        Present names go first; of several that event dumps call so, the one that was called so last.
        """
        found = [repo for row in sorted(self._ids[name.lower()]) if (repo := self.repo(row))]
        present = [repo for repo in found if repo.name.lower() == name.lower()]
        last = found[-1] if found else None
        return max(present, key=lambda repo: self.meta(f"named:{repo.id}") or "", default=last)

    def named_at(self, repo_id: int) -> str:
        """Return the last time for which the name of a repository is known, empty if none is."""
        return max(self.meta(f"{of}:{repo_id}") or "" for of in ("named", "crawled"))

    def note_named(self, repo_id: int, time: str) -> None:
        """Note the time of the latest event that tells the name of a repository."""
        self.set_meta(f"named:{repo_id}", time)

    def failures(self) -> dict[str, str]:
        """Return the names that led to no repository, each with its `error:...` status."""
        return dict(self.database.execute("SELECT asked, status FROM failures ORDER BY asked"))

    def issues(self, repo_id: int | None = None, numbers: Iterable[int] | None = None) -> Iterator[Issue]:
        """Yield issues and pull requests ordered by (repo_id, number), tombstones (`gone`) included.

        `numbers` needs a `repo_id`; numbers that are not stored are left out.
        """
        if numbers is None:
            return self._thread(Issue, repo_id)
        where = "WHERE repo_id = ? AND number IN (SELECT value FROM json_each(?)) ORDER BY number"
        return self._read(Issue, where, repo_id, json.dumps(list(numbers)))

    def comments(self, repo_id: int | None = None, number: int | None = None) -> Iterator[Comment]:
        """Yield comments, of one repository or one issue of it, by (repo_id, number, created_at, id)."""
        return self._thread(Comment, repo_id, number)

    def events(self, repo_id: int | None = None, number: int | None = None) -> Iterator[Event]:
        """Yield events, in the order of `comments`."""
        return self._thread(Event, repo_id, number)

    def counts(self) -> dict[str, int]:
        """Return how many rows there are of each kind, pull requests apart from issues."""
        pulls = int(self.database.execute("SELECT count(*) FROM issues WHERE is_pull").fetchone()[0])
        issues = {"issues": self.count("issues") - pulls, "pull_requests": pulls}
        others = {"comments": self.count("comments"), "events": self.count("events")}
        return {"repos": self.count("repos"), **issues, **others}

    def count(self, table: str, repo_id: int | None = None) -> int:
        """Return how many rows `table` has, of one repository if given."""
        where, values = ("", ()) if repo_id is None else (" WHERE repo_id = ?", (repo_id,))
        return int(self.database.execute(f"SELECT count(*) FROM {table}{where}", values).fetchone()[0])

    def newest_number(self, repo_id: int) -> int:
        """Return the highest issue number that is stored or commented on, 0 if there is none."""
        queries = (f"SELECT max(number) FROM {table} WHERE repo_id = ?" for table in ("issues", "comments"))
        return max(self.database.execute(query, (repo_id,)).fetchone()[0] or 0 for query in queries)

    def cursor(self, repo_id: int, listing: Listing) -> Cursor | None:
        """Return where a listing of this repository stands, None if it never started."""
        return next(self._read(Cursor, "WHERE repo_id = ? AND stream = ?", repo_id, listing), None)

    def standing(self, repo: Repo) -> str:
        """Return how far a repository was read: `complete` and the day, `unfinished`, or by `archive`."""
        found = [cursor for listing in LISTINGS if (cursor := self.cursor(repo.id, listing))]
        if not found and self.meta("server") is None:
            return "archive"
        listings = {cursor.listing for cursor in found}
        whole = listings & {"threads", "events"} or {"issues", "comments"} <= listings
        if repo.status != "ok" or not whole or not all(cursor.done for cursor in found):
            return "unfinished"
        return f"complete {self.meta(f'crawled:{repo.id}') or ''}".rstrip()

    def meta(self, key: str) -> str | None:
        """Return a note kept with the store, None if there is none of this name."""
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def save(self, records: Iterable[RawRow | Repo | Cursor]) -> None:
        """Write a page, and the cursor behind it, in one transaction.

        A row that is there already is replaced unless the stored version is younger (`updated_at`).
        """
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            for record in records:
                if isinstance(record, Issue):
                    # A number can change hands: a tombstone becomes an issue, or the reverse.
                    query = "DELETE FROM issues WHERE repo_id = ? AND number = ? AND id <> ?"
                    self.database.execute(query, (record.repo_id, record.number, record.id))
                self.database.execute(_UPSERTS[type(record)], _values(record))

    def save_repo(self, repo: Repo) -> None:
        """Write what is known of a repository; earlier names stay among its aliases."""
        known = self.repo(repo.id) or repo
        aliases = {*repo.aliases, repo.asked, *known.aliases, known.name, known.asked} - {repo.name}
        for name in repo.names:
            self._ids[name].add(repo.id)
        self.database.execute("DELETE FROM failures WHERE asked = ?", (repo.asked,))
        self.save([replace(repo, asked=known.asked, aliases=tuple(sorted(aliases)))])

    def save_failure(self, asked: str, status: str) -> None:
        """Note that the listed name `asked` led to no repository; `status` starts with `error:`."""
        self.database.execute("INSERT OR REPLACE INTO failures VALUES (?, ?)", (asked, status))

    def set_aside(self, repo_id: int, number: int, reason: str | None) -> None:
        """Note why GitHub could not serve issue `number` whole, to ask for it again; None: it could."""
        self.database.execute("DELETE FROM set_aside WHERE repo_id = ? AND number = ?", (repo_id, number))
        if reason is not None:
            self.database.execute("INSERT INTO set_aside VALUES (?, ?, ?)", (repo_id, number, reason))

    def all_set_aside(self) -> list[tuple[int, int, str]]:
        """Return (repository id, number, reason) of every issue set aside."""
        return list(self.database.execute("SELECT * FROM set_aside ORDER BY repo_id, number"))

    def note_refusal(self, repo_id: int, number: int, said: str) -> None:
        """Note why GitHub did not show issue `number` to the token."""
        self.set_meta(f"refused:{repo_id}#{number}", said)

    def refusals(self) -> list[tuple[int, int, str]]:
        """Return (repository id, number, what GitHub said) of every issue that it never showed."""
        refused: list[tuple[int, int, str]] = []
        for key, said in self.metas("refused:"):
            repo_id, number = map(int, key.partition(":")[2].split("#"))
            if next(self.issues(repo_id, [number]), None) is None:
                refused.append((repo_id, number, said))
        return sorted(refused)

    def set_meta(self, key: str, value: str) -> None:
        """Keep a note under `key`."""
        self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def metas(self, prefix: str) -> list[tuple[str, str]]:
        """Return the notes whose keys begin with `prefix`, by key."""
        query = "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key"
        return list(self.database.execute(query, (len(prefix), prefix)))

    # The server: repository ids and names mean something on one only, so a second one is refused.

    def site(self) -> str:
        """Return the site of the issues' pages."""
        return self.meta("web") or PUBLIC_WEB

    def takes_site(self, page: str) -> bool:
        """Whether `page` is of the site whose issues the store holds, or it holds none."""
        return self.meta("web") in (None, _site_of(page))

    def note_site(self, page: str) -> None:
        """Note the site of `page`, which goes into the store; an `InputError` if the store is of another."""
        if not self.takes_site(page):
            said = f"holds issues from {self.site()}, but these are from {_site_of(page)}"
            raise InputError(f"{self.path} {said}; give another --out")
        self.set_meta("web", _site_of(page))

    def _thread(self, record: type[Entry], repo_id: int | None, number: int | None = None) -> Iterator[Entry]:
        wanted = {"repo_id = ?": repo_id, "number = ?": number}
        given = [text for text, value in wanted.items() if value is not None]
        where = f"WHERE {' AND '.join(given)} " if given else ""
        values = [value for value in wanted.values() if value is not None]
        return self._read(record, f"{where}ORDER BY repo_id, number, created_at, id", *values)

    def _read(self, record: type[Entry], where: str, *values: Any) -> Iterator[Entry]:
        for row in self.database.execute(f"SELECT * FROM {_TABLES[record]} {where}", values):
            yield _record(record, row)


class Round:
    """One pass over the list of repositories, which may take several runs of the program.

    What it has finished is not asked again, so that every run gets further however early it is stopped. A new
    round, which asks only for what changed, begins when the last is complete or was made for other `options`.
    """

    def __init__(self, store: Store, options: Sequence[str | None]) -> None:
        self._db = store.database
        made_for = json.dumps(list(options))
        self.entries: dict[str, str] = dict(self._db.execute("SELECT entry, value FROM round"))
        if self.entries.get("options") != made_for:
            self.complete()
            self.note("options", made_for)

    def note(self, entry: str, value: str = "") -> None:
        """Note `step:ID:NAME`, a finished step, or `status:NAME`, with the status of a listed name."""
        self.entries[entry] = value
        self._db.execute("INSERT OR REPLACE INTO round VALUES (?, ?)", (entry, value))

    def complete(self) -> None:
        """End the round: the next run starts over."""
        self.entries.clear()
        self._db.execute("DELETE FROM round")


def _site_of(page: str) -> str:
    parts = urlsplit(page.lower())
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(port)}"


def _upsert(record: type[Any]) -> str:
    table, names = _TABLES[record], [field.name for field in fields(record)]
    values = f"INTO {table} VALUES ({', '.join('?' * len(names))})"
    if record in (Repo, Cursor):
        return f"INSERT OR REPLACE {values}"
    changes = ", ".join(f"{name} = {_CHANGES.get(name, f'excluded.{name}')}" for name in names[1:])
    younger = "" if record is Event else f" WHERE excluded.updated_at >= {table}.updated_at"
    return f"INSERT {values} ON CONFLICT (id) DO UPDATE SET {changes}{younger}"


_UPSERTS = {record: _upsert(record) for record in _TABLES}


def _record(kind: type[Entry], row: Iterable[Any]) -> Entry:
    values = list(row)
    for place, decode in _CODED[kind]:
        values[place] = decode(values[place])
    return kind(*values)


def _values(record: Any) -> tuple[Any, ...]:
    values = (getattr(record, name) for name in record.__slots__)
    plain = (json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value for value in values)
    return tuple(whole_characters(value) if isinstance(value, str) else value for value in plain)
