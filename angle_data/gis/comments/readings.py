"""Keeps what comments state, so that each is read once: by the crawl, for look-ups, and again by each build.

Readings are kept by everything that they depend on, and by the version of the grammar, so none can be out of
date. The file holds nothing that cannot be read again; it may be deleted.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any, Self

from angle_data.errors import InputError
from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.reading import Reading, is_program, may_state, read_comment
from angle_data.gis.comments.references import PUBLIC_HOSTS

FILE_NAME = "readings.sqlite"
"""File name of the readings inside the output folder."""

_ROWS_A_COMMIT = 1_000
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS grammar (version TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS readings (key BLOB PRIMARY KEY, said TEXT NOT NULL) WITHOUT ROWID",
)


@cache
def grammar_version() -> str:
    """Return a digest of this folder's source: whatever changes the grammar makes another version."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


class Readings:
    """The open readings of an output folder; a context manager. One process writes at a time.

    Whatever it does raises an `InputError` if the file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        with self._file_errors():
            self._database = sqlite3.connect(self.path)
            self._database.execute("PRAGMA journal_mode = WAL")
            for statement in _SCHEMA:
                self._database.execute(statement)
            version = grammar_version()
            if self._database.execute("SELECT version FROM grammar").fetchall() != [(version,)]:
                self._database.execute("DELETE FROM readings")
                self._database.execute("DELETE FROM grammar")
                self._database.execute("INSERT INTO grammar VALUES (?)", (version,))
            self._database.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file_errors(), closing(self._database):
            self._database.commit()

    def read(
        self, body: str, repo: str, number: int, *, author: str | None, hosts: frozenset[str] = PUBLIC_HOSTS
    ) -> Reading:
        """Return what `read_comment` returns, from the file if it was read before."""
        if not may_state(body):
            return Reading()
        known_by = json.dumps([repo, number, is_program(author), sorted(hosts), body])
        key = hashlib.blake2b(known_by.encode(), digest_size=16).digest()
        with self._file_errors():
            row = self._database.execute("SELECT said FROM readings WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return _decoded(row[0])
        reading = read_comment(body, repo, number, author=author, hosts=hosts)
        with self._file_errors():
            self._database.execute("INSERT INTO readings VALUES (?, ?)", (key, _encoded(reading)))
            if self._database.total_changes % _ROWS_A_COMMIT == 0:
                self._database.commit()
        return reading

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        """Name the file in the errors of the block."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise self._unusable(error) from None
            said = f"{self.path} is locked by another program ({error})"
            raise InputError(f"{said}; wait until that has ended, and run again") from None
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> InputError:
        said = f"{self.path} cannot be read or written ({error})"
        return InputError(f"{said}; if the disk is not full, delete it: it is made again")


def _encoded(reading: Reading) -> str:
    said = (list(map(astuple, links)) for links in (reading.links, reading.denials, reading.others))
    return json.dumps([*said, reading.retracts, reading.denies], ensure_ascii=False)


def _decoded(text: str) -> Reading:
    *said, retracts, denies = json.loads(text)
    links, denials, others = (tuple(map(_link, found)) for found in said)
    return Reading(links, denials, others, retracts, denies)


def _link(values: list[Any]) -> MarkerLink:
    repo, number, direction, certainty, kind, span = values
    return MarkerLink(repo, number, direction, certainty, kind, (span[0], span[1]))
