"""The other toolkits that the benchmarks run beside ours, each in an environment of its own.

Where an environment cannot be made, or a peer fails, a line says so and the peer is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from calls import chat_requests
from common import peer_python

_CLIENT = Path(__file__).with_name("peer_client.py")

# Of distilabel the last three are what it needs and does not declare.
PEERS = {
    "curator": ("bespokelabs-curator==0.1.31",),
    "distilabel": ("distilabel[openai]==1.5.3", "requests", "datasets<4", "openai<2"),
}
_PENALTIES = ("frequency_penalty", "presence_penalty")
FIELDS = (*_PENALTIES, "top_p", "stop", "n", "timeout", "logprobs", "top_logprobs")
"""What peers send beyond what the fake service knows."""


def ask_peer(name: str, url: str, number: int, concurrency: int, limit_s: float) -> dict[str, Any] | None:
    """Ask through a peer in a process of its own; return what it took, None, with a line, where it fails."""
    folder = PEERS[name][0].split("=")[0].split("[")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as stream:
        stream.writelines(json.dumps(list(request.messages)) + "\n" for request in chat_requests(number))
        stream.flush()
        try:
            command = [peer_python(folder, PEERS[name]), _CLIENT, name, url, stream.name, str(concurrency)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            print(f"{name} is not done after {limit_s:.0f} s", file=sys.stderr)
            return None
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: {(error.stderr or '').strip().splitlines()[-1:]}", file=sys.stderr)
            return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
