"""The offline engine with the real vLLM and tiny random models: LLaMA, and ChatGLM in its first layout."""

import json
import os
import re

import pytest
from programs import python, went_through
from tiny_llm import ENGINE_OPTIONS, ask, chat_request, needs_vllm, shared_engine, shared_llama, tiny_chatglm

from angle_data.annotators.base import Reply
from angle_data.annotators.loaded.vllm_offline import engine_arguments
from angle_data.annotators.loaded.worker import decode, encode
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AnnotatorError

pytestmark = [pytest.mark.slow, needs_vllm, pytest.mark.timeout(600)]

ANSWER = {"type": "array", "items": {"enum": ["yes", "no"]}, "minItems": 2, "maxItems": 2}
CHOICE = {"type": "object", "properties": {"answer": ANSWER}, "required": ["answer"]}
CHOICE |= {"additionalProperties": False}


@pytest.fixture(scope="module", autouse=True)
def _one_process():
    """Keep the engine in its worker: a quarter of the start time is spared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        yield


@pytest.fixture
def engine():
    return shared_engine()


def test_a_schema_binds_the_reply(engine):
    requests = [chat_request(f"Text {n}", n, seed=n, schema=CHOICE, max_tokens=64) for n in range(4)]
    for reply in ask(engine, requests):
        assert re.fullmatch(r'\{"answer":\["(yes|no)","(yes|no)"\]\}', reply.text)


def test_a_faulty_request_costs_no_other(engine):
    unsupported = {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 3}}}
    contents = [("one", None), ("word " * 600, None), ("three", unsupported), ("four", None)]
    requests = [chat_request(text, n, schema=schema) for n, (text, schema) in enumerate(contents)]
    one, too_long, refused, four = ask(engine, requests)
    assert [type(one), type(four)] == [Reply, Reply]
    assert (too_long.kind, refused.kind) == ("too_long", "refused")
    assert "the model holds 512" in too_long.message
    assert "\n" not in refused.message


def test_the_longest_prompt_that_leaves_room_for_a_token_is_answered(engine):
    """Our count of tokens agrees with vLLM's, at the very edge."""
    (probe,) = ask(engine, [chat_request("a " * 100)])
    (longer,) = ask(engine, [chat_request("a " * 101)])
    step = longer.usage["prompt_tokens"] - probe.usage["prompt_tokens"]
    words = 100 + (511 - probe.usage["prompt_tokens"]) // step
    fits, too_long = ask(engine, [chat_request("a " * (words + n), n) for n in (0, 1)])
    assert (fits.usage["prompt_tokens"], fits.finish_reason) == (511, "length")
    assert too_long.kind == "too_long"


LOADS = """
import json, sys
from angle_data.annotators.loaded.vllm_offline import VLLMOffline
from angle_data.annotators.loaded.worker import ChunkServer

for arguments in json.loads(sys.argv[1]):
    print("FOUND", ChunkServer("vLLM", VLLMOffline.engine, arguments)(sys.argv[2]))
"""


def test_what_the_real_vllm_cannot_load_is_one_line_and_a_chatglm_answers(tmp_path):
    """In one process, since it takes seconds to import vLLM."""
    loads = [
        (str(shared_llama()), ENGINE_OPTIONS | {"gpu_memory": 0.5}),
        ("nobody/nothing", ENGINE_OPTIONS),
        (str(tiny_chatglm(tmp_path / "glm")), ENGINE_OPTIONS),
    ]
    arguments = [engine_arguments(AnnotatorSpec("m", "offline", name), options) for name, options in loads]
    requests = [chat_request("One?", 0, schema=CHOICE, max_tokens=64), chat_request("One?", 1, max_tokens=64)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = python("-c", LOADS, json.dumps(arguments), encode(requests), env=environment)
    found = [line[6:] for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert len(found) == 3, done.stderr
    with pytest.raises(AnnotatorError, match="--engine-option gpu_memory: vLLM has no such option"):
        decode(found[0])
    with pytest.raises(AnnotatorError, match=r"^vLLM cannot load nobody/nothing \(.*$"):
        decode(found[1])
    bound, free = decode(found[2])
    assert set(json.loads(bound.text)["answer"]) <= {"yes", "no"}
    assert free.usage["completion_tokens"] > 1


def label(texts, out):
    command = [
        *("-c", "from angle_data.cli import main; main()"),
        *("llm-label", "--model", "llama", "--engine", "offline", "--checkpoint", shared_llama()),
        *("--texts", texts, "--out", out, "--seed", "5", "--max-tokens", "24", "--temperature", "1"),
        *(f"--engine-option={name}={json.dumps(value)}" for name, value in ENGINE_OPTIONS.items()),
        *("--engine-option", "chunk=3"),
    ]
    done = python(*command)
    assert went_through(done), done.stderr
    return done


def test_a_run_of_the_program_and_the_same_again(tmp_path, monkeypatch):
    """As a user starts it: vLLM's engine in a process of its own, and its noise in the log."""
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"Node {number} is down."}) + "\n" for number in range(4)))
    monkeypatch.delenv("VLLM_ENABLE_V1_MULTIPROCESSING")
    done = label(texts, tmp_path / "run")
    assert "INFO" not in done.stderr
    assert "WARNING" not in done.stderr
    log = tmp_path / "run" / "vllm.log"
    assert "EngineCore" in log.read_text()
    rows = (tmp_path / "run" / "journal.jsonl").read_text()
    assert [json.loads(row)["parameters"]["seed"] for row in rows.splitlines()] == [5] * 8
    # Nothing to ask: the model is not even loaded.
    log.unlink()
    label(texts, tmp_path / "run")
    assert not log.exists()
    assert (tmp_path / "run" / "journal.jsonl").read_text() == rows
