"""What a run has given to a batch service: RUN/batches.jsonl, one line per event.

A part is one input file and becomes one batch. It is *prepared* before anything is sent, noted again
(`creating`) before the service is asked for the batch, *submitted* once the
service has named its batch, and closed when its rows are read (`finished`), when the service refused it as a
whole (`refused`) or when it never arrived (`dropped`). A crash can lose any event: the metadata of the
batches at the service then say what is true.
"""

from __future__ import annotations

import logging
import math
import os
import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import dumps, loads

log = logging.getLogger("angle.annotators")

# The file to be sent, and results, by the names of parts now and in earlier versions; what else lies there is
# the user's.
_OURS = re.compile(r"next\.jsonl|[0-9a-f-]{16,17}\.(output|error)\.jsonl")


@dataclass(frozen=True, slots=True)
class Part:
    """The requests of one batch.

    `name` is unique in its run, `keys` are those of the requests, `batch` is the service's id once there is
    one. A `fetched` part is read, and holds replies that no run has asked for since. `prompt_tokens` is a
    guess, `completion_tokens` what the replies can take at most. `creating` is when the service was asked for
    the batch, in ISO 8601, empty before.
    """

    name: str
    keys: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    batch: str | None = None
    fetched: bool = False
    creating: str = ""

    def asked_s_ago(self) -> float:
        """Return the seconds since the service was asked for the batch; infinite where it was not."""
        if not self.creating:
            return math.inf
        return (datetime.now(UTC) - datetime.fromisoformat(self.creating)).total_seconds()


def open_requests(directory: Path) -> int:
    """Return how many requests of a run are with a batch service; changes nothing. Raises as `BatchState`."""
    return sum(len(part.keys) for part in BatchState(directory).parts.values() if not part.fetched)


class BatchState:
    """The `parts` that are not closed; a change is on disk before it counts. To be read only until `begin`.

    `run` is a random name that tells the batches of this run from all others of the account. `folder` holds
    what is sent and what came back. `full`: the service had no room for a batch, and none has finished since.

    Raises:
        InputError: RUN/batches.jsonl is damaged; a last line torn by a crash is left out.
    """

    def __init__(self, directory: Path) -> None:
        self.folder, self._path = directory / "batch", directory / "batches.jsonl"
        self.parts: dict[str, Part] = {}
        self.run = ""
        self.full = False
        self._torn = 0  # bytes of a last line that a crash cut off
        lines = self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                self._torn = len(line)
                break
            try:
                self._apply(loads(line))
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"{self._path}:{number}: not an event of a batch run; repair or remove the line, "
                    "or the file if an earlier version wrote it and all its batches were fetched"
                ) from None

    def begin(self) -> None:
        """Make ready to record events."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._torn:
            log.warning("%s: cut off an incomplete last line", self._path)
            os.truncate(self._path, self._path.stat().st_size - self._torn)
        if not self.run:
            self.record("run", run=secrets.token_hex(8))

    def prepared(self, keys: list[str], prompt_tokens: int, completion_tokens: int) -> Part:
        """Note a part that is about to be submitted, by the keys of its requests; see `Part`."""
        name = secrets.token_hex(8)
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
        self._apply(row)

    def _apply(self, row: dict[str, Any]) -> None:
        event, name = row["event"], row.get("part", "")
        if event == "run":
            self.run = row["run"]
        elif event == "prepared":
            part = Part(name, tuple(row["keys"]), row["prompt_tokens"], row["completion_tokens"])
            self.parts[name] = part
        elif event == "creating":
            self.parts[name] = replace(self.parts[name], creating=row["time"])
        elif event == "submitted":
            self.parts[name] = replace(self.parts[name], batch=row["batch"])
        elif event in ("finished", "refused", "dropped"):
            part = self.parts.pop(name)
            if event != "dropped":
                self.full = row.get("full", False)
            if keys := tuple(row.get("kept", ())):
                share = len(keys) / len(part.keys)  # as if tokens were spread evenly
                prompt, completion = int(part.prompt_tokens * share), int(part.completion_tokens * share)
                self.parts[name] = Part(name, keys, prompt, completion, part.batch, fetched=True)
        else:
            raise KeyError(event)

    def results(self, part: Part) -> list[Path]:
        """Return where the results of a part lie once they are fetched: its output and its errors."""
        return [self.folder / f"{part.name}.{kind}.jsonl" for kind in ("output", "error")]

    def tidy(self) -> None:
        """Remove every file of ours that holds no results of a part which is read and not closed."""
        wanted = {path for part in self.parts.values() if part.fetched for path in self.results(part)}
        for path in self.folder.iterdir():
            if path not in wanted and _OURS.fullmatch(path.name):
                path.unlink()
