"""Decides when the next request to one service may go out: in flight, requests and tokens a minute, pauses.

Pure: the caller passes the time, in seconds on any clock that only goes forward, and does the waiting. A
request takes its place in every limit at once, or waits for all of them. The limits are the user's and
the rate that `Pace` learns from refusals.

`Pace` treats the service as a token bucket of unknown size B and refill rate L, requests per second, the
commonest way of limiting. Two facts about such a bucket carry the search:

- between two moments at which it was empty, it lets through at most L times the seconds between them;
- within any span it lets through at most B more than L times the span.

A refusal marks an empty bucket, so both give lower bounds of L, and the greatest is L itself when the bucket
was full, or empty, at some moment and did not run over afterwards. Until the first refusal there is no limit.
The first refusal starts a search from below, twice as fast every moment. Each later one sets the rate a
little under the bound, from where it creeps up to a little over it: slowly when the bounds agree, and the
more so the dearer a refusal is.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

# The first requests go out a few at a time, so that a service with a small allowance refuses a few, not all.
_WINDOW = 8
_WINDOW_BY_REPLIES = 24
_WINDOW_PER_S = 130.0
_PAUSE_S = 0.15
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 60.0
_LONGEST_POLITE_S = 0.5
_PAUSE_REQUESTS = 4.0  # a short pause lasts until the service takes about so many again
# How far a late wake-up may be made good by sending faster: what the user's limit brings in some time, or a
# share of the burst that the service takes, since its bucket filled meanwhile.
_CATCH_UP_S = 0.1
_CATCH_UP_SHARE = 0.6
_TOKENS_AT_FIRST = 500.0
_AVERAGE_OVER = 20

_REMEMBERED = 4096
_RECENT_S = 10.0  # how far back the first refusal looks
# The search begins at a share of what was accepted until then, and doubles every moment. Where refusals are
# dear (long pauses) it is slower and so tells the limit more exactly.
_FIRST_SHARE = 0.15
_SLOWEST = 0.5
_DOUBLES_S = 0.7
_DOUBLES_PAUSES = 1.5
_SLOWEST_DOUBLES_S = 3.0
# A bound is in doubt by the requests that overtook each other, as a share of those it was counted from.
_NOISE = 4.0
_NARROWEST = 0.02
_WIDEST = 0.25
_FEWEST = 6
_EMPTY_MOMENTS = 8
_COUNTED_AGAIN = 3
_UNDER = 0.5  # how far under the bound the rate goes back, as a share of the doubt
_FALL = 0.85  # the least share of the last limit that one refusal leaves
# How long the way back up takes with the least doubt, in requests and in pauses; with more, it is shorter.
_PATIENCE_REQUESTS = 250.0
_PATIENCE_PAUSES = 25.0
_SPARE = 0.8  # the share of a filled bucket that is sent at once after a pause


@dataclass(slots=True)
class _Bucket:
    """A continuous bucket: `level` may go below zero and comes back at `per_s`, up to `size`."""

    per_s: float
    size: float
    level: float
    at: float

    def fill(self, now: float) -> None:
        if now > self.at:  # at the very moment, nothing times an infinite rate would be no number
            self.level = min(self.level + (now - self.at) * self.per_s, max(self.size, self.level))
            self.at = now

    def wait(self, now: float, wanted: float) -> float:
        self.fill(now)
        if self.level >= wanted:
            return 0.0
        return max((wanted - self.level) / self.per_s, 0.0)


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request on its way: when it was sent, how many were before it, the tokens taken for it."""

    sent_at: float
    number: int
    tokens: float


class Limiter:
    """The limits of one service for a run with up to `concurrency` requests in flight.

    `requests_per_minute` and `tokens_per_minute` are the user's; None leaves them to be found out.
    `in_flight` counts the requests on their way, nothing goes out before `paused_until`, `pace` learns.
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
        self.pace = Pace()
        self._ceiling = math.inf if requests_per_minute is None else requests_per_minute / 60
        self._requests = _Bucket(self._ceiling, 2.0, 1.0, 0.0)
        per_s = math.inf if tokens_per_minute is None else tokens_per_minute / 60
        self._tokens = _Bucket(per_s, per_s, per_s, 0.0)
        self._started: float | None = None
        self._replies = self._refused_in_a_row = 0
        self._per_request = _TOKENS_AT_FIRST

    def wait(self, now: float) -> float:
        """Return the seconds until a request may go out; 0: now, infinite: not before an answer comes."""
        if self.in_flight >= self._window(now):
            return math.inf if self.in_flight >= self._concurrency else 1.0 / _WINDOW_PER_S
        if now < self.paused_until:
            return self.paused_until - now
        wait = self._tokens.wait(now, min(self._per_request, self._tokens.size))
        if self._paced:
            self._retarget(now)
            wait = max(wait, self._requests.wait(now, 1.0))
        return wait

    def take(self, now: float) -> Ticket:
        """Take one place in every limit; only after `wait` returned 0."""
        if self._started is None:
            self._started = now
        self.in_flight += 1
        number = self.pace.sent(now)
        if self._paced:
            self._requests.level -= 1.0
        self._tokens.level -= self._per_request
        return Ticket(now, number, self._per_request)

    def settled(self, ticket: Ticket, tokens: int | None = None) -> None:
        """Take note of an answer that is no 429; `tokens` is what it really used, None when unknown."""
        self.in_flight -= 1
        self._replies += 1
        self._refused_in_a_row = 0
        if tokens is not None:
            self._per_request += (tokens - self._per_request) / min(self._replies, _AVERAGE_OVER)
            self._tokens.level += ticket.tokens - tokens

    def dropped(self, ticket: Ticket) -> None:
        """Take note of a request without an answer; its tokens are given back."""
        self.in_flight -= 1
        self._tokens.level += ticket.tokens

    def refused(self, ticket: Ticket, now: float, told_s: float | None) -> float:
        """Take note of a 429 and pause everybody; returns the seconds until the next request.

        `told_s` is for how long the service asks to wait, None or 0 when it does not say.
        """
        self.dropped(ticket)
        if told_s:  # exactly then, only the next one of all who wait would pass
            pause = max(told_s, min(self._short_pause(now), _LONGEST_POLITE_S))
        else:
            pause = min(self._short_pause(now) * 2.0**self._refused_in_a_row, _LONGEST_PAUSE_S)
        if not self.pace.limited:  # the rest of the first burst is on its way, and its answers teach
            pause = max(pause, _PAUSE_S, min(now - ticket.sent_at, 1.0))
        resume_at = max(self.paused_until, now + pause)
        if self.pace.refused(ticket.number, now, resume_at - now):
            self._refused_in_a_row += 1
            self.paused_until = resume_at
            # At the time that the service names, one request may go out, however slow the pace has become.
            self._requests.level = max(self.pace.spare(pause), 1.0 if told_s else 0.0)
            self._requests.at = resume_at
        elif told_s:
            self.paused_until = resume_at
        return self.paused_until - now

    @property
    def _paced(self) -> bool:
        return self.pace.limited or self._ceiling < math.inf

    def _short_pause(self, now: float) -> float:
        rate = self.pace.rate(now)
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
        rate = min(self.pace.rate(now), self._ceiling)
        size = min(_CATCH_UP_SHARE * self.pace.burst, rate) if self.pace.limited else rate * _CATCH_UP_S
        self._requests.per_s, self._requests.size = rate, max(2.0, size)


class Pace:
    """The rate that is worth trying, learnt from `sent` and `refused`.

    `limit` is the refill rate as far as it is known, requests per second.
    """

    def __init__(self) -> None:
        self._sent = array("d")  # when each of the last requests went out; NaN once it is refused
        self._before = 0  # how many were sent before the first of these
        self._events = 0
        self._reacted_at = self._since = 0.0
        self._empty: deque[float] = deque(maxlen=_EMPTY_MOMENTS)
        self._base = math.inf
        self.limit: float | None = None
        self._doubt = _WIDEST
        self._doubles_s = _DOUBLES_S
        self._creep_s = 1.0
        self._first_reacted_at = 0.0
        # The first burst: when it began, how many requests passed, and in how many seconds.
        self._began = 0.0
        self._first_count = 0
        self._first_span = 0.0

    @property
    def limited(self) -> bool:
        """Whether the service has refused anything yet."""
        return self._events > 0

    @property
    def burst(self) -> float:
        """About how many requests at once a rested service takes; counts only after the first refusal."""
        return max(self._first_count - (self.limit or 0.0) * self._first_span, 1.0)

    def spare(self, pause_s: float) -> float:
        """Return how many requests at once are safe after a pause, once the limit is known."""
        return _SPARE * min(self.burst, (self.limit or 0.0) * pause_s)

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
        if self.limit is None:
            return float(self._base * 2.0 ** min(passed / self._doubles_s, 40.0))
        steps = passed / self._creep_s
        excess = self._doubt * (steps if steps <= 1.0 else 2.0 ** min(2.0 * (steps - 1.0), 40.0))
        return self._base * (1.0 + excess)

    def refused(self, number: int, now: float, pause_s: float) -> bool:
        """Learn from a refusal; returns False for one of the same burst as the last.

        `pause_s` is for how long nothing will be sent.
        """
        position = number - self._before
        if position < 0:
            return False  # sent too long ago to be remembered
        sent_at, self._sent[position] = self._sent[position], math.nan
        if self._events and sent_at <= self._reacted_at:
            return False
        passed = [at for at in self._sent if at < sent_at]
        if self._events == 0:
            self._first(passed, sent_at, now)
            # A dear refusal is worth a slow search, which tells the limit more exactly.
            self._doubles_s = min(max(_DOUBLES_PAUSES * pause_s, _DOUBLES_S), _SLOWEST_DOUBLES_S)
        else:
            self._again(passed, sent_at, pause_s)
        self._events += 1
        self._reacted_at, self._since = now, now + pause_s
        self._empty.append(sent_at)
        return True

    def _first(self, passed: list[float], sent_at: float, now: float) -> None:
        recent = [at for at in passed if at >= sent_at - _RECENT_S]
        self._began = recent[0] if recent else sent_at
        self._first_reacted_at = now
        self._first_count = len(recent)
        self._first_span = sent_at - self._began
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
        if self.limit is not None:
            bound = max(bound, _FALL * min(self.limit, tried))
            bound = min(bound, tried)
        # Without a limit yet, more was proved than tried when requests of the first burst arrive late.
        self._doubt = _WIDEST if bound > tried else min(max(_NOISE / counted, _NARROWEST), _WIDEST)
        self.limit = bound
        patience = _NARROWEST / self._doubt
        self._creep_s = patience * max(_PATIENCE_REQUESTS / bound, _PATIENCE_PAUSES * pause_s)
        self._base = bound * (1.0 - self._doubt * _UNDER)

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
