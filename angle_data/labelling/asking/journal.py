"""The append-only record of every reply: the only state of a labelling run, and what makes it resumable.

A request that the service refuses for good has a row too, with the words of the service in `refused`. It is
finished like the others, and counts as no reply. Of a request that is asked anew the last row counts. What a
failed request took and said, the half of a reply for example, has a row too, with `failed`: it counts among
what was spent, and its request stays open.

One process writes a run at a time; a kill at any moment loses at most the line that was being written. Rows
are found by a 64-bit hash of their key; of two requests with one hash the second counts as unanswered.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any

from angle_data.annotators.base import Failure
from angle_data.errors import AngleError, InputError, StoppedError
from angle_data.jsonl import dumps, loads
from angle_data.locking import hold
from angle_data.text import counted, stable_hash

log = logging.getLogger("angle.labelling")

_FILE = "journal.jsonl"
_FIELDS = ("key", "model", "reply")
_CLAIMED = -1
# What a kill leaves of files that were being written (`jsonl.beside`).
_LEFT_OVER = re.compile(r"\.(?:(?:candidates|scores|rejected)\.jsonl|run\.json)\.[0-9a-f]{8}")
_READ_AHEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of prompts, and of their replies."""

    prompt: float = 0
    completion: float = 0

    @property
    def total(self) -> float:
        """Return the tokens of both together."""
        return self.prompt + self.completion

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)

    def __mul__(self, times: float) -> Tokens:
        return Tokens(times * self.prompt, times * self.completion)


class Journal:
    """Finished requests by key. Holds about 120 bytes a row in memory; the rows stay on disk.

    Its length is the number of replies. `spent` is what all rows took, those appended since included, and
    `estimated` the tokens among them that no service has counted.
    `failures` are this session's, by key; they are not written. `unwritten` are lines that found no room on
    the disk; each further row tries again. `limits` are the `max_tokens` of all its rows.
    """

    def __init__(self, file: IO[bytes], model: str, out: FileIO | None = None) -> None:
        self.spent, self.estimated = Tokens(), 0.0
        self._replies = 0
        self.failures: dict[str, Failure] = {}
        self.unwritten: list[bytes] = []
        self.limits = set[int]()
        self._fault: OSError | None = None
        self._file, self._out = file, out
        self._offsets: dict[int, int] = {}  # hash of the key -> where the row begins, or _CLAIMED
        self._start = self._end = self._scan(model)
        if out is not None:
            self._mend(out)
        self._written = self._end

    def __contains__(self, key: str) -> bool:
        return self._offsets.get(hash(key), _CLAIMED) >= 0

    def __len__(self) -> int:
        return self._replies

    def held_before(self, key: str) -> bool:
        """Whether the journal held this request already when it was opened."""
        return 0 <= self._offsets.get(hash(key), _CLAIMED) < self._start

    def claim(self, key: str) -> bool:
        """Reserve a request for this run; False when it is finished, or claimed by an equal request."""
        new = hash(key) not in self._offsets
        if new:
            self._offsets[hash(key)] = _CLAIMED
        return new

    def append(self, row: dict[str, Any]) -> None:
        """Write a row, with `key`, `model` and `reply`; afterwards a kill of the process cannot lose it.

        On a full disk it stays in memory, in `unwritten`, and the file ends with a whole line.
        """
        line = f"{dumps(row)}\n".encode()
        if "failed" not in row:
            self._offsets[hash(row["key"])] = self._end
        self._end += len(line)
        if refusal_of(row) is None and "failed" not in row:  # others have been counted as failures
            self._count(row)
        self.unwritten.append(line)
        self._write()

    def fail(self, failure: Failure) -> None:
        """Note a failure of this session, and what it took."""
        self.failures[failure.key] = failure
        self._spend(failure.usage)

    def rescued(self) -> AngleError:
        """Put what found no room into a file elsewhere, and return the error that says what to do with it."""
        self._write()
        path, lines = self._file.name, self.unwritten
        if not lines:
            return StoppedError(f"{path}: no room for a moment; run the same command again to go on")
        replies = counted(len(lines), "reply", "replies")
        said = f"{path}: {self._fault and self._fault.strerror}"
        elsewhere = _elsewhere(path)
        try:
            with open(elsewhere, "ab", opener=_of_this_user) as other:
                other.write(b"".join(lines))
        except OSError as error:
            there = f"{tempfile.gettempdir()}: {error.strerror}"
            return InputError(f"{said}, and {there}; {replies} are lost; free one")
        then = "make room, and the same command takes them back before it goes on"
        return InputError(f"{said}; {replies} went to {elsewhere}: {then}")

    def take_back(self) -> None:
        """Append the replies that an earlier run put elsewhere (see `rescued`), and delete that file.

        Raises:
            InputError: There is still no room for them, or that file is damaged.
        """
        path = _elsewhere(self._file.name)
        if not path.exists():
            return
        with open(path, "rb", opener=_of_this_user) as other:
            rows = [_parse(line, f"{path}:{number}") for number, line in enumerate(other, start=1)]
        for row in rows:
            if self.row(row["key"]) != row:  # one that someone has appended already
                self.append(row)
            if self.unwritten:
                raise InputError(
                    f"{self._file.name}: no room yet for {counted(len(rows), 'reply', 'replies')} in {path}; "
                    "make room, and run the same command again"
                )
        self._start = self._end
        path.unlink()
        log.info("%s are back from %s", counted(len(rows), "reply", "replies"), path)

    def _spend(self, usage: Any) -> None:
        tokens = _tokens_of(usage)
        self.spent += tokens
        if isinstance(usage, dict) and usage.get("estimated"):
            self.estimated += tokens.total

    def _count(self, row: dict[str, Any]) -> None:
        self._spend(row.get("usage"))
        if "failed" in row:
            return
        if limit := limit_of(row):
            self.limits.add(limit)
        self._replies += refusal_of(row) is None

    def _write(self) -> None:
        """Write whole lines as long as there is room."""
        assert self._out is not None, "the journal was opened for reading"
        while self.unwritten:
            left = memoryview(self.unwritten[0])
            try:
                while left:
                    left = left[self._out.write(left) :]
            except OSError as error:
                self._fault = error
                os.truncate(self._out.fileno(), self._written)
                return
            self._written += len(self.unwritten.pop(0))

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the row of a request, None when it is not finished; an `InputError` if it is damaged."""
        offset = self._offsets.get(hash(key), _CLAIMED)
        if offset < 0:
            return None
        self._file.seek(offset)
        row = _parse(self._file.readline(), f"{self._file.name} at byte {offset}")
        return row if row["key"] == key else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every finished row in order; a request that was asked anew has several.

        Not while rows are added.
        """
        self._file.seek(0)
        while self._file.tell() < self._end:
            row = _parse(self._file.readline(), self._file.name)
            if "failed" not in row:
                yield row

    def _mend(self, out: FileIO) -> None:
        """Cut off a line that a crash has torn at the end of the file."""
        if self._end < self._file.seek(0, os.SEEK_END):
            log.warning("%s: cut off an incomplete last line", self._file.name)
            os.truncate(out.fileno(), self._end)
        elif self._end:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._end += out.write(b"\n")  # a crash can have lost no more than that

    def _scan(self, model: str) -> int:
        """Note the rows of the file, and return where the last whole one ends."""
        path, end = Path(self._file.name), 0
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            try:
                row = _parse(line, f"{path}:{number}")
            except InputError:
                # Only a line without its end can be a row cut off by a crash.
                if line.endswith(b"\n"):
                    raise
                break
            if row["model"] != model:
                raise InputError(
                    f"{path.parent} holds a run of {row['model']!r}; give another --out for {model!r}"
                )
            if "failed" not in row:
                self._offsets[hash(row["key"])] = end
            self._count(row)
            end += len(line)
        return end


def _elsewhere(journal: str) -> Path:
    """Return where rows of a journal go when its disk is full: a place that a later run knows."""
    name = f"angle-journal-{stable_hash(str(Path(journal).resolve())):016x}.jsonl"
    return Path(tempfile.gettempdir()) / name


def _of_this_user(path: str, flags: int) -> int:
    """Open a file in a folder that all users share: no link, and for this user alone.

    Raises:
        PermissionError: The file is another user's.
    """
    found = os.open(path, flags | os.O_NOFOLLOW, 0o600)
    if os.fstat(found).st_uid != os.getuid():
        os.close(found)
        raise PermissionError(errno.EACCES, "belongs to another user", path)
    return found


def refusal_of(row: dict[str, Any]) -> str | None:
    """Return why the service refused a request for good, from its row; None when it was answered."""
    refused = row.get("refused")
    return refused if isinstance(refused, str) else None


def limit_of(row: dict[str, Any]) -> int:
    """Return the `max_tokens` that a row was asked with, 0 where it does not say."""
    parameters = row.get("parameters")
    limit = parameters.get("max_tokens") if isinstance(parameters, dict) else None
    return limit if isinstance(limit, int) else 0


@contextmanager
def open_journal(run: Path, model: str) -> Iterator[Journal]:
    """Open the journal of a run directory for this process alone; creates both when they are missing.

    A line torn by a crash at the end of the file is cut off; replies that found no room on a full disk come
    back; what a kill left of half-written files is removed.

    Raises:
        InputError: Another process writes the run, the run belongs to another model, or a line is damaged.
    """
    # Written without a buffer: one that does not fit on the disk would be tried again when it is closed.
    with (
        hold(run),
        (run / _FILE).open("ab", buffering=0) as out,
        (run / _FILE).open("rb", buffering=_READ_AHEAD) as file,
    ):
        for path in run.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
        journal = Journal(file, model, out)
        journal.take_back()
        yield journal


@contextmanager
def read_journal(run: Path, model: str) -> Iterator[Journal]:
    """As `open_journal`, for reading, without locking or changing anything; a missing one is empty."""
    path = run / _FILE
    with (path if path.exists() else Path(os.devnull)).open("rb", buffering=_READ_AHEAD) as file:
        yield Journal(file, model)


def _tokens_of(usage: Any) -> Tokens:
    """Return the tokens that a reply reports; what is missing or no number counts as nothing."""
    usage = usage if isinstance(usage, dict) else {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return Tokens(*(count if isinstance(count, int) else 0 for count in counts))


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _FIELDS):
        raise InputError(f"{where}: not a valid journal row; repair or remove the line")
    return row
