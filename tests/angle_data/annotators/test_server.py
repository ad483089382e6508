"""The server annotator over real sockets: what is retried, what ends a run, and that no key leaks."""

import asyncio
import email.utils
import json
import logging
import time
from contextlib import aclosing

import pytest
from fake_openai import FakeOpenAI, Fault, Limit
from server_client import KEY, SCHEMA, all_replied, ask, server_spec, short_patience
from tiny_llm import numbered_requests as requests

from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.server import OpenAIServer
from angle_data.errors import AnnotatorError, CredentialsError, StoppedError
from angle_data.http import retry_after


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
        *(Fault(status, {"retry-after-ms": "20"}) for status in (429, 500, 408, 409)),
        Fault(503, {"Retry-After": "0.02"}),
        *(Fault(kind=kind) for kind in ("reset", "broken_json", "cut", "shape")),
    ],
    ids=lambda fault: f"{fault.kind} {fault.status}",
)
def test_passing_faults_are_tried_again(fault):
    with FakeOpenAI(faults=[None, fault, fault]) as server:
        all_replied(*ask(server_spec(server.url, concurrency=1), requests(2)), 2)
    assert len(server.seen) == 4


def test_the_first_timeout_is_a_warning_that_names_the_option(caplog):
    with FakeOpenAI(faults=[Fault(kind="hang")] * 3) as server:
        spec = server_spec(server.url, concurrency=3, engine_options={"timeout_s": 0.2})
        all_replied(*ask(spec, requests(3)), 3)
    message = "no answer within 0.2 s; give it longer with --engine-option timeout_s=SECONDS, or send less"
    assert caplog.text.count(f"{server.url}: {message}") == 1


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_server_that_goes_away_and_comes_back_costs_no_request(caplog, concurrency):
    """In 0.4 seconds the six attempts of each request would be used up, whatever the pauses."""
    caplog.set_level(logging.INFO, logger="angle")
    server = FakeOpenAI(latency_s=0.01)
    server.__enter__()
    back = FakeOpenAI(port=int(server.url.rsplit(":", 1)[1].removesuffix("/v1")))

    def seen(count):
        if count == 10:
            server.__exit__()
            asyncio.get_running_loop().call_later(0.4, back.__enter__)

    spec = server_spec(server.url, concurrency=concurrency)
    outcomes, ended = ask(spec, requests(60), short_patience(60.0), seen)
    back.__exit__()
    all_replied(outcomes, ended, 60)
    assert caplog.text.count(f"{server.url} does not respond (") == 1
    assert caplog.text.count(f"{server.url} answers again") == 1


def test_a_server_that_stays_away_stops_the_run_with_everything_kept():
    server = FakeOpenAI(latency_s=0.01)
    server.__enter__()
    spec = server_spec(server.url, concurrency=8)
    outcomes, ended = ask(spec, requests(60), short_patience(0.1), lambda n: n == 10 and server.__exit__())
    assert isinstance(ended, StoppedError)
    assert str(ended).startswith(f"no answer from {server.url} for ")
    assert "run the same command again when the server is back" in str(ended)
    assert {type(outcome) for outcome in outcomes} == {Reply}


def test_a_gateway_without_its_server_is_asked_by_one_request_at_a_time():
    """Eight are in flight, and at most four fail before the pause begins: from the 13th on, one by one."""
    away = Fault(503, message="no backend")
    with FakeOpenAI(faults=[*[None] * 4, *[away] * 20], latency_s=0.005) as server:
        outcomes, _ = ask(server_spec(server.url, concurrency=8), requests(40), short_patience(60.0))
    assert [type(outcome) for outcome in outcomes] == [Reply] * 40
    assert {seen.in_flight for seen in server.seen[4 + 12 : 4 + 20]} == {1}


@pytest.mark.parametrize("status", [502, 503])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_gateway_whose_server_is_not_there_yet_is_waited_for(status, concurrency):
    starting = [Fault(status, {"retry-after-ms": "1"}, message="no backend")] * 40
    with FakeOpenAI(faults=starting) as server:
        spec = server_spec(server.url, concurrency=concurrency)
        all_replied(*ask(spec, requests(12), short_patience(60.0)), 12)
    with FakeOpenAI(always=starting[0]) as server:
        spec = server_spec(server.url, concurrency=concurrency)
        outcomes, ended = ask(spec, requests(12), short_patience(0.2))
    assert isinstance(ended, StoppedError)
    assert (outcomes, str(ended).startswith(f"no answer from {server.url} for ")) == ([], True)


def test_the_tokens_of_answers_without_a_reply_count():
    empty = [Fault(kind="shape")] * 2
    with FakeOpenAI(faults=[*empty, None, *empty * 2]) as server:
        outcomes, _ = ask(server_spec(server.url, concurrency=1), requests(2))
    assert [type(outcome) for outcome in outcomes] == [Reply, Failure]
    assert outcomes[0].usage == {"prompt_tokens": 10 + 14, "completion_tokens": 5, "total_tokens": 15 + 14}
    assert outcomes[1].usage == {"prompt_tokens": 28, "total_tokens": 28}


@pytest.mark.parametrize("fault", [None, Fault(503), Fault(400, message="no response_format here")])
def test_winding_down_waits_for_the_answer_under_way_and_makes_no_second_attempt(fault):
    async def collect(annotator, server):
        async def wind_down():
            while not server.seen:
                await asyncio.sleep(0.01)
            return annotator.wind_down()

        under_way = asyncio.create_task(wind_down())
        async with aclosing(annotator.stream(requests(9, schema={"type": "object"}))) as stream:
            outcomes = [type(outcome) async for outcome in stream]
        return outcomes, await under_way

    with FakeOpenAI(always=fault, latency_s=0.5) as server:
        annotator = OpenAIServer(server_spec(server.url, concurrency=1))
        assert asyncio.run(collect(annotator, server)) == ([] if fault else [Reply], 1)
    assert len(server.seen) == 1


def test_a_server_that_wants_a_key_gets_none_unasked(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeOpenAI(key=KEY) as server:
        _, ended = ask(server_spec(server.url), requests(1))
    assert server.seen[0].authorization == "Bearer EMPTY"
    assert "; if it wants an API key, name its variable with --api-key-env" in str(ended)
    assert "api-key-env below [llm-label] in angle.toml" in str(ended)


@pytest.mark.parametrize("name", ["MY_KEY", None])
def test_a_403_shows_what_the_server_said_beside_the_advice(monkeypatch, name):
    monkeypatch.setenv("MY_KEY", KEY)
    message = f"Country not supported for {KEY}"
    with FakeOpenAI(always=Fault(403, message=message)) as server:
        _, ended = ask(server_spec(server.url, api_key_env=name), requests(1))
    assert isinstance(ended, CredentialsError)
    said = message.replace(KEY, "[key]") if name else message
    assert str(ended).startswith(f"{server.url} refuses access (HTTP 403): {said}; ")
    assert ("check the key in MY_KEY" in str(ended)) == (name is not None)
    assert ("--api-key-env" in str(ended)) == (name is None)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_noticed_before_anything_is_sent(monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(CredentialsError, match="set the environment variable MY_KEY"):
        OpenAIServer(server_spec("http://127.0.0.1:9/v1", api_key_env="MY_KEY"))


@pytest.mark.parametrize(
    ("formats", "asked"),
    [
        (("json_schema", "json_object", "text"), ["json_schema"] * 4),
        (("json_object", "text"), ["json_schema", *["json_object"] * 4]),
        (("text",), ["json_schema", "json_object", *[None] * 4]),
    ],
    ids=["schema", "object", "text"],
)
def test_a_server_without_schemas_is_asked_for_less_once(formats, asked, caplog):
    with FakeOpenAI(formats=formats) as server:
        all_replied(*ask(server_spec(server.url, concurrency=1), requests(4, schema=SCHEMA)), 4)
    found = [seen.body.get("response_format", {"type": None})["type"] for seen in server.seen]
    assert found == asked
    assert caplog.text.count("asking for") == len(asked) - 4


def test_a_server_of_ones_own_gets_lengths_unless_it_refuses_them(caplog):
    said = "Invalid schema for response_format 'sentences': 'maxLength' is not permitted."
    schema = {"type": "object", "properties": {"sentence": {"type": "string"}}}
    with FakeOpenAI(faults=[None, Fault(400, message=said)]) as server:
        outcomes, _ = ask(server_spec(server.url, concurrency=1), requests(3, schema=schema))
    assert [type(outcome) for outcome in outcomes] == [Reply] * 3
    schemas = [json.dumps(seen.body["response_format"]["json_schema"]["schema"]) for seen in server.seen]
    assert ["maxLength" in schema for schema in schemas] == [True, True, False, False]
    assert "asking for json_schema and max_tokens now" in caplog.text


def test_requests_in_flight_do_not_lower_the_form_twice(caplog):
    with FakeOpenAI(formats=("json_object", "text"), latency_s=0.02) as server:
        all_replied(*ask(server_spec(server.url, concurrency=8), requests(20, schema=SCHEMA)), 20)
    assert all("response_format" in seen.body for seen in server.seen)
    assert caplog.text.count("asking for") == 1


def test_the_glm_cloud_gets_no_schema_no_seed_and_does_not_think():
    with FakeOpenAI(extra=["thinking"]) as server:
        outcomes, _ = ask(server_spec(server.url, dialect="glm"), requests(1, schema=SCHEMA))
    body = server.seen[0].body
    assert isinstance(outcomes[0], Reply)
    assert body["response_format"] == {"type": "json_object"}
    assert body["thinking"] == {"type": "disabled"}
    assert "seed" not in body


def test_a_real_limit_of_tokens_is_found():
    limit = Limit(tokens_per_s=3000, burst=150)  # 200 requests a second
    with FakeOpenAI(limit=limit, latency_s=0.005) as server:
        all_replied(*ask(server_spec(server.url, concurrency=16), requests(200)), 200)
    assert server.counts["200"] == 200


PAGE = Fault(kind="html")
ELSEWHERE = Fault(301, {"Location": "https://else.example/v1?key=secret"})
NO_QUOTA = {
    "no quota": Fault(429, {"Retry-After": "3600"}, "You exceeded your current quota", "insufficient_quota"),
    "no quota, GLM": Fault(429, {}, "余额不足或无可用资源包,请充值。", "1113"),
    "no quota, number": Fault(429, {}, "余额不足或无可用资源包,请充值。", 1113),
    "no quota, type": Fault(429, {}, "no money", error_type="insufficient_quota"),
}


@pytest.mark.parametrize(
    ("server", "words", "attempts"),
    [
        ({"model": "other"}, "URL has no model 'tiny', or its address lacks /v1: ", 1),
        *(({"always": f}, f"URL: the account has no quota left: {f.message}", 1) for f in NO_QUOTA.values()),
        ({"always": PAGE}, "URL: the answer is a web page; does --base-url end in /v1?", 3),
        ({"always": ELSEWHERE}, "URL: it redirects to https://else.example/v1; give that", 1),
    ],
    ids=["unknown model", *NO_QUOTA, "web page", "redirect"],
)
def test_what_no_retry_helps_ends_the_run_with_the_services_words(server, words, attempts):
    with FakeOpenAI(**server) as fake:
        outcomes, ended = ask(server_spec(fake.url, concurrency=1), requests(9))
    assert outcomes == []
    assert str(ended).replace(fake.url, "URL").startswith(words)
    assert len(fake.seen) == attempts


NO = Fault(400, message="no")
BROKEN = Fault(500, {"retry-after-ms": "1"}, message="out of memory")
OFTEN = [BROKEN] * 120


@pytest.mark.parametrize(
    ("faults", "kept", "kind", "words"),
    [
        ([Fault(400, message="no seed")] * 9, 4, AnnotatorError, "URL rejects every request: no seed"),
        ([Fault(400, message=f"no {i}") for i in range(30)], 19, AnnotatorError, "URL: 20 requests in a row"),
        ([None, *[NO] * 19, None, *[NO] * 30], 40, AnnotatorError, "URL rejects every request: no"),
        ([None, *[Fault(400, message=f"{i}") for i in range(120)]], 100, AnnotatorError, "URL: 100 requests"),
        (
            OFTEN,
            19,
            AnnotatorError,
            "URL: 20 requests in a row failed, the last one with: out of memory; mend",
        ),
        ([None, *OFTEN], 20, StoppedError, "URL: 20 requests in a row failed, the last one with: out of mem"),
    ],
    ids=["equal at first", "different at first", "equal later", "different later", "broken", "broken later"],
)
def test_too_many_failures_in_a_row_end_the_run(faults, kept, kind, words):
    with FakeOpenAI(faults=faults) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=1), requests(200))
    assert len(outcomes) == kept
    assert type(ended) is kind
    assert str(ended).replace(server.url, "URL").startswith(words)
    assert ("mend the server" in str(ended)) == (faults is OFTEN)


TOO_LARGE = Fault(429, {}, "Request too large for tiny: Limit 10, Requested 20", "rate_limit_exceeded")
AWAY = Fault(502, {"retry-after-ms": "5"}, message="bad gateway")


@pytest.mark.parametrize(
    ("faults", "found", "seen", "words"),
    [
        ([BROKEN] * 6, ["http_500: out of memory", "ok", "ok"], 8, None),
        ([None, *[AWAY] * 6], ["ok", "http_502: bad gateway", "ok"], 8, None),
        ([None, Fault(400, message="no good")], ["ok", "http_400: no good", "ok"], 3, None),
        ([None, TOO_LARGE], ["ok", f"http_429: {TOO_LARGE.message}", "ok"], 3, None),
        ([None, None, Fault(401)], ["ok", "ok"], 3, "URL refuses access"),
        ([None, Fault(404, message="no such model")], ["ok"], 2, "URL has no model 'tiny', or its"),
    ],
    ids=["does not pass", "never survived", "refused", "too large", "no key", "no model"],
)
def test_a_failure_costs_its_own_request_and_a_fatal_one_keeps_the_replies(faults, found, seen, words):
    with FakeOpenAI(faults=faults) as server:
        spec = server_spec(server.url, concurrency=1)
        outcomes, ended = ask(spec, requests(3, schema=SCHEMA), short_patience(60.0))
    said = [f"{o.kind}: {o.message}" if isinstance(o, Failure) else "ok" for o in outcomes]
    assert (said, len(server.seen)) == (found, seen)
    assert (ended is None) == (words is None)
    assert words is None or str(ended).replace(server.url, "URL").startswith(words)
    asked = [request.body["response_format"]["json_schema"]["schema"] for request in server.seen]
    assert asked == [SCHEMA] * seen  # no refusal of another kind makes the form laxer


LONG = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
    "OpenAI's window": "Your input exceeds the context window of this model. Please adjust your input.",
    "OpenAI's characters": "Invalid 'messages[0].content': string too long. Expected at most 1048576.",
    "vLLM": "The decoder prompt (length 4099) is longer than the maximum model length of 2048.",
    "llama.cpp": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "Gemini": "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "Anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "Bedrock": "Input is too long for requested model.",
    "a server of one's own": "The text is too long.",
    "a sequence": "Input sequence is too long",
    "two words": "Prompt too long",
    "OpenAI's input": "Invalid 'input': string too long.",
    "what is allowed": "Prompt is longer than the 4096 tokens allowed",
}
OF_SETTINGS = {"OpenAI's user": "'user' is too long", "stop": "Invalid 'stop[0]': string too long"}
OF_SETTINGS |= {"cache": "Invalid 'prompt_cache_key': string too long. Expected at most 64."}
OF_SETTINGS |= {"a speaker's name": "Invalid 'messages[0].name': string too long."}


def test_a_text_that_is_too_long_is_told_from_a_setting_that_is_by_what_each_vendor_says():
    refused = {vendor: Fault(400, message=said) for vendor, said in (LONG | OF_SETTINGS).items()}
    refused["GLM"] = Fault(400, message="Prompt exceeds max length", code="1261")
    again = Fault(500, {"retry-after-ms": "1"}, message="Context size has been exceeded.")  # llama.cpp, busy
    faults = [None, *refused.values(), again]
    with FakeOpenAI(spoils=lambda prompt: faults[int(prompt.split()[-1])]) as server:
        outcomes, _ = ask(server_spec(server.url, concurrency=1), requests(len(faults)))
    kinds = [outcome.kind for outcome in outcomes[1:]]
    expected = dict.fromkeys(refused, "too_long") | dict.fromkeys(OF_SETTINGS, "http_400")
    assert dict(zip([*refused, "busy"], kinds, strict=True)) == {**expected, "busy": "http_500"}


def test_a_fatal_error_does_not_wait_for_requests_that_are_waiting_to_retry():
    with FakeOpenAI(faults=[Fault(429, {"Retry-After": "500"}), Fault(404, message="none")]) as server:
        outcomes, ended = ask(server_spec(server.url, concurrency=2), requests(2))
    assert (outcomes, "none" in str(ended)) == ([], True)


@pytest.mark.parametrize(
    "told", ["86400", "1e9", str(int(time.time()) + 5000)], ids=["a day", "a billion", "a moment"]
)  # ids that do not hold the time: each process of the tests must find the same tests
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_of_more_than_ten_minutes_ends_the_run_and_says_until_when(status, told):
    with FakeOpenAI(always=Fault(status, {"Retry-After": told})) as fake:
        outcomes, ended = ask(server_spec(fake.url, concurrency=1), requests(3))
    assert (outcomes, type(ended), len(fake.seen)) == ([], StoppedError, 1)
    assert "asks to wait" in str(ended)
    assert "until 20" in str(ended)


def test_a_clock_of_the_server_that_is_an_hour_ahead_costs_no_hour():
    ahead = time.time() + 3600
    headers = {"Date": email.utils.formatdate(ahead, usegmt=True)}
    headers["Retry-After"] = email.utils.formatdate(ahead + 7, usegmt=True)
    assert retry_after({name.lower(): value for name, value in headers.items()}) == 7


def test_an_empty_account_is_named_and_the_run_goes_on_later():
    with FakeOpenAI(always=Fault(402, message="Insufficient Balance")) as fake:
        _, ended = ask(server_spec(fake.url, concurrency=1), requests(3))
    assert type(ended) is StoppedError
    assert "the account is empty (HTTP 402): Insufficient Balance" in str(ended)
    said = {"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}}
    with FakeOpenAI(lambda body: said) as fake:
        _, ended = ask(server_spec(fake.url, concurrency=1), requests(3))
    assert "the account is empty" in str(ended)


def test_an_error_within_a_success_is_that_error():
    bodies = [{"error": {"code": 429, "message": "slow down"}}, {"choices": [], "error": {"code": 503}}]
    with FakeOpenAI(lambda body: bodies.pop() if bodies else "fine") as fake:
        outcomes, ended = ask(server_spec(fake.url, concurrency=1), requests(1))
    assert (ended, [outcome.text for outcome in outcomes], len(fake.seen)) == (None, ["fine"], 3)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (422, "Input should be 'text' or 'json_object' in response_format"),
        (400, "Unsupported JSON schema fields: maxItems"),
        (400, "maxItems is not supported"),
        (500, "Failed to compile grammar"),
    ],
)
def test_a_form_of_json_that_a_server_does_not_take_is_relaxed(status, message):
    with FakeOpenAI(faults=[Fault(status, message=message)] * 2) as fake:
        outcomes, ended = ask(server_spec(fake.url, concurrency=1), requests(1, schema={"type": "object"}))
    assert (ended, len(outcomes)) == (None, 1)
    forms = [seen.body.get("response_format", {}).get("type") for seen in fake.seen]
    assert len(set(forms)) > 1
