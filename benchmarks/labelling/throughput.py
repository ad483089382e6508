"""How fast the server annotator asks, beside an ideal client: 2,000 requests at 50 ms, 64 in flight.

    python benchmarks/labelling/throughput.py

Every client runs in its own process against a fake service in another; the clients take turns, and the middle
of three rounds counts. `ideal` is bare aiohttp with workers on an iterator; `openai client` is the official
client over aiohttp, nothing around it; `angle-data` is `OpenAIServer.stream`, limits and retries included.
CPU seconds are those of the client process between its first request and its last reply. On a machine with
other work compare them first, and the ratio second; the requests per second mean nothing there.
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
from contextlib import aclosing

from served import chat_requests, service

from angle_data.annotators.chat import request_body


async def ideal(url: str, number: int, concurrency: int) -> int:
    """The least that Python can do over aiohttp."""
    import aiohttp

    source, answered = chat_requests(number), 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            nonlocal answered
            for request in source:
                async with session.post(f"{url}/chat/completions", json=request_body(request)) as response:
                    json.loads(await response.read())
                answered += 1

        await asyncio.gather(*(work() for _ in range(concurrency)))
    return answered


async def openai_client(url: str, number: int, concurrency: int) -> int:
    """The official client, as its documentation advises for many requests."""
    import openai

    source, answered = chat_requests(number), 0
    async with openai.AsyncOpenAI(
        api_key="EMPTY", base_url=url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:

        async def work() -> None:
            nonlocal answered
            for request in source:
                await client.chat.completions.create(**request_body(request))
                answered += 1

        await asyncio.gather(*(work() for _ in range(concurrency)))
    return answered


async def angle_data(url: str, number: int, concurrency: int) -> int:
    """Ours."""
    from angle_data.annotators import AnnotatorSpec
    from angle_data.annotators.base import Reply
    from angle_data.annotators.openai_server import OpenAIServer

    spec = AnnotatorSpec("tiny", "server", "tiny", base_urls=(url,), concurrency=concurrency)
    async with aclosing(OpenAIServer(spec).stream(chat_requests(number))) as outcomes:
        return len([outcome async for outcome in outcomes if isinstance(outcome, Reply)])


CLIENTS = {"ideal": ideal, "openai client": openai_client, "angle-data": angle_data}
IMPORTS = {"ideal": "aiohttp", "openai client": "openai", "angle-data": "angle_data.annotators.openai_server"}


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


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        measure(given.client, given.url, given.requests, given.concurrency)
        return
    runs: dict[str, list[dict[str, float]]] = {client: [] for client in CLIENTS}
    with service("--latency", str(given.latency), "--sigma", str(given.sigma)) as url:
        for _ in range(given.rounds):
            for client, found in runs.items():
                command = [sys.executable, __file__, "--client", client, "--url", url]
                command += ["--requests", str(given.requests), "--concurrency", str(given.concurrency)]
                found.append(json.loads(subprocess.check_output(command, text=True)))
    walls = {client: statistics.median(run["wall"] for run in found) for client, found in runs.items()}
    print(
        "| client | requests/s | ratio to ideal | CPU-s per 1,000 | RSS MB |\n| --- | --- | --- | --- | --- |"
    )
    for client, found in runs.items():
        cpu = statistics.median(run["cpu"] for run in found) * 1000 / given.requests
        rss = statistics.median(run["rss_mb"] for run in found)
        rate, ratio = given.requests / walls[client], walls["ideal"] / walls[client]
        print(f"| {client} | {rate:.0f} | {ratio:.2f} | {cpu:.2f} | {rss:.0f} |")


if __name__ == "__main__":
    main()
