"""Forecasts: what is left to ask, and tokens by the best source at hand."""

import hashlib
import json
import sys
import types
from dataclasses import replace

import pytest
from fake_openai import FakeOpenAI
from programs import plain_prompts

from angle_data.annotators.base import ChatRequest, Sampling
from angle_data.annotators.spec import AnnotatorSpec, EngineConfig
from angle_data.labelling.budget import estimate, find_counter, guess_tokens, prompt_tokens
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label, plan_label


def config(tmp_path, count, *, size=2, **engine):
    lines = [json.dumps({"text": f"Node {i} has left."}) for i in range(10, 10 + count)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    return LabelConfig(
        EngineConfig("m", **engine), tmp_path / "texts.jsonl", tmp_path / "run", size=size, polarity="synonym"
    )


def request(*contents, max_tokens=100, source="x" * 40):
    messages = tuple({"role": "user", "content": content} for content in contents)
    return ChatRequest("k", "s", source, "synonym", messages, "m", Sampling(0.0, max_tokens))


def test_what_the_service_counted_before_is_the_best_forecast(tmp_path):
    """The fake reports 10 prompt and 5 reply tokens whatever the text."""
    with FakeOpenAI() as server:
        urls = {"base_urls": (server.url,), "usd_per_million": (1e6, 1e6)}
        before = plan_label(config(tmp_path, 3, **urls))
        label(config(tmp_path, 3, **urls))
        plan = plan_label(config(tmp_path, 7, **urls))
        assert len(server.seen) == 3
    assert (before.counted_by, before.spent_tokens) == ("an estimate by characters", 0)
    assert plan.counted_by == "the service's own counts in the journal"
    assert (plan.requests, plan.from_journal, plan.to_ask) == (7, 3, 4)
    assert (plan.prompt_tokens, plan.completion_tokens, plan.usd) == (40, 20, 60.0)
    assert (plan.spent_tokens, plan.spent_usd) == (45, 45.0)


def test_equal_texts_are_forecast_once(tmp_path):
    asked = config(tmp_path, 2, base_urls=("http://h/v1",))
    lines = [json.dumps({"id": i, "text": "Node 3 has left."}) for i in range(5)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    plan = plan_label(asked)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (5, 0, 4, 1)
    with FakeOpenAI() as server:
        urls = replace(asked.engine, base_urls=(server.url,))
        label(replace(asked, engine=urls))
    plan = plan_label(asked)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (5, 5, 0, 0)


def test_requests_to_be_asked_anew_are_forecast(tmp_path):
    refuse = "As an AI model, I cannot."
    with FakeOpenAI(
        lambda body: refuse if "Node 10" in body["messages"][-1]["content"] else "1. A b."
    ) as server:
        asked = config(tmp_path, 2, base_urls=(server.url,))
        label(asked)
        lines = [json.dumps({"id": i, "text": f"Node {n} has left."}) for i, n in enumerate((10, 11, 12, 10))]
        (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
        anew = plan_label(replace(asked, retry_rejected=True))
        plan = plan_label(asked)
        sent = len(server.seen)
        label(replace(asked, retry_rejected=True))
        assert len(server.seen) - sent == anew.to_ask
    assert (anew.requests, anew.from_journal, anew.shared, anew.to_ask) == (4, 1, 1, 2)
    assert (plan.requests, plan.from_journal, plan.shared, plan.to_ask) == (4, 3, 0, 1)


def test_the_sample_of_prompts_is_drawn_from_all_of_them(tmp_path):
    """Long words first, then many short ones: the first 2,000 prompts alone would forecast a third."""
    write_tokenizer(tmp_path / "model")
    asked = config(tmp_path, 0, base_urls=("http://h/v1",), checkpoint=str(tmp_path / "model"))
    texts = [f"{i:040}" for i in range(2000)] + [f"{i:04} " + "a b " * 9 for i in range(6000)]
    asked.texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    plan = plan_label(replace(asked, prompts=str(plain_prompts(tmp_path / "prompts"))))
    exact = sum(len(text.split()) + 8 for text in texts)
    assert plan.prompt_tokens == pytest.approx(exact, rel=0.1)


def test_replies_are_forecast_no_longer_than_allowed(tmp_path):
    urls = ("http://h/v1",)
    free = plan_label(config(tmp_path, 2, size=50, base_urls=urls))
    capped = plan_label(config(tmp_path, 2, size=50, base_urls=urls, max_tokens=20))
    assert free.completion_tokens > 400
    assert capped.completion_tokens == 40
    # Also when the model's tokenizer counts more than was guessed.
    write_tokenizer(tmp_path / "model", characters=True)
    model = str(tmp_path / "model")
    counted = plan_label(config(tmp_path, 2, base_urls=urls, max_tokens=20, checkpoint=model))
    assert (counted.completion_tokens, counted.counted_by) == (40, "the model's own tokenizer")
    assert counted.prompt_tokens > 2 * capped.prompt_tokens


def write_tokenizer(folder, *, characters=False):
    """A tokenizer that splits at white space, or into characters."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    split = pre_tokenizers.Split(Regex("."), "isolated") if characters else pre_tokenizers.WhitespaceSplit()
    tokenizer.pre_tokenizer = split
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def test_a_model_in_a_folder_counts_with_its_own_tokenizer(tmp_path):
    write_tokenizer(tmp_path / "model")
    urls = ("http://h/v1",)
    plan = plan_label(config(tmp_path, 4, base_urls=urls, checkpoint=str(tmp_path / "model")))
    assert plan.counted_by == "the model's own tokenizer"
    words = len((ROOT_PROMPT := prompt_of(tmp_path)).split())
    assert ROOT_PROMPT.endswith("Node 10 has left.. Output:")
    assert plan.prompt_tokens == 4 * (words + 8)  # and a chat template's tokens


def prompt_of(tmp_path):
    with FakeOpenAI() as server:
        label(config(tmp_path, 1, base_urls=(server.url,)))
        return server.seen[0].prompt


def test_a_tokenizer_in_the_hub_s_cache_is_found(tmp_path, monkeypatch):
    from huggingface_hub import constants

    commit = "a" * 40
    repository = tmp_path / "models--org--model"
    write_tokenizer(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    counter, source = find_counter(AnnotatorSpec("m", "server", "org/model"))
    assert (counter("a bb ccc"), source) == (3, "the model's own tokenizer")
    assert find_counter(AnnotatorSpec("m", "server", "org/other"))[0] is estimate
    assert find_counter(AnnotatorSpec("m", "server", "no name//of a repository"))[0] is estimate


@pytest.mark.parametrize("cached", [False, True])
def test_tiktoken_is_used_only_when_it_downloads_nothing(tmp_path, monkeypatch, cached):
    asked = []

    def name_for(model):
        if model != "gpt-x":
            raise KeyError(model)
        return "o9"

    def get(name):
        asked.append(name)
        return types.SimpleNamespace(encode_ordinary=lambda text: text.split("-"))

    module = types.ModuleType("tiktoken")
    module.__spec__ = types.SimpleNamespace(name="tiktoken")
    module.encoding_name_for_model, module.get_encoding = name_for, get
    monkeypatch.setitem(sys.modules, "tiktoken", module)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    if cached:
        url = "https://openaipublic.blob.core.windows.net/encodings/o9.tiktoken"
        (tmp_path / hashlib.sha1(url.encode()).hexdigest()).write_text("")
    counter, source = find_counter(AnnotatorSpec("m", "server", "gpt-x"))
    assert asked == (["o9"] if cached else [])
    assert source == ("tiktoken (o9)" if cached else "an estimate by characters")
    assert counter("a-b-c") == (3 if cached else 5 / 4)
    assert find_counter(AnnotatorSpec("m", "server", "llama"))[0] is estimate


def test_estimates():
    assert estimate("") == 0
    assert estimate("x" * 40) == 10
    assert estimate("ü" * 40) == 10
    assert estimate("好" * 30) == 20
    assert prompt_tokens(request("x" * 40, "好" * 30), estimate) == 10 + 20 + 2 * 8
    assert guess_tokens(request("x" * 40), 80).completion == 28
    assert guess_tokens(request("x" * 40, max_tokens=9), 80).completion == 9
