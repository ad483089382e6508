"""What the scripts about the server annotator share: the fake service in its own process, and requests."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from angle_data.annotators.base import ChatRequest, Reply, Sampling

_SERVER = Path(__file__).with_name("service.py")
_SYSTEM = "You rewrite sentences about cloud operations. Answer with a numbered list and nothing else."


@contextmanager
def service(*options: str) -> Iterator[str]:
    """Run service.py with `options` and give its base URL."""
    process = subprocess.Popen(
        [sys.executable, str(_SERVER), *options], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def counts(url: str) -> dict[str, Any]:
    """Return what the service answered so far, by status, and set its counts to zero."""
    stats = urllib.request.Request(url.removesuffix("/v1") + "/stats", method="POST")
    with urllib.request.urlopen(stats) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def chat_requests(number: int) -> Iterator[ChatRequest]:
    """Yield `number` requests of about 60 words, all different."""
    sampling = Sampling(temperature=0.7, max_tokens=256, seed=0)
    for i in range(number):
        text = f"Cluster {i} did not start again after the failed update of its node pool in zone {i % 7}."
        messages = (
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": f"Write 2 sentences with the same meaning as: {text} " * 2},
        )
        yield ChatRequest(f"{i:032x}", f"s{i}", text, "synonym", messages, "tiny", sampling)


async def ask_ours(url: str, number: int, concurrency: int) -> int:
    """Ask through the server annotator and return how many answered."""
    from angle_data.annotators.server import OpenAIServer
    from angle_data.annotators.spec import AnnotatorSpec

    spec = AnnotatorSpec("tiny", "server", "tiny", base_urls=(url,), concurrency=concurrency)
    async with aclosing(OpenAIServer(spec).stream(chat_requests(number))) as outcomes:
        return len([outcome async for outcome in outcomes if isinstance(outcome, Reply)])
