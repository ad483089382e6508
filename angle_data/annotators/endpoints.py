"""The addresses of a run and whose turn it is: the next request goes where it may go first.

Every address has its own limits. One that cannot be reached, or keeps failing, is set aside while others
work, and tried again later. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from angle_data.annotators.chat import Form
from angle_data.annotators.limiter import Limiter, Ticket

__all__ = ["Closed", "Endpoint", "Endpoints", "Place"]

log = logging.getLogger("angle.annotators")

_ASIDE_S, _LONGEST_ASIDE_S = 5.0, 60.0
_FAILURES_IN_A_ROW = 5
_LONG_WAIT_S = 20.0


class Closed(Exception):
    """The run ends while a request waits for its turn; it stays unanswered."""


class Endpoint:
    """One address: its limits, the form of JSON it knows, and how it has been doing."""

    def __init__(self, url: str, name: str, limiter: Limiter, form: Form) -> None:
        self.url, self.name, self.limiter, self.form = url, name, limiter, form
        self.reached = False
        self.aside_until = 0.0
        self._times_aside = self._failed = 0

    def answered(self) -> None:
        """Note that it works."""
        if self.aside_until:
            log.info("%s answers again", self.name)
        self.reached, self.aside_until, self._times_aside, self._failed = True, 0.0, 0, 0

    def failed(self, message: str, *, connected: bool, now: float) -> None:
        """Note a failure of the server, rather than of the request; may set the address aside."""
        self._failed += 1
        if now < self.aside_until or (connected and self._failed < _FAILURES_IN_A_ROW):
            return
        if not self._times_aside:
            log.warning("%s is set aside for now (%s); the other addresses go on", self.name, message)
        seconds = min(_ASIDE_S * 2.0**self._times_aside, _LONGEST_ASIDE_S)
        self.aside_until, self._times_aside = now + seconds, self._times_aside + 1


@dataclass(frozen=True, slots=True)
class Place:
    """Leave to send one request to `endpoint`; given back with one of the methods of `Endpoints`."""

    endpoint: Endpoint
    ticket: Ticket


class Endpoints:
    """The addresses of one run. Has to be used within one running event loop."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._retrying: deque[asyncio.Future[Place | None]] = deque()
        self._fresh: deque[asyncio.Future[Place | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = self._drained = False

    @property
    def reached(self) -> bool:
        """Whether any address has answered yet."""
        return any(endpoint.reached for endpoint in self._endpoints)

    @property
    def in_flight(self) -> int:
        """Return how many requests are with the addresses now."""
        return sum(endpoint.limiter.in_flight for endpoint in self._endpoints)

    def others_work(self, endpoint: Endpoint) -> bool:
        """Return whether an address beside `endpoint` is not set aside."""
        now = time.monotonic()
        return any(other is not endpoint and now >= other.aside_until for other in self._endpoints)

    async def place(self, *, retrying: bool = False) -> Place | None:
        """Wait for leave to send; None when there is nothing more to send, which `retrying` ignores.

        Raises:
            Closed: The run ends.
        """
        if self._closed:
            raise Closed
        if self._drained and not retrying:
            return None
        waiting = self._retrying if retrying else self._fresh
        if not (self._retrying or self._fresh):
            place, _ = self._try(time.monotonic())
            if place is not None:
                return place
        future: asyncio.Future[Place | None] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        self._wake()
        return await future

    def settled(self, place: Place, headers: Mapping[str, str], tokens: int | None = None) -> None:
        """Give a place back after an answer other than 429; `tokens` is what it used, if known."""
        place.endpoint.limiter.settled(place.ticket, time.monotonic(), headers, tokens)
        self._wake()

    def dropped(self, place: Place) -> None:
        """Give a place back that was not used, or brought no answer."""
        place.endpoint.limiter.dropped(place.ticket)
        self._wake()

    def refused(self, place: Place, told_s: float | None, headers: Mapping[str, str]) -> None:
        """Give a place back after a 429 that asked to wait for `told_s` seconds, if it did."""
        endpoint, now = place.endpoint, time.monotonic()
        paused = endpoint.limiter.paused_until
        wait = endpoint.limiter.refused(place.ticket, now, told_s, headers)
        if wait >= _LONG_WAIT_S and paused < now:
            log.info("%s asks for patience: waiting %.0f s", endpoint.name, wait)
        self._wake()

    def drain(self) -> None:
        """There is nothing more to send: whoever waits for a first place gets None."""
        self._drained = True
        while self._fresh:
            _resolve(self._fresh.popleft(), None)

    def close(self) -> None:
        """The run ends: whoever waits, or will, gets `Closed`."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for future in (*self._retrying, *self._fresh):
            if not future.done():
                future.set_exception(Closed())
        self._retrying.clear()
        self._fresh.clear()

    def _try(self, now: float) -> tuple[Place | None, float]:
        """Take a place at the best address, or return the seconds until that is worth trying again."""
        best: Endpoint | None = None
        shortest = math.inf
        working = [endpoint for endpoint in self._endpoints if now >= endpoint.aside_until]
        for endpoint in working or self._endpoints:
            wait = endpoint.limiter.wait(now)
            fuller = best is not None and endpoint.limiter.in_flight >= best.limiter.in_flight
            if wait < shortest or (wait == shortest and not fuller):
                best, shortest = endpoint, wait
        if best is not None and shortest <= 0.0:
            return Place(best, best.limiter.take(now)), 0.0
        return None, shortest

    def _wake(self) -> None:
        """Hand out the places there are, and come back when the next one is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in (self._retrying, self._fresh):
            while waiting:
                if waiting[0].done():  # cancelled
                    waiting.popleft()
                    continue
                place, wait = self._try(time.monotonic())
                if place is None:
                    if math.isfinite(wait) and not self._closed:
                        self._timer = asyncio.get_running_loop().call_later(wait, self._wake)
                    return
                waiting.popleft().set_result(place)


def _resolve(future: asyncio.Future[Place | None], place: Place | None) -> None:
    if not future.done():
        future.set_result(place)
