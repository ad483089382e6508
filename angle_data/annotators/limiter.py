"""Decides when the next request to one service may go out: in flight, requests and tokens a minute, pauses.

Pure: the caller passes the time, in seconds on any clock that only goes forward, and does the waiting. A
request takes its place in every limit at once, or waits for all of them. The limits are the user's, what the
service says in its headers (`allowance`), and what its refusals teach (`pace`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from angle_data.annotators.allowance import read_allowance
from angle_data.annotators.pace import Pace

# The first requests go out a few at a time, so that a service with a small allowance refuses a few, not all.
_WINDOW, _WINDOW_BY_REPLIES, _WINDOW_PER_S = 8, 24, 130.0
_PAUSE_S, _SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.15, 0.05, 60.0
_LONGEST_POLITE_S = 0.5
_PAUSE_REQUESTS = 4.0  # a short pause lasts until the service takes about so many again
# How far a late wake-up may be made good by sending faster: what the user's limit brings in some time, or a
# share of the burst that the service takes, since its bucket filled meanwhile.
_CATCH_UP_S, _CATCH_UP_SHARE = 0.1, 0.6
_TOKENS_AT_FIRST, _AVERAGE_OVER = 500.0, 20


@dataclass(slots=True)
class _Bucket:
    """A continuous bucket: `level` may go below zero and comes back at `per_s`, up to `size`.

    From `full_at` on there is enough whatever the level says.
    """

    per_s: float
    size: float
    level: float
    at: float
    full_at: float = math.inf

    def fill(self, now: float) -> None:
        if now > self.at:  # at the very moment, nothing times an infinite rate would be no number
            self.level = min(self.level + (now - self.at) * self.per_s, max(self.size, self.level))
            self.at = now

    def wait(self, now: float, wanted: float) -> float:
        self.fill(now)
        if self.level >= wanted:
            return 0.0
        return max(min((wanted - self.level) / self.per_s, self.full_at - now), 0.0)


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request on its way: when it was sent, how many were before it, the tokens taken for it."""

    sent_at: float
    number: int
    tokens: float


class Limiter:
    """The limits of one service for a run with up to `concurrency` requests in flight.

    `requests_per_minute` and `tokens_per_minute` are the user's; None leaves them to be found out.
    `in_flight` counts the requests on their way, and nothing goes out before `paused_until`.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.in_flight = 0
        self.paused_until = 0.0
        self._concurrency = concurrency
        self._pace = Pace()
        self._ceiling = math.inf if requests_per_minute is None else requests_per_minute / 60
        self._requests = _Bucket(self._ceiling, 2.0, 1.0, 0.0)
        self._tokens: _Bucket | None = None
        if tokens_per_minute is not None:
            per_s = tokens_per_minute / 60
            self._tokens = _Bucket(per_s, per_s, per_s, 0.0)
        self._told: dict[str, _Bucket] = {}
        self._started: float | None = None
        self._number = -1
        self._replies = self._refused_in_a_row = 0
        self._per_request = _TOKENS_AT_FIRST

    def wait(self, now: float) -> float:
        """Return the seconds until a request may go out; 0: now, infinite: not before an answer comes."""
        if self.in_flight >= self._window(now):
            return math.inf if self.in_flight >= self._concurrency else 1.0 / _WINDOW_PER_S
        if now < self.paused_until:
            return self.paused_until - now
        wait = 0.0
        if self._paced:
            self._retarget(now)
            wait = self._requests.wait(now, 1.0)
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(now, min(self._per_request, self._tokens.size)))
        for kind, bucket in self._told.items():
            wait = max(wait, bucket.wait(now, self._cost(kind)))
        return wait

    def take(self, now: float) -> Ticket:
        """Take one place in every limit; only after `wait` returned 0."""
        if self._started is None:
            self._started = now
        self.in_flight += 1
        self._number = self._pace.sent(now)
        if self._paced:
            self._requests.level -= 1.0
        if self._tokens is not None:
            self._tokens.level -= self._per_request
        for kind, bucket in self._told.items():
            bucket.level -= self._cost(kind)
        return Ticket(now, self._number, self._per_request)

    def settled(
        self, ticket: Ticket, now: float, headers: Mapping[str, str], tokens: int | None = None
    ) -> None:
        """Take note of an answer that is no 429; `tokens` is what it really used, None when unknown."""
        self.in_flight -= 1
        self._replies += 1
        self._refused_in_a_row = 0
        if tokens is not None:
            self._per_request += (tokens - self._per_request) / min(self._replies, _AVERAGE_OVER)
            if self._tokens is not None:
                self._tokens.level += ticket.tokens - tokens
        self._listen(ticket, now, headers)

    def dropped(self, ticket: Ticket) -> None:
        """Take note of a request without an answer; its tokens are given back."""
        self.in_flight -= 1
        if self._tokens is not None:
            self._tokens.level += ticket.tokens

    def refused(self, ticket: Ticket, now: float, told_s: float | None, headers: Mapping[str, str]) -> float:
        """Take note of a 429 and pause everybody; returns the seconds until the next request.

        `told_s` is for how long the service asks to wait, None or 0 when it does not say.
        """
        self.dropped(ticket)
        if told_s:  # exactly then, only the next one of all who wait would pass
            pause = max(told_s, min(self._short_pause(now), _LONGEST_POLITE_S))
        else:
            pause = min(self._short_pause(now) * 2.0**self._refused_in_a_row, _LONGEST_PAUSE_S)
        if not self._pace.limited:  # the rest of the first burst is on its way, and its answers teach
            pause = max(pause, _PAUSE_S, min(now - ticket.sent_at, 1.0))
        resume_at = max(self.paused_until, now + pause)
        if self._pace.refused(ticket.number, now, resume_at - now):
            self._refused_in_a_row += 1
            self.paused_until = resume_at
            # Who is told when to come again may send one request then, however slow the pace has become.
            self._requests.level = max(self._pace.spare(pause), 1.0 if told_s else 0.0)
            self._requests.at = resume_at
        elif told_s:
            self.paused_until = resume_at
        self._listen(ticket, now, headers)
        return self.paused_until - now

    @property
    def _paced(self) -> bool:
        return self._pace.limited or self._ceiling < math.inf

    def _cost(self, kind: str) -> float:
        return 1.0 if kind == "requests" else self._per_request

    def _short_pause(self, now: float) -> float:
        rate = self._pace.rate(now)
        return _PAUSE_S if math.isinf(rate) else max(_SHORTEST_PAUSE_S, _PAUSE_REQUESTS / rate)

    def _window(self, now: float) -> float:
        """Return how many may be in flight: all, once a limit is known, and step by step until then."""
        if self._started is None or self._paced:
            return self._concurrency
        by_replies = min(_WINDOW + self._replies, _WINDOW_BY_REPLIES)
        by_time = _WINDOW + int((now - self._started) * _WINDOW_PER_S)
        return min(max(by_replies, by_time), self._concurrency)

    def _retarget(self, now: float) -> None:
        """Give the bucket of requests the rate that holds now: the user's or the learnt one."""
        self._requests.fill(now)
        rate = min(self._pace.rate(now), self._ceiling)
        size = min(_CATCH_UP_SHARE * self._pace.burst, rate) if self._pace.limited else rate * _CATCH_UP_S
        self._requests.per_s, self._requests.size = rate, max(2.0, size)

    def _listen(self, ticket: Ticket, now: float, headers: Mapping[str, str]) -> None:
        """Set what the headers say is left, less what was sent since, plus what came back since."""
        for kind in ("requests", "tokens"):
            allowance = read_allowance(headers, kind)
            if allowance is not None:
                sent_since = (self._number - ticket.number) * self._cost(kind)
                level = allowance.remaining - sent_since + (now - ticket.sent_at) * allowance.per_s
                self._told[kind] = _Bucket(allowance.per_s, math.inf, level, now, now + allowance.reset_s)
