"""Several servers that share the work, and what becomes of one that fails."""

import socket

import pytest
from fake_openai import FakeOpenAI, Fault
from server_client import all_replied, ask, server_spec
from tiny_llm import numbered_requests as requests

from angle_data.annotators.endpoints import Patience
from angle_data.errors import StoppedError


def test_several_servers_share_the_work_and_a_slow_one_gets_less():
    with FakeOpenAI(latency_s=0.2) as slow, FakeOpenAI(latency_s=0.01) as fast:
        spec = server_spec(slow.url, base_urls=(slow.url, fast.url), concurrency=8)
        all_replied(*ask(spec, requests(80)), 80)
    assert 0 < len(slow.seen) < len(fast.seen) / 2


@pytest.mark.parametrize("unreachable", [True, False])
def test_a_server_that_fails_is_set_aside_while_another_works(caplog, unreachable):
    with FakeOpenAI(always=Fault(503, {"retry-after-ms": "5"})) as broken, FakeOpenAI() as server:
        url = closed_port() if unreachable else broken.url
        all_replied(*ask(server_spec(url, base_urls=(url, server.url)), requests(60)), 60)
    assert len(broken.seen) < 20
    assert caplog.text.count(f"{url} does not respond (") == 1


@pytest.mark.parametrize(("status", "words"), [(404, "has no model"), (401, "refuses access")])
def test_a_fatal_answer_names_its_server(status, words):
    with FakeOpenAI(latency_s=0.05) as works, FakeOpenAI(always=Fault(status)) as lacks:
        spec = server_spec(works.url, base_urls=(works.url, lacks.url))
        _, ended = ask(spec, requests(30))
    assert f"{lacks.url} {words}" in str(ended)
    assert works.url not in str(ended)


def test_a_server_that_refuses_everything_for_ten_minutes_ends_the_run():
    patience = Patience(retry_s=0.01, limited_s=0.2)
    with FakeOpenAI(always=Fault(429, {"retry-after-ms": "20"}, "quota of the day")) as server:
        outcomes, ended = ask(server_spec(server.url), requests(5), patience)
    assert isinstance(ended, StoppedError)
    assert "refused everything for" in str(ended)
    assert "quota of the day" in str(ended)
    assert (outcomes, len(server.seen) > 1) == ([], True)


def test_a_paused_server_leaves_the_work_to_the_other():
    with FakeOpenAI(faults=[Fault(429, {"Retry-After": "30"})]) as paused, FakeOpenAI() as server:
        spec = server_spec(paused.url, base_urls=(paused.url, server.url))
        all_replied(*ask(spec, requests(30)), 30)
    assert len(paused.seen) <= 4


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


@pytest.mark.parametrize("count", [1, 2])
def test_servers_that_cannot_be_reached_are_named(count):
    urls = tuple(closed_port() for _ in range(count))
    outcomes, ended = ask(server_spec(None, base_urls=urls), requests(5))
    assert outcomes == []
    assert str(ended).startswith(f"cannot reach {', '.join(urls)} (Connection refused); start the server, ")
