"""What a run has given to a batch service: RUN/batches.jsonl, one line per event, and the keys of each part.

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
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from angle_data.errors import InputError
from angle_data.jsonl import dumps, read_jsonl

log = logging.getLogger("angle.annotators")

_FILE = "batches.jsonl"
_FOLDER = "batch"
_SUFFIXES = (".keys", ".jsonl", ".tmp")
_DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Part:
    """The requests of one batch.

    `name` is unique in its run, `rows` the number of requests, `digest` the SHA-256 of the keys' file,
    `batch` and `input_file` the service's ids once there are any. A `kept` part is read, and holds replies
    that no run has asked for since. `prompt_tokens` is a guess, `completion_tokens` what the replies can take
    at most; both are 0 where an earlier version made the part.
    """

    name: str
    rows: int
    digest: str
    batch: str | None = None
    input_file: str = ""
    kept: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


def open_requests(directory: Path) -> int:
    """Return how many requests of a run are with a batch service; changes nothing.

    Raises:
        InputError: RUN/batches.jsonl is damaged.
    """
    parts: dict[str, Part] = {}
    _read_events(directory / _FILE, parts)
    return sum(part.rows for part in parts.values() if not part.kept)


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
                    f"{path}:{number}: not an event of a batch run; repair or remove the line"
                ) from None
    return rows


def _apply(row: dict[str, Any], parts: dict[str, Part]) -> None:
    """Change the parts that are not closed as an event says."""
    event, name = row["event"], row.get("part", "")
    if event == "prepared":
        tokens = row.get("prompt_tokens", 0), row.get("completion_tokens", 0)
        parts[name] = Part(
            name, row["rows"], row["keys_sha256"], prompt_tokens=tokens[0], completion_tokens=tokens[1]
        )
    elif event == "submitted":
        parts[name] = replace(parts[name], batch=row["batch"], input_file=row.get("input_file", ""))
    elif event == "finished" and row["kept"]:
        part, rows = parts[name], row["kept"]
        parts[name] = replace(
            part,
            rows=rows,
            kept=True,
            prompt_tokens=part.prompt_tokens * rows // part.rows,  # as if spread evenly
            completion_tokens=part.completion_tokens * rows // part.rows,
        )
    elif event in ("finished", "refused", "dropped"):
        del parts[name]
    elif event not in ("run", "shrunk"):  # earlier versions cut batches into halves
        raise KeyError(event)


class BatchState:
    """The `parts` that are not closed, in the order of their making; a change is on disk before it counts.

    `run` is a random name that tells the batches of this run from all others of the account.

    Raises:
        InputError: RUN/batches.jsonl is damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.folder, self._path = directory / _FOLDER, directory / _FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        self.parts: dict[str, Part] = {}
        rows = _read_events(self._path, self.parts)
        self._made = sum(row["event"] == "prepared" for row in rows)
        if self._path.exists() and (torn := self._path.read_bytes().rpartition(b"\n")[2]):
            log.warning("%s: cut off an incomplete last line", self._path)
            os.truncate(self._path, self._path.stat().st_size - len(torn))
        run = next((row["run"] for row in rows if row["event"] == "run"), None)
        self.run: str = run or secrets.token_hex(8)
        if run is None:
            self._record("run", run=self.run)
        self.tidy()

    def prepared(self, keys: list[str], prompt_tokens: int, completion_tokens: int) -> Part:
        """Note a part that is about to be submitted, by the keys of its requests; see `Part`."""
        content = "".join(f"{key}\n" for key in keys).encode("ascii")
        digest = hashlib.sha256(content).hexdigest()
        self._made += 1
        name = f"{self._made:04d}-{digest[:_DIGEST_DIGITS]}"
        self.file(name, "keys").write_bytes(content)
        self._record(
            "prepared",
            part=name,
            rows=len(keys),
            keys_sha256=digest,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
        return self.parts[name]

    def submitted(self, part: Part, batch: str, input_file: str) -> None:
        """Note the service's names for a part; its requests need not lie here any more."""
        self._record(
            "submitted",
            part=part.name,
            batch=batch,
            input_file=input_file,
            rows=part.rows,
            keys_sha256=part.digest,
        )
        self.file(part.name, "jsonl").unlink(missing_ok=True)

    def finished(self, part: Part, status: str, *, replied: int, failed: int, kept: int) -> None:
        """Close a part whose rows are read; one with `kept` replies left over stays, to be asked for."""
        counts = {"replied": replied, "failed": failed, "kept": kept}
        self._record("finished", part=part.name, batch=part.batch, status=status, **counts)
        self.tidy(inputs=False)

    def refused(self, part: Part, errors: list[str]) -> None:
        """Close a part that the service refused as a whole: its requests can be asked again."""
        self._record("refused", part=part.name, batch=part.batch, errors=errors)

    def dropped(self, part: Part) -> None:
        """Close a part that never became a batch."""
        self._record("dropped", part=part.name)

    def file(self, name: str, kind: Literal["keys", "jsonl", "kept.jsonl"]) -> Path:
        """Return where something of a part lies.

        `keys`: those of its requests, one a line. `jsonl`: the requests, until they are submitted.
        `kept.jsonl`: replies that no run has asked for since they came.
        """
        return self.folder / f"{name}.{kind}"

    def keys(self, part: Part) -> Iterator[str]:
        """Yield the keys of a part's requests, or of the replies of a kept one.

        Raises:
            InputError: Their file is missing or changed.
        """
        if part.kept:
            for _, row in read_jsonl(self.file(part.name, "kept.jsonl")):
                yield row["custom_id"]
            return
        path = self.file(part.name, "keys")
        if not path.exists() or _digest(path) != part.digest:
            raise InputError(
                f"{path} is missing or changed; restore it, or remove the lines of part {part.name} from "
                f"{self._path} (its requests are then paid for again)"
            )
        with path.open(encoding="ascii") as stream:
            for line in stream:
                yield line.rstrip("\n")

    def tidy(self, *, inputs: bool = True) -> None:
        """Remove files of closed parts and unfinished ones; with `inputs` also requests to be sent."""
        wanted = {self.file(p.name, "kept.jsonl" if p.kept else "keys") for p in self.parts.values()}
        if not inputs:
            wanted |= {self.file(name, "jsonl") for name in self.parts}
        for path in self.folder.iterdir():
            if path not in wanted and path.suffix in _SUFFIXES:
                path.unlink()

    def _record(self, event: str, **fields: Any) -> None:
        """Write one event and hand it to the operating system before it counts."""
        row = {"event": event, **fields, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(dumps(row) + "\n")
        _apply(row, self.parts)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
