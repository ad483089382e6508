"""How much of a service's rate limit the server annotator uses, and how often it is refused.

    python benchmarks/labelling/rate_limit.py [--rate 50] [--burst 16] [--requests 2000]

The service is a token bucket (tests/fake_openai.py) in its own process, at 50 ms. What it tells about its
limit differs by row: Retry-After in whole seconds, `retry-after-ms`, nothing, nothing but the x-ratelimit-*
headers. Goodput is all requests over all seconds, divided by the limit; since the bucket starts full, a bit
more than 1 is possible. `early` counts requests sent while told to wait, those already on their way included.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import aclosing

from served import chat_requests, counts, service

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import Reply
from angle_data.annotators.openai_server import OpenAIServer

ROWS = {
    "Retry-After": ("--told", "header"),
    "retry-after-ms": ("--told", "ms"),
    "nothing": ("--told", "none"),
    "x-ratelimit headers": ("--told", "none", "--headers"),
}


async def ask(url: str, number: int, concurrency: int) -> float:
    """Ask everything and return the seconds it took."""
    spec = AnnotatorSpec("tiny", "server", "tiny", base_urls=(url,), concurrency=concurrency)
    started, answered = time.monotonic(), 0
    async with aclosing(OpenAIServer(spec).stream(chat_requests(number))) as outcomes:
        async for outcome in outcomes:
            answered += isinstance(outcome, Reply)
    assert answered == number
    return time.monotonic() - started


def main() -> None:
    """Run every row once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=50.0, help="requests per second")
    parser.add_argument("--burst", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    given = parser.parse_args()
    limits = ["--rate", str(given.rate), "--burst", str(given.burst)]
    limits += ["--latency", str(given.latency), "--sigma", str(given.sigma)]
    print("| the service tells | goodput / limit | 429s | share | early |\n| --- | --- | --- | --- | --- |")
    for name, options in ROWS.items():
        with service(*limits, *options) as url:
            seconds = asyncio.run(ask(url, given.requests, given.concurrency))
            found = counts(url)
        refused = found["counts"].get("429", 0)
        share = refused / sum(found["counts"].values())
        goodput = given.requests / seconds / given.rate
        print(f"| {name} | {goodput:.3f} | {refused} | {share:.1%} | {found['early']} |", flush=True)


if __name__ == "__main__":
    main()
