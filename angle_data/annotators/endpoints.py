"""The addresses of a run: the next request goes to the one that may take it first.

Every address has its own limits. One that cannot be reached, or keeps failing, is set aside and tried again
later, with one request at a time until it answers. The others go on; without others, everything waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from angle_data.annotators.limits import Limiter, Ticket
from angle_data.annotators.transport import CHAT_PATH, Form, url_at
from angle_data.http import LONG_WAIT_S, said_of_wait

log = logging.getLogger("angle.annotators")

_FAILURES_IN_A_ROW = 5


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run waits for its addresses, in seconds.

    An address that is set aside pauses for `first_s`, then twice as long each time up to `longest_s`; when
    none has answered for `total_s`, the run gives up. Three minutes: `vllm serve` takes about half a minute
    to load a small model. One request pauses between its attempts for a random time that grows from
    `retry_s`. Where nothing but 429 comes for `limited_s`, beyond what the server asked to wait, the run
    gives up, too.
    """

    retry_s: float = 0.5
    first_s: float = 1.0
    longest_s: float = 30.0
    total_s: float = 180.0
    limited_s: float = 600.0


class Endpoint:
    """One address: its limits, the form of JSON it understands, and how it is doing.

    `reached`: something there answered, an error perhaps. `worked`: it took a request for what it is.
    """

    def __init__(self, name: str, limiter: Limiter, form: Form) -> None:
        self.name = name
        self.limiter = limiter
        self.form = form
        self.url = url_at(name, CHAT_PATH)
        self.reached = self.worked = self.probing = False
        self.down_since = math.inf
        self._aside_until = 0.0
        self._times_aside = self._failed = 0

    @property
    def is_down(self) -> bool:
        """Whether it is set aside and has not answered since."""
        return self._times_aside > 0

    def pause(self, now: float) -> float:
        """Return the seconds until it may be asked; infinite while one request finds out how it is."""
        if not self.is_down:
            return 0.0
        return math.inf if self.probing else max(self._aside_until - now, 0.0)

    def answered(self) -> None:
        """Note that it works."""
        if self.is_down:
            log.info("%s answers again", self.name)
        self.reached = self.worked = True
        self._times_aside = self._failed = 0

    def failed(self, *, connected: bool, now: float, patience: Patience, told_s: float | None) -> bool:
        """Note a failure of the server, rather than of the request; True when that sets it aside anew.

        A request without connection (not `connected`) is proof enough, of other failures it takes some in a
        row. `told_s` is for how long the server asks to wait.
        """
        self._failed += 1
        if self.is_down and now < self._aside_until:
            return False
        if not self.is_down and connected and self._failed < _FAILURES_IN_A_ROW:
            return False
        seconds = min(patience.first_s * 2.0**self._times_aside, patience.longest_s)
        self._aside_until = now + max(seconds, told_s or 0.0)
        self._times_aside += 1
        if self._times_aside == 1:
            self.down_since = now
        return self._times_aside == 1


@dataclass(frozen=True, slots=True)
class Place:
    """Leave to send one request to `endpoint`; `Endpoints` has the methods that give it back.

    `probe`: the request finds out whether an address that was set aside works again.
    """

    endpoint: Endpoint
    ticket: Ticket
    probe: bool = False


class Endpoints:
    """The addresses of one run, for use within one event loop."""

    def __init__(self, endpoints: Sequence[Endpoint], patience: Patience) -> None:
        self.all, self._patience = tuple(endpoints), patience
        # Who waits for a place, for another attempt (True, served first) or the first one (False).
        self._waiting: dict[bool, deque[asyncio.Future[Place | None]]] = {True: deque(), False: deque()}
        self._ended: set[bool] = set()  # the keys of those that get no place any more
        self._timer: asyncio.TimerHandle | None = None

    @property
    def reached(self) -> bool:
        """Whether any address has answered yet."""
        return any(endpoint.reached for endpoint in self.all)

    @property
    def worked(self) -> bool:
        """Whether any address has taken a request for what it is."""
        return any(endpoint.worked for endpoint in self.all)

    def others_work(self, endpoint: Endpoint) -> bool:
        """Return whether an address beside `endpoint` is not set aside."""
        return any(other is not endpoint and not other.is_down for other in self.all)

    def failed(self, endpoint: Endpoint, message: str, *, connected: bool, told_s: float | None) -> bool:
        """Note a failure of a server, see `Endpoint.failed`; True when no address has worked for too long."""
        now = time.monotonic()
        if endpoint.failed(connected=connected, now=now, patience=self._patience, told_s=told_s):
            then = "continuing with the other addresses"
            if not self.others_work(endpoint):
                wait = max(self._patience.total_s, told_s or 0.0)
                then = f"waiting for it up to {wait / 60:.0f} minutes"
            log.warning("%s does not respond (%s); %s", endpoint.name, message, then)
        down = [other.down_since for other in self.all if other.is_down]
        return len(down) == len(self.all) and now - max(down) >= self._patience.total_s

    async def place(self, *, retrying: bool = False) -> Place | None:
        """Wait for leave to send; None once `end` has been called for requests of this kind."""
        if retrying in self._ended:
            return None
        future: asyncio.Future[Place | None] = asyncio.get_running_loop().create_future()
        self._waiting[retrying].append(future)
        self._wake()
        return await future

    def settled(self, place: Place, tokens: int | None = None) -> None:
        """Give a place back after an answer other than 429; `tokens` is what it used, if known."""
        place.endpoint.limiter.settled(place.ticket, tokens)
        self._returned(place)

    def dropped(self, place: Place) -> None:
        """Give a place back that was not used, or brought no answer."""
        place.endpoint.limiter.dropped(place.ticket)
        self._returned(place)

    def refused(self, place: Place, told_s: float | None, message: str) -> None:
        """Give a place back after a 429 that said `message` and, unless None, to wait `told_s` seconds."""
        endpoint, now = place.endpoint, time.monotonic()
        paused = endpoint.limiter.paused_until
        wait = endpoint.limiter.refused(place.ticket, now, told_s)
        if wait >= LONG_WAIT_S and paused < now:
            log.info(said_of_wait(endpoint.name, message, wait))
        self._returned(place)

    def end(self, *, retries: bool) -> None:
        """Give out no place for a first attempt any more, with `retries` none at all; who waits gets None."""
        for retrying in {False, retries}:
            self._ended.add(retrying)
            waiting = self._waiting[retrying]
            while waiting:
                if not (future := waiting.popleft()).done():
                    future.set_result(None)

    def take(self, now: float) -> tuple[Place | None, float]:
        """Take a place at the best address, or return the seconds until that is worth trying again."""
        pauses = {each: each.pause(now) for each in self.all}
        usable = [each for each, pause in pauses.items() if not pause]
        if not usable and not self.reached:
            usable = list(self.all)  # none has ever answered: no time is lost on finding that out
        waits = {each: each.limiter.wait(now) for each in usable}
        best = min(waits, key=lambda each: (waits[each], each.limiter.in_flight), default=None)
        if best is not None and waits[best] <= 0.0:
            best.probing = best.is_down
            return Place(best, best.limiter.take(now), best.is_down), 0.0
        return None, min([*waits.values(), *filter(None, pauses.values())], default=math.inf)

    def _returned(self, place: Place) -> None:
        """Let others have the place, and find out about its address if that is what it was for."""
        if place.probe:
            place.endpoint.probing = False
        self._wake()

    def _wake(self) -> None:
        """Hand out the places there are, and come back when the next one is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in self._waiting.values():
            while waiting:
                if waiting[0].done():  # cancelled
                    waiting.popleft()
                    continue
                place, wait = self.take(time.monotonic())
                if place is None:
                    if math.isfinite(wait):
                        self._timer = asyncio.get_running_loop().call_later(wait, self._wake)
                    return
                waiting.popleft().set_result(place)
