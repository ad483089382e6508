"""A small OpenAI-compatible chat server on a loopback socket, with faults on demand; for tests only.

Speaks `POST /v1/chat/completions`, checks keys, models and the shape of a request as the real API does, and
records what it is asked. Faults are given one per request, in the order in which requests arrive.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web

KNOWN_FIELDS = {"model", "messages", "temperature", "max_tokens", "seed", "response_format"}


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request: an HTTP status, or a `kind` of reset, hang, broken_json or shape.

    `broken_json` is a success whose body ends in the middle, `shape` one that is no chat completion.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "injected fault"
    code: str | None = None
    kind: str = "status"


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


class FakeOpenAI:
    """The server; a context manager. `url` is the base URL, `seen` the requests so far.

    `faults` are used up one a request, then `always` applies to every further one. `latency_s` delays every
    answer. With `key` set, other keys are rejected; with `model` set, other models are unknown.
    """

    def __init__(
        self,
        reply: Callable[[dict], str] = numbered_reply,
        *,
        faults: Iterable[Fault | None] = (),
        always: Fault | None = None,
        latency_s: float = 0.0,
        key: str | None = None,
        model: str | None = None,
        finish_reason: str = "stop",
    ) -> None:
        self.seen: list[Seen] = []
        self._reply, self._faults, self._always = reply, list(faults), always
        self._latency_s, self._key, self._model, self._finish_reason = latency_s, key, model, finish_reason
        self._in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "FakeOpenAI":
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._handle)
        # Hanging handlers are cancelled at once when the server stops.
        self._runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self._in_flight += 1
        try:
            self.seen.append(Seen(body, request.headers.get("Authorization"), self._in_flight))
            fault = self._faults.pop(0) if self._faults else self._always
            await asyncio.sleep(self._latency_s)
            return await self._misbehave(fault, request) if fault else self._answer(body, request)
        finally:
            self._in_flight -= 1

    def _answer(self, body: dict, request: web.Request) -> web.Response:
        if self._key is not None and request.headers.get("Authorization") != f"Bearer {self._key}":
            given = request.headers.get("Authorization")
            return error_response(401, f"Incorrect API key provided: {given}", "invalid_api_key")
        if self._model is not None and body.get("model") != self._model:
            return error_response(404, f"The model {body.get('model')!r} does not exist", "model_not_found")
        if unknown := sorted(body.keys() - KNOWN_FIELDS):
            return error_response(400, f"Unrecognized request argument supplied: {unknown[0]}")
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            return error_response(400, "'messages' must be a non-empty array")
        text = self._reply(body)
        return web.json_response(
            {
                "id": f"chatcmpl-{len(self.seen)}",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": self._finish_reason,
                    }
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        )

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
        if fault.kind == "shape":
            return web.json_response({"choices": []})
        return error_response(fault.status, fault.message, fault.code, fault.headers)


def error_response(
    status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    """An error in the shape of the real API."""
    error = {"message": message, "type": "error", "param": None, "code": code}
    return web.Response(
        text=json.dumps({"error": error}),
        status=status,
        headers=headers,
        content_type="application/json",
    )
