"""Asks the fake service through another toolkit; run in its environment by what uses `peers`.

    PEER/bin/python benchmarks/labelling/peer_client.py curator|distilabel URL REQUESTS.jsonl CONCURRENCY

REQUESTS.jsonl holds one list of messages a line. Prints one line of JSON as `throughput.py` does for its own
clients: CPU seconds from the call to the last reply (with those of child processes), and the largest resident
memory. Imports are done before. Each toolkit is set up as its documentation says for a
server of one's own; what it writes goes to a temporary folder. Nothing here knows angle_data.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Messages = list[dict[str, str]]


class _CharacterTokens:
    """Four characters a token: stands for tiktoken's vocabulary, which would have to be downloaded."""

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return as many numbers as there are tokens."""
        return [0] * (len(text) // 4 + 1)


def curator(url: str, concurrency: int) -> Callable[[list[Messages]], int]:
    """Return a call of bespokelabs-curator."""
    import tiktoken

    tiktoken.get_encoding = lambda name: _CharacterTokens()
    from bespokelabs import curator as bespoke

    class Rewriter(bespoke.LLM):
        """Sends the messages as they are and keeps the reply."""

        def prompt(self, row: dict[str, Any]) -> Messages:
            """Return the messages of a row."""
            return row["messages"]  # type: ignore[no-any-return]

        def parse(self, row: dict[str, Any], response: str) -> dict[str, str]:
            """Return the reply of a row."""
            return {"reply": response}

    def call(requests: list[Messages]) -> int:
        from datasets import Dataset

        limits = {"max_requests_per_minute": 10**7, "max_tokens_per_minute": 10**10}
        given = {"base_url": url, "api_key": "EMPTY", "max_concurrent_requests": concurrency, **limits}
        llm = Rewriter(
            "tiny",
            backend="openai",
            generation_params={"temperature": 0.7, "max_tokens": 256, "seed": 0},
            backend_params=given,
        )
        return len(llm(Dataset.from_list([{"messages": messages} for messages in requests])).dataset)

    return call


def distilabel(url: str, concurrency: int) -> Callable[[list[Messages]], int]:
    """Return a call of distilabel; as many requests are in flight as a batch holds."""
    from distilabel.models import OpenAILLM
    from distilabel.pipeline import Pipeline
    from distilabel.steps import LoadDataFromDicts
    from distilabel.steps.tasks import TextGeneration

    def call(requests: list[Messages]) -> int:
        system = requests[0][0]["content"]
        rows = [{"instruction": messages[-1]["content"]} for messages in requests]
        with Pipeline(name="rewrite") as pipeline:
            load = LoadDataFromDicts(data=rows, batch_size=concurrency)
            sampling = {"temperature": 0.7, "max_new_tokens": 256}
            llm = OpenAILLM(model="tiny", base_url=url, api_key="EMPTY", generation_kwargs=sampling)
            task = TextGeneration(llm=llm, system_prompt=system, input_batch_size=concurrency)
            load >> task
        found = pipeline.run(use_cache=False)["default"]["train"]
        return sum(reply is not None for reply in found["generation"])

    return call


def used() -> tuple[float, float]:
    """Return CPU seconds and the most MB of this process and the children it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both), max(one.ru_maxrss for one in both) / 1024


def main() -> None:
    """Run one toolkit and print what it took."""
    toolkits = {"curator": curator, "distilabel": distilabel}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("toolkit", choices=toolkits)
    parser.add_argument("url")
    parser.add_argument("requests", type=Path, metavar="REQUESTS.jsonl")
    parser.add_argument("concurrency", type=int)
    given = parser.parse_args()
    requests = [json.loads(line) for line in given.requests.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ |= {
            "OPENAI_API_KEY": "EMPTY",
            "TELEMETRY_ENABLED": "false",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": folder,
            "CURATOR_CACHE_DIR": folder,
            "DISTILABEL_CACHE_DIR": folder,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        with contextlib.redirect_stdout(sys.stderr):
            call = toolkits[given.toolkit](given.url, given.concurrency)
            before, _ = used()
            answered = call(requests)
            after, rss = used()
    if answered != len(requests):
        sys.exit(f"{given.toolkit}: {answered} of {len(requests)} answered")
    print(json.dumps({"cpu": after - before, "rss_mb": rss}))


if __name__ == "__main__":
    main()
