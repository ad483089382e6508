"""A fake vLLM in the place of the real one, in other processes too, and a Ray that runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import angle_data, plain_prompts, started

TESTS = Path(__file__).parents[2]
# Ray gives its workers niceness 15: beside another busy program they start for minutes.
os.environ.setdefault("RAY_worker_niceness", "0")
PATHS = os.pathsep.join(map(str, (TESTS / "fake_vllm", TESTS.parent)))
RAY = (
    "import ray, sys\n"
    "ray.init(include_dashboard=False, num_cpus=8, log_to_driver=False)\n"
    "print(ray.get_runtime_context().gcs_address, flush=True)\n"
    "sys.stdin.read()\n"
)


class Calls:
    """What the fake vLLM was asked: `calls("chat")` are the prompts of each call, see `fake_vllm`."""

    def __init__(self, record):
        self.record = record

    def __call__(self, name):
        rows = self.record.read_text().splitlines() if self.record.exists() else []
        return [row[name] for row in map(json.loads, rows) if name in row]


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The calls of a fake vLLM, which is in the place of the real one here and in new processes."""
    monkeypatch.setenv("PYTHONPATH", PATHS)
    monkeypatch.setenv("FAKE_VLLM_CALLS", str(tmp_path / "calls.jsonl"))
    monkeypatch.syspath_prepend(TESTS / "fake_vllm")
    return Calls(tmp_path / "calls.jsonl")


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory):
    """The address of a Ray with the fake vLLM, one for all tests, and the calls to the fake."""
    record = tmp_path_factory.mktemp("ray") / "calls.jsonl"
    env = os.environ | {"PYTHONPATH": PATHS, "FAKE_VLLM_CALLS": str(record), "RAY_USAGE_STATS_ENABLED": "0"}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", RAY], env=env, text=True, **streams) as process:
        lines = iter(process.stdout.readline, "")
        yield next(line.strip() for line in lines if line[:1].isdigit()), Calls(record)
        process.stdin.close()
        process.wait()


@pytest.fixture
def ray_calls(_cluster, monkeypatch):
    """The calls of the fake vLLM on a Ray that is there already; programs find it by RAY_ADDRESS."""
    address, calls = _cluster
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # as Ray has it where it starts itself
    calls.record.write_text("")
    return calls


@pytest.fixture
def start_run():
    """Start `llm-label` on texts with a fake vLLM, in a process of its own."""

    def start(folder, contents, engine, chunk):
        texts = folder / "texts.jsonl"
        texts.write_text("".join(json.dumps({"text": content}) + "\n" for content in contents))
        options = ["--model", "tiny", "--engine", engine, "--polarity", "synonym"]
        options += ["--texts", texts, "--out", folder / "run", "--prompts", plain_prompts(folder / "prompts")]
        options += ["--engine-option", f"chunk={chunk}", "--engine-option", "max_model_len=4096"]
        return started(angle_data("llm-label", *options), 120)

    return start
