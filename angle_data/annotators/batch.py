"""The Batch API of OpenAI as an annotator: submit, leave, come back, fetch; half the price, within a day.

The first run of a command submits its requests and stops (exit code 75); the same command later fetches what
is done. What happens to requests:

- in a batch that is being worked on: not submitted again, whatever else is asked
- a row with an answer: a `Reply`, matched by the request's key, never by the order of rows
- a row with an error, a row of an expired or cancelled batch without a result, a row that is missing: a
  `Failure`; the next run of the command asks it again, in a new batch
- a batch refused for the account's limit on enqueued tokens: ends the run with `StoppedError`; the next run
  sends its requests again
- a batch refused for another reason: ends the run with what the service says; its requests are asked again
- a reply to a request that the command no longer asks: left with the service until it is asked

Each batch has a file in RUN/batch, written before anything is sent. Memory holds the keys of requests; what
is sent and what comes back goes through files. Their format:
https://developers.openai.com/api/docs/guides/batch.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from angle_data.annotators.base import ChatRequest, Failure, Held, Reply, take_count
from angle_data.annotators.batch_service import BatchService, read_rows, request_line
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Form, request_body
from angle_data.errors import AngleError, AnnotatorError, InputError, StoppedError
from angle_data.jsonl import read_jsonl, write_json
from angle_data.text import counted

if TYPE_CHECKING:
    from openai.types import Batch

log = logging.getLogger("angle.annotators")

_MAX_ROWS, _MAX_BYTES = 50_000, 200_000_000  # of one input file, by the guide
_DONE = ("completed", "expired", "cancelled")
_TOKEN_LIMIT = "token_limit_exceeded"
_SHOWN_ERRORS = 3
_BYTES_PER_TOKEN, _TEMPLATE_TOKENS = 4, 8  # a guess at a prompt's tokens by its length


@dataclass(slots=True)
class _Part:
    """The requests of one batch, and the file in RUN/batch that remembers them.

    `keys` are those of the requests, `batch` is the service's id once it is known. A `fetched` part is read,
    and holds what no run has asked for since. `prompt_tokens` of a request, on average, is a guess,
    `completion_tokens` what its reply can take at most.
    """

    path: Path
    keys: list[str]
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    batch: str | None = None
    fetched: bool = False

    @property
    def requests(self) -> str:
        """How many there are, in words."""
        return counted(len(self.keys), "request")

    def save(self) -> None:
        """Write the file; without requests, remove it."""
        if self.keys:
            write_json(self.path, {name: value for name, value in asdict(self).items() if name != "path"})
        else:
            self.path.unlink(missing_ok=True)


def _open_parts(run: Path) -> list[_Part]:
    """Return what a run has with the service; changes nothing.

    Raises:
        InputError: A file is damaged, or an earlier release left batches in flight.
    """
    _refuse_earlier(run / "batches.jsonl")
    parts = []
    for path in sorted((run / "batch").glob("*.json")):
        try:
            parts.append(_Part(path, **json.loads(path.read_bytes())))
        except (ValueError, TypeError):
            raise InputError(f"{path} is damaged; remove it to pay for its requests again") from None
    return parts


def _refuse_earlier(path: Path) -> None:
    """Refuse a run with batches of an earlier release, which kept its account of them in another form."""
    if not path.exists():
        return
    open_parts = {}
    try:
        for _, row in read_jsonl(path):
            if "part" in row:
                open_parts[row["part"]] = row["event"] in ("prepared", "submitted") or row.get("kept")
    except (InputError, KeyError):
        open_parts[""] = True  # a line that a crash cut off, say
    if any(open_parts.values()):
        raise InputError(
            f"{path} holds batches of an earlier release: fetch them with that release, or remove the file "
            "to pay for their requests again"
        )


def open_requests(run: Path) -> int:
    """Return how many requests of a run are with a batch service and never fetched; changes nothing.

    Raises:
        InputError: What the run remembers of its batches cannot be used.
    """
    return sum(len(part.keys) for part in _open_parts(run) if not part.fetched)


class OpenAIBatch:
    """An annotator that works through batches; its state lies in `spec.run`.

    The engine option `batch_size` is the most requests in one batch; `max_bytes` bounds its input file, and
    `retry_s` the pause before the first retry of a call.

    Raises:
        InputError: There is no run directory, or an engine option is unknown or of no use.
        CredentialsError: The variable that should hold the API key is not set.
    """

    drains = False
    """An interrupt has nothing to wait for: the service works on without us, and the next run fetches."""

    def __init__(self, spec: AnnotatorSpec, max_bytes: int = _MAX_BYTES, retry_s: float = 0.5) -> None:
        if spec.run is None:
            raise InputError("--engine batch needs a run directory (--out) to remember its batches in")
        options = dict(spec.engine_options)
        self._max_rows = min(take_count(options, "batch_size", _MAX_ROWS), _MAX_ROWS)
        if options:
            raise InputError(f"--engine batch knows no option {min(options)!r}; it has: batch_size")
        self._run, self._folder, self._max_bytes = spec.run, spec.run / "batch", max_bytes
        self._service = BatchService(spec, retry_s)
        self._dialect, self._form = spec.dialect, Form.of(spec)
        self.held = Held()
        self._asked: dict[str, bool] = {}  # the keys that open parts hold, and whether this run asks them
        self._parts: list[_Part] = []
        self._looks: dict[Path, Batch] = {}  # how the parts stood that were open when this run began
        self._refusal: AngleError | None = None  # what the service said of a batch that it refused
        self._new: _Part | None = None  # what `_file` is being written for
        self._file: IO[bytes]

    def holds(self, key: str) -> bool:
        """Whether a request is in a batch of an earlier run, and so is paid for already."""
        return key in self._asked

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Submit what no batch holds yet, and yield the outcomes of the batches that are done.

        Pulls all requests before the first reply; their keys differ from each other.

        Raises:
            StoppedError: Batches are being worked on; the same command fetches them later.
            AnnotatorError: The service refused a batch, or going on is pointless.
            InputError: The state in the run directory is damaged.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        async with self._service:
            try:
                await self._look()
                for request in requests:
                    if failure := await self._take(request):
                        yield failure
                await self._submit()
                for part in self._parts:
                    if (batch := await self._done(part)) is not None:
                        await self._download(part, batch)
                        for outcome in self._outcomes(part, batch):
                            yield outcome
            finally:
                self._close()
        if self._refusal is not None:
            raise self._refusal
        if any(map(self._is_asked, self._parts)):
            raise StoppedError(self._standing())

    async def _look(self) -> None:
        """Find out how the batches of earlier runs stand, and what happened to those not known to be sent."""
        self._parts, self._refusal, self._looks = _open_parts(self._run), None, {}
        unsure = any(part.batch is None for part in self._parts)
        found = await self._service.find() if unsure else {}
        for part in self._parts:
            if part.batch is None:
                part.batch = found.get(part.path.stem)
                if part.batch is None:
                    part.keys = []  # it never arrived
                else:
                    log.info("batch %s was created before the interruption", part.batch)
                part.save()
            if part.batch is not None and not part.fetched:
                batch = self._looks[part.path] = await self._service.look(part.batch, part.path)
                log.info("batch %s (%s): %s", part.batch, part.requests, batch.status)
                if batch.status == "failed":
                    self._refused(part, batch)
        self._parts = [part for part in self._parts if part.keys]
        self._asked = dict.fromkeys((key for part in self._parts for key in part.keys), False)
        prompt = sum(len(part.keys) * part.prompt_tokens for part in self._parts)
        completion = sum(len(part.keys) * part.completion_tokens for part in self._parts)
        self.held = Held(len(self._asked), round(prompt), round(completion))

    def _refused(self, part: _Part, batch: Batch) -> None:
        """Close a part that the service refused as a whole, and keep in mind why."""
        errors = (batch.errors.data if batch.errors else None) or []
        lines = [
            self._service.clean(f"line {e.line}: {e.message}" if e.line is not None else str(e.message))
            for e in errors
        ]
        about = f"batch {part.batch} ({part.requests})"
        if any(error.code == _TOKEN_LIMIT for error in errors):
            self._refusal = self._refusal or StoppedError(
                f"{about} has no room: {lines[0]}; run the same command again later; smaller batches fit the "
                "account's limit on enqueued tokens sooner (--engine-option batch_size=N)"
            )
        else:
            more = f" and {len(lines) - _SHOWN_ERRORS} more errors" if len(lines) > _SHOWN_ERRORS else ""
            said = "; ".join(lines[:_SHOWN_ERRORS]) or "no reason given"
            self._refusal = AnnotatorError(f"{self._service.address} refused {about}: {said}{more}")
        part.keys = []
        part.save()

    async def _take(self, request: ChatRequest) -> Failure | None:
        """Put a request into a batch unless one holds it; returns why it cannot be asked."""
        if request.key in self._asked:
            self._asked[request.key] = True
        elif self._refusal is None:
            line = request_line(request.key, request_body(request, self._dialect, self._form))
            if len(line) > self._max_bytes:
                said = f"{len(line)} bytes; a batch takes {self._max_bytes}"
                return Failure(request.key, "too_large", said)
            if self._new is not None and (
                len(self._new.keys) == self._max_rows or self._file.tell() + len(line) > self._max_bytes
            ):
                await self._submit()
            if self._new is None:
                self._new = _Part(self._folder / f"{secrets.token_hex(8)}.json", [])
                self._file = (self._folder / "input.jsonl").open("wb")
            self._file.write(line)
            self._new.keys.append(request.key)
            self._new.completion_tokens += request.sampling.max_tokens
            for message in request.messages:
                tokens = len(message["content"].encode()) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS
                self._new.prompt_tokens += tokens
        return None

    async def _submit(self) -> None:
        """Submit the input file that is being written, if there is one.

        Whatever cuts a submission short, the next run looks for its batch.
        """
        if self._new is None:
            return
        part, self._new = self._new, None
        part.prompt_tokens /= len(part.keys)
        part.completion_tokens /= len(part.keys)
        size = self._file.tell()
        self._file.close()
        part.save()
        log.info("submitting %s (%.1f MB)", part.requests, size / 1e6)
        input_file = await self._service.upload(Path(self._file.name))
        part.batch = await self._service.create(input_file, part.path.stem)
        part.save()
        self._parts.append(part)
        self._asked.update(dict.fromkeys(part.keys, True))

    async def _done(self, part: _Part) -> Batch | None:
        """Return the batch of a part, if it is done and this run asks some of it."""
        if part.batch is None or not self._is_asked(part):
            return None
        batch = self._looks.get(part.path)
        if part.fetched:
            batch = await self._service.look(part.batch, part.path)
        return batch if batch is not None and batch.status in _DONE else None

    async def _download(self, part: _Part, batch: Batch) -> None:
        """Bring the results of a batch into the run directory, in place of those of another."""
        for path, file in zip(self._results(), (batch.output_file_id, batch.error_file_id), strict=True):
            path.unlink(missing_ok=True)
            if file:
                await self._service.download(file, path, part.path)

    def _outcomes(self, part: _Part, batch: Batch) -> Iterator[Reply | Failure]:
        """Yield the outcome of every request of a downloaded part that this run asks, then close the part.

        What is not asked stays in the part, to be fetched when it is.

        Raises:
            AnnotatorError: A result file is damaged.
        """
        left, strange = dict.fromkeys(part.keys), 0
        try:
            for row in read_rows(self._results()):
                key = row["custom_id"]
                if key not in left:
                    strange += 1  # of no request, or a second one
                    continue
                del left[key]
                if self._asked[key]:
                    yield self._service.outcome(row)
        except InputError as error:
            raise AnnotatorError(
                f"the results of batch {part.batch} came damaged ({error}); run the same command again to "
                "fetch them once more"
            ) from None
        yield from (_without_row(key, batch.status) for key in left if self._asked[key])
        if strange and not part.fetched:
            said = "batch %s: %d result rows ignored that answer none of its requests"
            log.warning(said, part.batch, strange)
        part.keys = [key for key in part.keys if not self._asked[key]]
        part.fetched = True
        part.save()

    def _results(self) -> list[Path]:
        return [self._folder / "output.jsonl", self._folder / "error.jsonl"]

    def _is_asked(self, part: _Part) -> bool:
        return any(self._asked[key] for key in part.keys)

    def _standing(self) -> str:
        """Return one line on what is open."""
        parts = [part for part in self._parts if part.keys and not part.fetched]
        noun = "batch is" if len(parts) == 1 else "batches are"
        rows = counted(sum(len(part.keys) for part in parts), "request")
        return f"{len(parts)} {noun} being worked on ({rows}); run the same command again to go on"

    def _close(self) -> None:
        """Leave off the file that is being written, and remove all but the parts."""
        if self._new is not None:
            self._new = None
            self._file.close()
        for path in self._folder.iterdir():
            if path.suffix != ".json":
                path.unlink()


def _without_row(key: str, status: str) -> Failure:
    if status == "completed":
        return Failure(key, "missing", "the batch is completed and holds no result for this request")
    return Failure(key, f"batch_{status}", f"the batch {status} before this request was answered")
