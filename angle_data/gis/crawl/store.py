"""The crawl store: one SQLite file that holds what one GitHub server said, resumable at any kill.

A page of items and the cursor that leads to the next page are written in one transaction, so that a killed
crawl goes on exactly where it stopped. No call holds a whole table in memory.

One process writes (see `angle_data.locking`); any number may read at the same time (WAL journal).
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from angle_data.errors import InputError
from angle_data.gis.comments.references import PUBLIC_HOSTS
from angle_data.gis.crawl.rows import LISTINGS, Comment, Cursor, Event, Issue, Listing, Repo
from angle_data.text import whole_characters

STORE_NAME = "crawl.sqlite"
"""File name of the store inside the output folder."""

SCHEMA_VERSION = 1

PUBLIC_WEB = "https://github.com"
"""The site of GitHub itself."""

_WEB, _SERVER = "web", "server"

Table = Literal["repos", "issues", "comments", "events"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS repos (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, asked TEXT NOT NULL, aliases TEXT NOT NULL,
  status TEXT NOT NULL, etag TEXT);
CREATE TABLE IF NOT EXISTS failures (asked TEXT PRIMARY KEY, status TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS issues (
  id INTEGER PRIMARY KEY, node_id TEXT NOT NULL, repo_id INTEGER NOT NULL, number INTEGER NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, author TEXT, author_association TEXT NOT NULL,
  state TEXT NOT NULL, state_reason TEXT, labels TEXT NOT NULL, is_pull INTEGER NOT NULL,
  created_at TEXT NOT NULL, closed_at TEXT, closed_by TEXT, updated_at TEXT NOT NULL,
  locked INTEGER NOT NULL, gone TEXT,
  UNIQUE (repo_id, number));
CREATE TABLE IF NOT EXISTS comments (
  id INTEGER PRIMARY KEY, repo_id INTEGER NOT NULL, number INTEGER NOT NULL, author TEXT,
  author_association TEXT NOT NULL, body TEXT NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, url TEXT NOT NULL, minimized TEXT);
CREATE INDEX IF NOT EXISTS comments_thread ON comments (repo_id, number, created_at, id);
CREATE TABLE IF NOT EXISTS events (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, repo_id INTEGER NOT NULL, number INTEGER NOT NULL,
  target_repo TEXT, target_number INTEGER, actor TEXT, created_at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_thread ON events (repo_id, number, created_at, id);
CREATE TABLE IF NOT EXISTS cursors (
  repo_id INTEGER NOT NULL, stream TEXT NOT NULL, cursor TEXT, done INTEGER NOT NULL,
  start TEXT, etag TEXT, PRIMARY KEY (repo_id, stream)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS set_aside (
  repo_id INTEGER NOT NULL, number INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (repo_id, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS round (entry TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

_VERSION = f"INSERT OR IGNORE INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}');"

# Who closed an issue is kept when it is written again: REST lists leave that out, the timeline has it.
_CHANGES = {
    "closed_by": "CASE WHEN excluded.state = 'open' THEN NULL "
    "ELSE coalesce(excluded.closed_by, issues.closed_by) END"
}
_ORDER = {"issues": "repo_id, number", "comments": "repo_id, number, created_at, id"}
_ORDER["events"] = _ORDER["comments"]

Record = TypeVar("Record", Repo, Issue, Comment, Event, Cursor)

# How a field comes back from its column, by its type.
_DECODE: dict[Any, Callable[[Any], Any]] = {
    "bool": bool,
    "tuple[str, ...]": lambda text: tuple(json.loads(text)),
}
_CODED = {
    record: [
        (place, _DECODE[field.type]) for place, field in enumerate(fields(record)) if field.type in _DECODE
    ]
    for record in (Repo, Issue, Comment, Event, Cursor)
}


class Store:
    """The open store; a context manager.

    Use `Store.open`. Every iterator reads as it goes; writing to the store while one is open is allowed, and
    whether the iterator sees the change is not defined.
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
        try:
            mode = "ro" if read_only else "rwc"
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
            connection.isolation_level = None  # transactions are written out below
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if tables and "meta" not in tables:
                connection.close()
                raise InputError(f"{path} is a database of something else; give another --out")
            if not read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                # All at once, so that a store that was killed at birth is none.
                connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {_VERSION} COMMIT")
            found = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        except sqlite3.DatabaseError as error:
            said = f"cannot be used as a crawl store ({error})"
            raise InputError(f"{path} {said}; give another --out") from None
        version = found[0] if found else "unknown"
        if version != str(SCHEMA_VERSION):
            connection.close()
            said = f"has version {version} of the store format, this program writes {SCHEMA_VERSION}"
            raise InputError(f"{path} {said}; give another --out")
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.database.close()  # pending readers must be done
        # Met wherever the block reads or writes. Misuse of the connection would be a defect of ours.
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            raise InputError(
                f"{self.path} cannot be read or written ({error}); if it is damaged, move it away and "
                "crawl again"
            ) from None

    # Reading

    def repos(self) -> Iterator[Repo]:
        """Yield the repositories whose id is known, by id; `status` says whether they could be read."""
        for row in self.database.execute(f"SELECT {_columns(Repo)} FROM repos ORDER BY id"):
            yield _record(Repo, row)

    def repo(self, repo_id: int) -> Repo | None:
        """Return the repository of this id, None if it is not known."""
        row = self.database.execute(f"SELECT {_columns(Repo)} FROM repos WHERE id = ?", (repo_id,)).fetchone()
        return _record(Repo, row) if row else None

    def named(self, name: str) -> Repo | None:
        """Return the repository listed or known under this name (present names go first), None if none is."""
        found = [repo for row in sorted(self._ids[name.lower()]) if (repo := self.repo(row))]
        present = (repo for repo in found if repo.name.lower() == name.lower())
        return next(present, found[-1] if found else None)

    def failures(self) -> dict[str, str]:
        """Return the names that led to no repository, each with its `error:...` status."""
        return dict(self.database.execute("SELECT asked, status FROM failures ORDER BY asked"))

    def issues(self, repo_id: int | None = None, numbers: Iterable[int] | None = None) -> Iterator[Issue]:
        """Yield issues and pull requests ordered by (repo_id, number), tombstones (`gone`) included.

        `numbers` needs a `repo_id`; numbers that are not stored are left out.
        """
        return self._select(Issue, "issues", repo_id, numbers)

    def comments(self, repo_id: int | None = None, numbers: Iterable[int] | None = None) -> Iterator[Comment]:
        """Yield comments ordered by (repo_id, number, created_at, id); `numbers` as in `issues`."""
        return self._select(Comment, "comments", repo_id, numbers)

    def events(self, repo_id: int | None = None, numbers: Iterable[int] | None = None) -> Iterator[Event]:
        """Yield events ordered by (repo_id, number, created_at, id); `numbers` as in `issues`."""
        return self._select(Event, "events", repo_id, numbers)

    def counts(self) -> dict[str, int]:
        """Return how many rows there are of each kind, pull requests apart from issues."""
        pulls = int(self.database.execute("SELECT count(*) FROM issues WHERE is_pull").fetchone()[0])
        issues = {"issues": self.count("issues") - pulls, "pull_requests": pulls}
        others = {"comments": self.count("comments"), "events": self.count("events")}
        return {"repos": self.count("repos"), **issues, **others}

    def count(self, table: Table, repo_id: int | None = None) -> int:
        """Return how many rows `table` has, of one repository if given."""
        column = "id" if table == "repos" else "repo_id"
        where, values = ("", ()) if repo_id is None else (f" WHERE {column} = ?", (repo_id,))
        return int(self.database.execute(f"SELECT count(*) FROM {table}{where}", values).fetchone()[0])

    def newest_number(self, repo_id: int) -> int:
        """Return the highest issue number that is stored or commented on, 0 if there is none."""
        query = "SELECT max((SELECT coalesce(max(number), 0) FROM issues WHERE repo_id = ?1), "
        query += "(SELECT coalesce(max(number), 0) FROM comments WHERE repo_id = ?1))"
        return int(self.database.execute(query, (repo_id,)).fetchone()[0])

    def cursor(self, repo_id: int, listing: Listing) -> Cursor | None:
        """Return where a listing of this repository stands, None if it never started."""
        query = "SELECT * FROM cursors WHERE repo_id = ? AND stream = ?"
        row = self.database.execute(query, (repo_id, listing)).fetchone()
        return _record(Cursor, row) if row else None

    def standing(self, repo: Repo) -> str:
        """Return how far a repository was read: `complete`, `unfinished`, or `archive`: no API was asked.

        Behind `complete` stands the day (UTC), such as `complete 2024-01-31`.
        """
        found = [cursor for listing in LISTINGS if (cursor := self.cursor(repo.id, listing))]
        done = {cursor.listing for cursor in found if cursor.done}
        if not found and self.meta(_SERVER) is None:
            return "archive"
        whole = bool(done & {"threads", "events"}) or {"issues", "comments"} <= done
        if repo.status != "ok" or not whole or len(done) < len(found):
            return "unfinished"
        return f"complete {self.meta(f'crawled:{repo.id}') or ''}".rstrip()

    def meta(self, key: str) -> str | None:
        """Return a note kept with the store, None if there is none of this name."""
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    # Writing

    def upsert_page(
        self,
        *,
        issues: Iterable[Issue] = (),
        comments: Iterable[Comment] = (),
        events: Iterable[Event] = (),
        cursor: Cursor | None = None,
    ) -> None:
        """Write a page and the cursor behind it in one transaction.

        An item that is there already is replaced unless the stored version is younger (`updated_at`).
        """
        with self._transaction():
            for issue in issues:
                # A number can change hands: a tombstone becomes an issue, or the reverse.
                self.database.execute(
                    "DELETE FROM issues WHERE repo_id = ? AND number = ? AND id <> ?",
                    (issue.repo_id, issue.number, issue.id),
                )
                self.database.execute(_UPSERTS["issues"], _values(issue))
            self.database.executemany(_UPSERTS["comments"], map(_values, comments))
            self.database.executemany(_UPSERTS["events"], map(_values, events))
            cursors = [] if cursor is None else [_values(cursor)]
            self.database.executemany("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?, ?)", cursors)

    def save_repo(self, repo: Repo) -> None:
        """Write what is known of a repository; earlier names stay among its aliases."""
        known = self.repo(repo.id)
        aliases = {*repo.aliases, *(known.aliases if known else ())}
        if known:
            aliases |= {known.name, known.asked}
        aliases.discard(repo.name)
        asked = known.asked if known else repo.asked
        row = _values(replace(repo, asked=asked, aliases=tuple(sorted(aliases))))
        for name in repo.names:
            self._ids[name].add(repo.id)
        with self._transaction():
            self.database.execute("INSERT OR REPLACE INTO repos VALUES (?, ?, ?, ?, ?, ?)", row)
            self.database.executemany("DELETE FROM failures WHERE asked = ?", [(repo.asked,), (asked,)])

    def save_failure(self, asked: str, status: str) -> None:
        """Note that the listed name `asked` led to no repository; `status` starts with `error:`."""
        self.database.execute("INSERT OR REPLACE INTO failures VALUES (?, ?)", (asked, status))

    def set_aside(self, repo_id: int, number: int, reason: str | None) -> None:
        """Note why GitHub could not serve issue `number` whole, to ask for it again; None: it could."""
        self.database.execute("DELETE FROM set_aside WHERE repo_id = ? AND number = ?", (repo_id, number))
        if reason is not None:
            self.database.execute("INSERT INTO set_aside VALUES (?, ?, ?)", (repo_id, number, reason))

    def all_set_aside(self, repo_id: int | None = None) -> list[tuple[int, int, str]]:
        """Return (repository id, number, reason) of every issue set aside, of one repository if given."""
        where, values = ("", ()) if repo_id is None else (" WHERE repo_id = ?", (repo_id,))
        query = f"SELECT * FROM set_aside{where} ORDER BY repo_id, number"
        return list(self.database.execute(query, values))

    def set_meta(self, key: str, value: str) -> None:
        """Keep a note under `key`."""
        self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # The server: repository ids and names mean something on one only, so a second one is refused.

    def site(self) -> str:
        """Return the site of the issues' pages, as noted by the crawl or as the first comment has it."""
        noted = self.meta(_WEB)
        if noted is not None:
            return noted
        first = next(self.comments(), None)
        return (_site(first.url) if first is not None else "") or PUBLIC_WEB

    def note_site(self, page: str, api_url: str | None = None) -> None:
        """Note the site of `page`, a repository or issue that goes into the store, and the API that gave it.

        Raises:
            InputError: What the store holds is from another site.
        """
        site, noted = _site(page), self.meta(_WEB)
        if noted is not None and site not in ("", noted):
            said = f"holds issues of {noted}, and these are of {site}"
            raise InputError(f"{self.path} {said}; give another --out")
        if noted is None and site:
            self.set_meta(_WEB, site)
        if api_url is not None and self.meta(_SERVER) != api_url:
            self.set_meta(_SERVER, api_url)

    # Details

    def _select(
        self, record: type[Record], table: str, repo_id: int | None, numbers: Iterable[int] | None
    ) -> Iterator[Record]:
        where, values = "", list[int | str]()
        if repo_id is not None:
            where, values = " WHERE repo_id = ?", [repo_id]
        if numbers is not None:
            where += " AND number IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(sorted(set(numbers))))
        query = f"SELECT {_columns(record)} FROM {table}{where} ORDER BY {_ORDER[table]}"
        for row in self.database.execute(query, values):
            yield _record(record, row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """`BEGIN IMMEDIATE` … `COMMIT`, rolled back on any exception."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")


class Round:
    """One pass over the list of repositories, which may take several runs of the program.

    While a round is under way, what it has finished is not asked again, so that every run gets further
    however early it is stopped. A new round, which asks only for what changed, begins when the last is
    complete or was made for other `options`. Every entry is a row, so that noting one always costs the same.
    """

    def __init__(self, store: Store, options: Sequence[str | None]) -> None:
        self._db, made_for = store.database, json.dumps(list(options))
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


def hosts_of(site: str) -> frozenset[str]:
    """Return the hosts (with the port where it is not the usual one) whose addresses lead to a site."""
    host = urlsplit(site).netloc
    return PUBLIC_HOSTS if host in PUBLIC_HOSTS else frozenset({host})


def _site(address: str) -> str:
    parts = urlsplit(address.lower())
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(port)}" if parts.netloc else ""


def _upsert(table: str, record: type[Any]) -> str:
    names = [field.name for field in fields(record)]
    changes = ", ".join(f"{name} = {_CHANGES.get(name, f'excluded.{name}')}" for name in names[1:])
    younger = "" if table == "events" else f" WHERE excluded.updated_at >= {table}.updated_at"
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
        f"ON CONFLICT (id) DO UPDATE SET {changes}{younger}"
    )


def _columns(record: type[Any]) -> str:
    return ", ".join(field.name for field in fields(record))


def _record(kind: type[Record], row: Iterable[Any]) -> Record:
    values = list(row)
    for place, decode in _CODED[kind]:
        values[place] = decode(values[place])
    return kind(*values)


def _values(record: Any) -> tuple[Any, ...]:
    return tuple(_plain(getattr(record, name)) for name in record.__slots__)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        value = json.dumps(value, ensure_ascii=False)
    return whole_characters(value) if isinstance(value, str) else value


_UPSERTS = {
    table: _upsert(table, record)
    for table, record in (("issues", Issue), ("comments", Comment), ("events", Event))
}
