"""The Batch API of OpenAI as an annotator: submit, leave, come back, fetch; half the price, within a day.

The first run of a command submits its requests and stops (exit code 75); the same command later fetches what
is done. What is in a batch is not submitted again, whatever else is asked. A row is matched with its request
by key. What failed or is missing is asked again by the next run, in a new batch. A batch refused for the
account's limit on enqueued tokens waits for the others of the run; one refused for another reason ends the
run. A reply to a request that the command no longer asks is kept in RUN/batch until it is asked.

Memory holds the keys of requests; what is sent and what comes back goes through files. Format of the files:
https://developers.openai.com/api/docs/guides/batch.
"""

from __future__ import annotations

import logging
import time
from asyncio import sleep
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.annotators.base import (
    Annotator,
    ChatRequest,
    Failure,
    Held,
    Reply,
    breathing,
    check_options,
    take_count,
    take_seconds,
)
from angle_data.annotators.batch_service import BatchService, request_line
from angle_data.annotators.batch_state import BatchState, Part
from angle_data.annotators.models import said_of_service
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Form, request_body, service_headers
from angle_data.errors import AnnotatorError, InputError, StoppedError
from angle_data.jsonl import loads
from angle_data.text import counted

if TYPE_CHECKING:
    from openai.types import Batch

log = logging.getLogger("angle.annotators")

_POLL_GROWTH = 1.5
_LONGEST_POLL_S = 120.0
_DONE = ("completed", "expired", "cancelled")
_TOKEN_LIMIT = "token_limit_exceeded"
_SHOWN_ERRORS = 3
_DOWNLOADS = 2  # of a file that ends within a row
_BYTES_PER_TOKEN, _TEMPLATE_TOKENS = 4, 8  # a guess at a prompt's tokens by its length


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one input file may hold, and the seconds between two looks at first; later pauses grow.

    `retry_s` bounds the pause before the first retry of a call. For `unsure_s` a batch that may have
    been created is waited for, before it is paid for again. The defaults are those of the guide.
    """

    max_rows: int = 50_000
    max_bytes: int = 200_000_000
    poll_s: float = 5.0
    retry_s: float = 0.5
    unsure_s: float = 300.0


class OpenAIBatch(Annotator):
    """An annotator that works through batches; its state lies in `spec.run`.

    The engine options are `wait_s`, the seconds that a run waits for batches (0, the default: it submits and
    fetches only), and `batch_size`, the most requests in one batch.
    """

    drains = False  # the service works on without us, and the next run fetches

    def __init__(self, spec: AnnotatorSpec, limits: Limits | None = None) -> None:
        if spec.run is None:
            raise InputError("--engine batch needs a run directory (--out) to remember its batches in")
        service_headers(spec)  # a key that is missing is said before anything is written
        self._run, self._spec = spec.run, spec
        self._form = Form.of(spec)
        options, limits = dict(spec.engine_options), limits or Limits()
        size = take_count(options, "batch_size", limits.max_rows)
        self._limits = replace(limits, max_rows=min(size, limits.max_rows))
        self._wait_s = take_seconds(options, "wait_s", 0.0)
        check_options("batch", options, "batch_size", "wait_s")
        self._file: _InputFile | None = None
        self._asked: dict[str, bool] = {}  # the keys that open parts hold, and whether this run asks them

    def holds(self, key: str) -> bool:
        """Whether a request is in a batch of an earlier run."""
        return key in self._asked

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Submit what no batch holds yet, and yield the outcomes of the batches that are done.

        Pulls all requests before the first reply; their keys differ from each other.

        Raises:
            StoppedError: Batches are being worked on; the same command fetches them later.
            AnnotatorError: The service refused a batch.
        """
        log.info(said_of_service(self._spec))
        self._state = BatchState(self._run)
        self._state.begin()
        self._full = self._state.full  # there was no room for a batch
        self._looks: dict[str, Batch] = {}  # by part
        self._asked = {}
        self._unsent = 0  # the requests that found no room
        self._refusal = ""  # what the service said of a batch that it refused for good
        self._service = BatchService(self._spec, self._limits.retry_s)
        async with self._service.client:
            try:
                await self._recover()
                await self._look()
                parts = self._state.parts.values()
                self._asked = dict.fromkeys((key for part in parts for key in part.keys), False)
                prompt = sum(part.prompt_tokens for part in parts)
                self.held = Held(len(self._asked), prompt, sum(part.completion_tokens for part in parts))
                async for request in breathing(requests):
                    if failure := await self._take(request):
                        yield failure
                await self._submit()
                until, pause = time.monotonic() + self._wait_s, self._limits.poll_s
                while True:
                    for part in self._done():
                        await self._download(part)
                        async for outcome in breathing(self._outcomes(part)):
                            yield outcome
                    if self._refusal:
                        raise AnnotatorError(self._refusal)
                    is_finished = not any(map(self._is_asked, self._working()))
                    if is_finished and not self._unsent:
                        return
                    left = until - time.monotonic()
                    if left <= 0 or is_finished:
                        raise StoppedError(self._standing())
                    await sleep(min(pause, left))
                    pause = min(pause * _POLL_GROWTH, _LONGEST_POLL_S)
                    await self._look()
            finally:
                if self._file is not None:
                    self._file.stream.close()
                    self._file = None  # the next run makes it anew
                self._state.tidy()

    async def _recover(self) -> None:
        """Find out what happened to parts whose submission was cut short."""
        unsure = [part for part in self._state.parts.values() if part.batch is None]
        found = await self._service.find(self._state.run) if unsure else {}
        for part in unsure:
            if part.name in found:
                log.info("batch %s was created before the interruption", found[part.name])
                self._state.record("submitted", part=part.name, batch=found[part.name])
            elif part.asked_s_ago() < self._limits.unsure_s:
                raise StoppedError(
                    f"{self._service.address} may have taken a batch that it does not show yet; run the same "
                    f"command again in {self._limits.unsure_s / 60:.0f} minutes"
                )
            else:
                self._state.record("dropped", part=part.name)
        self._state.tidy()

    async def _look(self) -> None:
        """Ask how every batch stands that is not known to be done; deal with those refused as a whole."""
        for part in self._working():
            if part.batch is None or self._is_done(part):
                continue
            before, batch = self._looks.get(part.name), await self._service.look(part.batch)
            if before is None or before.status != batch.status:
                log.info("batch %s (%s): %s", part.batch, counted(len(part.keys), "request"), batch.status)
            self._looks[part.name] = batch
            if batch.status == "failed":
                self._refused(part, batch)

    async def _take(self, request: ChatRequest) -> Failure | None:
        """Put a request into a batch unless one holds it; returns why it cannot be asked."""
        if request.key in self._asked:
            self._asked[request.key] = True
        elif self._full and self._working():
            self._unsent += 1
        elif not self._refusal:
            line = request_line(request.key, request_body(request, self._spec.dialect, self._form))
            if len(line) > self._limits.max_bytes:
                said = f"{len(line)} bytes; a batch takes {self._limits.max_bytes}"
                return Failure(request.key, "too_large", said)
            size, rows = (self._file.size, len(self._file.keys)) if self._file else (0, 0)
            if rows == self._limits.max_rows or size + len(line) > self._limits.max_bytes:
                await self._submit()
            if self._file is None:
                self._file = _InputFile(self._state.folder)
            self._file.add(request, line)
        return None

    async def _submit(self) -> None:
        """Submit the input file being written, if any; if cut short, the next run looks for its batch."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.stream.close()
        part = self._state.prepared(file.keys, file.prompt_tokens, file.completion_tokens)
        log.info("submitting %s (%.1f MB)", counted(len(file.keys), "request"), file.size / 1e6)
        input_file = await self._service.upload(file.path)
        self._state.record("creating", part=part.name)
        batch = await self._service.create(input_file, self._state.run, part.name)
        self._state.record("submitted", part=part.name, batch=batch)
        self._asked.update(dict.fromkeys(file.keys, True))

    def _done(self) -> list[Part]:
        """Return the parts whose outcomes can be had now."""
        parts = self._state.parts.values()
        return [p for p in parts if (p.fetched and self._is_asked(p)) or self._is_done(p)]

    async def _download(self, part: Part) -> None:
        """Bring the results of a part into the run directory, unless they are there."""
        if part.fetched:
            return
        batch = self._looks[part.name]
        files = batch.output_file_id, batch.error_file_id
        for path, file in zip(self._state.results(part), files, strict=True):
            for _ in range(_DOWNLOADS if file else 0):
                if not await self._service.download(str(file), path):
                    log.warning("batch %s: its file %s is no longer at the service", part.batch, file)
                    break
                if not _is_torn(path):
                    break
                said = "batch %s: %s ends in the middle of a row, whose request counts as missing"
                log.warning(said, part.batch, file)

    def _outcomes(self, part: Part) -> Iterator[Reply | Failure]:
        """Yield the outcome of every request of a downloaded part that this run asks, then close the part.

        Replies to other requests stay in the run directory until they are asked.
        """
        left = dict.fromkeys(part.keys)
        kept = list[str]()
        strange = 0
        paths = filter(Path.exists, self._state.results(part))
        for row in (row for path in paths for row in _rows(path)):
            key = str(row.get("custom_id"))
            if key not in left:
                strange += 1  # of no request, or a second one, or damaged
                continue
            del left[key]
            outcome = self._service.outcome(key, row)
            if self._asked[key]:
                yield outcome
            elif isinstance(outcome, Reply):
                kept.append(key)
        status = "completed" if part.fetched else self._looks[part.name].status
        kind, said = f"batch_{status}", f"the batch {status} before this request was answered"
        if status == "completed":
            kind, said = "missing", "the batch is completed and holds no result for this request"
        yield from (Failure(key, kind, said) for key in left if self._asked[key])
        if strange and not part.fetched:
            log.warning(
                "batch %s: %d result rows ignored that answer none of its requests", part.batch, strange
            )
        self._state.record("finished", part=part.name, batch=part.batch, status=status, kept=kept)
        self._state.tidy()

    def _standing(self) -> str:
        """Return one line on what is open."""
        parts = self._working()
        noun = "batch is" if len(parts) == 1 else "batches are"
        rows = counted(sum(len(part.keys) for part in parts), "request")
        said = f"{len(parts)} {noun} being worked on ({rows})"
        if self._unsent:
            said += f", without room yet for {counted(self._unsent, 'request')}"
        if self._full:
            said += "; smaller batches fit the account's limit on enqueued tokens sooner "
            said += "(--engine-option batch_size=N)"
        again = "run the same command again to go on, or let it wait with --engine-option wait_s=SECONDS"
        return f"{said}; {again}"

    def _working(self) -> list[Part]:
        """Return the parts that the service works on or has done."""
        return [part for part in self._state.parts.values() if part.batch is not None and not part.fetched]

    def _is_done(self, part: Part) -> bool:
        batch = self._looks.get(part.name)
        return batch is not None and batch.status in _DONE

    def _is_asked(self, part: Part) -> bool:
        return any(self._asked.get(key) for key in part.keys)

    def _refused(self, part: Part, batch: Batch) -> None:
        """Close a refused part, and keep in mind why."""
        errors = (batch.errors.data if batch.errors else None) or []
        said = (e.message if e.line is None else f"line {e.line}: {e.message}" for e in errors)
        lines = list(map(self._service.clean, said))
        full = any(error.code == _TOKEN_LIMIT for error in errors)
        shown = "; ".join(lines[:_SHOWN_ERRORS]) or "no reason given"
        refusal = f"batch {part.batch} ({counted(len(part.keys), 'request')}): {shown}"
        if full:
            log.warning("no room for %s", refusal)
            self._full = True
            self._unsent += sum(self._asked.get(key, False) for key in part.keys)
        else:
            self._refusal = self._refusal or f"{self._service.address} refused {refusal}"
        self._state.record("refused", part=part.name, batch=part.batch, errors=lines, full=full)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result file; one that is damaged or no object is empty, and costs its request."""
    with path.open("rb") as lines:
        for line in lines:
            if line.strip():
                row = _decoded(line)
                yield row if isinstance(row, dict) else {}


def _is_torn(path: Path) -> bool:
    """Whether a file ends within a row: it did not arrive as a whole, or lies so at the service."""
    last = b""
    with path.open("rb") as lines:
        for last in lines:  # noqa: B007 - the last one is wanted
            pass
    return bool(last.strip(b" \0")) and not last.endswith(b"\n") and _decoded(last) is None


def _decoded(line: bytes) -> Any:
    with suppress(ValueError):
        return loads(line.decode("utf-8-sig", errors="replace"))
    return None


class _InputFile:
    """An input file that is being written in `folder`, and what it holds so far; see `Part`."""

    def __init__(self, folder: Path) -> None:
        self.path, self.keys = folder / "next.jsonl", list[str]()
        self.size = self.prompt_tokens = self.completion_tokens = 0
        self.stream = self.path.open("wb")

    def add(self, request: ChatRequest, line: bytes) -> None:
        """Append the row of a request."""
        self.stream.write(line)
        self.keys.append(request.key)
        self.size += len(line)
        self.completion_tokens += request.sampling.max_tokens
        for message in request.messages:
            self.prompt_tokens += len(message["content"].encode()) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS
