"""The options of the asking, and the annotator that follows: every wrong choice says what to do."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from angle_data.annotators import choice
from angle_data.annotators.base import Sampling, request_key
from angle_data.annotators.choice import ANNOTATORS, choose_annotator
from angle_data.annotators.models import MODELS, Price, price_of
from angle_data.annotators.spec import EngineConfig
from angle_data.annotators.transport import Form
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl


def choose(model, *, run=None, **options):
    return choose_annotator(EngineConfig(model, **options), run)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_name_resolves(name):
    spec = choose(name, base_urls=("http://localhost:8000/v1",))
    assert spec.engine in ANNOTATORS
    assert spec.checkpoint == MODELS[name].checkpoint
    # Where it is public, its price is known.
    for host in ["api.openai.com"] * MODELS[name].public + [*MODELS[name].hosted]:
        assert price(name, base_urls=(f"https://{host}/v1",)) is not None


def test_edited_replies_are_another_checkpoint(tmp_path):
    recorded = tmp_path / "replies.jsonl"
    rows = [{"text": f"Text {i}.", "polarity": "antonym", "reply": f"1. No text {i}."} for i in range(5)]
    write_jsonl(recorded, rows)
    before = choose("a", replies=recorded).checkpoint
    assert choose("a", replies=recorded).checkpoint == before
    recorded.write_text(recorded.read_text().replace("No text 3", "Never text 3"))
    assert choose("a", replies=recorded).checkpoint != before


OPENAI = "https://api.openai.com/v1"
GLM = "https://open.bigmodel.cn/api/paas/v4"


@pytest.mark.parametrize("url", ["http://proxy.example.org/v1", "https://proxy.example.org/v1", OPENAI])
@pytest.mark.parametrize("engine", ["server", "batch"])
def test_the_rules_for_key_and_price_hold_for_an_address_from_the_environment(monkeypatch, engine, url):
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    spec = choose("chatgpt", engine=engine)
    assert (spec.base_urls, spec.api_key_env) == ((url,), "OPENAI_API_KEY" if url == OPENAI else None)
    assert (price_of(spec) is not None) == (url == OPENAI)
    assert choose("chatgpt", api_key_env="K").api_key_env == "K"
    assert choose("chatgpt", base_urls=("http://h/v1",)).base_urls == ("http://h/v1",)
    with pytest.raises(InputError, match="has no public address"):
        choose("llama", engine=engine)


@pytest.mark.parametrize(
    ("model", "urls", "checkpoint", "dialect", "key"),
    [
        ("chatgpt", (), "gpt-4o-mini", "openai", "OPENAI_API_KEY"),
        ("chatgpt", (OPENAI,), "gpt-4o-mini", "openai", "OPENAI_API_KEY"),
        ("chatglm", (GLM,), "glm-4-flash", "glm", "ZHIPUAI_API_KEY"),
        ("chatglm", ("http://h:8000/v1",), "zai-org/GLM-4-9B-0414", "openai", None),
        ("llama", ("http://h/v1", "http://i/v1"), "meta-llama/Llama-3.1-8B-Instruct", "openai", None),
        ("glm-4-air", (GLM,), "glm-4-air", "glm", "ZHIPUAI_API_KEY"),
        ("my-model", ("http://h/v1",), "my-model", "openai", None),
        # A key goes over an encrypted connection or not at all.
        ("chatgpt", ("http://api.openai.com/v1",), "gpt-4o-mini", "openai", None),
        ("chatgpt", ("https://api.openai.com.example.org/v1",), "gpt-4o-mini", "openai", None),
    ],
)
def test_the_address_decides_checkpoint_dialect_and_key(model, urls, checkpoint, dialect, key):
    spec = choose(model, base_urls=urls)
    assert (spec.engine, spec.base_urls) == ("server", urls)
    assert (spec.checkpoint, spec.dialect, spec.api_key_env) == (checkpoint, dialect, key)


@pytest.mark.parametrize("installed", [False, True])
def test_a_model_without_address_is_loaded_here_if_vllm_is_installed(monkeypatch, installed, tmp_path):
    monkeypatch.setattr(choice, "find_spec", lambda name: object() if installed else None)
    if not installed:
        with pytest.raises(InputError, match=r"start `vllm serve meta-llama/\S+` .* or .*pip install .*vllm"):
            choose("llama")
        return
    spec = choose("llama", revision="abc", engine_options={"max_model_len": 4096}, run=tmp_path)
    assert (spec.engine, spec.checkpoint, spec.revision) == ("offline", MODELS["llama"].checkpoint, "abc")
    assert (spec.engine_options, spec.run) == ({"max_model_len": 4096}, tmp_path)
    assert choose(str(tmp_path)).engine == "offline"  # a folder with a checkpoint
    assert choose("mine", checkpoint="org/model").engine == "offline"
    assert choose("llama", base_urls=("http://h/v1",)).engine == "server"
    assert choose("chatgpt").engine == "server"


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("llama", {"engine": "offline", "params": {"top_p": 1}}, "--param is not for --engine offline"),
        ("llama", {"engine": "server"}, r"start `vllm serve meta-llama/\S+` and pass --base-url http://"),
        ("chatglm", {"engine": "batch", "checkpoint": "/my/glm"}, r"start `vllm serve /my/glm` and pass"),
        ("m", {"engine": "magic"}, "engine 'magic'; known: auto, server, batch, local, offline, ray, rec"),
        ("chatgpt", {"engine": "recorded"}, r"--engine recorded needs --replies FILE"),
        ("chatgpt", {"engine": "offline"}, r"'chatgpt' cannot be loaded here"),
        ("m", {"base_urls": ("localhost:8000",)}, r"'localhost:8000' is not an address; give one"),
        ("", {"base_urls": ("http://h/v1",)}, "--model is empty; give chatglm, chatgpt, llama, smollm2 or"),
        ("m", {"base_urls": ("http://:8000/v1",)}, r"is not an address"),
        ("m", {"base_urls": ("http://h:port/v1",)}, r"'http://h:port/v1' is not an address"),
        ("m", {"base_urls": ("http://me:pw9@h:x/v1",)}, "^--base-url must be an address without name,[^9]*$"),
        ("m", {"base_urls": ("me:pw9@h/v1",)}, r"^--base-url must be an address without name, [^9]*$"),
        ("m", {"base_urls": ("http://h/v1?key=s",)}, r"password, \? and #; name a key with --api-key-env$"),
        ("m", {"base_urls": ("http://h/v1", "http://h/v1")}, r"the same --base-url is given twice"),
        ("m", {"base_urls": ("http://h/v1", GLM)}, r"must be services of one kind"),
        ("chatglm", {"base_urls": (GLM,), "engine": "batch"}, "with one --base-url that has OpenAI"),
        ("m", {"base_urls": ("http://h/v1",), "engine": "offline"}, "--base-url is not for --engine off"),
        ("m", {"base_urls": ("http://h/v1", "http://i/v1"), "engine": "batch"}, r"works with one --base-url"),
        ("m", {"base_urls": ("http://h/v1",), "revision": "r"}, r"--revision is not for --engine server"),
        ("m", {"replies": Path("x"), "engine_options": {"a": 1}}, r"--engine-option is not for --engine rec"),
        ("chatgpt", {"engine": "server", "replies": Path("x")}, r"--replies is not for --engine server"),
        ("a", {"replies": Path("nothing.jsonl")}, r"nothing.jsonl cannot be read (.*); check --replies"),
    ],
)
def test_wrong_choices(monkeypatch, model, options, message):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=message):
        choose(model, **options)


@pytest.mark.parametrize("options", [{}, {"checkpoint": "gpt-x"}, {"engine": "server"}, {"engine": "batch"}])
def test_a_name_of_openais_goes_there_as_it_is(options, monkeypatch):
    spec = choose("gpt-x", **options)
    assert (spec.checkpoint, spec.base_urls, spec.api_key_env) == ("gpt-x", (), "OPENAI_API_KEY")
    # `owner/name` is a model of the hub, or one of another service where the environment names one.
    with pytest.raises(InputError, match=r"'org/name' has no public address: start `vllm serve org/name`"):
        choose("org/name", engine="server")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://router.example.org/v1")
    assert choose("org/name").base_urls == ("https://router.example.org/v1",)


@pytest.mark.parametrize("pasted", ["sk-secret-0123456789", "a b", ""])
def test_a_key_in_place_of_its_variable_is_not_repeated(pasted):
    message = "^--api-key-env takes the name of the variable with the key, not the key itself$"
    with pytest.raises(InputError, match=message):
        choose("m", base_urls=("http://h/v1",), api_key_env=pasted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tokens": -5}, "--max-tokens must be at least 1, got -5"),
        ({"concurrency": 0}, "--concurrency must be at least 1, got 0"),
        ({"max_tokens_total": 0}, "--max-tokens-total must be at least 1, got 0"),
        ({"tokens_per_minute": float("nan")}, "--tokens-per-minute must be more than 0, got nan"),
        ({"max_usd": float("inf")}, "--max-usd must be more than 0, got inf"),
        ({"temperature": 2.5}, "--temperature must be from 0 to 2, got 2.5"),
        ({"price": (1.0, -1.0)}, "--price must hold two prices"),
        ({"params": {"temperature": 1}}, "--param temperature cannot be set; use --temperature"),
        ({"params": {"stream": True}}, "--param stream cannot be set; one reply"),
        ({"shard": (3, 2)}, "--shard i/n needs 1 <= i <= n, got 3/2"),
    ],
)
def test_settings_out_of_range(changes, message):
    with pytest.raises(InputError, match=message):
        EngineConfig("m", **changes)


def price(model, **options):
    return price_of(choose(model, **options))


def test_prices():
    assert price("chatgpt") == Price(0.15, 0.60)
    assert price("chatgpt", engine="batch") == Price(0.075, 0.30)
    assert price("chatgpt", checkpoint="gpt-x") is None
    assert price("chatgpt", base_urls=("http://h/v1",)) is None
    assert price("chatgpt", base_urls=("https://api.openai.com/v1",)) == Price(0.15, 0.60)
    assert price("chatglm", base_urls=("https://open.bigmodel.cn/api/paas/v4",)) == Price(0.0, 0.0)
    assert price("llama", base_urls=("http://h/v1",)) is None
    assert price("llama", base_urls=("http://h/v1",), price=(1.0, 2.0)) == Price(1.0, 2.0)
    assert Price(0.15, 0.60).of(2_000_000, 1_000_000) == pytest.approx(0.90)
    assert price("chatgpt", max_usd=1.0) == Price(0.15, 0.60)
    assert price("gpt-4o-mini-2024-07-18") == price("gpt-4o-mini")
    assert price("gpt-4o-2024-05-13") != price("gpt-4o-2024-08-06") == price("gpt-4o")
    assert price("gpt-4o-mini-audio") is None
    unknown = r"'gpt-x' at https://api.openai.com/v1 is not known: give --price IN,OUT \(USD .*, or bound"
    with pytest.raises(InputError, match=unknown):
        price("gpt-x", max_usd=1.0)


def test_a_table_of_ones_own_comes_before_ours(tmp_path):
    table = tmp_path / "prices.toml"
    table.write_text('mine = [1, 2]\n"gpt-4o-mini" = [9, 9]\n["h"]\nmine = [3.0, 4.0]\n')
    assert price("gpt-4o-mini-2024-07-18", prices=table) == Price(9.0, 9.0)
    assert price("gpt-4o", prices=table) == price("gpt-4o")
    assert price("mine", prices=table, base_urls=(OPENAI,)) == Price(1.0, 2.0)
    assert price("mine", prices=table, base_urls=("http://h:80/v1",)) == Price(3.0, 4.0)
    assert price("mine", prices=table, engine="batch", base_urls=(OPENAI,)) == Price(0.5, 1.0)
    for content, said in [("mine = 3", "'mine' needs two prices"), ("x = [", "TOML"), (None, "--prices")]:
        table.write_text(content) if content else table.unlink()
        with pytest.raises(InputError, match=said):
            price("mine", prices=table, base_urls=(OPENAI,))


REASONING = ("o1", "o3-mini", "o4-mini", "gpt-5-2025-08-07", "openai/gpt-5.1")
PLAIN = ("gpt-4o", "gpt-35-turbo", "gpt-5-chat-latest", "gpt-oss-20b", "o100")


@pytest.mark.parametrize("model", [*REASONING, *PLAIN])
def test_what_a_model_takes_is_known_by_its_name(model):
    form = Form.of(choose(model, base_urls=("http://h/v1",)))
    reasons = model in REASONING
    assert form.tokens == ("max_completion_tokens" if reasons else "max_tokens")
    assert form.without == (("temperature",) if reasons else ())
    unthinking = choose(model, base_urls=("http://h/v1",), params={"reasoning_effort": "none"})
    assert Form.of(unthinking).without == ()


def test_every_text_is_in_one_shard_however_it_is_written():
    texts = [f"Node {i} has left." for i in range(300)]
    shards = [EngineConfig("m", shard=(i, 4)) for i in (1, 2, 3, 4)]
    counts = [sum(shard.takes(text) for text in texts) for shard in shards]
    assert sum(counts) == 300
    assert min(counts) > 40
    for text in texts:
        assert [s.takes(text) for s in shards] == [s.takes(f'  "{text.upper()}" ') for s in shards]
        assert sum(shard.takes(text) for shard in shards) == 1
    assert EngineConfig("m").takes("anything")


def test_settings_of_the_engine_are_read_as_json_or_else_as_text():
    (option,) = (f.metadata["option"] for f in fields(EngineConfig) if f.name == "engine_options")
    given = ["max_model_len=4096", "dtype=float16", "a=b=c", "on=true"]
    assert option.read(given) == {"max_model_len": 4096, "dtype": "float16", "a": "b=c", "on": True}


MESSAGES = ({"role": "user", "content": "hello"},)
SAMPLING = Sampling(temperature=0.5, max_tokens=10)


@pytest.mark.parametrize("text", ["hello", 'say "no"\n\t', "Ünï 好 \U0001f600 \u2028"])
def test_a_request_key_stays_the_same_between_versions(text):
    """A changed key would make users pay for every finished request again."""
    content = json.dumps(text, ensure_ascii=False)
    canonical = (
        f'{{"messages":[{{"content":{content},"role":"user"}}],"model":"m","sample":0,'
        '"sampling":{"max_tokens":10,"schema":null,"seed":null,"temperature":0.5},"version":1}'
    )
    messages = ({"role": "user", "content": text},)
    assert request_key("m", messages, SAMPLING) == hashlib.sha256(canonical.encode()).hexdigest()[:32]


CHANGES = [{"temperature": 0.6}, {"temperature": None}, {"max_tokens": 11}, {"seed": 0}]
CHANGES += [{"schema": {"type": "object"}}, {"params": {"reasoning_effort": "low"}}]


@pytest.mark.parametrize(
    "other",
    [
        ("n", MESSAGES, SAMPLING),
        ("m", ({"role": "user", "content": "hello!"},), SAMPLING),
        ("m", ({"role": "system", "content": "hello"},), SAMPLING),
        *(("m", MESSAGES, replace(SAMPLING, **change)) for change in CHANGES),
    ],
)
def test_all_that_changes_the_answer_changes_the_key(other):
    assert request_key(*other) != request_key("m", MESSAGES, SAMPLING)
