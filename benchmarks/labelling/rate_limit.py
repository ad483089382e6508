"""How much of a service's rate limit the server annotator uses, and how often it is refused.

    python benchmarks/labelling/rate_limit.py [--rate 50] [--burst 16] [--requests 2000] [--runs 5]

The service is a token bucket (service.py) in its own process, at 50 ms; 64 requests are in flight.
What it tells about its limit differs by row: Retry-After in whole seconds, `retry-after-ms`, nothing, nothing
but the x-ratelimit-* headers. Goodput is all requests over all seconds, divided by the limit; since the
bucket starts full, a bit more than 1 is possible. `early` counts requests sent while told to wait, those
already on their way included. Shown are medians of the runs, with the least and the most. With --peers other
toolkits are asked too (see `peers`), once, with at most 600 requests, as they take their time; theirs are the
seconds from the first arrival to the last answer, so that their start does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from calls import ask_ours, counts, service
from common import options, spread
from peers import FIELDS, PEERS, ask_peer

ROWS = {
    "Retry-After": ("--told", "header"),
    "retry-after-ms": ("--told", "ms"),
    "nothing": ("--told", "none"),
    "x-ratelimit headers": ("--told", "none", "--headers"),
}
_AT_ONCE = 64


def measure(given: argparse.Namespace, row: str, peer: str | None = None) -> tuple[float, float, int] | None:
    """Ask once; return goodput, the share of refusals, and the number of requests sent too early."""
    limits = ["--rate", str(given.rate), "--burst", str(given.burst), "--latency", "0.05"]
    with service(*limits, *ROWS[row], *(["--extra", *FIELDS] if peer else [])) as url:
        if peer:
            number = min(600, given.requests)
            if ask_peer(peer, url, number, _AT_ONCE, limit_s=400) is None:
                return None
            found = counts(url)
            seconds = found["span_s"]
        else:
            number, started = given.requests, time.monotonic()
            assert asyncio.run(ask_ours(url, number, _AT_ONCE)) == number
            seconds, found = time.monotonic() - started, counts(url)
    refused = found["counts"].get("429", 0) / sum(found["counts"].values())
    return number / seconds / given.rate, refused, found["early"]


def main() -> None:
    """Run every row and print the table."""
    parser = options(__doc__)
    parser.add_argument("--rate", type=float, default=50.0, help="requests per second")
    parser.add_argument("--burst", type=int, default=16)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    print("| the service tells | goodput / limit | 429s | early |\n| --- | --- | --- | --- |")
    told = [(row, None) for row in ROWS]
    if given.peers:
        told += [(row, peer) for peer in PEERS for row in ("Retry-After", "nothing")]
    for row, peer in told:
        found = [measure(given, row, peer) for _ in range(1 if peer else given.runs)]
        if None not in found:
            goodputs, refused, early = zip(*found, strict=True)
            cells = [f"{peer}: {row}" if peer else row, spread(goodputs, ".3f"), spread(refused, ".1%")]
            print(f"| {' | '.join(cells)} | {statistics.median(early):.0f} |", flush=True)


if __name__ == "__main__":
    main()
