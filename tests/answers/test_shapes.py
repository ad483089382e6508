"""The shapes in which services and model families answer, against every engine. A newcomer adds a line.

A line of shapes.jsonl: `name`, `service`, `family`, `what` the shape is, the `source` of the fact, the
service's `raw` JSON and what is expected: `text`, `finish` and, unless empty, `refusal`, `thinks`,
`usage` (prompt and completion tokens); or the `status` and `kind` of the error that it stands for, with the
kind of `failure` that engines make of it, and `failure_local` that llama.cpp does, if these are others.
"""

import asyncio
import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_openai import FakeOpenAI

from angle_data.annotators.answers import answer_of, read_answer, reply_of, wrong_with_text
from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.loaded.llamacpp import LlamaEngine
from angle_data.annotators.loaded.vllm_offline import VLLMEngine
from angle_data.annotators.loaded.worker import decode
from angle_data.annotators.messages import message_of_events
from angle_data.annotators.recorded import Recorded
from angle_data.annotators.server import OpenAIServer
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.http import CallError

FILE = Path(__file__).parent / "shapes.jsonl"
SHAPES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
ENGINES = ("server", "batch", "local", "offline", "ray", "recorded")
WITHOUT_SERVER = {"offline", "ray"}
USUAL = [10, 5]
THOUGHT = {"type": "thinking", "thinking": "Hm."}


def request(key):
    messages = ({"role": "user", "content": key},)
    return ChatRequest(key, "s", "source", "synonym", messages, "m", Sampling(None, 100))


def by_server(shape):
    """One attempt of the server engine; its error, if any, in place of the outcome."""

    async def ask(url):
        spec = AnnotatorSpec("m", "server", "m", base_urls=(url,))
        engine = OpenAIServer(spec)
        async with engine._transport as transport:
            try:
                body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
                return reply_of("k", await transport.post(f"{url}/chat/completions", body), 0.0)
            except CallError as error:
                return error

    with FakeOpenAI(lambda body: shape["raw"]) as fake:
        return asyncio.run(ask(fake.url))


def by_batch(shape):
    spec = AnnotatorSpec("m", "batch", "m", base_urls=("http://localhost:1/v1",))
    service = BatchService(spec, 0.0)
    row = {"custom_id": "k", "response": {"status_code": 200, "body": shape["raw"]}, "error": None}
    as_text = {"status_code": "200", "body": json.dumps(shape["raw"])}
    outcome = service.outcome("k", row)
    assert service.outcome("k", row | {"response": as_text}) == outcome
    return outcome


def by_local(shape):
    engine = LlamaEngine.__new__(LlamaEngine)
    engine._server = SimpleNamespace(handle_chat_completions=lambda body: shape["raw"])
    return engine._ask(request("k"))


def by_offline(shape):
    """What vLLM itself can say: a text, and how it ended."""
    choice = shape["raw"]["choices"][0]
    completion = SimpleNamespace(
        text=choice["message"]["content"], finish_reason=choice["finish_reason"], token_ids=[0] * 5
    )
    engine = VLLMEngine.__new__(VLLMEngine)
    engine._context = 100
    engine._prompt_lengths = lambda requests: [10] * len(requests)
    output = SimpleNamespace(outputs=[completion], prompt_token_ids=[0] * 10)
    engine._chat = lambda requests: [(each, output) for each in requests]
    (outcome,) = engine.answer([request("k")])
    return outcome


def by_ray(shape):
    (outcome,) = decode(json.dumps({"outcomes": [asdict(by_offline(shape))]}))
    return outcome


def by_recorded(shape, folder):
    file = folder / "replies.jsonl"
    file.write_text(json.dumps({"text": "source", "polarity": "synonym", "reply": shape["raw"]}))
    engine = Recorded(AnnotatorSpec("m", "recorded", "m", replies=file))

    async def first():
        return await anext(engine.stream([request("k")]))

    return asyncio.run(first())


def row_of(reply):
    """The journal's row of a reply, after a way through its file."""
    row = {"reply": reply.text, "finish_reason": reply.finish_reason, "usage": reply.usage}
    return json.loads(json.dumps(row | ({"raw": reply.raw} if reply.raw else {})))


def is_plain(shape):
    """Whether vLLM, asked without a server, could say this."""
    raw = shape["raw"]
    choice = raw["choices"][0] if isinstance(raw.get("choices"), list) and raw["choices"] else {}
    message = choice.get("message") or {}
    usual = {"message", "finish_reason"} <= choice.keys() <= {"index", "message", "finish_reason"}
    usual = usual and {"role", "content"} >= message.keys()
    one = isinstance(message.get("content"), str) and len(raw["choices"]) == 1
    return usual and one and raw.get("usage") == SHAPES[0]["raw"]["usage"]


def check(shape, answer):
    found = {
        "text": answer.text.strip(),
        "finish": answer.finish,
        "refusal": answer.refusal,
        "thinks": bool(answer.thinking),
        "usage": [answer.usage.get("prompt_tokens"), answer.usage.get("completion_tokens")],
    }
    usage = shape.get("usage", USUAL) or [None, None]
    expected = {"refusal": "", "thinks": False, **shape, "usage": usage}
    assert found == {name: expected[name] for name in found}


def test_there_is_a_dozen_of_services_and_every_shape_says_where_it_is_from():
    assert len({shape["name"] for shape in SHAPES}) == len(SHAPES)
    assert len({shape["service"] for shape in SHAPES}) > 12
    assert all(shape["source"] and shape["what"] and shape["family"] for shape in SHAPES)


# vLLM without a server says a text and how it ended, and no more.
SAYABLE = [
    (shape, engine)
    for shape in SHAPES
    for engine in ENGINES
    if engine not in WITHOUT_SERVER or is_plain(shape)
]


def test_every_engine_is_held_against_shapes():
    said = Counter(engine for _, engine in SAYABLE)
    assert all(said[engine] == len(SHAPES) for engine in set(ENGINES) - WITHOUT_SERVER)
    assert all(said[engine] > 10 for engine in WITHOUT_SERVER)


@pytest.mark.parametrize(
    ("shape", "engine"), SAYABLE, ids=lambda part: part if isinstance(part, str) else part["name"]
)
def test_every_engine_reads_a_shape_alike(shape, engine, tmp_path):
    ask = globals()[f"by_{engine}"]
    outcome = ask(shape, tmp_path) if engine == "recorded" else ask(shape)
    if isinstance(outcome, CallError):
        assert outcome.status_code == shape.get("status")
        outcome = Failure("k", wrong_with_text(outcome) or outcome.kind, str(outcome))
    if "kind" in shape:
        failure = shape.get("failure", shape["kind"])
        assert isinstance(outcome, Failure)
        assert outcome.kind == shape.get(f"failure_{engine}", failure)
        assert outcome.message
    else:
        assert isinstance(outcome, Reply)
        check(shape, answer_of(row_of(outcome)))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_reading_is_pure_and_the_journal_holds_all_that_it_needs(shape):
    raw = json.loads(json.dumps(shape["raw"]))
    answer = read_answer(raw)
    assert raw == shape["raw"]
    if answer.error is not None:
        assert (answer.error.status_code, answer.error.kind) == (shape.get("status"), shape["kind"])
    else:
        check(shape, answer)


def test_an_ordinary_message_costs_the_journal_nothing_more():
    reply = reply_of("k", SHAPES[0]["raw"], 0.0)
    assert reply.raw == {}
    assert reply.text == SHAPES[0]["text"]


def test_the_row_of_an_earlier_version_is_read():
    row = {"reply": "<think>one</think>1. The pod is up.", "finish_reason": "length", "usage": {}}
    answer = answer_of(row)
    assert (answer.text, answer.finish, answer.thinking) == ("1. The pod is up.", "cut", "<think>one</think>")


@pytest.mark.parametrize(
    "raw",
    [None, 3, "text", [], {}, {"choices": 3}, {"choices": [3]}, {"choices": {"0": {}}}, {"choices": [{}]}]
    + [
        {"choices": [{"message": message}]}
        for message in (None, 3, "x", [], {"content": 3}, {"content": [3, [3]]})
    ]
    + [{"choices": [{"message": {"content": "x", "tool_calls": [3]}, "finish_reason": 3}], "usage": [3]}]
    + [{"error": value} for value in (3, [], [3], {"message": {"a": 3}}, {"code": [3]}, True)],
    ids=str,
)
def test_no_shape_makes_it_raise(raw):
    assert read_answer(raw).usage is not None


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([{"content": "1. The "}, {"content": "pod."}], {"content": "1. The pod."}),
        (
            [{"content": [THOUGHT]}, {"content": "1. The "}, {"content": "pod."}],
            {"content": [THOUGHT, "1. The ", "pod."]},
        ),
        (
            [
                {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": "1. The "}}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": "pod."}}]},
            ],
            None,
        ),
    ],
)
def test_the_pieces_of_a_stream_are_joined_whatever_they_are(pieces, message):
    events = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    events.insert(1, {"choices": [{"index": 1, "delta": {"content": "another choice"}}, {"delta": 3}, 3]})
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    found = message_of_events([*events, None, 3])
    assert message is None or found["choices"][0]["message"] == message
    answer = read_answer(found)
    assert (answer.text, answer.finish) == ("1. The pod.", "done")


# --- the page of the documentation; `ANGLE_GOLDEN=write` writes it ------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs/answers.md"
BEGINNING = """\
# What services answer

{shapes} shapes in which {services} services and kinds of gateways answer. Each is a line of
`tests/answers/shapes.jsonl`, with its JSON, and a test holds each engine against it: ✓. vLLM without a server
(`offline`, `ray`) gives a text and how it ended, so it cannot answer in the other shapes: –. This page is
written from that file; a test keeps it so.

**Really asked**: vLLM 0.32, offline and as a server, and llama.cpp
([log](../benchmarks/log/real-engines.md)). All other services are imitated after what the column "from"
names. "imagined" is a shape for which we know no report: {imagined} of them.

| service | model family | shape | read as | {engines} | from |
| --- | --- | --- | --- | {rule} | --- |
"""


def read_as(shape):
    if "kind" in shape and "text" not in shape:
        status = shape.get("status")
        return f"error, as HTTP {status}" if status else f"error, `{shape['kind']}`"
    if "kind" in shape:
        return f"{shape['finish']}, `{shape['kind']}`"
    refused = ", a refusal" if shape.get("refusal") else ""
    return shape["finish"] + ", thoughts taken off" * shape.get("thinks", False) + refused


def cell(text):
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return f"[{'/'.join(text.split('/')[3:5])}]({text})" if text.startswith("https://") else text


def page():
    covered = {(shape["name"], engine) for shape, engine in SAYABLE}
    text = BEGINNING.format(
        shapes=len(SHAPES),
        services=len({shape["service"] for shape in SHAPES}),
        imagined=sum(shape["source"] == "imagined" for shape in SHAPES),
        engines=" | ".join(ENGINES),
        rule=" | ".join(["---"] * len(ENGINES)),
    )
    for shape in SHAPES:
        told = [cell(shape[name]) for name in ("service", "family", "name")]
        marks = ["✓" if (shape["name"], engine) in covered else "–" for engine in ENGINES]
        text += f"| {' | '.join([*told, read_as(shape), *marks, cell(shape['source'])])} |\n"
    return text


def test_the_page_of_the_shapes_is_written_from_them():
    if os.environ.get("ANGLE_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "ANGLE_GOLDEN=write pytest tests/answers/test_shapes.py"
    )
