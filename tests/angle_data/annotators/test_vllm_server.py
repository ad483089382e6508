"""The server annotator and `llm-label` against the real `vllm` server with tiny random models."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress

import pytest
from programs import python, went_through
from tiny_llm import ask, chat_request, needs_vllm, tiny_model, wait_until

from angle_data.annotators.base import Failure
from angle_data.annotators.choice import load_annotator
from angle_data.annotators.models import MODELS
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AnnotatorError

pytestmark = [pytest.mark.slow, needs_vllm, pytest.mark.timeout(600)]

START_S = 300
ALIAS = "chatglm"  # a LLaMA is loaded in the tests of the offline engine
CHOICE = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]}
CHOICE |= {"additionalProperties": False}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a server that serves a tiny model under the name that the alias stands for."""
    folder = tmp_path_factory.mktemp("served")
    model = tiny_model("Glm4", folder / "model")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        # The `vllm` command of the CPU build looks for a package of that name, and fails.
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model),
        *("--served-model-name", MODELS[ALIAS].checkpoint, "--host", "127.0.0.1", "--port", port),
        *("--enforce-eager", "--max-model-len", "1024", "--kv-cache-memory-bytes", 128 << 20),
        # One process less to start, and to wait for.
        *("--distributed-executor-backend", "uni"),
        *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
    ]
    with (folder / "server.log").open("w") as output:
        options = {"env": {**os.environ, "VLLM_NO_USAGE_STATS": "1"}, "start_new_session": True}
        server = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output, **options)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"), START_S, server, folder / "server.log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def answers(url):
    with suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=5):
        return True


def server(url, concurrency=1):
    spec = AnnotatorSpec("m", "server", "m", base_urls=(url,), concurrency=concurrency)
    return load_annotator(spec)


def llm_label(url, texts, out, *more):
    return python(
        *("-c", "from angle_data.cli import main; main()"),
        *("llm-label", "--model", ALIAS, "--base-url", url, "--texts", texts, "--out", out),
        *("--seed", "5", "--temperature", "1", "--max-tokens", "12", "--concurrency", "1", *more),
    )


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": f"Node {number} is down."}) + "\n" for number in range(2)))
    return path


def journal(out):
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    return {row["key"]: row["reply"] for row in rows}


def test_llm_label_end_to_end(url, texts, tmp_path):
    done = llm_label(url, texts, tmp_path / "one", "--json")
    assert went_through(done), done.stderr
    first = journal(tmp_path / "one")
    assert len(first) == 4
    # One at a time, the same seed gives the same replies; and a finished run asks for nothing.
    assert went_through(llm_label(url, texts, tmp_path / "two"))
    assert journal(tmp_path / "two") == first
    again = llm_label("http://127.0.0.1:9/v1", texts, tmp_path / "one")
    assert went_through(again), again.stderr


def test_schema_and_seed(url):
    model = MODELS[ALIAS].checkpoint
    options = {"model": model, "schema": CHOICE, "max_tokens": 64}
    replies = ask(server(url, 8), [chat_request(f"Text {n}", n, seed=n, **options) for n in range(8)])
    assert len(replies) == 8
    assert {json.loads(reply.text)["answer"] for reply in replies} <= {"yes", "no"}
    draws = [chat_request("Go on.", n, model=model, seed=3 + n) for n in range(2)]
    texts = [reply.text for reply in ask(server(url), draws)]
    assert texts[0] != texts[1]
    assert [reply.text for reply in ask(server(url), draws)] == texts


def test_a_prompt_that_is_too_long_fails_alone(url):
    model = MODELS[ALIAS].checkpoint
    requests = [chat_request("word " * 3000, 0, model=model), chat_request("Short.", 1, model=model)]
    outcomes = {outcome.key: outcome for outcome in ask(server(url), requests)}
    too_long, answered = (outcomes[request.key] for request in requests)
    assert isinstance(too_long, Failure)
    assert too_long.kind == "too_long"
    assert "1024" in too_long.message
    assert answered.usage["completion_tokens"] > 0


def test_an_unknown_model_ends_the_run_with_the_words_of_the_server(url):
    with pytest.raises(AnnotatorError, match=r"nobody.* does not exist"):
        ask(server(url), [chat_request("Anything.", model="nobody")])
