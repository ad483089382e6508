"""The parts of a run that are not submitted yet: requests into input files, files into the queue.

Knows the limits of a file and of the account as far as they are known, but no service.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from angle_data.annotators.batch_files import MAX_BYTES, MAX_ROWS, RequestFile
from angle_data.annotators.batch_state import BatchState, Part


@dataclass(frozen=True, slots=True)
class Limits:
    """What fits in one input file, and the patience with batches, in seconds.

    A part of `min_rows` that finds no room in the account shows that others fill it; no part is cut smaller.
    `poll_s` is the first pause between two looks; later ones grow. While the service is short of room, a run
    that does not wait still gives each batch `validation_s` to be accepted, so that the next one can follow.
    """

    max_rows: int = MAX_ROWS
    max_bytes: int = MAX_BYTES
    min_rows: int = 50
    poll_s: float = 5.0
    validation_s: float = 120.0


class PartQueue:
    """Parts in the order in which they are to be submitted; `made` has the names of all of this run."""

    def __init__(self, state: BatchState, limits: Limits) -> None:
        self.made: set[str] = set()
        self._state, self._limits = state, limits
        self._waiting: deque[Part] = deque()
        self._file: RequestFile | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def rows(self) -> int:
        """Return how many requests wait."""
        return sum(part.rows for part in self._waiting)

    @property
    def max_rows(self) -> int:
        """Return how many requests a part may hold now."""
        return min(self._limits.max_rows, self._state.row_limit or self._limits.max_rows)

    def add(self, key: str, line: bytes, body: dict[str, Any]) -> None:
        """Put a request into the file that is being written, or into a new one when it does not fit."""
        if self._file is not None and not self._file.fits(line, self.max_rows, self._limits.max_bytes):
            self.end_file()
        if self._file is None:
            self._file = RequestFile.create(self._state.folder)
        self._file.add(key, line, body)

    def end_file(self) -> None:
        """Make a part of the file that is being written."""
        if self._file is None:
            return
        self._file.close()
        part = self._state.prepared(
            self._file.keys,
            self._file.rows,
            prompt_tokens=self._file.prompt_tokens,
            completion_tokens=self._file.completion_tokens,
        )
        self._file.path.replace(self._state.input_file(part.name))
        self._file = None
        self.made.add(part.name)
        self._waiting.append(part)

    def take(self) -> Part:
        """Remove the next part; whatever cuts its submission short, the next run looks for its batch."""
        return self._waiting.popleft()

    def put_back(self, refused: list[Part]) -> int:
        """Queue the rows of refused parts before all others, cutting what is larger than `max_rows`.

        Returns the number of requests whose rows are not in the run directory any more.
        """
        lost = 0
        waiting = [*refused, *self._waiting]
        self._waiting.clear()
        for part in waiting:
            path = self._state.input_file(part.name)
            if part not in refused and part.rows <= self.max_rows:
                self._waiting.append(part)
                continue
            if not path.exists():
                lost += part.rows
                continue
            with path.open("rb") as stream:
                for line in stream:
                    row = json.loads(line)
                    self.add(row["custom_id"], line, row["body"])
            self.end_file()
            if part not in refused:
                self._state.dropped(part)
        self._state.tidy(inputs=False)
        return lost

    def discard(self) -> None:
        """Forget what was not submitted: the next run makes it anew."""
        if self._file is not None:
            self._file.close()
            self._file = None
        while self._waiting:
            self._state.dropped(self._waiting.popleft())
