"""One pass over the batches of a run: what is open, what may be submitted now, what is done, what came of it.

Decides; the calls are `batch_service`'s, the memory between passes is `batch_state`'s, the clock and the
requests are its caller's.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from angle_data.annotators.base import ChatRequest, Failure, Held, Reply
from angle_data.annotators.batch_files import request_line
from angle_data.annotators.batch_queue import Limits, PartQueue
from angle_data.annotators.batch_results import PartResults
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.batch_state import BatchState, Part
from angle_data.annotators.chat import request_body
from angle_data.annotators.spec import Dialect
from angle_data.errors import AnnotatorError, StoppedError
from angle_data.text import counted

if TYPE_CHECKING:
    from openai.types import Batch

log = logging.getLogger("angle.annotators")

_DONE = ("completed", "expired", "cancelled")
_TOKEN_LIMIT = "token_limit_exceeded"
_SHOWN_ERRORS = 3


class BatchSession:
    """The batches of one run of a command; with `waits` it stays to see what becomes of those it submits.

    `held` is what the parts of earlier runs take, once `hold` was called.
    """

    def __init__(
        self, state: BatchState, service: BatchService, limits: Limits, *, dialect: Dialect, waits: bool
    ) -> None:
        self.held = Held()
        self._state, self._service, self._limits = state, service, limits
        self._dialect, self._waits = dialect, waits
        self._batches: dict[str, Batch | None] = {}  # by part; None: not looked at since it was submitted
        self._held: dict[bytes, bool] = {}  # keys of earlier runs' parts: are they asked in this run?
        self._queue = PartQueue(state, limits)
        self._ended = False  # all requests are taken
        self._blocked = False  # there was no room, and none of our batches has finished since
        self._unsent = 0  # requests without room whose rows are not here any more
        self._refusal = ""
        self._until = -math.inf

    async def recover(self) -> None:
        """Find out what became of parts whose submission was cut short."""
        unsure = [part for part in self._state.parts.values() if part.batch is None]
        if not unsure:
            return
        found = await self._service.find(self._state.run)
        for part in unsure:
            if part.name in found:
                log.info("batch %s was created before the interruption", found[part.name][0])
                self._state.submitted(part, *found[part.name])
            else:
                self._state.dropped(part)
        self._state.tidy()

    async def look(self) -> None:
        """Ask how every batch stands that is not known to be done; deal with those refused as a whole."""
        crowded: list[Part] = []
        for part in self._open():
            if part.batch is None or self._is_done(part):
                continue
            before, batch = self._batches.get(part.name), await self._service.look(part.batch)
            if before is None or before.status != batch.status:
                log.info("batch %s (%s): %s", part.batch, counted(part.rows, "request"), batch.status)
            self._batches[part.name] = batch
            if batch.status == "failed":
                crowded += self._refused(part, batch)
            elif batch.status != "validating":
                self._state.input_file(part.name).unlink(missing_ok=True)
        if crowded:
            self._make_room(crowded)

    def hold(self) -> None:
        """Learn the keys of all open parts, before requests are taken."""
        for part in self._state.parts.values():
            self._held.update((bytes.fromhex(key), False) for key in self._state.keys(part))
            self.held = Held(
                self.held.requests + part.rows,
                self.held.prompt_tokens + part.prompt_tokens,
                self.held.completion_tokens + part.completion_tokens,
            )

    def holds(self, key: str) -> bool:
        """Whether the request lies in a part of an earlier run, and so is paid for already."""
        return bytes.fromhex(key) in self._held

    def take(self, request: ChatRequest) -> Failure | None:
        """Put a request into the next input file unless a batch holds it; returns why it cannot be asked."""
        key = bytes.fromhex(request.key)
        if key in self._held:
            self._held[key] = True
            return None
        if self._refusal:
            return None
        body = request_body(request, self._dialect)
        line = request_line(request.key, body)
        if len(line) > self._limits.max_bytes:
            return Failure(
                request.key, "too_large", f"{len(line)} bytes; a batch takes {self._limits.max_bytes}"
            )
        self._queue.add(request.key, line, body)
        return None

    def end_of_requests(self) -> None:
        """Close the last input file."""
        self._queue.end_file()
        self._ended = True

    async def submit(self) -> bool:
        """Submit the parts that wait, all of them, or one at a time since the service was short of room.

        Returns whether there was one to submit.
        """
        submitted = False
        while self._queue:
            if self._state.row_limit is not None and (self._blocked or self._is_validating()):
                break
            submitted = True
            part = self._queue.take()
            path = self._state.input_file(part.name)
            log.info("submitting %s (%.1f MB)", counted(part.rows, "request"), path.stat().st_size / 1e6)
            input_file = await self._service.upload(path)
            batch = await self._service.create(input_file, self._state.run, part.name)
            self._state.submitted(part, batch, input_file)
            self._batches[part.name] = None
            if self._state.row_limit is not None:
                self._until = time.monotonic() + self._limits.validation_s
            elif not self._waits:
                path.unlink()  # nobody will see the batch refused and make another of the rows
        return submitted

    def done(self) -> list[Part]:
        """Return the parts whose outcomes can be had now."""
        kept = [p for p in self._state.parts.values() if p.kept and self._is_asked(p)]
        return kept + [part for part in self._open() if self._is_done(part)]

    async def download(self, part: Part) -> None:
        """Bring the results of a part into the run directory; a kept part's are there."""
        batch = self._batches.get(part.name)
        for kind, file in (
            ("output", batch and batch.output_file_id),
            ("error", batch and batch.error_file_id),
        ):
            if file and not await self._service.download(file, self._result_file(part, kind)):
                log.warning("batch %s: its %s file is no longer at the service", part.batch, kind)

    def outcomes(self, part: Part) -> Iterator[Reply | Failure]:
        """Yield the outcome of every request of a downloaded part that this run asks, then close the part.

        Raises:
            AnnotatorError: A result file is damaged.
        """
        batch = self._batches.get(part.name)
        results = PartResults(
            self._result_files(part),
            batch.status if batch else "completed",
            _duration(batch),
            {key: self._asks(part, key) for key in self._state.keys(part)},
            self._state.folder / "next.kept.tmp",
        )
        try:
            yield from results.outcomes()
        except ValueError as error:
            raise AnnotatorError(
                f"the results of batch {part.batch} came damaged ({error}); run the same command again to "
                "fetch them once more"
            ) from None
        if results.strange:
            log.warning(
                "batch %s: %d result rows ignored that answer none of its requests",
                part.batch,
                results.strange,
            )
        results.spare.replace(self._state.kept_file(part.name))
        self._state.finished(
            part, results.status, replied=results.replied, failed=results.failed, kept=results.kept
        )
        self._blocked = False

    def raise_refusal(self) -> None:
        """Raise what the service said of a batch that it refused, if it did.

        Raises:
            AnnotatorError: It did.
        """
        if self._refusal:
            raise AnnotatorError(self._refusal)

    @property
    def is_finished(self) -> bool:
        """Whether nothing that this run asks is submitted or left to submit."""
        return not (self._queue or self._unsent or any(map(self._is_asked, self._open())))

    @property
    def is_stuck(self) -> bool:
        """Whether waiting longer cannot help this run: what is left to submit has to be asked anew."""
        return bool(self._unsent) and not (self._open() or self._queue)

    @property
    def patience_until(self) -> float:
        """The monotonic time until which a wait lets more be submitted, in the past if it does not."""
        return self._until if self._queue and self._is_validating() else -math.inf

    def standing(self) -> str:
        """Return one line on what is open."""
        parts = self._open()
        rows = sum(part.rows for part in parts)
        unsent = self._queue.rows + self._unsent
        waits = "waits" if unsent == 1 else "wait"
        more = f"; {counted(unsent, 'request')} {waits} for room at the service" if unsent else ""
        noun = "batch is" if len(parts) == 1 else "batches are"
        return (
            f"{len(parts)} {noun} being worked on ({counted(rows, 'request')}){more}; run the same command "
            "again to go on, or let it wait with --engine-option wait_s=SECONDS"
        )

    def close(self) -> None:
        """Forget what was never sent: the next run makes it anew."""
        self._queue.discard()
        self._state.tidy()

    def _open(self) -> list[Part]:
        """Return the parts that the service has."""
        return [part for part in self._state.parts.values() if part.batch is not None and not part.kept]

    def _is_done(self, part: Part) -> bool:
        batch = self._batches.get(part.name)
        return batch is not None and batch.status in _DONE

    def _is_validating(self) -> bool:
        batches = [self._batches.get(part.name) for part in self._open()]
        return any(batch is None or batch.status == "validating" for batch in batches)

    def _asks(self, part: Part, key: str) -> bool:
        return part.name in self._queue.made or self._held.get(bytes.fromhex(key), False)

    def _is_asked(self, part: Part) -> bool:
        return any(self._asks(part, key) for key in self._state.keys(part))

    def _refused(self, part: Part, batch: Batch) -> list[Part]:
        """Close a refused part; returns it when the reason is a lack of room."""
        errors = (batch.errors.data if batch.errors else None) or []
        lines = [
            self._service.clean(f"line {e.line}: {e.message}" if e.line is not None else str(e.message))
            for e in errors
        ]
        self._state.refused(part, lines)
        if any(error.code == _TOKEN_LIMIT for error in errors):
            rows = counted(part.rows, "request")
            log.warning("batch %s (%s) has no room: %s", part.batch, rows, lines[0])
            return [part]
        more = f" and {len(lines) - _SHOWN_ERRORS} more errors" if len(lines) > _SHOWN_ERRORS else ""
        self._refusal = self._refusal or (
            f"{self._service.address} refused batch {part.batch} ({counted(part.rows, 'request')}): "
            f"{'; '.join(lines[:_SHOWN_ERRORS]) or 'no reason given'}{more}"
        )
        return []

    def _make_room(self, crowded: list[Part]) -> None:
        """Let refused parts wait for others of ours, or halve them when there are none to wait for."""
        largest = max(part.rows for part in crowded)
        limit = self._queue.max_rows
        self._blocked = bool(self._open())
        if not self._blocked:
            smallest = max(self._limits.min_rows, self._state.largest_done)
            if largest <= smallest:
                self._state.shrunk(
                    smallest if self._state.largest_done == smallest else self._limits.max_rows
                )
                raise StoppedError(
                    "the account's limit on enqueued tokens leaves no room for "
                    f"{counted(largest, 'request')} now; run the same command again when other batches of "
                    "the account have finished"
                )
            limit = max(min(limit, largest) // 2, smallest)
            log.info("batches hold at most %d requests from now on", limit)
        self._state.shrunk(limit)
        lost = self._queue.put_back(crowded)
        if self._ended:
            self._unsent += lost

    def _result_files(self, part: Part) -> list[Path]:
        if part.kept:
            return [self._state.kept_file(part.name)]
        return [self._result_file(part, kind) for kind in ("output", "error")]

    def _result_file(self, part: Part, kind: str) -> Path:
        return self._state.folder / f"{part.name}.{kind}.tmp"


def _duration(batch: Batch | None) -> float:
    """Return the seconds from the creation of a batch to its end, 0 when the service does not say."""
    if batch is None:
        return 0.0
    end = batch.completed_at or batch.expired_at or batch.cancelled_at
    return float(max(end - batch.created_at, 0)) if end and batch.created_at else 0.0
