"""The fake service of tests/ in a process of its own, with latency and a limit of requests.

    python benchmarks/labelling/service.py --port 8000 --latency 0.05 --rate 50 --burst 16 --told ms

prints its base URL; `GET /stats` returns the counts so far and `POST /stats` sets them to zero.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import random
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from fake_openai import FakeOpenAI


def reply(body: dict[str, Any]) -> str:
    """Two sentences that no other prompt gets."""
    name = hashlib.sha256(body["messages"][-1]["content"].encode()).hexdigest()
    return f"1. The cluster {name[:8]} is ready.\n2. The service {name[8:16]} started again."


class Bucket:
    """A limit of requests, full at the start; `early` counts requests sent while told to wait.

    `told` is how a 429 says when to come again: header (whole seconds, as most gateways), ms
    (`retry-after-ms`) or none. With `headers`, every answer carries the x-ratelimit-* headers.
    """

    def __init__(self, per_s: float, burst: int, told: str, *, headers: bool) -> None:
        self.per_s, self.burst, self.told, self._shown = per_s, burst, told, headers
        self.level, self.early, self._told_until = float(burst), 0, 0.0
        self._filled = time.monotonic()

    def take(self, tokens: int) -> float:
        """Take one request; 0, or the seconds until that would work, with nothing taken."""
        now = time.monotonic()
        elapsed, self._filled = now - self._filled, now
        self.early += now < self._told_until
        self.level = min(self.level + elapsed * self.per_s, self.burst)
        if self.level < 1:
            return (1 - self.level) / self.per_s
        self.level -= 1
        return 0.0

    def refusal(self, wait: float) -> dict[str, str]:
        """The headers of a 429 that would pass after `wait` seconds."""
        if self.told == "none":
            return {}
        told = float(math.ceil(wait)) if self.told == "header" else math.ceil(wait * 1000) / 1000
        self._told_until = max(self._told_until, time.monotonic() + told)
        if self.told == "header":
            return {"Retry-After": str(int(told))}
        return {"retry-after-ms": str(round(told * 1000))}

    def headers(self) -> dict[str, str]:
        """The x-ratelimit-* headers: per minute, what is left of the bucket, and when it is full again."""
        if not self._shown:
            return {}
        return {
            "x-ratelimit-limit-requests": str(round(self.per_s * 60)),
            "x-ratelimit-remaining-requests": str(max(int(self.level), 0)),
            "x-ratelimit-reset-requests": f"{math.ceil((self.burst - self.level) / self.per_s * 1000)}ms",
        }


class Service(FakeOpenAI):
    """The fake that keeps no request, has its latency from a log-normal, and tells what it answered."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given, self._random = given, random.Random(0)
        super().__init__(reply, latency_s=given.latency, extra=given.extra, port=given.port)
        self.seen = deque(maxlen=0)
        self._start_anew()

    def _start_anew(self) -> None:
        given = self._given
        if math.isfinite(given.rate):
            self._limit = Bucket(given.rate, given.burst, given.told, headers=given.headers)
        self.counts, self._first_at, self._last_at = {}, 0.0, 0.0

    def _latency(self) -> float:
        return float(self._latency_s * math.exp(self._given.sigma * self._random.gauss(0, 1)))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._first_at = self._first_at or time.monotonic()
        answer = await super()._handle(request)
        self._last_at = time.monotonic()
        return answer

    async def _stats(self, request: web.Request) -> web.Response:
        span = self._last_at - self._first_at  # from the first arrival to the last answer
        early = self._limit.early if self._limit else 0
        found = {"counts": self.counts, "early": early, "span_s": span}
        if request.method == "POST":
            self._start_anew()
        return web.json_response(found)

    def add_routes(self, app: web.Application) -> None:
        """The chat, and the statistics."""
        super().add_routes(app)
        app.router.add_route("*", "/stats", self._stats)

    async def serve(self) -> None:
        """Serve until the process is ended."""
        print(f"{await self.listen()}/v1", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run the service, as the module's docstring says."""
    parser = argparse.ArgumentParser(description="A fake OpenAI-compatible chat server.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--rate", type=float, default=math.inf, help="requests per second")
    parser.add_argument("--burst", type=int, default=16, help="requests")
    parser.add_argument("--told", choices=["header", "ms", "none"], default="none")
    parser.add_argument("--headers", action="store_true", help="send x-ratelimit-* headers")
    parser.add_argument("--extra", nargs="*", default=[], help="further fields of a request that it knows")
    asyncio.run(Service(parser.parse_args()).serve())


if __name__ == "__main__":
    main()
