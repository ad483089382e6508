"""The Batch API: its calls (upload, create, find, look, download) and the rows of its files.

All retries are here: no connection, timeout, 408, 409, 5xx and broken answers six times, a 429 twenty times.
A batch is never created twice: when the answer to a creation was lost, the service is searched for the batch
before it is asked again. What is left in the end is one of the toolkit's errors.
Reference: https://developers.openai.com/api/reference/resources/batches, and for the files
https://developers.openai.com/api/docs/guides/batch.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.models import DEFAULT_URL
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import Transport, credentials_message, one_line, read_reply
from angle_data.errors import AngleError, AnnotatorError, CredentialsError, InputError, StoppedError
from angle_data.http import BadAnswer, CallError, NoReply, is_retryable, retry_pause
from angle_data.jsonl import read_jsonl

_T = TypeVar("_T")

_ENDPOINT = "/v1/chat/completions"
_ATTEMPTS, _ATTEMPTS_UNREACHED, _ATTEMPTS_429 = 6, 3, 20
_PAGE = 100
_RUN, _PART = "angle_run", "angle_part"


class BatchService:
    """The calls of a run, inside of `async with service.transport`; `address` names it in messages.

    Every method raises `CredentialsError` when the key is rejected, `AnnotatorError` when asking again would
    not help, and `StoppedError` when the service is too busy to take more now. A first retry comes after up
    to `retry_s` seconds.
    """

    def __init__(self, spec: AnnotatorSpec, retry_s: float = 0.5) -> None:
        self.address = spec.base_urls[0] if spec.base_urls else "the OpenAI API"
        self._url = (spec.base_urls[0] if spec.base_urls else DEFAULT_URL).rstrip("/")
        self._spec, self._retry_s = spec, retry_s
        self.transport = Transport(spec, whole=False)
        self._reached = False

    async def upload(self, path: Path) -> str:
        """Upload an input file, read as it is sent, and return the service's id."""
        from aiohttp import FormData

        async def attempt() -> str:
            form = FormData({"purpose": "batch"})
            with path.open("rb") as stream:
                form.add_field("file", stream, filename=path.name, content_type="application/jsonl")
                answer = await self.transport.request("POST", f"{self._url}/files", form)
            return str(_field(answer, "id"))

        return await self._call(attempt, f"{self.address} takes no batch files (use --engine server)")

    async def create(self, input_file: str, run: str, part: str) -> str:
        """Create the batch of an uploaded file, marked with its run and part, and return the service's id."""
        unsure = False
        body = {
            "completion_window": "24h",
            "endpoint": _ENDPOINT,
            "input_file_id": input_file,
            "metadata": {_RUN: run, _PART: part},
        }

        async def attempt() -> str:
            nonlocal unsure
            if unsure and (found := (await self._search(run)).get(part)):
                return found
            try:
                return str(_field(await self.transport.post(f"{self._url}/batches", body), "id"))
            except CallError as error:
                unsure = unsure or error.status_code != 429
                raise

        return await self._call(attempt, f"{self.address} has no Batch API (use --engine server)")

    async def find(self, run: str) -> dict[str, str]:
        """Return the batches of a run that the service knows, by part.

        Goes through all batches of the account: their order is not documented.
        """
        return await self._call(lambda: self._search(run), f"{self.address} has no Batch API")

    async def look(self, batch: str) -> dict[str, Any]:
        """Return how a batch stands: the batch object of the reference, with at least its `status`."""
        return await self._call(
            lambda: self._get(f"/batches/{batch}", "status"),
            f"{self.address} knows no batch {batch}: use the API key of the project that submitted it, or "
            "remove its part from batches.jsonl to pay for its requests again",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Stream a result file to `path`; False when the service no longer has it.

        It has it no longer when it knows neither the file nor its content. A download that breaks off, or is
        shorter than the service says the file is, is tried again.
        """

        async def attempt() -> bool:
            size = None
            try:
                size = (await self._get(f"/files/{file}", "id")).get("bytes")
            except CallError as error:
                if error.status_code != 404:
                    raise
            try:
                with path.open("wb") as stream:
                    await self.transport.request("GET", f"{self._url}/files/{file}/content", into=stream)
            except CallError as error:
                if error.status_code != 404:
                    raise
                if size is None:
                    return False
                raise BadAnswer(f"the service knows {file} and does not find its content") from None
            if isinstance(size, int) and path.stat().st_size < size:
                raise BadAnswer(f"{path.stat().st_size} of {size} bytes of {file} arrived")
            return True

        return await self._call(attempt, "")

    def clean(self, text: object) -> str:
        """Return `text` from the service on one short line without the key."""
        return one_line(self.transport.hide(str(text)))

    def outcome(self, row: dict[str, Any]) -> Reply | Failure:
        """Return what a result row says about its request, without the key; see `row_outcome`."""
        outcome = row_outcome(row)
        if isinstance(outcome, Failure):
            return replace(outcome, message=self.clean(outcome.message))
        return replace(outcome, text=self.transport.hide(outcome.text, reply=True))

    async def _get(self, path: str, wanted: str) -> dict[str, Any]:
        """Return an object of the API, which has the field `wanted`."""
        answer = await self.transport.request("GET", self._url + path)
        _field(answer, wanted)
        return dict(answer)

    async def _search(self, run: str) -> dict[str, str]:
        found: dict[str, str] = {}
        after = ""
        while True:
            page = await self._get(f"/batches?limit={_PAGE}{after}", "data")
            batches = page["data"]
            for batch in batches:
                marks = batch.get("metadata") or {}
                if marks.get(_RUN) == run and _PART in marks:
                    found[marks[_PART]] = batch["id"]
            if not batches or not page.get("has_more", True):
                return found
            after = f"&after={batches[-1]['id']}"

    async def _call(self, operation: Callable[[], Awaitable[_T]], absent: str) -> _T:
        """Run `operation` with retries; `absent` opens the message when the service answers 404."""
        used: Counter[bool] = Counter()
        for number in itertools.count(1):
            try:
                result = await operation()
            except CallError as error:
                self._reached = self._reached or error.status_code is not None
                used[error.status_code == 429] += 1
                attempts = _ATTEMPTS if self._reached else _ATTEMPTS_UNREACHED
                if not is_retryable(error) or used[False] >= attempts or used[True] >= _ATTEMPTS_429:
                    raise self._ending(error, absent) from None
                pause = retry_pause(error, number, self._retry_s)
            else:
                self._reached = True
                return result
            await asyncio.sleep(pause)
        raise AssertionError  # the loop above ends by returning

    def _ending(self, error: CallError, absent: str) -> AngleError:
        """Return the error that ends the run for a call that failed for good."""
        status, message = error.status_code, one_line(error)
        if status in (401, 403):
            return CredentialsError(credentials_message(self._spec, self.address, status, message))
        if status == 404:
            return AnnotatorError(f"{absent}: {message}")
        if status == 429 and not is_retryable(error):
            return AnnotatorError(f"{self.address}: the account's limits do not allow it: {message}")
        if status == 429:
            return StoppedError(
                f"{self.address} is too busy to take more now ({message}); everything submitted is kept: run "
                "the same command again later"
            )
        if not (error.connected or self._reached):
            return AnnotatorError(
                f"cannot reach {self.address} ({message}); start the server or correct --base-url"
            )
        if is_retryable(error):
            return AnnotatorError(f"{self.address}: {message}; run the same command again to go on")
        return AnnotatorError(f"{self.address} rejects the batch: {message}")


def _field(answer: Any, name: str) -> Any:
    """Return a field that every answer of this kind has; another service's has none."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if value is None:
        raise BadAnswer("the answer is none of the Batch API; does --base-url end in /v1?")
    return value


def request_line(key: str, body: dict[str, Any]) -> bytes:
    """Return one row of an input file, with its line end; `body` is that of a chat completion."""
    row = {"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_rows(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of those result files that are there, one in memory at a time.

    Raises:
        InputError: A line is no JSON object with a `custom_id`; the file was cut short or is something else.
    """
    for path in filter(Path.exists, paths):
        for number, row in read_jsonl(path):
            if not isinstance(row.get("custom_id"), str):
                raise InputError(f"{path}:{number}: no custom_id")
            yield row


def row_outcome(row: dict[str, Any]) -> Reply | Failure:
    """Return what a result row says about its request.

    A row carries the response to the request (of any HTTP status), or an error of the batch itself such as
    `batch_expired`.
    """
    key, response, error = row["custom_id"], row.get("response"), row.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        return Failure(key, str(code or "no_response"), _said(error))
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return Failure(key, f"http_{status}", _said(body.get("error") if isinstance(body, dict) else body))
    try:
        return read_reply(key, body, 0.0)
    except NoReply as error:
        return Failure(key, "no_reply", str(error), error.usage)
    except BadAnswer as error:
        return Failure(key, "bad_answer", str(error))


def _said(error: Any) -> str:
    return str((error.get("message") if isinstance(error, dict) else error) or "no message")
