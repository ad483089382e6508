"""`llm-label` with a model of LLaMA-7B shape: vLLM in its process, and vLLM's server.

Weights are random, so replies mean nothing; they are JSON of a stated shape, and as long as they may be.
Reply tokens a second, without the start of the engine, the server and the command.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guard import Skip, attempt
from models import llama
from setting import Setting, made_up_texts, write_rows

_START_S = 150.0
_SHORTEST_S = 0.05
_STRUCTURED = {"backend": "xgrammar", "disable_any_whitespace": True}


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield reply tokens a second of both."""
    if find_spec("vllm") is None:
        raise Skip("vLLM is not installed")
    model = llama(setting)
    rows = [{"text": text} for text in made_up_texts(setting.pick(500, 6))]
    texts = write_rows(setting.work / "texts" / "labelling.jsonl", rows)
    yield attempt("engine offline", lambda: _offline(setting, model, texts))
    yield attempt("server", lambda: _server(setting, model, texts))


def _offline(setting: Setting, model: Path, texts: Path) -> dict[str, Any]:
    options = ["max_model_len=1024", "gpu_memory_utilization=0.8"]
    if not setting.on_gpu:
        options = ["max_model_len=1024", "enforce_eager=true", f"kv_cache_memory_bytes={64 << 20}"]
    more = [part for option in options for part in ("--engine-option", option)]
    run = setting.folder("offline")
    _llm_label(setting, texts, run, "--engine", "offline", "--checkpoint", model, *more)
    # All prompts are one call of the engine, and each reply has the seconds since its start.
    seconds = max(row["seconds"] for row in _replies(run))
    return _figures(run, seconds)


def _server(setting: Setting, model: Path, texts: Path) -> dict[str, Any]:
    with _serving(setting, model) as url:
        started = _llm_label(setting, texts, setting.folder("warm-up"), "--base-url", url, "--limit", 4)
        run = setting.folder("served")
        taken = _llm_label(setting, texts, run, "--base-url", url, "--concurrency", 256)
    return _figures(run, taken - started)


def _figures(run: Path, seconds: float) -> dict[str, Any]:
    tokens = sum(row["usage"]["completion_tokens"] for row in _replies(run))
    said = f"{tokens:,} tokens of replies"
    if seconds < _SHORTEST_S:  # so few replies take no longer than the command's start varies
        return {"said": f"{said}, too few to time"}
    return {"tokens_per_s": tokens / seconds, "seconds": seconds, "said": said}


def _replies(run: Path) -> list[dict[str, Any]]:
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "completion_tokens" in (row.get("usage") or {})]


def _llm_label(setting: Setting, texts: Path, out: Path, *options: Any) -> float:
    """Run the command and return its seconds; what it says of replies that mean nothing does not matter."""
    command = [
        *(sys.executable, "-m", "angle_data", "llm-label", "--model", "random", "--prompts", "structured"),
        *("--texts", texts, "--out", out, "--seed", 1, "--max-tokens", setting.pick(128, 16)),
        *options,
    ]
    started = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    if not (out / "journal.jsonl").is_file() or not _replies(out):
        raise RuntimeError(f"llm-label got no reply: {done.stderr.strip()[-200:]}")
    return time.perf_counter() - started


@contextmanager
def _serving(setting: Setting, model: Path) -> Iterator[str]:
    """Start vLLM's server and yield its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    on_cpu = () if setting.on_gpu else ("--enforce-eager", "--kv-cache-memory-bytes", 128 << 20)
    command = [
        # The console script of the CPU build does not start.
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model),
        *("--served-model-name", "random", "--host", "127.0.0.1", "--port", port),
        *("--max-model-len", 1024, "--structured-outputs-config", json.dumps(_STRUCTURED), *on_cpu),
    ]
    server = subprocess.Popen([str(part) for part in command])
    try:
        end = time.monotonic() + _START_S
        while not _healthy(port):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError("vLLM's server does not answer; see the log")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(10)
        server.kill()


def _healthy(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
        return True
    return False
