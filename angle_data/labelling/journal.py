"""The append-only record of every reply: the only state of a labelling run, and what makes it resumable.

A request that the service refuses for good has a row too, with the words of the service in `refused`. It is
finished like the others, and counts as no reply. A request that is asked anew has one row for each sample.

One process writes a run at a time; a kill at any moment loses at most the line that was being written. Rows
are found by a 64-bit hash of their key; of two requests with one hash the second counts as unanswered.
"""

from __future__ import annotations

import json
import logging
import os
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import jsonlines

from angle_data.annotators.base import ChatRequest, Failure, resample
from angle_data.errors import InputError
from angle_data.jsonl import dumps
from angle_data.labelling.index import HashTable
from angle_data.locking import hold

log = logging.getLogger("angle.labelling")

_FILE = "journal.jsonl"
_FIELDS = ("key", "model", "reply")
_KEY_DIGITS = 32
_KEY = re.compile(rf"[0-9a-f]{{{_KEY_DIGITS}}}")
_MISSING, _CLAIMED = -2, -1
_READ_AHEAD = 1 << 16
# The order in which `append` callers write usage is the service's own; this is that of the OpenAI API.
_ENDING = re.compile(
    rb'"usage": \{(?:"prompt_tokens": (\d+)(?:, "completion_tokens": (\d+))?(?:, "[a-z_]+": \d+)*)?\}'
    rb', "seconds": (\d+(?:\.\d+)?), "time": "[^"\\]*"\}\n'
)


@dataclass(slots=True)
class Spent:
    """What the rows of a journal took: their number, their tokens, and the seconds of every reply."""

    rows: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: array[float] = field(default_factory=lambda: array("f"))

    @property
    def tokens(self) -> int:
        """Return the tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, row: dict[str, Any]) -> None:
        """Count one row; what is missing or no number counts as nothing."""
        usage, seconds = row.get("usage"), row.get("seconds")
        usage = usage if isinstance(usage, dict) else {}
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        self.count(
            prompt if isinstance(prompt, int) else 0,
            completion if isinstance(completion, int) else 0,
            seconds if isinstance(seconds, int | float) else 0.0,
        )

    def count(self, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
        """Count one row."""
        self.rows += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.seconds.append(seconds)


@dataclass(slots=True)
class _Scanned:
    """Key -> byte offset of its row, where the last whole row ends, and what the rows took."""

    offsets: HashTable = field(default_factory=HashTable)
    end: int = 0
    spent: Spent = field(default_factory=Spent)


class Journal:
    """Finished requests by key. Holds about 30 bytes a row in memory; the rows stay on disk.

    `spent` is what all rows took, those appended since included.
    """

    def __init__(self, rows: IO[bytes] | None, writer: IO[bytes] | None, scanned: _Scanned) -> None:
        self.spent = scanned.spent
        self._rows, self._offsets = rows, scanned.offsets
        self._start = self._end = scanned.end
        # Flushed after every row: a row is safe from a kill of this process once `append` returns.
        self._writer = jsonlines.Writer(writer, dumps=dumps, flush=True) if writer else None

    def __contains__(self, key: str) -> bool:
        return self._offsets.get(hash(key), _MISSING) >= 0

    def __len__(self) -> int:
        return self.spent.rows

    def held_before(self, key: str) -> bool:
        """Whether the journal held this request already when it was opened."""
        return 0 <= self._offsets.get(hash(key), _MISSING) < self._start

    def claim(self, key: str) -> bool:
        """Reserve a request for this run; False when it is finished, or claimed by an equal request."""
        identity = hash(key)
        if self._offsets.get(identity, _MISSING) != _MISSING:
            return False
        self._offsets.put(identity, _CLAIMED)
        return True

    def append(self, row: dict[str, Any]) -> None:
        """Write one row and hand it to the operating system before returning.

        A row opens with `key` and `model` and ends with `usage`, `seconds` and `time`; so it is read fastest.
        One with `refused` (see `refusal_of`) has no usage.
        """
        assert self._writer is not None, "a journal opened for reading takes no rows"
        start = self._end
        self._end += self._writer.write(row)
        self._offsets.put(hash(row["key"]), start)
        if refusal_of(row) is None:
            self.spent.add(row)

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the row of a request, or None when it is not finished.

        Raises:
            InputError: The row is damaged.
        """
        offset = self._offsets.get(hash(key), _MISSING)
        if offset < 0 or self._rows is None:
            return None
        self._rows.seek(offset)
        row, fault = _parse(self._rows.readline())
        if row is None:
            raise InputError(f"{self._rows.name}: {fault} at byte {offset}; repair or remove the line")
        return row if row["key"] == key else None


def refusal_of(row: dict[str, Any]) -> str | None:
    """Return why the service refused a request for good, from its row; None when it was answered."""
    refused = row.get("refused")
    return refused if isinstance(refused, str) else None


class Replies:
    """The rows of a journal by request, sample by sample.

    `failures` are those of this session, by key. `identity` is the model as request keys know it.
    """

    def __init__(self, journal: Journal, failures: Mapping[str, Failure], identity: str) -> None:
        self._journal, self._failures, self._identity = journal, failures, identity

    def each(self, request: ChatRequest) -> Iterator[dict[str, Any]]:
        """Yield the journal rows of a request, first sample first; none when it was not answered.

        A request that was asked anew has several, see `resample`. Only what is taken is read.
        """
        sample, number = request, 0
        while (row := self._journal.row(sample.key)) is not None:
            yield row
            number += 1
            sample = resample(request, self._identity, number)

    def all(self, request: ChatRequest) -> list[dict[str, Any]]:
        """Return the journal rows of a request, see `each`."""
        return list(self.each(request))

    def next_sample(self, request: ChatRequest) -> ChatRequest:
        """Return the request that asks the same question once more: the first sample without a row."""
        return resample(request, self._identity, len(self.all(request)))

    def from_before(self, request: ChatRequest) -> bool:
        """Whether the journal held the first sample already when this session began."""
        return self._journal.held_before(request.key)

    def failure(self, request: ChatRequest) -> Failure | None:
        """Return why a request failed in this session, None when it did not, or was not asked.

        Of a request that was asked anew, this is the failure of the next sample.
        """
        return self._failures.get(self.next_sample(request).key) if self._failures else None


@contextmanager
def open_journal(run: Path, model: str) -> Iterator[Journal]:
    """Open the journal of a run directory for this process alone; creates both when they are missing.

    A line torn by a crash at the end of the file is cut off.

    Raises:
        InputError: Another process writes the run, the run belongs to another model, or a line is damaged.
    """
    with hold(run):
        path = run / _FILE
        scanned = _scan(path, model)
        with path.open("a+b") as probe:
            if scanned.end < probe.seek(0, os.SEEK_END):
                log.warning("%s: cut off an incomplete last line", path)
                probe.truncate(scanned.end)
            elif scanned.end and _last_byte(probe) != b"\n":
                scanned.end += probe.write(b"\n")  # a crash can have lost no more than that
        with path.open("ab") as writer, path.open("rb", buffering=_READ_AHEAD) as rows:
            yield Journal(rows, writer, scanned)


@contextmanager
def read_journal(run: Path, model: str) -> Iterator[Journal]:
    """Open the journal for reading, without locking or changing anything; a missing one is empty.

    Raises:
        InputError: The run belongs to another model, or a line is damaged.
    """
    path = run / _FILE
    if not path.exists():
        yield Journal(None, None, _Scanned())
        return
    with path.open("rb", buffering=_READ_AHEAD) as rows:
        yield Journal(rows, None, _scan(path, model))


def _scan(path: Path, model: str) -> _Scanned:
    if not path.exists():
        return _Scanned()
    head = b'{"key": "'
    middle = f'", "model": {dumps(model)}, '.encode()
    key_at, key_end = len(head), len(head) + _KEY_DIGITS
    with path.open("rb", buffering=_READ_AHEAD) as stream:
        # About as many rows as the file holds of its first one.
        found = _Scanned(HashTable(path.stat().st_size // max(len(stream.readline()), 1)))
        stream.seek(0)
        for number, line in enumerate(stream, start=1):
            ending = None
            # A row as `append` writes it needs no full parsing, which would be most of the time of a resume.
            if line.startswith(head) and line.startswith(middle, key_end):
                ending = _ENDING.fullmatch(line, line.rfind(b'"usage": {'))
            if ending is not None:
                key = line[key_at:key_end].decode("latin-1")
                found.spent.count(int(ending[1] or 0), int(ending[2] or 0), float(ending[3]))
            else:
                row, fault = _parse(line)
                if row is None:
                    # Only a line without its end can be a row cut off by a crash.
                    if line.endswith(b"\n"):
                        raise InputError(f"{path}:{number}: {fault}; repair or remove the line")
                    break
                if row["model"] != model:
                    raise InputError(
                        f"{path.parent} holds a run of {row['model']!r}; give another --out for {model!r}"
                    )
                key = row["key"]
                if refusal_of(row) is None:
                    found.spent.add(row)
            found.offsets.put(hash(key), found.end)
            found.end += len(line)
    return found


def _parse(line: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            return None, "not a JSON object"
        if missing := [name for name in _FIELDS if not isinstance(row.get(name), str)]:
            return None, f"a journal row needs the string {missing[0]!r}"
        if not _KEY.fullmatch(row["key"]):
            return None, "no request key"
    except ValueError:
        return None, "not a valid journal row"
    return row, ""


def _last_byte(stream: IO[bytes]) -> bytes:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1)
