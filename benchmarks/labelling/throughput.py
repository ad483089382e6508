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

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from peers import FIELDS, PEERS, ask_peer, peer_python
from served import ask_ours, chat_requests, counts, service

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
IMPORTS = {"ideal": "aiohttp", "openai client": "openai", "angle-data": "angle_data.annotators.server"}


def measure(client: str, url: str, number: int, concurrency: int) -> None:
    """Run one client in this process and print its wall and CPU seconds."""
    __import__(IMPORTS[client])
    __import__("aiohttp")
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    answered = asyncio.run(CLIENTS[client](url, number, concurrency))
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF)
    assert answered == number, f"{client}: {answered} of {number} answered"
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"wall": wall, "cpu": cpu, "rss_mb": after.ru_maxrss / 1024}))


def ask_own(given: argparse.Namespace, client: str, url: str) -> dict[str, float]:
    """Ask through one of the clients above in a process of its own."""
    command = [sys.executable, __file__, "--client", client, "--url", url]
    command += ["--requests", str(given.requests), "--concurrency", str(given.concurrency)]
    found: dict[str, float] = json.loads(subprocess.check_output(command, text=True))
    return found


def measure_all(given: argparse.Namespace, url: str) -> dict[str, list[dict[str, float]]]:
    """Let the clients take turns; return what each took in each round."""
    pythons = {} if given.without_peers else {name: peer_python(name) for name in PEERS}
    peers = {name: python for name, python in pythons.items() if python is not None}
    runs: dict[str, list[dict[str, float]]] = {client: [] for client in [*CLIENTS, *peers]}
    for _ in range(given.rounds):
        for client, found in runs.items():
            counts(url)  # from zero
            if client in CLIENTS:
                took = ask_own(given, client, url)
            else:
                requests = chat_requests(given.requests)
                took = ask_peer(client, peers[client], url, requests, given.concurrency, limit_s=600)
            if took is not None:
                found.append({**took, "rate": given.requests / counts(url)["span_s"]})
    return runs


def spread(values: list[float], form: str) -> str:
    """Return median, least and most as text."""
    least, most = format(min(values), form), format(max(values), form)
    return f"{statistics.median(values):{form}} ({least} to {most})"


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        measure(given.client, given.url, given.requests, given.concurrency)
        return
    with service("--latency", str(given.latency), "--sigma", str(given.sigma), "--extra", *FIELDS) as url:
        runs = measure_all(given, url)
    print("| client | requests/s | ratio to ideal | CPU-s per 1,000 | RSS MB |")
    print("| --- | --- | --- | --- | --- |")
    for client, found in runs.items():
        if not found:
            continue
        rates = [run["rate"] for run in found]
        ratios = [run["rate"] / ideal["rate"] for run, ideal in zip(found, runs["ideal"], strict=False)]
        cpu = [run["cpu"] * 1000 / given.requests for run in found]
        rss = statistics.median(run["rss_mb"] for run in found)
        shown = [f"{statistics.median(rates):.0f}", spread(ratios, ".2f"), spread(cpu, ".2f"), f"{rss:.0f}"]
        print(f"| {client} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
