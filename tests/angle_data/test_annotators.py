"""The registry: every engine honours the contract, and every wrong choice says what to do."""

import asyncio
import hashlib
import importlib
import json
from contextlib import aclosing

import pytest
from fake_openai import FakeOpenAI

from angle_data.annotators import ANNOTATORS, MODELS, AnnotatorSpec, choose_annotator, load_annotator
from angle_data.annotators.base import ChatRequest, Reply, Sampling, request_key
from angle_data.errors import CredentialsError, InputError


@pytest.fixture
def recorded(tmp_path):
    rows = [{"text": f"Text {i}.", "polarity": "antonym", "reply": f"1. No text {i}."} for i in range(5)]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("engine", ANNOTATORS)
def test_every_engine_answers_each_request_once(engine, recorded):
    requests = [
        ChatRequest(
            key=f"{i:032x}",
            source_id=str(i),
            source=f"Text {i}.",
            polarity="antonym",
            messages=({"role": "user", "content": f"Text {i}."},),
            model="tiny",
            sampling=Sampling(temperature=0.0, max_tokens=8),
        )
        for i in range(5)
    ]

    async def collect(annotator):
        async with aclosing(annotator.stream(iter(requests))) as stream:
            return [outcome async for outcome in stream]

    with FakeOpenAI() as server:
        spec = AnnotatorSpec("tiny", engine, "tiny", base_url=server.url, replies=recorded, concurrency=2)
        outcomes = asyncio.run(collect(load_annotator(spec)))
    assert sorted(outcome.key for outcome in outcomes) == [request.key for request in requests]
    assert all(isinstance(outcome, Reply) and outcome.text for outcome in outcomes)


@pytest.mark.parametrize("target", ANNOTATORS.values())
def test_every_entry_names_a_class(target):
    module, name = target.split(":")
    assert isinstance(getattr(importlib.import_module(module), name), type)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_name_resolves(name):
    spec = choose_annotator(name, base_url="http://localhost:8000/v1")
    assert spec.engine in ANNOTATORS
    assert spec.checkpoint == MODELS[name].checkpoint
    assert spec.name == name


def test_choices(recorded):
    assert choose_annotator("chatgpt").api_key_env == "OPENAI_API_KEY"
    assert choose_annotator("chatgpt", api_key_env="MY_KEY").api_key_env == "MY_KEY"
    assert choose_annotator("chatgpt", checkpoint="gpt-x").checkpoint == "gpt-x"
    assert choose_annotator("my-model", base_url="http://h/v1").checkpoint == "my-model"
    assert choose_annotator("anyone", replies=recorded).engine == "recorded"


def test_an_api_key_is_not_sent_to_an_address_of_ones_own_unless_named():
    assert choose_annotator("chatgpt", base_url="http://localhost:8000/v1").api_key_env is None
    assert choose_annotator("llama", base_url="http://h/v1", api_key_env="K").api_key_env == "K"


def test_edited_replies_are_another_checkpoint(recorded):
    before = choose_annotator("a", replies=recorded).checkpoint
    assert choose_annotator("a", replies=recorded).checkpoint == before
    recorded.write_text(recorded.read_text().replace("No text 3", "Never text 3"))
    assert choose_annotator("a", replies=recorded).checkpoint != before


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("gpt9", {}, r"unknown model 'gpt9'; known: chatglm, chatgpt, llama\. .*--base-url URL"),
        ("llama", {}, r"start `vllm serve meta-llama/\S+` and pass --base-url http://localhost:8000/v1"),
        ("chatglm", {"checkpoint": "/my/glm"}, r"start `vllm serve /my/glm` and pass --base-url"),
        ("chatgpt", {"engine": "magic"}, r"unknown engine 'magic'; known: auto, recorded, server"),
        ("chatgpt", {"engine": "recorded"}, r"--engine recorded needs --replies FILE"),
        (
            "chatgpt",
            {"base_url": "localhost:8000"},
            r"must start with http:// or https://, got 'localhost:8000'",
        ),
        ("chatgpt", {"base_url": "http://me:pw@h/v1"}, r"must hold no user name or password"),
    ],
)
def test_wrong_choices(model, options, message):
    with pytest.raises(InputError, match=message):
        choose_annotator(model, **options)


def test_replies_do_not_go_with_a_server(recorded, tmp_path):
    with pytest.raises(InputError, match="--replies is only for --engine recorded, not for server"):
        choose_annotator("chatgpt", engine="server", replies=recorded)
    with pytest.raises(InputError, match=r"nothing.jsonl does not exist; check --replies"):
        choose_annotator("a", replies=tmp_path / "nothing.jsonl")


def test_a_missing_key_names_the_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(CredentialsError, match="no API key: set the environment variable OPENAI_API_KEY"):
        load_annotator(choose_annotator("chatgpt"))


MESSAGES = ({"role": "user", "content": "hello"},)
SAMPLING = Sampling(temperature=0.5, max_tokens=10)


def test_a_request_key_stays_the_same_between_versions():
    """A changed key would make users pay for every finished request again."""
    canonical = (
        '{"messages":[{"content":"hello","role":"user"}],"model":"m","sample":0,'
        '"sampling":{"max_tokens":10,"schema":null,"seed":null,"temperature":0.5},"version":1}'
    )
    assert request_key("m", MESSAGES, SAMPLING) == hashlib.sha256(canonical.encode()).hexdigest()[:32]


@pytest.mark.parametrize(
    "other",
    [
        ("n", MESSAGES, SAMPLING),
        ("m", ({"role": "user", "content": "hello!"},), SAMPLING),
        ("m", ({"role": "system", "content": "hello"},), SAMPLING),
        ("m", MESSAGES, Sampling(temperature=0.6, max_tokens=10)),
        ("m", MESSAGES, Sampling(temperature=0.5, max_tokens=11)),
        ("m", MESSAGES, Sampling(temperature=0.5, max_tokens=10, seed=0)),
        ("m", MESSAGES, Sampling(temperature=0.5, max_tokens=10, schema={"type": "object"})),
        ("m", MESSAGES, SAMPLING, 1),
    ],
)
def test_all_that_changes_the_answer_changes_the_key(other):
    assert request_key(*other) != request_key("m", MESSAGES, SAMPLING)
