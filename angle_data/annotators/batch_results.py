"""What came of the requests of one part: its result files into replies, failures, and replies for later.

Decides nothing about batches, and closes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.batch_files import read_rows, row_outcome
from angle_data.jsonl import dumps


@dataclass(slots=True)
class PartResults:
    """The downloaded results of a part, and counts that grow as they are read.

    `files` hold the rows, answered ones first; `status` is how the batch ended, after `seconds`. `asked` has
    every key of the part, and says whether this run asks it. Replies to others are written to `spare` and
    counted in `kept`; `strange` rows belong to no request of the part, or come a second time.
    """

    files: list[Path]
    status: str
    seconds: float
    asked: dict[str, bool]
    spare: Path
    replied: int = 0
    failed: int = 0
    kept: int = 0
    strange: int = 0

    def outcomes(self) -> Iterator[Reply | Failure]:
        """Yield one outcome for every request that this run asks, with or without a row.

        Raises:
            ValueError: A file is cut short or is something else.
        """
        left = dict(self.asked)
        with self.spare.open("w", encoding="utf-8") as spares:
            for row in (row for path in self.files if path.exists() for row in read_rows(path)):
                asked = left.pop(row["custom_id"], None)
                if asked is None:
                    self.strange += 1
                    continue
                outcome = row_outcome(row, row.get("seconds", self.seconds))
                if asked:
                    self._count(outcome)
                    yield outcome
                elif isinstance(outcome, Reply):
                    self.kept += 1
                    spares.write(dumps({**row, "seconds": outcome.seconds}) + "\n")
        for key in (key for key, asked in left.items() if asked):
            outcome = self._without_row(key)
            self._count(outcome)
            yield outcome

    def _count(self, outcome: Reply | Failure) -> None:
        if isinstance(outcome, Reply):
            self.replied += 1
        else:
            self.failed += 1

    def _without_row(self, key: str) -> Failure:
        if self.status == "completed":
            return Failure(key, "missing", "the batch is completed and holds no result for this request")
        message = f"the batch {self.status} before this request was answered"
        return Failure(key, f"batch_{self.status}", message)
