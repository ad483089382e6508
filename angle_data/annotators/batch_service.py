"""The Batch API: its calls (upload, create, find, look, download) and the rows of its files.

All retries are here, the client's own are off: no connection, timeout, 408, 409, 5xx and broken answers six
times, a 429 twenty times; no call waits for more than about ten minutes in all. A batch is never created
twice: when the answer to a creation was lost, the service is searched for the batch, and the run stops if it
does not show it. What is left in the end is one of the toolkit's errors. Reference:
https://developers.openai.com/api/reference/resources/batches, and for the files
https://developers.openai.com/api/docs/guides/batch.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from angle_data.annotators.answers import error_words, failure_of, reply_of, service_error, wrong_with_text
from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import (
    CHECK_ADDRESS,
    LONGEST_WAIT_S,
    asks_to_wait,
    credentials_error,
    hidden,
    one_line,
    out_of_money,
    page_title,
    secrets_of,
    service_headers,
    url_at,
    without_key,
)
from angle_data.errors import AngleError, AnnotatorError, StoppedError
from angle_data.http import (
    LONG_WAIT_S,
    BadAnswer,
    CallError,
    NoAnswer,
    NoReply,
    ServiceError,
    is_retryable,
    retry_pause,
    said_of_wait,
)

if TYPE_CHECKING:
    import httpx
    from openai.types import Batch

log = logging.getLogger("angle.annotators")

_T = TypeVar("_T")

_ENDPOINT: Final = "/v1/chat/completions"
_ATTEMPTS = 6
_ATTEMPTS_UNREACHED = 3
_ATTEMPTS_429 = 20
_TIMEOUT_S, _CONNECT_S = 120.0, 10.0
_PAGE = 100
_RUN, _PART = "angle_run", "angle_part"
_NOT_BATCH = "the answer is none of the Batch API; does --base-url end in /v1?"


class BatchService:
    """The calls; `client` is an asynchronous context manager for them, `address` the service in messages.

    Every method raises `CredentialsError` when the key is rejected, `AnnotatorError` when asking again would
    not help, and `StoppedError` when the service is too busy now. A first retry comes within `retry_s`.
    """

    def __init__(self, spec: AnnotatorSpec, retry_s: float) -> None:
        import openai

        self.address = spec.addresses[0]
        self._spec, self._retry_s = spec, retry_s
        self._secret, self._secret_of_replies = secrets_of(spec)
        self._reached = False
        headers = service_headers(spec)

        async def with_headers(request: httpx.Request) -> None:
            for name in ("Authorization", "OpenAI-Organization", "OpenAI-Project"):  # the client's own
                request.headers.pop(name, None)
            request.headers.update(headers)

        self.client = openai.AsyncOpenAI(
            api_key="in the headers",
            base_url=url_at(self.address, "").partition("?")[0],
            default_query=dict(parse_qsl(urlsplit(self.address).query)),
            timeout=openai.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
            max_retries=0,
            # Not to another host: it would get the key's account, or all texts.
            http_client=openai.DefaultAioHttpClient(
                follow_redirects=False, event_hooks={"request": [with_headers]}
            ),
        )

    async def upload(self, path: Path) -> str:
        """Upload an input file, read as it is sent, and return the service's id."""

        async def attempt() -> str:
            with path.open("rb") as stream:
                file = await self.client.files.create(
                    file=(path.name, stream, "application/jsonl"), purpose="batch"
                )
            return str(_field(file, "id"))

        return await self._call(attempt)

    async def create(self, input_file: str, run: str, part: str) -> str:
        """Create the batch of an uploaded file, marked with its run and part, and return the service's id.

        Where an answer was lost and the service does not show the batch, it may do so later: a
        `StoppedError`.
        """
        unsure = False

        async def attempt() -> str:
            nonlocal unsure
            if unsure:
                if found := (await self._search(run)).get(part):
                    return found
                raise StoppedError(
                    f"{self.address} did not say whether it took the batch, and does not show it yet; run "
                    "the same command again in a few minutes: it looks for the batch before it pays for "
                    "another"
                )
            try:
                batch = await self.client.batches.create(
                    completion_window="24h",
                    endpoint=_ENDPOINT,
                    input_file_id=input_file,
                    metadata={_RUN: run, _PART: part},
                )
                return str(_field(batch, "id"))
            except Exception as error:
                refused = getattr(error, "status_code", None) == 429
                unsure = not refused and type(error.__cause__).__name__ != "ConnectError"
                raise

        return await self._call(attempt)

    async def find(self, run: str) -> dict[str, str]:
        """Return the batches of a run that the service knows, by part."""
        return await self._call(lambda: self._search(run))

    async def look(self, batch: str) -> Batch:
        """Return how a batch stands."""

        async def attempt() -> Batch:
            found = await self.client.batches.retrieve(batch)
            _field(found, "status")
            return found

        return await self._call(
            attempt,
            f"{self.address} has no batch {batch}: use the API key of the project that submitted it, or "
            "remove its part from batches.jsonl to pay for its requests again",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Stream a result file to `path`; False when the service no longer has it.

        It has it no longer when it knows neither the file nor its content. A download that breaks off, or is
        shorter than the service says the file is, is tried again.
        """
        import openai

        async def attempt() -> bool:
            size = None
            try:
                with suppress(openai.NotFoundError):
                    size = getattr(await self.client.files.retrieve(file), "bytes", None)
                async with self.client.files.with_streaming_response.content(file) as response:
                    await response.stream_to_file(path)
            except openai.NotFoundError:
                if size is not None:
                    raise BadAnswer(f"the service knows {file} and does not find its content") from None
                return False
            except (openai.OpenAIError, OSError):  # a full disk, say; the transport has classes of its own
                raise
            except Exception as error:
                raise BadAnswer(f"the download of {file} broke off ({type(error).__name__})") from error
            if isinstance(size, int) and path.stat().st_size < size:
                raise BadAnswer(f"{path.stat().st_size} of {size} bytes of {file} arrived")
            return True

        return await self._call(attempt)

    def clean(self, text: object) -> str:
        """Return `text` from the service on one short line without the key; of a web page its title."""
        title = page_title(str(text))
        return one_line(hidden(str(text) if title is None else title or "a web page", self._secret))

    def outcome(self, key: str, row: dict[str, Any]) -> Reply | Failure:
        """Return what a result row says about its request, without the API key.

        A failure is an HTTP status, an error of the batch (`batch_expired`), or an answer without a reply.
        """
        try:
            row = without_key(row, self._secret_of_replies)
        except RecursionError:
            return Failure(key, "bad_answer", "the result is JSON nested too deep")
        response, error = row.get("response"), row.get("error")
        if not isinstance(response, dict):
            said, codes = error_words(error)
            code = error.get("code") if isinstance(error, dict) else None
            return Failure(
                key, str(code or "no_response"), self.clean(said or ", ".join(codes) or "no message")
            )
        body, status = response.get("body"), str(response.get("status_code"))
        if isinstance(body, str):  # some services write it as text
            with suppress(ValueError, RecursionError):
                body = without_key(json.loads(body), self._secret_of_replies)
        if status != "200":
            inner = body.get("error", body) if isinstance(body, dict) else body
            said, codes = error_words(inner)
            if not said:  # vLLM's run-batch has no body then
                said, codes = error_words(error)
            code = int(status) if status.isascii() and status.isdecimal() else 0
            failed = service_error(code, said, codes, {})
            kind = failed.kind if isinstance(failed, NoReply) else f"http_{status}"
            return failure_of(key, failed, self.clean(said or "no message"), wrong_with_text(failed) or kind)
        try:
            return reply_of(key, body, 0.0)
        except CallError as bad:
            return failure_of(key, bad, self.clean(bad))

    async def _search(self, run: str) -> dict[str, str]:
        """Go through all batches of the account: their order is not documented."""
        found: dict[str, str] = {}
        try:
            async for batch in self.client.batches.list(limit=_PAGE):
                marks = batch.metadata or {}
                if marks.get(_RUN) == run and _PART in marks:
                    found[marks[_PART]] = batch.id
        except AttributeError:  # the client takes a proxy's page of HTML for a list
            raise BadAnswer(_NOT_BATCH) from None
        return found

    async def _call(self, operation: Callable[[], Awaitable[_T]], absent: str = "") -> _T:
        """Run `operation` with retries; `absent` says what a 404 means, if not that it has no batches."""
        import openai

        used: Counter[bool] = Counter()
        waited = 0.0
        for number in itertools.count(1):
            try:
                result = await operation()
            except (openai.OpenAIError, BadAnswer, json.JSONDecodeError) as caught:
                error = self._plain(caught)
            else:
                self._reached = True
                return result
            self._reached = self._reached or error.status_code is not None
            used[error.status_code == 429] += 1
            attempts = _ATTEMPTS if self._reached else _ATTEMPTS_UNREACHED
            tired = used[False] >= attempts or used[True] >= _ATTEMPTS_429
            tired = tired or waited > LONGEST_WAIT_S
            if not is_retryable(error) or tired or asks_to_wait(self.address, error):
                absent = absent or f"{self.address} has no Batch API (use --engine server)"
                raise self._ending(error, absent) from None
            pause = retry_pause(error, number, self._retry_s)
            waited += pause
            if pause >= LONG_WAIT_S:
                log.info(said_of_wait(self.address, one_line(error), pause))
            await asyncio.sleep(pause)
        raise AssertionError  # the loop above ends by returning

    def _plain(self, error: Exception) -> CallError:
        """Return an exception of the client as one of ours, in the words of the service without the key."""
        import openai

        if isinstance(error, openai.APIStatusError):
            said = error.body.get("message") if isinstance(error.body, dict) else None
            if 300 <= error.status_code < 400:
                where = error.response.headers.get("location", "another address").partition("?")[0]
                said = f"it redirects to {where}; give that address with --base-url"
            codes = frozenset(str(getattr(error, name, None)) for name in ("code", "type"))
            return ServiceError(error.status_code, self.clean(said or error), codes, error.response.headers)
        if isinstance(error, openai.APIConnectionError):
            return NoAnswer(self.clean(error.__cause__ or error), connected=True)
        broken = isinstance(error, json.JSONDecodeError)
        return BadAnswer(f"the answer is broken JSON ({error})" if broken else self.clean(error))

    def _ending(self, error: CallError, absent: str) -> AngleError:
        """Return the error that ends the run for a call that failed for good."""
        status, message = error.status_code, str(error)
        if said := out_of_money(self.address, error) or asks_to_wait(self.address, error):
            return StoppedError(self.clean(said))
        if status in (401, 403):
            return credentials_error(self._spec, self.address, status, message)
        if status == 404:
            return AnnotatorError(f"{absent}: {message}")
        if status == 429 and is_retryable(error):
            return StoppedError(
                f"{self.address} is too busy to take more now ({message}); everything submitted is kept: run "
                "the same command again later"
            )
        if isinstance(error, NoAnswer) and not self._reached:
            return AnnotatorError(f"cannot reach {self.address} ({message}); {CHECK_ADDRESS}")
        again = "; run the same command again to go on" if is_retryable(error) else ""
        return AnnotatorError(f"{self.address}: {message}{again}")


def _field(answer: object, name: str) -> Any:
    """Return a field that every answer of this kind has; a proxy's page of HTML has none."""
    value = getattr(answer, name, None)
    if value is None:
        raise BadAnswer(_NOT_BATCH)
    return value


def request_line(key: str, body: dict[str, Any]) -> bytes:
    """Return one row of an input file, with its line end; `body` is that of a chat completion."""
    row = {"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
