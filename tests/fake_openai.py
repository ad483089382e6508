"""A small OpenAI-compatible chat server on a loopback socket, with faults on demand; for tests and timing.

Speaks `POST /v1/chat/completions`, checks keys, models and the shape of a request as the real API does,
limits its rate by token buckets with the real API's headers, and records what it is asked. Faults are given
one per request, in the order in which requests arrive. Alone, in its own process:

    python tests/fake_openai.py --port 8000 --latency 0.05 --rate 50 --burst 16 --told ms

prints its base URL; `GET /stats` returns the counts so far and `POST /stats` sets them to zero.
"""

import argparse
import asyncio
import hashlib
import json
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web

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
class Limit:
    """A rate limit: two token buckets, of requests and of tokens, full at the start.

    `told` is how a 429 says when to come again: header (whole seconds, as most gateways), ms
    (`retry-after-ms`) or none. With `headers`, every answer carries the x-ratelimit-* headers.
    """

    requests_per_s: float = math.inf
    burst: int = 16
    tokens_per_s: float = math.inf
    token_burst: int = 1000
    told: str = "none"
    headers: bool = False


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


def hashed_reply(body: dict) -> str:
    """Two sentences that no other prompt gets."""
    name = hashlib.sha256(body["messages"][-1]["content"].encode()).hexdigest()
    return f"1. The cluster {name[:8]} is ready.\n2. The service {name[8:16]} started again."


def refused_by_reasoning(body: dict) -> str:
    """What OpenAI's models that reason say of a field they do not take; nothing of a body that they take."""
    if "max_tokens" in body:
        named = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return f"Unsupported parameter: {named}"
    if (given := body.get("temperature", 1)) != 1:
        only = f"does not support {given} with this model. Only the default (1) value is supported."
        return f"Unsupported value: 'temperature' {only}"
    return ""


class Buckets:
    """The state of a `Limit`, on the monotonic clock; `early` counts requests sent while told to wait."""

    def __init__(self, limit: Limit) -> None:
        self.limit, self.early, self._told_until = limit, 0, 0.0
        self.requests, self.tokens = float(limit.burst), float(limit.token_burst)
        self._filled = time.monotonic()

    def take(self, tokens: int) -> float:
        """Take one request and its tokens; 0, or the seconds until that would work, with nothing taken."""
        now, limit = time.monotonic(), self.limit
        elapsed, self._filled = now - self._filled, now
        self.early += now < self._told_until
        if math.isfinite(limit.requests_per_s):
            self.requests = min(self.requests + elapsed * limit.requests_per_s, limit.burst)
        if math.isfinite(limit.tokens_per_s):
            self.tokens = min(self.tokens + elapsed * limit.tokens_per_s, limit.token_burst)
        wait = max((1 - self.requests) / limit.requests_per_s, (tokens - self.tokens) / limit.tokens_per_s)
        if wait > 0:
            return wait
        self.requests -= 1
        self.tokens -= tokens
        return 0.0

    def refusal(self, wait: float) -> dict[str, str]:
        """The headers of a 429 that would pass after `wait` seconds."""
        if self.limit.told == "none":
            return {}
        told = float(math.ceil(wait)) if self.limit.told == "header" else math.ceil(wait * 1000) / 1000
        self._told_until = max(self._told_until, time.monotonic() + told)
        if self.limit.told == "header":
            return {"Retry-After": str(int(told))}
        return {"retry-after-ms": str(round(told * 1000))}

    def headers(self) -> dict[str, str]:
        """The x-ratelimit-* headers: per minute, what is left of the bucket, and when it is full again."""
        limit, found = self.limit, {}
        if not limit.headers:
            return found
        for name, rate, level, size in (
            ("requests", limit.requests_per_s, self.requests, limit.burst),
            ("tokens", limit.tokens_per_s, self.tokens, limit.token_burst),
        ):
            if math.isfinite(rate):
                found[f"x-ratelimit-limit-{name}"] = str(round(rate * 60))
                found[f"x-ratelimit-remaining-{name}"] = str(max(int(level), 0))
                found[f"x-ratelimit-reset-{name}"] = f"{math.ceil((size - level) / rate * 1000)}ms"
        return found


class FakeOpenAI:
    """The server; a context manager that runs it in a thread.

    `url` is the base URL, `seen` the requests so far (empty unless `record`), `counts` the answers by status.
    `faults` are used up one a request, then `always` applies to every further one. `latency_s` delays every
    answer; with `sigma`, by a log-normal factor that is the same in every run. With `key` set, other keys are
    rejected; with `model` set, other models are unknown. `formats` are the response formats it knows; `extra`
    are fields it knows beside the usual ones. With `reasoning` it refuses what OpenAI's reasoning models do.
    `page` is the status and the text of a web page that answers everything. `spoils` says by its prompt what
    goes wrong with a request each time that it comes.
    """

    def __init__(
        self,
        reply: Callable[[dict], str] = numbered_reply,
        *,
        faults: Iterable[Fault | None] = (),
        always: Fault | None = None,
        latency_s: float = 0.0,
        sigma: float = 0.0,
        limit: Limit | None = None,
        key: str | None = None,
        model: str | None = None,
        finish_reason: str = "stop",
        formats: Iterable[str] = ("json_schema", "json_object", "text"),
        extra: Iterable[str] = (),
        reasoning: bool = False,
        page: tuple[int, str] | None = None,
        spoils: Callable[[str], Fault | None] = lambda prompt: None,
        usage: Callable[[dict], tuple[int, int]] = lambda body: USAGE,
        port: int = 0,
        record: bool = True,
    ) -> None:
        self.seen: list[Seen] = []
        self.counts: dict[str, int] = {}
        self._reply, self._faults, self._always = reply, list(faults), always
        self._latency_s, self._sigma, self._random = latency_s, sigma, random.Random(0)
        self._limit = limit
        self._key, self._model, self._finish_reason = key, model, finish_reason
        self._formats, self._known, self._usage = set(formats), KNOWN_FIELDS | set(extra), usage
        self._port, self._record, self._reasoning, self._spoils = port, record, reasoning, spoils
        self._page = page
        self._in_flight = self._answered = 0
        self._first_at = self._last_at = 0.0

    def __enter__(self) -> "FakeOpenAI":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self.start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def start(self) -> str:
        """Listen, and return the base URL."""
        self._buckets = Buckets(self._limit or Limit())
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/stats", self._stats)
        # Hanging handlers are cancelled at once when the server stops.
        self._runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _close(self) -> None:
        await self._runner.cleanup()
        # Connections just accepted or closed let go of their sockets some turns of the loop later.
        for _ in range(20):
            await asyncio.sleep(0.0005)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self._in_flight += 1
        self._first_at = self._first_at or time.monotonic()
        try:
            if self._record:
                self.seen.append(Seen(body, request.headers.get("Authorization"), self._in_flight))
            fault = self._faults.pop(0) if self._faults else self._always
            fault = fault or self._spoils(body["messages"][-1]["content"])
            # Limits are checked on arrival, and the answer is late all the same.
            answer = self._refuse(body) or (None if fault else self._answer(body, request))
            await asyncio.sleep(self._latency_s * math.exp(self._sigma * self._random.gauss(0, 1)))
            answer = answer or await self._misbehave(fault, request)
        finally:
            self._in_flight -= 1
        self.counts[str(answer.status)] = self.counts.get(str(answer.status), 0) + 1
        self._last_at = time.monotonic()
        return answer

    async def _stats(self, request: web.Request) -> web.Response:
        span = self._last_at - self._first_at  # from the first arrival to the last answer
        found = {"counts": self.counts, "early": self._buckets.early, "span_s": span}
        if request.method == "POST":
            self.counts, self._buckets = {}, Buckets(self._buckets.limit)
            self._first_at = self._last_at = 0.0
        return web.json_response(found)

    def _refuse(self, body: dict) -> web.Response | None:
        if self._limit is None:
            return None
        wait = self._buckets.take(sum(self._usage(body)))
        if wait <= 0:
            return None
        headers = self._buckets.refusal(wait) | self._buckets.headers()
        return error_response(429, "Rate limit reached", "rate_limit_exceeded", headers)

    def _answer(self, body: dict, request: web.Request) -> web.Response:
        if self._page is not None:
            return web.Response(text=self._page[1], status=self._page[0], content_type="text/html")
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
        prompt_tokens, completion_tokens = self._usage(body)
        self._answered += 1
        completion = {
            "id": f"chatcmpl-{self._answered}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": self._reply(body)},
                    "finish_reason": self._finish_reason,
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
        headers = self._buckets.headers() if self._limit else None
        return web.json_response(completion, headers=headers)

    async def _misbehave(self, fault: Fault, request: web.Request) -> web.StreamResponse:
        if fault.kind == "reset":
            request.transport.abort()
            return web.Response()
        if fault.kind == "hang":
            await asyncio.sleep(3600)
        if fault.kind == "broken_json":
            return web.Response(
                text='{"id": "x", "choices": [{"index": 0, "mess', content_type="application/json"
            )
        if fault.kind == "cut":
            cut = web.StreamResponse(headers={"Content-Length": "400", "Content-Type": "application/json"})
            await cut.prepare(request)
            await cut.write(b'{"id": "x", "choices": [')
            request.transport.close()
            return cut
        if fault.kind == "shape":
            return web.json_response({"choices": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}})
        if fault.kind == "html":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return error_response(fault.status, fault.message, fault.code, fault.headers, fault.error_type)


def error_response(
    status: int,
    message: str,
    code: str | int | None = None,
    headers: dict[str, str] | None = None,
    error_type: str = "error",
) -> web.Response:
    """An error in the shape of the real API."""
    error = {"message": message, "type": error_type, "param": None, "code": code}
    return web.Response(
        text=json.dumps({"error": error}),
        status=status,
        headers=headers,
        content_type="application/json",
    )


async def serve(server: FakeOpenAI) -> None:
    """Serve until the process is ended."""
    print(await server.start(), flush=True)
    await asyncio.Event().wait()


def main(arguments: list[str]) -> None:
    """Run the server alone, as the module's docstring says."""
    parser = argparse.ArgumentParser(description="A fake OpenAI-compatible chat server.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--rate", type=float, default=math.inf, help="requests per second")
    parser.add_argument("--burst", type=int, default=16, help="requests")
    parser.add_argument("--token-rate", type=float, default=math.inf, help="tokens per second")
    parser.add_argument("--token-burst", type=int, default=1000, help="tokens")
    parser.add_argument("--told", choices=["header", "ms", "none"], default="none")
    parser.add_argument("--headers", action="store_true", help="send x-ratelimit-* headers")
    parser.add_argument("--extra", nargs="*", default=[], help="further fields of a request that it knows")
    given = parser.parse_args(arguments)
    limit = None
    if math.isfinite(given.rate) or math.isfinite(given.token_rate):
        limit = Limit(given.rate, given.burst, given.token_rate, given.token_burst, given.told, given.headers)
    server = FakeOpenAI(
        hashed_reply,
        latency_s=given.latency,
        sigma=given.sigma,
        limit=limit,
        extra=given.extra,
        port=given.port,
        record=False,
    )
    asyncio.run(serve(server))


if __name__ == "__main__":
    main(sys.argv[1:])
