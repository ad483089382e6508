"""The calls of the Batch API that a run needs: upload, create, find, look, download.

All retries are here, the client's own are off: no connection, timeout, 408, 409, 5xx and broken answers six
times, a 429 twenty times. A batch is never created twice: when the answer to a creation was lost, the service
is searched for the batch before it is asked again. What is left in the end is one of the toolkit's errors.
Reference: https://developers.openai.com/api/reference/resources/batches. Knows no run and no rows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.batch_files import ENDPOINT
from angle_data.annotators.chat import api_key, credentials_message
from angle_data.annotators.models import DEFAULT_URL
from angle_data.errors import AngleError, AnnotatorError, CredentialsError, StoppedError
from angle_data.http import BadAnswer, is_retryable, lacks_connection, status_of, wait_as_told

if TYPE_CHECKING:
    from openai.types import Batch
    from tenacity import RetryCallState

log = logging.getLogger("angle.annotators")

_T = TypeVar("_T")

_ATTEMPTS = 6
_ATTEMPTS_UNREACHED = 3
_ATTEMPTS_429 = 20
_CONNECT_S = 10.0
_PAGE = 100
_MESSAGE_CHARS = 300
_RUN, _PART = "angle_run", "angle_part"


class BatchService:
    """A service with the Batch API of OpenAI; use as an asynchronous context manager.

    Every method raises `CredentialsError` when the key is rejected, `AnnotatorError` when asking again would
    not help, and `StoppedError` when the service is too busy to take more now.
    """

    def __init__(self, spec: AnnotatorSpec) -> None:
        self._spec = spec
        self._key = api_key(spec)
        self._reached = False

    async def __aenter__(self) -> Self:
        import openai

        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._spec.base_urls[0] if self._spec.base_urls else DEFAULT_URL,
            timeout=openai.Timeout(self._spec.timeout_s, connect=_CONNECT_S),
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def upload(self, path: Path) -> str:
        """Upload an input file, read as it is sent, and return the service's id."""

        async def attempt() -> str:
            with path.open("rb") as stream:
                file = await self._client.files.create(
                    file=(path.name, stream, "application/jsonl"), purpose="batch"
                )
            return str(_field(file, "id"))

        return await self._call(attempt, f"{self.address} takes no batch files (use --engine server)")

    async def create(self, input_file: str, run: str, part: str) -> str:
        """Create the batch of an uploaded file, marked with its run and part, and return the service's id."""
        unsure = False

        async def attempt() -> str:
            nonlocal unsure
            if unsure and (found := (await self._search(run)).get(part)):
                return found[0]
            try:
                batch = await self._client.batches.create(
                    completion_window="24h",
                    endpoint=ENDPOINT,
                    input_file_id=input_file,
                    metadata={_RUN: run, _PART: part},
                )
                return str(_field(batch, "id"))
            except Exception as error:
                unsure = unsure or status_of(error) != 429
                raise

        return await self._call(attempt, f"{self.address} has no Batch API (use --engine server)")

    async def find(self, run: str) -> dict[str, tuple[str, str]]:
        """Return the batches of a run that the service knows: part -> (batch, input file).

        Goes through all batches of the account: their order is not documented.
        """
        return await self._call(lambda: self._search(run), f"{self.address} has no Batch API")

    async def look(self, batch: str) -> Batch:
        """Return how a batch stands."""

        async def attempt() -> Batch:
            found = await self._client.batches.retrieve(batch)
            _field(found, "status")
            return found

        return await self._call(
            attempt,
            f"{self.address} knows no batch {batch}: use the API key of the project that submitted it, or "
            "remove its part from batches.jsonl to pay for its requests again",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Stream a result file to `path`; False when the service no longer has it.

        A download that breaks off, or is shorter than the service says the file is, is tried again.
        """
        import openai

        async def attempt() -> bool:
            try:
                size = getattr(await self._client.files.retrieve(file), "bytes", None)
                await self._stream_to(file, path)
            except openai.NotFoundError:
                return False
            if isinstance(size, int) and path.stat().st_size < size:
                raise BadAnswer(f"{path.stat().st_size} of {size} bytes of {file} arrived")
            return True

        return await self._call(attempt, "")

    @property
    def address(self) -> str:
        """The service's name for messages."""
        return self._spec.base_urls[0] if self._spec.base_urls else "the OpenAI API"

    async def _stream_to(self, file: str, path: Path) -> None:
        async with self._client.files.with_streaming_response.content(file) as response:
            try:
                with path.open("wb") as stream:
                    async for chunk in response.iter_bytes():
                        stream.write(chunk)
            except OSError:
                raise  # a full disk, say; the transport has classes of its own
            except Exception as error:
                raise BadAnswer(f"the download of {file} broke off ({type(error).__name__})") from error

    async def _search(self, run: str) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        after: dict[str, Any] = {}
        while True:
            page = await self._client.batches.list(limit=_PAGE, **after)
            batches = page.data or []
            for batch in batches:
                marks = batch.metadata or {}
                if marks.get(_RUN) == run and _PART in marks:
                    found[marks[_PART]] = (batch.id, batch.input_file_id)
            if not batches or not page.has_next_page():
                return found
            after = {"after": batches[-1].id}

    async def _call(self, operation: Callable[[], Awaitable[_T]], absent: str) -> _T:
        """Run `operation` with retries; `absent` opens the message when the service answers 404."""
        import openai
        from tenacity import AsyncRetrying, retry_if_exception

        async def attempt() -> _T:
            try:
                result = await operation()
            except openai.APIStatusError:
                self._reached = True
                raise
            except json.JSONDecodeError as error:
                raise BadAnswer(f"the answer is broken JSON ({error})") from error
            self._reached = True
            return result

        retrying = AsyncRetrying(
            retry=retry_if_exception(is_retryable), wait=wait_as_told(), stop=self._patience(), reraise=True
        )
        try:
            return await retrying(attempt)
        except (openai.OpenAIError, BadAnswer) as error:
            raise self._ending(error, absent) from None

    def _patience(self) -> Callable[[RetryCallState], bool]:
        used = {True: 0, False: 0}

        def exhausted(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            if error is not None:
                used[status_of(error) == 429] += 1
            limit = _ATTEMPTS if self._reached else _ATTEMPTS_UNREACHED
            return used[False] >= limit or used[True] >= _ATTEMPTS_429

        return exhausted

    def _ending(self, error: Exception, absent: str) -> AngleError:
        """Return the error that ends the run for a call that failed for good."""
        status, message = status_of(error), self._message(error)
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
        if lacks_connection(error) and not self._reached:
            return AnnotatorError(
                f"cannot reach {self.address} ({message}); start the server or correct --base-url"
            )
        if is_retryable(error):
            return AnnotatorError(f"{self.address}: {message}; run the same command again to go on")
        return AnnotatorError(f"{self.address} rejects the batch: {message}")

    def _message(self, error: Exception) -> str:
        """Return what the service said, on one line, without the key and not endlessly."""
        body: Any = getattr(error, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        cause = error.__cause__ if status_of(error) is None and not isinstance(error, BadAnswer) else None
        return self.clean(str(said or cause or error))

    def clean(self, text: str) -> str:
        """Return `text` from the service on one line, without the key and not endlessly."""
        line = " ".join(text.split())
        if self._spec.api_key_env is not None:
            line = line.replace(self._key, "[key]")
        return line[:_MESSAGE_CHARS]


def _field(answer: object, name: str) -> Any:
    """Return a field that every answer of this kind has; a proxy's page of HTML has none."""
    value = getattr(answer, name, None)
    if value is None:
        raise BadAnswer("the answer is none of the Batch API; does --base-url end in /v1?")
    return value
