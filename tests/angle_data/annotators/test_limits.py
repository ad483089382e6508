"""Limits of one service: what refusals and the user say, on a clock of the test's own."""

import heapq
import itertools
import math
import random
import re

import pytest

from angle_data.annotators.limits import Limiter
from angle_data.http import retry_after, said_of_wait

# Counted by the simulation below for these seeds; the goals are 0.95 and 0.02.
GOODPUT, REFUSED = 0.95, 0.02


class Service:
    """A token bucket that answers after `latency_s`."""

    def __init__(self, per_s, burst, told="none"):
        self.per_s, self.burst, self.told = per_s, burst, told
        self.level, self.at = float(burst), 0.0

    def admit(self, now):
        self.level = min(self.level + (now - self.at) * self.per_s, self.burst)
        self.at = now
        refused = self.level < 1
        wait = (1 - self.level) / self.per_s
        self.level -= not refused
        told = {"none": None, "ms": math.ceil(wait * 1000) / 1000, "header": float(math.ceil(wait))}
        return refused, told[self.told]


def simulate(limiter, service, *, number=2000, concurrency=64, latency_s=0.05, sigma=0.3, start=0.0):
    """Run `number` requests; the seconds they took, the refusals, and the moments when each went out."""
    rng, order, now, done, refusals, sent = random.Random(0), itertools.count(), start, 0, 0, []
    free, to_send, events, wake = concurrency, number, [], None
    while done < number:
        while free and to_send:
            wait = limiter.wait(now)
            if wait > 0:
                if math.isfinite(wait) and (wake is None or now + wait < wake):
                    wake = now + wait
                    heapq.heappush(events, (wake + rng.random() * 0.001, next(order), "wake", wake, None))
                break
            ticket = limiter.take(now)
            free, to_send = free - 1, to_send - 1
            sent.append(now)
            heapq.heappush(events, (now + 0.001 * rng.random(), next(order), "arrived", ticket, None))
        now, _, kind, ticket, answer = heapq.heappop(events)
        if kind == "wake":
            wake = None if ticket == wake else wake
        elif kind == "arrived":
            late = now + latency_s * math.exp(sigma * rng.gauss(0, 1))
            heapq.heappush(events, (late, next(order), "answered", ticket, service.admit(now)))
        else:
            refused, told = answer
            free += 1
            if refused:
                refusals, to_send = refusals + 1, to_send + 1
                limiter.refused(ticket, now, told)
            else:
                done += 1
                limiter.settled(ticket, 15)
    return now - start, refusals, sent


@pytest.mark.parametrize("told", ["header", "ms", "none"])
@pytest.mark.parametrize("burst", [16, 50])
def test_the_limit_is_found_and_kept(burst, told):
    service = Service(50.0, burst, told)
    seconds, refusals, _ = simulate(Limiter(64), service)
    assert 2000 / seconds / 50 >= GOODPUT
    assert refusals / (2000 + refusals) <= REFUSED


@pytest.mark.parametrize(("old", "new", "number", "share"), [(50, 200, 8000, 0.6), (200, 100, 1000, 0.9)])
def test_a_limit_that_rises_or_falls_is_noticed(old, new, number, share):
    limiter, service = Limiter(64), Service(old, 16)
    passed, _, _ = simulate(limiter, service, number=1000)
    service.per_s = new
    seconds, refusals, _ = simulate(limiter, service, number=number, start=passed)
    assert number / seconds / new >= share
    assert new > old or refusals <= 80  # a halved limit is learnt in steps


def test_an_unlimited_service_is_not_slowed():
    seconds, refusals, sent = simulate(Limiter(64), Service(1e9, 10**9), sigma=0.0)
    assert refusals == 0
    assert 2000 * 0.05 / 64 / seconds >= 0.85
    assert len([at for at in sent if at == 0.0]) == 8  # a limited one would refuse these and few more


def test_a_users_limit_spreads_requests_evenly():
    _, refusals, sent = simulate(Limiter(64, requests_per_minute=600), Service(1e9, 10**9), number=100)
    assert refusals == 0
    for start in range(10):
        assert len([at for at in sent if start <= at < start + 1]) <= 12  # ten a second, two made good


def test_a_users_token_limit_counts_what_replies_used():
    """15 tokens each, 900 a minute: one a second, though 500 were expected at first."""
    seconds, _, sent = simulate(Limiter(8, tokens_per_minute=900), Service(1e9, 10**9), number=60)
    assert 55 <= 60 / (seconds / 60) <= 75
    assert sent[0] == 0.0


def test_a_refusal_pauses_everybody_for_as_long_as_told():
    limiter = Limiter(8)
    first, second = limiter.take(0.0), limiter.take(0.0)
    limiter.refused(first, 0.1, 3.0)
    assert limiter.wait(0.2) == pytest.approx(2.9)
    limiter.refused(second, 0.2, 5.0)
    assert limiter.wait(0.2) == pytest.approx(5.0)


def test_refusals_without_a_success_between_them_pause_ever_longer():
    limiter, now, pauses = Limiter(8), 0.0, []
    for _ in range(12):
        now += limiter.wait(now)
        ticket = limiter.take(now)
        now += 0.01
        pauses.append(limiter.refused(ticket, now, None))
    assert pauses[0] < 0.5
    assert pauses[5] > 2.0
    assert max(pauses) == pytest.approx(60.0)


@pytest.mark.parametrize("told_s", [1.0, None])
def test_a_wake_up_at_the_very_end_of_a_pause_finds_numbers(told_s):
    """The first refusal ends an unlimited rate: nothing has come back yet, and it comes back from then on."""
    limiter = Limiter(64)
    end = limiter.refused(limiter.take(0.0), 0.0, told_s)
    waits = [limiter.wait(end), limiter.wait(end), limiter.wait(end + 60.0)]
    assert all(math.isfinite(wait) for wait in waits)
    assert waits[2] == 0.0
    limiter.settled(limiter.take(end + 60.0))
    assert math.isfinite(limiter.wait(end + 61.0))


def test_who_is_told_when_to_come_again_may_send_one_request_then():
    told, untold = Limiter(64), Limiter(64)
    at = told.refused(told.take(0.0), 0.1, 3.0) + 0.1
    assert told.wait(at) == 0.0
    told.take(at)
    assert told.wait(at) > 0.0
    at = untold.refused(untold.take(0.0), 0.1, None) + 0.1
    assert untold.wait(at) > 0.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_reads_every_form(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_long_wait_is_said_with_who_why_how_long_and_until_when():
    said = said_of_wait("http://h/v1", "Rate limit reached", 300.0)
    assert re.fullmatch(
        r"http://h/v1 asks for patience \(Rate limit reached\): waiting 300 s, until \d\d:\d\d:\d\d", said
    )
    assert said_of_wait("h", "w", 1e300)  # no clock overflows
