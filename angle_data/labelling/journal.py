"""The append-only record of every reply: the only state of a labelling run, and what makes it resumable.

Knows nothing about parsing. One process writes a run at a time; a kill at any moment loses at most the line
that was being written.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from angle_data.errors import InputError
from angle_data.jsonl import dumps
from angle_data.locking import hold

__all__ = ["Journal", "finished_keys", "open_journal"]

log = logging.getLogger("angle.labelling")

_FILE = "journal.jsonl"
_FIELDS = ("key", "model", "reply")
_CLAIMED = -1


class Journal:
    """Finished requests by key. Holds one number a row in memory; the rows stay on disk."""

    def __init__(self, stream: IO[bytes], offsets: dict[bytes, int]) -> None:
        self._stream, self._offsets = stream, offsets
        self._end = stream.seek(0, os.SEEK_END)

    def __contains__(self, key: str) -> bool:
        return self._offsets.get(bytes.fromhex(key), _CLAIMED) != _CLAIMED

    def claim(self, key: str) -> bool:
        """Reserve a request for this run; False when it is finished, or claimed by an equal request."""
        identity = bytes.fromhex(key)
        if identity in self._offsets:
            return False
        self._offsets[identity] = _CLAIMED
        return True

    def append(self, row: dict[str, Any]) -> None:
        """Write one row and hand it to the operating system before returning."""
        line = (dumps(row) + "\n").encode()
        self._stream.seek(self._end)
        self._stream.write(line)
        self._stream.flush()
        self._offsets[bytes.fromhex(row["key"])] = self._end
        self._end += len(line)

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the row of a request, or None when it is not finished."""
        offset = self._offsets.get(bytes.fromhex(key), _CLAIMED)
        if offset == _CLAIMED:
            return None
        self._stream.seek(offset)
        row: dict[str, Any] = json.loads(self._stream.readline())
        return row


@contextmanager
def open_journal(run: Path, model: str) -> Iterator[Journal]:
    """Open the journal of a run directory for this process alone; creates both when they are missing.

    A line torn by a crash at the end of the file is cut off.

    Raises:
        InputError: Another process writes the run, the run belongs to another model, or a line is damaged.
    """
    with hold(run):
        path = run / _FILE
        offsets, end = _index(path, model) if path.exists() else ({}, 0)
        with path.open("a+b") as probe:
            if end < probe.seek(0, os.SEEK_END):
                log.warning("%s: cut off an incomplete last line", path)
                probe.truncate(end)
        with path.open("r+b") as stream:
            _close_last_line(stream)
            yield Journal(stream, offsets)


def finished_keys(run: Path, model: str) -> set[str]:
    """Return the keys of all finished requests without locking or changing anything."""
    path = run / _FILE
    return {key.hex() for key in _index(path, model)[0]} if path.exists() else set()


def _index(path: Path, model: str) -> tuple[dict[bytes, int], int]:
    """Return key -> byte offset, and where the last whole row ends."""
    offsets: dict[bytes, int] = {}
    end = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
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
            offsets[bytes.fromhex(row["key"])] = end
            end += len(line)
    return offsets, end


def _parse(line: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            return None, "not a JSON object"
        if missing := [name for name in _FIELDS if not isinstance(row.get(name), str)]:
            return None, f"a journal row needs the string {missing[0]!r}"
        bytes.fromhex(row["key"])
    except ValueError:
        return None, "not a valid journal row"
    return row, ""


def _close_last_line(stream: IO[bytes]) -> None:
    """End the last line: a crash can lose the newline of a row that is otherwise whole."""
    end = stream.seek(0, os.SEEK_END)
    if end:
        stream.seek(end - 1)
        if stream.read(1) != b"\n":
            stream.write(b"\n")
