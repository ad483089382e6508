"""Finds out how fast a service takes requests when it does not say, from what it accepts and refuses.

Pure: the caller passes the time, in seconds on any clock that only goes forward. Until the first refusal
there is no limit. The service is thought of as a token bucket of unknown size B and refill rate L, requests
per second, the commonest way of limiting. Two facts about such a bucket carry the search:

- between two moments at which it was empty, it lets through at most L times the seconds between them;
- within any span it lets through at most B more than L times the span.

A refusal marks an empty bucket, so both give lower bounds of L, and the greatest is L itself when the bucket
was full, or empty, at some moment and did not run over afterwards. The first refusal starts a search from
below, twice as fast every moment. Each later one sets the rate a little under the bound, from where it creeps
up to a little over it: slowly when the bounds agree, and the more so the dearer a refusal is.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import deque

_REMEMBERED = 4096
_RECENT_S = 10.0  # how far back the first refusal looks
# The search begins at a share of what was accepted until then, and doubles every moment. Where refusals are
# dear (long pauses) it is slower and so tells the limit more exactly.
_FIRST_SHARE, _SLOWEST = 0.15, 0.5
_DOUBLES_S, _DOUBLES_PAUSES, _SLOWEST_DOUBLES_S = 0.7, 1.5, 3.0
# A bound is in doubt by the requests that overtook each other, as a share of those it was counted from.
_NOISE, _NARROWEST, _WIDEST = 4.0, 0.02, 0.25
_FEWEST = 6
_EMPTY_MOMENTS, _COUNTED_AGAIN = 8, 3
_UNDER = 0.5  # how far under the bound the rate goes back, as a share of the doubt
_FALL = 0.85  # the least share of the last limit that one refusal leaves
# How long the way back up takes with the least doubt, in requests and in pauses; with more, it is shorter.
_PATIENCE_REQUESTS, _PATIENCE_PAUSES = 250.0, 25.0
_SPARE = 0.8  # the share of a filled bucket that is sent at once after a pause


class Pace:
    """The rate that is worth trying, learnt from `sent` and `refused`."""

    def __init__(self) -> None:
        self._sent = array("d")  # when each of the last requests went out; NaN once it is refused
        self._before = 0  # how many were sent before the first of these
        self._events = 0
        self._reacted_at = self._since = 0.0
        self._empty: deque[float] = deque(maxlen=_EMPTY_MOMENTS)
        self._base = math.inf
        self._limit: float | None = None
        self._doubt = _WIDEST
        self._doubles_s, self._creep_s = _DOUBLES_S, 1.0
        self._first_reacted_at = 0.0
        self._began, self._first_count, self._first_span = 0.0, 0, 0.0

    @property
    def limited(self) -> bool:
        """Whether the service has refused anything yet."""
        return self._events > 0

    @property
    def burst(self) -> float:
        """About how many requests at once a rested service takes; counts only after the first refusal."""
        return max(self._first_count - (self._limit or 0.0) * self._first_span, 1.0)

    def spare(self, pause_s: float) -> float:
        """Return how many requests at once are safe after a pause, once the limit is known."""
        return _SPARE * min(self.burst, (self._limit or 0.0) * pause_s)

    def sent(self, now: float) -> int:
        """Note that a request goes out and return its number, the first one's being 0."""
        if len(self._sent) >= 2 * _REMEMBERED:
            self._before += _REMEMBERED
            del self._sent[:_REMEMBERED]
        self._sent.append(now)
        return self._before + len(self._sent) - 1

    def rate(self, now: float) -> float:
        """Return the requests per second to send now, infinite before the first refusal."""
        if self._events == 0:
            return math.inf
        passed = max(now - self._since, 0.0)
        if self._limit is None:
            return float(self._base * 2.0 ** min(passed / self._doubles_s, 40.0))
        steps = passed / self._creep_s
        excess = self._doubt * (steps if steps <= 1.0 else 2.0 ** min(2.0 * (steps - 1.0), 40.0))
        return self._base * (1.0 + excess)

    def refused(self, number: int, now: float, pause_s: float) -> bool:
        """Learn from a refusal; returns False for one of the same burst as the last.

        `pause_s` is for how long nothing will be sent.
        """
        sent_at = self._forget(number)
        if sent_at is None:
            return False
        if self._events and sent_at <= self._reacted_at:
            return False
        passed = [at for at in self._sent if at < sent_at]
        if self._events == 0:
            self._first(passed, sent_at, now)
            self._first_reacted_at = now
            # A dear refusal is worth a slow search, which tells the limit more exactly.
            self._doubles_s = min(max(_DOUBLES_PAUSES * pause_s, _DOUBLES_S), _SLOWEST_DOUBLES_S)
        else:
            self._again(passed, sent_at, pause_s)
        self._events += 1
        self._reacted_at, self._since = now, now + pause_s
        self._empty.append(sent_at)
        return True

    def _forget(self, number: int) -> float | None:
        position = number - self._before
        if position < 0:
            return None
        sent_at, self._sent[position] = self._sent[position], math.nan
        return sent_at

    def _first(self, passed: list[float], sent_at: float, now: float) -> None:
        recent = [at for at in passed if at >= sent_at - _RECENT_S]
        self._began = recent[0] if recent else sent_at
        self._first_count, self._first_span = len(recent), sent_at - self._began
        seen = max(len(recent), 1) / max(self._first_span, now - sent_at, 1e-3)
        self._base = max(seen * _FIRST_SHARE, _SLOWEST)

    def _again(self, passed: list[float], sent_at: float, pause_s: float) -> None:
        if self._events <= _COUNTED_AGAIN:  # more answers to the first burst are in
            burst = [at for at in passed if self._began <= at <= self._first_reacted_at]
            self._first_count = len(burst)
            self._first_span = burst[-1] - self._began if burst else 0.0
        tried = self.rate(sent_at)
        bound, counted = self._bound(passed, sent_at)
        if counted < 2:
            self._base = max(tried / 2, _SLOWEST)
            return
        if self._limit is not None:
            bound = max(bound, _FALL * min(self._limit, tried))
            bound = min(bound, tried)
        # Without a limit yet, more was proved than tried when requests of the first burst arrive late.
        late = bound > tried
        self._limit = limit = bound
        self._doubt = _WIDEST if late else min(max(_NOISE / counted, _NARROWEST), _WIDEST)
        patience = _NARROWEST / self._doubt
        self._creep_s = patience * max(_PATIENCE_REQUESTS / limit, _PATIENCE_PAUSES * pause_s)
        self._base = limit * (1.0 - self._doubt * _UNDER)

    def _bound(self, passed: list[float], sent_at: float) -> tuple[float, float]:
        """Return the greatest lower bound that the passed requests prove, and how many it rests on."""
        best, counted = 0.0, 0.0
        for empty in self._empty:
            count = len(passed) - bisect_right(passed, empty)
            bound = count / max(sent_at - empty, 1e-3)
            if bound > best:
                best, counted = bound, float(count)
        since = passed[bisect_right(passed, self._empty[-1]) :]
        for _ in range(3):
            burst = max(self._first_count - best * self._first_span, 1.0)
            for position, start in enumerate(since):
                count = len(since) - position
                if count - burst < _FEWEST:
                    break
                bound = (count - burst) / (sent_at - start)
                if bound > best:
                    best, counted = bound, count - burst
        return best, counted
