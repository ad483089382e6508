"""Asks any OpenAI-compatible chat endpoint: OpenAI itself, `vllm serve`, the GLM cloud.

A pool of workers pulls from one iterator, so memory stays flat and no reply waits for another. The retries
here are the only ones, the client's own are off. What a failed request means for the run:

- no connection, timeout, 408, 409, 5xx, no chat completion: tried six times, then a `Failure`
- 429: tried again until it passes, since the service asks for patience, not for less work
- 400 and other refusals of the request itself: a `Failure`; five equal ones in a row end the run
- 401, 403: end the run with `CredentialsError`; 404, or 429 for lack of quota: with `AnnotatorError`
- no connection at all before the first answer: ends the run after three attempts
- twenty failed requests in a row end the run
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Failure, Reply
from angle_data.annotators.retry import (
    BadAnswer,
    is_retryable,
    lacks_connection,
    status_of,
    wait_as_told,
)
from angle_data.errors import AnnotatorError, CredentialsError

if TYPE_CHECKING:
    import openai
    from tenacity import RetryCallState

__all__ = ["OpenAIServer"]

log = logging.getLogger("angle.annotators")

_ATTEMPTS = 6
_ATTEMPTS_UNREACHED = 3
_EQUAL_REFUSALS = 5
_FAILURES_IN_A_ROW = 20
_CONNECT_S = 10.0
_LONG_WAIT_S = 20.0
_MESSAGE_CHARS = 300


class _Ending(Exception):
    """The run ends while a request waits for its next attempt; it stays unanswered."""


class OpenAIServer:
    """An annotator behind an OpenAI-compatible server, with `spec.concurrency` requests in flight."""

    def __init__(self, spec: AnnotatorSpec) -> None:
        self._spec = spec
        self._key = _api_key(spec)
        self._reached = False
        self._failed_in_a_row = 0
        self._refusal, self._refusals = "", 0

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer the requests as replies come in; see the module's docstring for what ends the stream.

        Raises:
            AnnotatorError: Going on is pointless. Replies in flight are awaited and yielded first.
            CredentialsError: The server rejects the API key.
        """
        self._stop = asyncio.Event()
        outcomes: asyncio.Queue[Reply | Failure | Exception | None] = asyncio.Queue(self._spec.concurrency)
        source = iter(requests)
        async with self._client() as client:
            workers = [
                asyncio.create_task(self._work(client, source, outcomes))
                for _ in range(self._spec.concurrency)
            ]
            try:
                working, fatal = len(workers), None
                while working:
                    outcome = await outcomes.get()
                    if isinstance(outcome, Reply | Failure):
                        yield outcome
                        continue
                    working -= 1
                    fatal = fatal or outcome
                if fatal is not None:
                    raise fatal
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    def _client(self) -> openai.AsyncOpenAI:
        import openai

        return openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._spec.base_url,
            timeout=openai.Timeout(self._spec.timeout_s, connect=_CONNECT_S),
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(),
        )

    async def _work(
        self,
        client: openai.AsyncOpenAI,
        source: Iterator[ChatRequest],
        outcomes: asyncio.Queue[Reply | Failure | Exception | None],
    ) -> None:
        """Answer requests until there are none; what is put last is None, or the error that ends the run."""
        try:
            for request in source:
                await outcomes.put(await self._ask(client, request))
                if self._stop.is_set():
                    break
            await outcomes.put(None)
        except _Ending:
            await outcomes.put(None)
        except Exception as error:  # noqa: BLE001 - also a bad line of the texts: handed on, not judged
            self._stop.set()
            await outcomes.put(error)

    async def _ask(self, client: openai.AsyncOpenAI, request: ChatRequest) -> Reply | Failure:
        import openai
        from tenacity import AsyncRetrying, retry_if_exception

        retrying = AsyncRetrying(
            retry=retry_if_exception(is_retryable),
            wait=wait_as_told(),
            stop=self._patience(),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            reply: Reply = await retrying(self._send, client, request)
        except (openai.OpenAIError, BadAnswer) as error:
            return self._failure(request, error)
        self._failed_in_a_row = self._refusals = 0
        return reply

    async def _send(self, client: openai.AsyncOpenAI, request: ChatRequest) -> Reply:
        import openai

        started = time.monotonic()
        try:
            # `chat.completions.create` would spend a third more CPU on typed parameters and results, of
            # which four fields are needed here; the plain call still maps connections and errors.
            answer = await client.post("/chat/completions", cast_to=object, body=_body(request))
        except openai.APIStatusError:
            self._reached = True
            raise
        except json.JSONDecodeError as error:
            raise BadAnswer(f"the answer is broken JSON ({error})") from error
        self._reached = True
        return _reply(request.key, answer, time.monotonic() - started)

    def _patience(self) -> Callable[[RetryCallState], bool]:
        """Return a tenacity stop for one request; a 429 does not use up an attempt."""
        used = 0

        def exhausted(state: RetryCallState) -> bool:
            nonlocal used
            error = state.outcome.exception() if state.outcome else None
            used += error is not None and status_of(error) != 429
            limit = _ATTEMPTS if self._reached else _ATTEMPTS_UNREACHED
            return self._stop.is_set() or used >= limit

        return exhausted

    async def _sleep(self, seconds: float) -> None:
        """Wait before an attempt; raises `_Ending` when the run ends meanwhile."""
        if seconds >= _LONG_WAIT_S:
            log.info("%s asks for patience: waiting %.0f s", self._address(), seconds)
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise _Ending

    def _failure(self, request: ChatRequest, error: Exception) -> Failure:
        """Return the failure of one request, or raise what ends the run."""
        status, message = status_of(error), self._message(error)
        if status in (401, 403):
            raise CredentialsError(self._credentials_message(status))
        if status == 404:
            raise AnnotatorError(
                f"{self._address()} knows no model {request.model!r}, or its address lacks /v1: {message}"
            )
        if status == 429 and not is_retryable(error):
            raise AnnotatorError(f"{self._address()}: the account has no quota left: {message}")
        if lacks_connection(error) and not self._reached:
            raise AnnotatorError(
                f"cannot reach {self._address()} ({message}); start the server or correct --base-url"
            )
        if status is not None and status < 500 and not is_retryable(error):
            self._refusals = self._refusals + 1 if message == self._refusal else 1
            self._refusal = message
            if self._refusals >= _EQUAL_REFUSALS:
                raise AnnotatorError(f"{self._address()} rejects every request: {message}")
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _FAILURES_IN_A_ROW:
            raise AnnotatorError(
                f"{self._address()}: {_FAILURES_IN_A_ROW} requests in a row failed, the last one with: "
                f"{message}; run the same command again to go on"
            )
        return Failure(request.key, _kind(error), message)

    def _address(self) -> str:
        return self._spec.base_url or "the OpenAI API"

    def _credentials_message(self, status: int) -> str:
        name = self._spec.api_key_env
        if name is None:
            return f"{self._address()} wants an API key (HTTP {status}); name its variable with --api-key-env"
        return f"{self._address()} rejects the API key in {name} (HTTP {status}); set {name} to a valid key"

    def _message(self, error: Exception) -> str:
        """Return what the server said, on one line, without the key and not endlessly."""
        body: Any = getattr(error, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        cause = error.__cause__ if status_of(error) is None else None
        text = " ".join(str(said or cause or error).split())
        if self._spec.api_key_env is not None:
            text = text.replace(self._key, "[key]")
        return text[:_MESSAGE_CHARS]


def _api_key(spec: AnnotatorSpec) -> str:
    if spec.api_key_env is None:
        return "EMPTY"  # what `vllm serve` without --api-key accepts; the client wants some key
    key = os.environ.get(spec.api_key_env, "").strip()
    if not key:
        raise CredentialsError(
            f"no API key: set the environment variable {spec.api_key_env} or name another (--api-key-env)"
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialsError(
            f"the value of {spec.api_key_env} is no API key: it holds characters no key has"
        )
    return key


def _reply(key: str, answer: Any, seconds: float) -> Reply:
    """Read a chat completion, as decoded from JSON; see the API reference, "The chat completion object"."""
    if not isinstance(answer, dict):
        raise BadAnswer("the answer is no chat completion; does --base-url end in /v1?")
    try:
        choice = answer["choices"][0]
        text = choice["message"].get("content") or choice["message"].get("refusal") or ""
        finish_reason, usage = choice.get("finish_reason"), answer.get("usage") or {}
        tokens = {name: count for name, count in usage.items() if isinstance(count, int)}
    except (TypeError, AttributeError, LookupError) as error:
        raise BadAnswer(f"the answer is no chat completion ({type(error).__name__}: {error})") from error
    return Reply(key, str(text), finish_reason, tokens, seconds)


def _kind(error: Exception) -> str:
    import openai

    if isinstance(error, BadAnswer):
        return "bad_answer"
    if status := status_of(error):
        return f"http_{status}"
    return (
        "timeout"
        if isinstance(error, openai.APITimeoutError) and not lacks_connection(error)
        else "connection"
    )


def _body(request: ChatRequest) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(request.messages),
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "sentences", "schema": sampling.schema, "strict": True},
        }
    return body
