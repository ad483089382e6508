"""The server annotator over real sockets: what is retried, what ends a run, and that no key leaks."""

import asyncio
import logging
import socket
import time
from contextlib import aclosing

import pytest
from fake_openai import FakeOpenAI, Fault

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.openai_server import OpenAIServer
from angle_data.annotators.retry import retry_after
from angle_data.errors import AnnotatorError, CredentialsError

KEY = "sk-test-0123456789"


def requests(count, schema=None):
    for number in range(count):
        yield ChatRequest(
            key=f"{number:032x}",
            source_id=f"s{number}",
            source=f"text {number}",
            polarity="synonym",
            messages=({"role": "user", "content": f"prompt {number}"},),
            model="tiny",
            sampling=Sampling(temperature=0.5, max_tokens=64, seed=3, schema=schema),
        )


def server_spec(url, **changes):
    settings = {"concurrency": 4, "timeout_s": 30.0} | changes
    return AnnotatorSpec("tiny", "server", "tiny", base_url=url, **settings)


def ask(spec, wanted):
    """Every outcome of the stream, and the error that ended it, if one did."""
    outcomes, ended = [], None

    async def collect():
        async with aclosing(OpenAIServer(spec).stream(wanted)) as stream:
            async for outcome in stream:
                outcomes.append(outcome)

    try:
        asyncio.run(collect())
    except AnnotatorError as error:
        ended = error
    return outcomes, ended


def test_replies_carry_text_reason_usage_and_the_request_holds_the_settings():
    with FakeOpenAI(lambda body: f"answer to {body['messages'][0]['content']}") as server:
        outcomes, ended = ask(server_spec(server.url), requests(3))
    assert ended is None
    assert sorted((o.key[-1], o.text, o.finish_reason) for o in outcomes) == [
        (str(i), f"answer to prompt {i}", "stop") for i in range(3)
    ]
    assert outcomes[0].usage == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = server.seen[0].body
    assert (body["model"], body["temperature"], body["max_tokens"], body["seed"]) == ("tiny", 0.5, 64, 3)
    assert "response_format" not in body
    assert server.seen[0].authorization == "Bearer EMPTY"


def test_a_json_prompt_asks_for_its_schema():
    schema = {"type": "object", "properties": {"sentences": {"type": "array"}}}
    with FakeOpenAI() as server:
        ask(server_spec(server.url), requests(1, schema))
    response_format = server.seen[0].body["response_format"]
    assert response_format["type"] == "json_schema"
    assert response_format["json_schema"]["schema"] == schema


def test_requests_in_flight_reach_the_concurrency_and_never_exceed_it():
    with FakeOpenAI(latency_s=0.05) as server:
        outcomes, _ = ask(server_spec(server.url, concurrency=5), requests(40))
    assert len(outcomes) == 40
    assert max(seen.in_flight for seen in server.seen) == 5


def test_requests_are_pulled_lazily():
    """A list made of the whole iterable would cost gigabytes at two million texts."""
    pulled = 0

    def counted():
        nonlocal pulled
        for request in requests(1000):
            pulled += 1
            yield request

    async def first_reply(url):
        async with aclosing(OpenAIServer(server_spec(url)).stream(counted())) as stream:
            await anext(stream)

    with FakeOpenAI() as server:
        asyncio.run(first_reply(server.url))
    assert pulled <= 1 + 4 + 4 + 4  # yielded, queued, waiting for room, in flight


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, {"retry-after-ms": "20"}),
        Fault(500, {"retry-after-ms": "20"}),
        Fault(503, {"Retry-After": "0.02"}),
        Fault(408, {"retry-after-ms": "20"}),
        Fault(409, {"retry-after-ms": "20"}),
        Fault(kind="reset"),
        Fault(kind="broken_json"),
        Fault(kind="shape"),
    ],
    ids=["429", "500", "503", "408", "409", "reset", "broken json", "no completion"],
)
def test_passing_faults_are_tried_again(fault):
    with FakeOpenAI(faults=[None, fault, fault]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(2))
    assert ended is None
    assert [type(outcome) for outcome in outcomes] == [Reply, Reply]
    assert len(server.seen) == 4


def test_429s_do_not_use_up_attempts():
    told = Fault(429, {"retry-after-ms": "5"})
    with FakeOpenAI(faults=[told] * 15) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(1))
    assert ended is None
    assert isinstance(outcomes[0], Reply)
    assert len(server.seen) == 16


def test_an_error_that_does_not_pass_becomes_a_failure_after_six_attempts():
    broken = Fault(500, {"retry-after-ms": "5"}, message="out of memory")
    with FakeOpenAI(faults=[broken] * 6) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(2))
    assert ended is None
    assert outcomes[0] == Failure(f"{0:032x}", "http_500", "out of memory")
    assert isinstance(outcomes[1], Reply)
    assert len(server.seen) == 7


def test_a_hanging_request_times_out_and_is_tried_again():
    with FakeOpenAI(faults=[Fault(kind="hang")]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1, timeout_s=0.2), requests(1))
    assert ended is None
    assert isinstance(outcomes[0], Reply)
    assert len(server.seen) == 2


def test_waits_as_long_as_retry_after_says():
    with FakeOpenAI(faults=[Fault(429, {"Retry-After": "0.4"})]) as server:
        started = time.monotonic()
        ask(server_spec(server.url), requests(1))
        assert time.monotonic() - started >= 0.4


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


def test_one_400_is_a_failure_of_that_request_alone():
    with FakeOpenAI(faults=[None, Fault(400, message="too long"), None]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(3))
    assert ended is None
    assert [getattr(outcome, "message", "ok") for outcome in outcomes] == ["ok", "too long", "ok"]
    assert len(server.seen) == 3


def test_five_equal_400s_in_a_row_end_the_run_with_the_servers_words():
    with FakeOpenAI(always=Fault(400, message="unknown parameter: seed")) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(100))
    assert len(server.seen) == 5
    assert len(outcomes) == 4
    assert str(ended) == f"{server.url} rejects every request: unknown parameter: seed"


def test_different_400s_do_not_end_the_run():
    faults = [Fault(400, message=f"text {i} is too long") for i in range(10)]
    with FakeOpenAI(faults=faults) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(12))
    assert ended is None
    assert len(outcomes) == 12


def test_twenty_failures_in_a_row_end_the_run():
    faults = [Fault(400, message=f"no {i}") for i in range(30)]
    with FakeOpenAI(faults=faults) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(30))
    assert len(outcomes) == 19
    assert "20 requests in a row failed, the last one with: no 19" in str(ended)


def test_one_success_starts_both_counts_anew():
    equal, others = [Fault(400, message="no")] * 4, [Fault(400, message=f"no {i}") for i in range(15)]
    with FakeOpenAI(faults=[*equal, None, *equal, *others, None, *others]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(40))
    assert ended is None
    assert len(outcomes) == 40


def test_after_a_fatal_error_no_worker_sends_another_request():
    with FakeOpenAI(faults=[Fault(404)], latency_s=0.02) as server:
        _, ended = ask(server_spec(server.url, concurrency=3), requests(100))
    assert ended is not None
    assert len(server.seen) < 10


def test_replies_before_a_fatal_error_are_kept(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeOpenAI(faults=[None, None, Fault(401)], key=KEY) as server:
        spec = server_spec(server.url, concurrency=1, api_key_env="MY_KEY")
        outcomes, ended = ask(spec, requests(9))
    assert [type(outcome) for outcome in outcomes] == [Reply, Reply]
    assert isinstance(ended, CredentialsError)
    assert len(server.seen) == 3


def test_a_fatal_error_does_not_wait_for_requests_that_are_waiting_to_retry():
    faults = [Fault(429, {"Retry-After": "3600"}), Fault(404, message="no such model")]
    with FakeOpenAI(faults=faults) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=2), requests(2))
    assert outcomes == []
    assert "no such model" in str(ended)


def test_a_wrong_key_names_its_variable_and_shows_no_key(monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", "sk-wrong-987654321")
    caplog.set_level(logging.DEBUG)
    with FakeOpenAI(key=KEY) as server:
        spec = server_spec(server.url, api_key_env="MY_KEY")
        outcomes, ended = ask(spec, requests(50))
    assert outcomes == []
    assert isinstance(ended, CredentialsError)
    assert str(ended) == (f"{server.url} rejects the API key in MY_KEY (HTTP 401); set MY_KEY to a valid key")
    assert len(server.seen) <= 4
    assert "sk-wrong" not in caplog.text + repr(ended) + repr(spec)


def test_a_server_that_wants_a_key_gets_none_unasked(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeOpenAI(key=KEY) as server:
        _, ended = ask(server_spec(server.url), requests(1))
    assert server.seen[0].authorization == "Bearer EMPTY"
    assert "wants an API key (HTTP 401); name its variable with --api-key-env" in str(ended)


def test_a_key_in_the_servers_words_is_masked(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeOpenAI(always=Fault(400, message=f"bad header Bearer {KEY}")) as server:
        outcomes, _ = ask(server_spec(server.url, api_key_env="MY_KEY"), requests(1))
    assert outcomes[0].message == "bad header Bearer [key]"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_noticed_before_anything_is_sent(monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(CredentialsError, match="set the environment variable MY_KEY"):
        OpenAIServer(server_spec("http://127.0.0.1:9/v1", api_key_env="MY_KEY"))


def test_an_unknown_model_ends_the_run_at_once():
    with FakeOpenAI(model="other") as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(9))
    assert outcomes == []
    assert "knows no model 'tiny', or its address lacks /v1" in str(ended)
    assert len(server.seen) == 1


def test_used_up_quota_is_not_waited_for():
    fault = Fault(429, {"Retry-After": "3600"}, "You exceeded your current quota", "insufficient_quota")
    with FakeOpenAI(always=fault) as server:
        _, ended = ask(server_spec(server.url, concurrency=1), requests(3))
    assert "the account has no quota left: You exceeded your current quota" in str(ended)
    assert len(server.seen) == 1


def test_an_unreachable_server_is_named_within_seconds():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _, ended = ask(server_spec(f"http://127.0.0.1:{port}/v1"), requests(5))
    assert str(ended).startswith(f"cannot reach http://127.0.0.1:{port}/v1 (")
    assert "start the server or correct --base-url" in str(ended)


def test_a_server_that_drops_out_after_its_first_answer_gets_more_attempts():
    reset = Fault(kind="reset")
    with FakeOpenAI(faults=[None, reset, reset, reset]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(2))
    assert ended is None
    assert [type(outcome) for outcome in outcomes] == [Reply, Reply]


def test_an_error_while_reading_the_texts_ends_the_stream():
    def broken():
        yield from requests(2)
        raise AnnotatorError("line 3 is bad")

    with FakeOpenAI() as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=2), broken())
    assert len(outcomes) == 2
    assert str(ended) == "line 3 is bad"
