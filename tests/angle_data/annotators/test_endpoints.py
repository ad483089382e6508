"""The turns of waiting requests, and what is said of an address that refuses for long; on a made-up clock."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

from angle_data.annotators.endpoints import Endpoint, Endpoints, Patience
from angle_data.annotators.limits import Limiter


@pytest.fixture
def clock():
    """The time that the addresses see; the test moves it on."""
    return SimpleNamespace(now=100.0)


def one_address(clock):
    return Endpoints([Endpoint("u", "the API", Limiter(1), "text")], Patience(), lambda: clock.now)


def test_what_is_asked_again_goes_before_what_was_not_asked_yet(clock):
    async def order():
        endpoints, came = one_address(clock), []

        async def wait(name, retrying):
            came.append((name, await endpoints.place(retrying=retrying)))

        first = await endpoints.place()
        tasks = [asyncio.create_task(wait("fresh", retrying=False))]
        tasks.append(asyncio.create_task(wait("again", retrying=True)))
        await asyncio.sleep(0)
        for _ in tasks:
            endpoints.settled(first)
            await asyncio.sleep(0)
            first = came[-1][1]
        await asyncio.gather(*tasks)
        return [name for name, _ in came]

    assert asyncio.run(order()) == ["again", "fresh"]


def test_the_pauses_for_a_server_that_is_away_double_up_to_about_three_minutes():
    """In simulated time: tried whenever it may be, until the patience is at its end."""
    now, patience, pauses = 100.0, Patience(), []
    endpoint = Endpoint("u", "n", Limiter(1), "text")
    endpoint.answered()
    while now - 100.0 < patience.total_s:
        endpoint.failed(connected=False, now=now, patience=patience, told_s=None)
        pauses.append(endpoint.pause(now))
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]
    endpoint.failed(connected=True, now=now, patience=patience, told_s=100.0)
    assert endpoint.pause(now) == 100.0
    endpoint.answered()
    assert endpoint.pause(now) == 0.0


def test_a_broken_connection_or_four_set_nothing_aside():
    endpoint = Endpoint("u", "n", Limiter(1), "text")
    for number in range(1, 6):
        endpoint.failed(connected=True, now=1.0, patience=Patience(), told_s=None)
        assert endpoint.is_down == (number == 5)


def test_a_long_wait_shows_what_the_server_said(clock, caplog):
    caplog.set_level(logging.INFO, logger="angle")
    endpoints = one_address(clock)
    place, _ = endpoints.take(clock.now)
    endpoints.refused(place, 48.0, "Limit 200 requests per day")
    assert caplog.messages == ["the API asks for patience (Limit 200 requests per day): waiting 48 s"]
