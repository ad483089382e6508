"""A small OpenAI-compatible chat server on a loopback socket, with faults on demand.

Speaks `POST /v1/chat/completions`, checks keys, models and the shape of a request as the real API does,
limits its rate by a token bucket with the real API's headers, and records what it is asked. Faults are given
one per request, in the order in which requests arrive. benchmarks/labelling/service.py runs it alone.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web
from fake_server import FakeServer

KNOWN_FIELDS = {"model", "messages", "temperature", "max_tokens", "seed", "response_format"}
USAGE = (10, 5)


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request: an HTTP status, or another `kind`.

    reset: the connection breaks; hang: no answer; broken_json: a success whose JSON ends in the middle;
    cut: a body shorter than its Content-Length; shape: no chat completion; html: a page with status 200.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "injected fault"
    code: str | int | None = None
    kind: str = "status"
    error_type: str = "error"


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    body: dict
    authorization: str | None
    in_flight: int

    @property
    def prompt(self) -> str:
        return self.body["messages"][-1]["content"]


def numbered_reply(body: dict) -> str:
    """Two sentences that tell which prompt they answer."""
    asked = body["messages"][-1]["content"]
    return f"1. First answer to {len(asked)} characters.\n2. Second answer to {len(asked)} characters."


def refused_by_reasoning(body: dict) -> str:
    """What OpenAI's models that reason say of a field they do not take; nothing of a body that they take."""
    if "max_tokens" in body:
        named = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return f"Unsupported parameter: {named}"
    if (given := body.get("temperature", 1)) != 1:
        only = f"does not support {given} with this model. Only the default (1) value is supported."
        return f"Unsupported value: 'temperature' {only}"
    return ""


class Limit:
    """A rate limit: a bucket of tokens, full at the start. Every answer carries its x-ratelimit-* headers."""

    def __init__(self, tokens_per_s: float, burst: int) -> None:
        self.per_s, self.burst, self.level = tokens_per_s, burst, float(burst)
        self._filled = time.monotonic()

    def take(self, tokens: int) -> float:
        """Take the tokens of a request; 0, or the seconds until that would work, with nothing taken."""
        elapsed, self._filled = time.monotonic() - self._filled, time.monotonic()
        self.level = min(self.level + elapsed * self.per_s, self.burst)
        if self.level < tokens:
            return (tokens - self.level) / self.per_s
        self.level -= tokens
        return 0.0

    def headers(self) -> dict[str, str]:
        """What is left of the bucket, its rate per minute, and when it is full again."""
        return {
            "x-ratelimit-limit-tokens": str(round(self.per_s * 60)),
            "x-ratelimit-remaining-tokens": str(max(int(self.level), 0)),
            "x-ratelimit-reset-tokens": f"{math.ceil((self.burst - self.level) / self.per_s * 1000)}ms",
        }


class FakeOpenAI(FakeServer):
    """The server.

    `url` is the base URL, `seen` the requests so far, `counts` the answers by status. `faults` are used up
    one a request, then `always` applies to every further one. `latency_s` delays every answer. With `key`
    set, other keys are rejected; with `model` set, other models are unknown. `formats` are the response
    formats it knows; `extra` are fields it knows beside the usual ones. With `reasoning` it refuses what
    OpenAI's reasoning models do. `spoils` says by its prompt what goes wrong with a request each time that
    it comes.
    """

    def __init__(
        self, reply: Callable[[dict], str] = numbered_reply, *, faults: Iterable[Fault | None] = (),
        always: Fault | None = None, latency_s: float = 0.0, limit: Limit | None = None,
        key: str | None = None, model: str | None = None, finish_reason: str = "stop",
        formats: Iterable[str] = ("json_schema", "json_object", "text"), extra: Iterable[str] = (),
        reasoning: bool = False, spoils: Callable[[str], Fault | None] = lambda prompt: None,
        usage: Callable[[dict], tuple[int, int]] = lambda body: USAGE, port: int = 0,
    ) -> None:  # fmt: skip
        self.seen: list[Seen] = []
        self.counts: dict[str, int] = {}
        self._reply, self._faults, self._always = reply, list(faults), always
        self._latency_s, self._limit, self.port = latency_s, limit, port
        self._key, self._model, self._finish_reason = key, model, finish_reason
        self._formats, self._known, self._usage = set(formats), KNOWN_FIELDS | set(extra), usage
        self._reasoning, self._spoils = reasoning, spoils
        self._in_flight = 0

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self._in_flight += 1
        try:
            self.seen.append(Seen(body, request.headers.get("Authorization"), self._in_flight))
            fault = self._faults.pop(0) if self._faults else self._always
            fault = fault or self._spoils(body["messages"][-1]["content"])
            # Limits are checked on arrival, and the answer is late all the same.
            answer = self._refuse(body) or (None if fault else self._answer(body, request))
            await asyncio.sleep(self._latency())
            answer = answer or await self._misbehave(fault, request)
        finally:
            self._in_flight -= 1
        self.counts[str(answer.status)] = self.counts.get(str(answer.status), 0) + 1
        return answer

    def _latency(self) -> float:
        return self._latency_s

    def _refuse(self, body: dict) -> web.Response | None:
        if self._limit is None:
            return None
        wait = self._limit.take(sum(self._usage(body)))
        if wait <= 0:
            return None
        headers = {"retry-after-ms": str(math.ceil(wait * 1000))} | self._limit.headers()
        return error_response(429, "Rate limit reached", "rate_limit_exceeded", headers)

    def _answer(self, body: dict, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization")
        if self._key is not None and given != f"Bearer {self._key}":
            return error_response(401, f"Incorrect API key provided: {given}", "invalid_api_key")
        if self._model is not None and body.get("model") != self._model:
            return error_response(404, f"The model {body.get('model')!r} does not exist", "model_not_found")
        if self._reasoning and (said := refused_by_reasoning(body)):
            return error_response(400, said, "unsupported_parameter", None, "invalid_request_error")
        if unknown := sorted(body.keys() - self._known - {"max_completion_tokens"}):
            return error_response(400, f"Unrecognized request argument supplied: {unknown[0]}")
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            return error_response(400, "'messages' must be a non-empty array")
        form = body.get("response_format", {"type": "text"})["type"]
        if form not in self._formats:
            return error_response(400, f"Invalid parameter: 'response_format' of type '{form}'")
        said = self._reply(body)
        whole = isinstance(said, dict)  # what a service answers, as it is
        answer = said if whole else completion(body, said, self._usage(body), self._finish_reason)
        headers = self._limit.headers() if self._limit else None
        return web.json_response(answer, headers=headers)

    async def _misbehave(self, fault: Fault, request: web.Request) -> web.StreamResponse:
        if fault.kind == "hang":
            await asyncio.sleep(3600)
        if fault.kind == "broken_json":
            return web.Response(text='{"id": "x", "choices": [{"index"', content_type="application/json")
        if fault.kind == "cut":
            cut = web.StreamResponse(headers={"Content-Length": "400", "Content-Type": "application/json"})
            await cut.prepare(request)
            await cut.write(b'{"id": "x", "choices": [')
            request.transport.close()
            return cut
        if fault.kind == "shape":
            return web.json_response({"choices": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}})
        return plain_fault(fault, request)


def completion(body: dict, text: str, usage: tuple[int, int] = USAGE, finish_reason: str = "stop") -> dict:
    """A chat completion with one choice."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    known = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**known, "choices": choices, "usage": counts}


def plain_fault(fault: Fault, request: web.Request) -> web.Response:
    """The answer of a fault that is the same with every API: reset, html or status."""
    if fault.kind == "reset":
        request.transport.abort()
        return web.Response()
    if fault.kind == "html":
        return web.Response(text="<html>Sign in</html>", content_type="text/html")
    return error_response(fault.status, fault.message, fault.code, fault.headers, fault.error_type)


def error_response(
    status: int, message: str, code: str | int | None = None, headers: dict | None = None, kind: str = "error"
) -> web.Response:
    """An error in the shape of the real API."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)
