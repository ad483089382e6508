"""Chunks in, answers out, in one process: errors that travel, and the engine around no real model."""

import inspect
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from tiny_llm import chat_request

from angle_data import errors
from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.vllm_chunks import ChunkServer, decode, encode
from angle_data.annotators.vllm_engine import EngineSettings
from angle_data.errors import AngleError, MissingExtraError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, AngleError)]


class Params(SimpleNamespace):
    """Sampling parameters as vLLM has them by default."""


class LLM:
    """Says of every prompt what it was asked with; refuses what is forbidden, as vLLM without own errors."""

    def __init__(self, **options):
        self.chat_template, self.model_config = None, SimpleNamespace(max_model_len=options["max_model_len"])

    def get_tokenizer(self):
        return Tokenizer()

    def get_default_sampling_params(self):
        return Params(seed=0)

    def chat(self, messages, sampling_params, use_tqdm):
        prompts = [conversation[-1]["content"] for conversation in messages]
        if "forbidden" in prompts:
            raise ValueError("that is forbidden")
        return [
            SimpleNamespace(prompt_token_ids=prompt.split(), num_cached_tokens=None, outputs=[completion])
            for prompt, params in zip(prompts, sampling_params, strict=True)
            for completion in [
                SimpleNamespace(
                    text=f"seed {params.seed}",
                    token_ids=[1],
                    finish_reason="abort" if prompt == "stopped" else "stop",
                )
            ]
        ]


class Tokenizer:
    """One token a word."""

    chat_template = "{{ messages }}"

    def apply_chat_template(self, messages, **_):
        return messages[-1]["content"]

    def __call__(self, texts, **_):
        return {"input_ids": [text.split() for text in texts]}


@pytest.fixture
def old_vllm(monkeypatch):
    """Puts a vLLM without errors of its own into this process."""
    module, sampling = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    module.LLM, module.sampling_params, module.__path__ = LLM, sampling, []
    sampling.StructuredOutputsParams = SimpleNamespace
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", sampling)
    monkeypatch.setitem(sys.modules, "vllm.exceptions", None)


def served(*contents, seed=7):
    server = ChunkServer(EngineSettings("tiny", None, {"max_model_len": 3}))
    return decode(server(encode(chat_request(c, number, seed=seed) for number, c in enumerate(contents))))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_arrives_as_itself_with_its_message(kind):
    with pytest.raises(AngleError) as raised:
        decode(json.dumps({"error": kind.__name__, "message": "one line"}))
    assert type(raised.value) is kind
    assert str(raised.value) == "one line"


def test_a_machine_without_vllm_is_one_line_that_names_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError) as raised:
        served("a")
    assert str(raised.value) == str(MissingExtraError("loading a model", "vllm"))


def test_a_vllm_without_errors_of_its_own_is_spoken_to_alike(old_vllm):
    outcomes = served("a", "forbidden", "c")
    assert [type(outcome) for outcome in outcomes] == [Reply, Failure, Reply]
    assert (outcomes[1].kind, outcomes[1].message) == ("refused", "that is forbidden")


def test_seed_length_and_end_of_a_reply_are_heeded(old_vllm):
    outcomes = served("a", "of two", "now of three", "stopped", seed=9)
    assert [getattr(outcome, "text", None) for outcome in outcomes] == ["seed 9", "seed 9", None, None]
    assert [getattr(outcome, "kind", None) for outcome in outcomes] == [None, None, "too_long", "aborted"]
