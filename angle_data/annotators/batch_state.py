"""What a run has given to a batch service: RUN/batches.jsonl, one line per event.

A part is one input file and becomes one batch. It is *prepared* before anything is sent, *submitted* once the
service has named its batch, and closed when its rows are read (`finished`), when the service refused it as a
whole (`refused`) or when it never arrived (`dropped`). A crash can lose any event: the metadata of the
batches at the service then say what is true.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import dumps

log = logging.getLogger("angle.annotators")

_FILE = "batches.jsonl"
_FOLDER = "batch"
_DIGEST_DIGITS = 12
# What is written there: the file to be sent, and results; whatever else lies there is the user's.
_OURS = re.compile(rf"next\.jsonl|\d+-[0-9a-f]{{{_DIGEST_DIGITS}}}\.(output|error)\.jsonl")


@dataclass(frozen=True, slots=True)
class Part:
    """The requests of one batch.

    `name` is unique in its run, `keys` are those of the requests, `batch` is the service's id once there is
    one. A `fetched` part is read, and holds replies that no run has asked for since. `prompt_tokens` is a
    guess, `completion_tokens` what the replies can take at most.
    """

    name: str
    keys: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    batch: str | None = None
    fetched: bool = False


def open_requests(directory: Path) -> int:
    """Return how many requests of a run are with a batch service; changes nothing. Raises as `BatchState`."""
    parts: dict[str, Part] = {}
    _read_events(directory / _FILE, parts)
    return sum(len(part.keys) for part in parts.values() if not part.fetched)


def _read_events(path: Path, parts: dict[str, Part]) -> list[dict[str, Any]]:
    """Return the events of a run and note their parts; a last line torn by a crash is left out."""
    rows = []
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if line.endswith(b"\n"):
            try:
                rows.append(json.loads(line))
                _apply(rows[-1], parts)
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"{path}:{number}: not an event of a batch run; repair or remove the line, "
                    "or the file if an earlier version wrote it and all its batches were fetched"
                ) from None
    return rows


def _apply(row: dict[str, Any], parts: dict[str, Part]) -> None:
    """Change the parts that are not closed as an event says."""
    event, name = row["event"], row.get("part", "")
    if event == "prepared":
        parts[name] = Part(name, tuple(row["keys"]), row["prompt_tokens"], row["completion_tokens"])
    elif event == "submitted":
        parts[name] = replace(parts[name], batch=row["batch"])
    elif event == "finished" and row["kept"]:
        part, keys = parts[name], tuple(row["kept"])
        share = len(keys) / len(part.keys)  # as if tokens were spread evenly
        prompt, completion = int(part.prompt_tokens * share), int(part.completion_tokens * share)
        parts[name] = Part(name, keys, prompt, completion, part.batch, fetched=True)
    elif event in ("finished", "refused", "dropped"):
        del parts[name]
    elif event != "run":
        raise KeyError(event)


class BatchState:
    """The `parts` that are not closed, in the order of their making; a change is on disk before it counts.

    `run` is a random name that tells the batches of this run from all others of the account. `folder` holds
    what is sent and what came back. `full`: the service had no room for a batch, and none has finished since.

    Raises:
        InputError: RUN/batches.jsonl is damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.folder, self._path = directory / _FOLDER, directory / _FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        self.parts: dict[str, Part] = {}
        rows = _read_events(self._path, self.parts)
        self._made = sum(row["event"] == "prepared" for row in rows)
        closed = [row for row in rows if row["event"] in ("finished", "refused")]
        self.full: bool = bool(closed) and closed[-1].get("full", False)
        if self._path.exists() and (torn := self._path.read_bytes().rpartition(b"\n")[2]):
            log.warning("%s: cut off an incomplete last line", self._path)
            os.truncate(self._path, self._path.stat().st_size - len(torn))
        run = next((row["run"] for row in rows if row["event"] == "run"), None)
        self.run: str = run or secrets.token_hex(8)
        if run is None:
            self.record("run", run=self.run)

    def prepared(self, keys: list[str], prompt_tokens: int, completion_tokens: int) -> Part:
        """Note a part that is about to be submitted, by the keys of its requests; see `Part`."""
        self._made += 1
        digest = hashlib.sha256("".join(keys).encode()).hexdigest()
        name = f"{self._made:04d}-{digest[:_DIGEST_DIGITS]}"
        tokens = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        self.record("prepared", part=name, **tokens, keys=keys)
        return self.parts[name]

    def record(self, event: str, **fields: Any) -> None:
        """Write one event, hand it to the operating system, and only then count it.

        A `finished` part stays with the replies left over (`kept`).
        """
        row = {"event": event, **fields, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(dumps(row) + "\n")
        _apply(row, self.parts)

    def results(self, part: Part) -> list[Path]:
        """Return where the results of a part lie once they are fetched: its output and its errors."""
        return [self.folder / f"{part.name}.{kind}.jsonl" for kind in ("output", "error")]

    def tidy(self) -> None:
        """Remove every file of ours that holds no results of a part which is read and not closed."""
        wanted = {path for part in self.parts.values() if part.fetched for path in self.results(part)}
        for path in self.folder.iterdir():
            if path not in wanted and _OURS.fullmatch(path.name):
                path.unlink()
