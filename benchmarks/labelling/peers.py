"""The other toolkits that the benchmarks run beside ours, each in an environment of its own.

Environments are made with pip under runs/benchmarks/peers/ on first use, and kept. Where that fails (no
package index, no wheel for this Python), the peer is left out and a line says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from served import ROOT

from angle_data.annotators.base import ChatRequest

_ENVIRONMENTS = ROOT / "runs" / "benchmarks" / "peers"
_CLIENT = Path(__file__).with_name("peer_client.py")

# Of distilabel the last three are what it needs and does not declare.
PEERS = {
    "curator": ("bespokelabs-curator==0.1.31",),
    "distilabel": ("distilabel[openai]==1.5.3", "requests", "datasets<4", "openai<2"),
}
FIELDS = (
    "frequency_penalty",
    "presence_penalty",
    "top_p",
    "stop",
    "n",
    "timeout",
    "logprobs",
    "top_logprobs",
)
"""What peers send beyond what the fake service knows."""


def peer_python(name: str) -> Path | None:
    """Return the interpreter of a peer's environment, made if need be; None and a line where that fails."""
    folder = _ENVIRONMENTS / PEERS[name][0].split("=")[0].split("[")[0]
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, text=True)
            install = [python, "-m", "pip", "install", "--quiet", *PEERS[name]]
            subprocess.run(install, check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            lines = (error.stderr or "").strip().splitlines() or ["no message"]
            print(f"{name} is left out: it cannot be installed here ({lines[-1]})", file=sys.stderr)
            return None
        ready.touch()
    return python


def ask_peer(
    name: str, python: Path, url: str, requests: Iterable[ChatRequest], concurrency: int, limit_s: float
) -> dict[str, Any] | None:
    """Ask through a peer in a process of its own; return what it took, None, with a line, where it fails."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as stream:
        stream.writelines(json.dumps(list(request.messages)) + "\n" for request in requests)
        stream.flush()
        command = [python, _CLIENT, name, url, stream.name, str(concurrency)]
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            print(f"{name} is not done after {limit_s:.0f} s", file=sys.stderr)
            return None
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: {(error.stderr or '').strip().splitlines()[-1:]}", file=sys.stderr)
            return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
