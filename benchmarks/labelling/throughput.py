"""How fast the server annotator asks, beside an ideal client and peers: 2,000 requests of 50 ms, 64 at once.

    python benchmarks/labelling/throughput.py [--rounds 5] [--without-peers]

Every client runs in its own process against a fake service in another; the clients take turns, and medians
count (least and most in brackets). `ideal` is bare aiohttp with workers on an iterator; `openai client` is
the official client over aiohttp, nothing around it; `angle-data` is `OpenAIServer.stream`, limits and retries
included; curator and distilabel are other toolkits, see `peers.py`. Requests per second are the service's
count, from the first arrival to the last answer; the ratio is taken within each round. CPU seconds are those
of the client, child processes included, once it is imported; of toolkits their own start and end is part. On
a machine with other work compare CPU seconds first, and the ratio second; requests per second mean nothing.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from calls import ask_ours, chat_requests, counts, service
from common import options, spread
from peers import FIELDS, PEERS, ask_peer

from angle_data.annotators.base import ChatRequest
from angle_data.annotators.transport import request_body


async def ask_all(number: int, concurrency: int, ask: Callable[[ChatRequest], Awaitable[object]]) -> int:
    """Ask through a client of one request, by so many workers on one iterator; return how many answered."""
    source, answered = chat_requests(number), 0

    async def work() -> None:
        nonlocal answered
        for request in source:
            await ask(request)
            answered += 1

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return answered


async def ideal(url: str, number: int, concurrency: int) -> int:
    """The least that Python can do over aiohttp."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(request: ChatRequest) -> None:
            async with session.post(f"{url}/chat/completions", json=request_body(request)) as response:
                json.loads(await response.read())

        return await ask_all(number, concurrency, ask)


async def openai_client(url: str, number: int, concurrency: int) -> int:
    """The official client, as its documentation advises for many requests."""
    import openai

    async with openai.AsyncOpenAI(
        api_key="EMPTY", base_url=url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:
        return await ask_all(
            number, concurrency, lambda request: client.chat.completions.create(**request_body(request))
        )


CLIENTS = {"ideal": ideal, "openai client": openai_client, "angle-data": ask_ours}
_AT_ONCE = 64
IMPORTS = {"ideal": "aiohttp", "openai client": "openai", "angle-data": "angle_data.annotators.server"}


def measure(client: str, url: str, number: int, concurrency: int) -> dict[str, float]:
    """Run one client in this process; return its CPU seconds and the largest memory."""
    __import__(IMPORTS[client])
    __import__("aiohttp")
    before = resource.getrusage(resource.RUSAGE_SELF)
    answered = asyncio.run(CLIENTS[client](url, number, concurrency))
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert answered == number, f"{client}: {answered} of {number} answered"
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "rss_mb": after.ru_maxrss / 1024}


def ask(client: str, url: str, number: int) -> dict[str, Any] | None:
    """Ask through a client in a process of its own; return what it took, None where a peer fails."""
    counts(url)  # from zero
    if client in PEERS:
        took = ask_peer(client, url, number, _AT_ONCE, limit_s=600)
    else:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            took = pool.submit(measure, client, url, number, _AT_ONCE).result()
    return took and {**took, "rate": number / counts(url)["span_s"]}


def main() -> None:
    """Run the rounds and print the table."""
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    given = parser.parse_args()
    runs: dict[str, list[Any]] = {name: [] for name in (*CLIENTS, *(() if given.without_peers else PEERS))}
    with service("--latency", "0.05", "--extra", *FIELDS) as url:
        for _ in range(given.rounds):
            for client, found in runs.items():
                if None not in found:  # a peer that failed is not asked again
                    found.append(ask(client, url, given.requests))
    print("| client | requests/s | ratio to ideal | CPU-s per 1,000 | RSS MB |")
    print("| --- | --- | --- | --- | --- |")
    for client, found in runs.items():
        if None in found:
            continue
        rates = [run["rate"] for run in found]
        ratios = [run["rate"] / ideal["rate"] for run, ideal in zip(found, runs["ideal"], strict=True)]
        cpu = [run["cpu"] * 1000 / given.requests for run in found]
        rss = statistics.median(run["rss_mb"] for run in found)
        shown = [f"{statistics.median(rates):.0f}", spread(ratios, ".2f"), spread(cpu, ".2f"), f"{rss:.0f}"]
        print(f"| {client} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
