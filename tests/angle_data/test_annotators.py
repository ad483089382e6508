"""The registry: every engine honours the contract, and every wrong choice says what to do."""

import asyncio
import hashlib
import importlib
import inspect
import json
from pathlib import Path

import pytest

from angle_data.annotators import ANNOTATORS, MODELS, choice, choose_annotator, load_annotator
from angle_data.annotators.base import ChatRequest, KeyMaker, Sampling, request_key, resample
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.models import Price
from angle_data.annotators.server import OpenAIServer
from angle_data.errors import CredentialsError, InputError
from angle_data.labelling.engine import EngineConfig


@pytest.fixture
def recorded(tmp_path):
    rows = [{"text": f"Text {i}.", "polarity": "antonym", "reply": f"1. No text {i}."} for i in range(5)]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("target", ANNOTATORS.values())
def test_every_entry_names_a_class_that_streams(target):
    module, name = target.split(":")
    engine = getattr(importlib.import_module(module), name)
    assert inspect.isasyncgenfunction(engine.stream)
    assert list(inspect.signature(engine.stream).parameters) == ["self", "requests"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_name_resolves(name):
    spec = choose_annotator(name, base_urls=("http://localhost:8000/v1",))
    assert spec.engine in ANNOTATORS
    assert spec.checkpoint == MODELS[name].checkpoint
    assert spec.name == name


def test_choices(recorded):
    assert choose_annotator("chatgpt").api_key_env == "OPENAI_API_KEY"
    assert choose_annotator("chatgpt", api_key_env="MY_KEY").api_key_env == "MY_KEY"
    assert choose_annotator("chatgpt", checkpoint="gpt-x").checkpoint == "gpt-x"
    assert choose_annotator("my-model", base_urls=("http://h/v1",)).checkpoint == "my-model"
    assert choose_annotator("anyone", replies=recorded).engine == "recorded"


def test_an_api_key_is_sent_to_an_address_of_ones_own_when_named():
    assert choose_annotator("llama", base_urls=("http://h/v1",), api_key_env="K").api_key_env == "K"
    assert choose_annotator("chatgpt", base_urls=(OPENAI,), api_key_env="K").api_key_env == "K"


def test_edited_replies_are_another_checkpoint(recorded):
    before = choose_annotator("a", replies=recorded).checkpoint
    assert choose_annotator("a", replies=recorded).checkpoint == before
    recorded.write_text(recorded.read_text().replace("No text 3", "Never text 3"))
    assert choose_annotator("a", replies=recorded).checkpoint != before


OPENAI = "https://api.openai.com/v1"
GLM = "https://open.bigmodel.cn/api/paas/v4"


@pytest.mark.parametrize(
    ("url", "key", "price"),
    [
        ("http://proxy.example.org/v1", None, None),
        ("https://proxy.example.org/v1", None, None),
        (OPENAI, "OPENAI_API_KEY", Price(0.15, 0.60)),
    ],
)
@pytest.mark.parametrize("engine", ["server", "batch"])
def test_the_rules_for_key_and_price_hold_for_an_address_from_the_environment(
    monkeypatch, engine, url, key, price
):
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    config = EngineConfig("chatgpt", engine=engine)
    spec = config.spec()
    assert (spec.base_urls, spec.api_key_env) == ((url,), key)
    assert (config.price(spec) is not None) == (price is not None)
    assert choose_annotator("chatgpt", api_key_env="K").api_key_env == "K"
    assert choose_annotator("chatgpt", base_urls=("http://h/v1",)).base_urls == ("http://h/v1",)
    with pytest.raises(InputError, match="has no public address"):
        choose_annotator("llama", engine=engine)


def test_a_bad_address_from_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "proxy.example.org")
    with pytest.raises(
        InputError, match=r"^OPENAI_BASE_URL, used in place of --base-url: .* must start with"
    ):
        choose_annotator("chatgpt")
    monkeypatch.setenv("OPENAI_BASE_URL", " ")
    assert choose_annotator("chatgpt").base_urls == ()


def test_without_an_address_an_engine_goes_to_openai_whatever_the_environment_says(monkeypatch):
    """Only `choose_annotator` may follow the variable: it knows whose key may go there."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    spec = choose_annotator("chatgpt")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example.org/v1")

    async def batch_address():
        async with BatchService(spec) as service:
            return str(service._client.base_url).rstrip("/")

    assert asyncio.run(batch_address()) == OPENAI
    assert OpenAIServer(spec)._endpoint(None).url == f"{OPENAI}/chat/completions"


@pytest.mark.parametrize(
    ("model", "urls", "checkpoint", "dialect", "key"),
    [
        ("chatgpt", (), "gpt-4o-mini", "openai", "OPENAI_API_KEY"),
        ("chatgpt", (OPENAI,), "gpt-4o-mini", "openai", "OPENAI_API_KEY"),
        ("chatglm", (GLM,), "glm-4-flash", "glm", "ZHIPUAI_API_KEY"),
        ("chatglm", ("http://h:8000/v1",), "zai-org/GLM-4-9B-0414", "vllm", None),
        ("llama", ("http://h/v1", "http://i/v1"), "meta-llama/Llama-3.1-8B-Instruct", "vllm", None),
        ("glm-4-air", (GLM,), "glm-4-air", "glm", "ZHIPUAI_API_KEY"),
        ("my-model", ("http://h/v1",), "my-model", "openai", None),
        # A key goes over an encrypted connection or not at all.
        ("chatgpt", ("http://api.openai.com/v1",), "gpt-4o-mini", "openai", None),
        ("chatgpt", ("https://api.openai.com.example.org/v1",), "gpt-4o-mini", "openai", None),
    ],
)
def test_the_address_decides_checkpoint_dialect_and_key(model, urls, checkpoint, dialect, key):
    spec = choose_annotator(model, base_urls=urls)
    assert (spec.engine, spec.base_urls) == ("server", urls)
    assert (spec.checkpoint, spec.dialect, spec.api_key_env) == (checkpoint, dialect, key)


@pytest.mark.parametrize("installed", [False, True])
def test_a_model_without_address_is_loaded_here_if_vllm_is_installed(monkeypatch, installed, tmp_path):
    monkeypatch.setattr(choice, "find_spec", lambda name: object() if installed else None)
    if not installed:
        with pytest.raises(InputError, match=r"start `vllm serve meta-llama/\S+` .* or .*pip install .*vllm"):
            choose_annotator("llama")
        return
    spec = choose_annotator("llama", revision="abc", engine_options={"max_model_len": 4096}, run=tmp_path)
    assert (spec.engine, spec.checkpoint, spec.revision) == ("offline", MODELS["llama"].checkpoint, "abc")
    assert (spec.engine_options, spec.run) == ({"max_model_len": 4096}, tmp_path)
    assert choose_annotator(str(tmp_path)).engine == "offline"  # a folder with a checkpoint
    assert choose_annotator("mine", checkpoint="org/model").engine == "offline"
    assert choose_annotator("llama", base_urls=("http://h/v1",)).engine == "server"
    assert choose_annotator("chatgpt").engine == "server"


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("gpt9", {}, r"unknown model 'gpt9'; known: chatglm, chatgpt, llama\. .*--base-url URL"),
        ("gpt9", {"engine": "server"}, r"unknown model 'gpt9'; known: .*--base-url URL"),
        (
            "llama",
            {"engine": "server"},
            r"start `vllm serve meta-llama/\S+` and pass --base-url http://local",
        ),
        ("chatglm", {"engine": "batch", "checkpoint": "/my/glm"}, r"start `vllm serve /my/glm` and pass"),
        (
            "chatgpt",
            {"engine": "magic"},
            r"unknown engine 'magic'; known: auto, server, batch, offline, ray, rec",
        ),
        ("chatgpt", {"engine": "recorded"}, r"--engine recorded needs --replies FILE"),
        ("chatgpt", {"engine": "offline"}, r"'chatgpt' cannot be loaded here"),
        (
            "m",
            {"base_urls": ("localhost:8000",)},
            r"must start with http:// or https://, got 'localhost:8000'",
        ),
        ("", {"base_urls": ("http://h/v1",)}, r"--model is empty; give chatglm, chatgpt, llama or another"),
        (" ", {}, r"--model is empty"),
        ("m", {"base_urls": ("http://",)}, r"--base-url 'http://' names no host"),
        ("m", {"base_urls": ("http://:8000/v1",)}, r"names no host"),
        ("m", {"base_urls": ("http://h:port/v1",)}, r"'http://h:port/v1' is no address"),
        ("m", {"base_urls": ("http://[::1/v1",)}, r"is no address"),
        ("m", {"base_urls": ("http://me:pw@h/v1",)}, r"must hold no user name or password"),
        ("m", {"base_urls": ("http://h/v1?key=s",)}, r"without \? and #; name a key with --api-key-env"),
        ("m", {"base_urls": ("http://h/v1", "http://h/v1")}, r"the same --base-url is given twice"),
        ("m", {"base_urls": ("http://h/v1", GLM)}, r"must speak alike"),
        ("chatglm", {"base_urls": (GLM,), "engine": "batch"}, r"speaks OpenAI's Batch API"),
        ("m", {"base_urls": ("http://h/v1",), "engine": "offline"}, r"--base-url is for .* not for offline"),
        ("m", {"base_urls": ("http://h/v1", "http://i/v1"), "engine": "batch"}, r"works with one --base-url"),
        ("m", {"base_urls": ("http://h/v1",), "revision": "r"}, r"--revision is for .* not for server"),
        ("m", {"base_urls": ("http://h/v1",), "engine_options": {"a": 1}}, r"server knows no option 'a'; it"),
        ("m", {"base_urls": ("http://h/v1",), "engine_options": {"timeout_s": 0}}, r"more than 0, got 0"),
        ("m", {"base_urls": ("http://h/v1",), "engine_options": {"timeout_s": "x"}}, r"seconds, .* got 'x'"),
        (
            "m",
            {"replies": Path("x"), "engine_options": {"a": 1}},
            r"--engine-option is for .* not for recorded",
        ),
    ],
)
def test_wrong_choices(monkeypatch, model, options, message):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=message):
        choose_annotator(model, **options)


def test_the_time_for_an_answer_is_an_option_of_the_server_engine():
    given = {"base_urls": ("http://h/v1",), "engine_options": {"timeout_s": 600}}
    assert choose_annotator("m", **given).timeout_s == 600.0
    assert choose_annotator("m", base_urls=("http://h/v1",)).timeout_s == 120.0


@pytest.mark.parametrize("model", ["llama", "chatglm", "anything"])
def test_a_forecast_needs_no_address(monkeypatch, model):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    with pytest.raises(InputError):
        choose_annotator(model)
    spec = choose_annotator(model, forecast=True)
    assert (spec.engine, spec.base_urls) == ("server", ())
    assert spec.checkpoint == (MODELS[model].checkpoint if model in MODELS else model)


@pytest.mark.parametrize("pasted", ["sk-secret-0123456789", "a b", "9KEY", "", "KEY\n"])
def test_a_key_in_place_of_its_variable_is_not_repeated(pasted):
    with pytest.raises(InputError) as caught:
        choose_annotator("m", base_urls=("http://h/v1",), api_key_env=pasted)
    message = "--api-key-env takes the name of the variable with the key, not the key itself"
    assert str(caught.value) == message


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


@pytest.mark.parametrize("text", ["hello", 'say "no"\n\t', "Ünï 好 \U0001f600 \u2028"])
def test_keys_made_in_a_row_are_those_made_one_by_one(text):
    messages = ({"role": "system", "content": "s"}, {"role": "user", "content": text})
    canonical = json.dumps(
        {"version": 1, "model": "m", "messages": messages, "sampling": SAMPLING.to_dict(), "sample": 2},
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    maker = KeyMaker("m", SAMPLING, 2)
    assert maker(MESSAGES) == request_key("m", MESSAGES, SAMPLING, 2)
    assert maker(messages) == hashlib.sha256(canonical.encode()).hexdigest()[:32]


@pytest.mark.parametrize(("seed", "later"), [(None, None), (5, 7)])
def test_another_sample_is_another_key_and_seed(seed, later):
    sampling = Sampling(0.5, 10, seed)
    request = ChatRequest(
        request_key("m@r", MESSAGES, sampling), "s", "t", "antonym", MESSAGES, "m", sampling
    )
    assert resample(request, "m@r", 0) is request
    again = resample(request, "m@r", 2)
    assert again.sampling == Sampling(0.5, 10, later)
    assert again.key == request_key("m@r", MESSAGES, again.sampling, 2) != request.key
    assert (again.source_id, again.task, again.model) == ("s", "antonym", "m")
