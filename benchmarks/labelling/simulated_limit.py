"""What the limiter alone gets out of a rate limit: `rate_limit.py` in simulated time, undisturbed by load.

    python benchmarks/labelling/simulated_limit.py [--requests 2000] [--patience 25]

A token bucket of 50 requests/s and 16 at once answers after 50 to 55 ms; medians of eight seeds. `--patience`
sets how many pauses the pace takes to try more than the limit it knows (`pace.py`). Knows nothing of sockets,
processes and late wake-ups.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics

from angle_data.annotators import pace
from angle_data.annotators.limiter import Limiter, Ticket

RATE, BURST, LATENCY_S, JITTER_S, CONCURRENCY = 50.0, 16.0, 0.05, 0.005, 64
TOLD = ("Retry-After", "retry-after-ms", "nothing")


class Bucket:
    """The service: a token bucket, full at first."""

    def __init__(self) -> None:
        self._level, self._at = BURST, 0.0

    def missing(self, now: float) -> float:
        """Take one request; 0, or the seconds until that would work, with nothing taken."""
        self._level = min(self._level + max(now - self._at, 0.0) * RATE, BURST)
        self._at = max(now, self._at)
        if self._level < 1.0:
            return (1.0 - self._level) / RATE
        self._level -= 1.0
        return 0.0


def told_s(told: str, missing: float) -> float | None:
    """Return for how long a refusal asks to wait."""
    if told == "nothing":
        return None
    return float(math.ceil(missing)) if told == "Retry-After" else math.ceil(missing * 1000) / 1000


def simulate(requests: int, told: str, seed: int) -> tuple[float, float]:
    """Return goodput as a share of the limit, and the share of refusals."""
    chooser, limiter, bucket = random.Random(seed), Limiter(CONCURRENCY), Bucket()
    answers: list[tuple[float, int, Ticket, float]] = []
    now, waiting, done, sent = 0.0, requests, 0, 0
    while done < requests:
        while waiting and limiter.wait(now) <= 0.0:
            ticket = limiter.take(now)
            missing = bucket.missing(now + chooser.random() * JITTER_S / 5)
            heapq.heappush(answers, (now + LATENCY_S + chooser.random() * JITTER_S, sent, ticket, missing))
            waiting, sent = waiting - 1, sent + 1
        pause = limiter.wait(now) if waiting else math.inf
        if not answers or now + pause < answers[0][0]:
            now += max(pause, 1e-4) + chooser.random() * JITTER_S / 5
            continue
        now, _, ticket, missing = heapq.heappop(answers)
        if missing > 0.0:
            limiter.refused(ticket, now, told_s(told, missing), {})
            waiting += 1
        else:
            limiter.settled(ticket, now, {})
            done += 1
    return requests / now / RATE, (sent - requests) / sent


def main() -> None:
    """Run every row and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--patience", type=float, default=pace._PATIENCE_PAUSES)
    given = parser.parse_args()
    pace._PATIENCE_PAUSES = given.patience
    print("| the service tells | goodput / limit | 429s |\n| --- | --- | --- |")
    for told in TOLD:
        goodputs, refused = zip(
            *(simulate(given.requests, told, seed) for seed in range(given.seeds)), strict=True
        )
        print(f"| {told} | {statistics.median(goodputs):.3f} | {statistics.median(refused):.1%} |")


if __name__ == "__main__":
    main()
