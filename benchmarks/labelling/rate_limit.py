"""How much of a service's rate limit the server annotator uses, and how often it is refused.

    python benchmarks/labelling/rate_limit.py [--rate 50] [--burst 16] [--requests 2000] [--runs 5]

The service is a token bucket (service.py) in its own process, at 50 ms. What it tells about its
limit differs by row: Retry-After in whole seconds, `retry-after-ms`, nothing, nothing but the x-ratelimit-*
headers. Goodput is all requests over all seconds, divided by the limit; since the bucket starts full, a bit
more than 1 is possible. `early` counts requests sent while told to wait, those already on their way included.
Shown are medians of the runs, of goodput and of the share of refusals also the least and the most. With
--peers other toolkits are asked too (see `peers`), with fewer requests, as they take their time; theirs are
the seconds from the first arrival to the last answer, so that their start does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from peers import FIELDS, PEERS, ask_peer, peer_python
from served import ask_ours, chat_requests, counts, service

ROWS = {
    "Retry-After": ("--told", "header"),
    "retry-after-ms": ("--told", "ms"),
    "nothing": ("--told", "none"),
    "x-ratelimit headers": ("--told", "none", "--headers"),
}


def limits_of(given: argparse.Namespace) -> list[str]:
    """Return the options of the service."""
    limits = ["--rate", str(given.rate), "--burst", str(given.burst)]
    return [*limits, "--latency", str(given.latency), "--sigma", str(given.sigma)]


def measure(given: argparse.Namespace, options: tuple[str, ...]) -> tuple[float, float, int]:
    """Ask once; return goodput, the share of refusals, and the number of requests sent too early."""
    with service(*limits_of(given), *options) as url:
        started = time.monotonic()
        assert asyncio.run(ask_ours(url, given.requests, given.concurrency)) == given.requests
        seconds = time.monotonic() - started
        found = counts(url)
    refused = found["counts"].get("429", 0) / sum(found["counts"].values())
    return given.requests / seconds / given.rate, refused, found["early"]


def measure_peers(given: argparse.Namespace) -> None:
    """Let each peer ask once and print its rows."""
    for peer in PEERS:
        if (python := peer_python(peer)) is None:
            continue
        for name in ("Retry-After", "nothing"):
            with service(*limits_of(given), *ROWS[name], "--extra", *FIELDS) as url:
                wanted = chat_requests(given.peer_requests)
                if ask_peer(peer, python, url, wanted, given.concurrency, limit_s=400) is None:
                    continue
                found = counts(url)
            refused = found["counts"].get("429", 0)
            share = refused / sum(found["counts"].values())
            goodput = given.peer_requests / found["span_s"] / given.rate
            print(f"| {peer}: {name} | {goodput:.3f} | {share:.1%} | {found['early']} |", flush=True)


def main() -> None:
    """Run every row and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=50.0, help="requests per second")
    parser.add_argument("--burst", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the latency's log-normal factor")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=ROWS, nargs="*", default=list(ROWS))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-requests", type=int, default=600)
    given = parser.parse_args()
    print("| the service tells | goodput / limit | 429s | early |\n| --- | --- | --- | --- |")
    for name in given.only:
        goodputs, refused, early = zip(*(measure(given, ROWS[name]) for _ in range(given.runs)), strict=True)
        goodput = f"{statistics.median(goodputs):.3f} ({min(goodputs):.3f} to {max(goodputs):.3f})"
        share = f"{statistics.median(refused):.1%} ({min(refused):.1%} to {max(refused):.1%})"
        print(f"| {name} | {goodput} | {share} | {statistics.median(early):.0f} |", flush=True)
    if given.peers:
        measure_peers(given)


if __name__ == "__main__":
    main()
