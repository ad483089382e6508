"""Are replies of the Batch API paired with their own requests when rows fail, vanish and come in any order?

    .venv/bin/python benchmarks/labelling/batch_alignment.py [--rows 2000] [--failing 0.1] [--seeds 3]

A local fake of the service answers every prompt with the hash of the prompt, so that a pair can be checked.
A tenth of the rows fails, a hundredth has no result at all, some results belong to nobody, and all come
shuffled. For each seed the same command runs until nothing is open. Counted are mis-paired replies, requests
that were answered, and so paid for, more than once, and how often the command ran. Needs no key.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from common import save_results  # noqa: E402
from fake_batch import FakeBatch  # noqa: E402

from angle_data.annotators import AnnotatorSpec  # noqa: E402
from angle_data.annotators.base import ChatRequest, Reply, Sampling, request_key  # noqa: E402
from angle_data.annotators.batch_queue import Limits  # noqa: E402
from angle_data.annotators.openai_batch import OpenAIBatch  # noqa: E402
from angle_data.errors import StoppedError  # noqa: E402

MODEL = "tiny"
PART_ROWS = 500


def fingerprint(body: dict[str, Any]) -> str:
    """Return the hash of the prompt of a chat completion's body."""
    return hashlib.sha256(body["messages"][-1]["content"].encode()).hexdigest()


def requests(rows: int) -> Iterator[ChatRequest]:
    """Yield `rows` different requests."""
    sampling = Sampling(temperature=0.7, max_tokens=64)
    for number in range(rows):
        messages = ({"role": "user", "content": f"Rephrase: the pod number {number} does not start."},)
        key = request_key(MODEL, messages, sampling)
        yield ChatRequest(key, f"s{number}", f"text {number}", "synonym", messages, MODEL, sampling)


def one_run(spec: AnnotatorSpec, open_requests: list[ChatRequest], replies: dict[str, str]) -> bool:
    """Run the command once; whether it is done."""

    async def collect() -> None:
        async for outcome in OpenAIBatch(spec, Limits(max_rows=PART_ROWS, poll_s=0.01)).stream(open_requests):
            if isinstance(outcome, Reply):
                replies[outcome.key] = outcome.text

    try:
        asyncio.run(collect())
    except StoppedError:
        return False
    return all(request.key in replies for request in open_requests)


def bought_twice(server: FakeBatch) -> int:
    """Count the requests that more than one batch answered."""
    answered: Counter[str] = Counter()
    for batch in server.batches.values():
        lines = server.files[batch.output_file][1].splitlines() if batch.output_file else []
        answered.update(
            {json.loads(line)["custom_id"] for line in lines} & {r["custom_id"] for r in batch.rows}
        )
    return sum(count > 1 for count in answered.values())


def measure(rows: int, failing: float, seed: int) -> dict[str, float]:
    """Label `rows` requests against a server that fails a share of them."""
    wanted, replies, runs, started = list(requests(rows)), {}, 0, time.process_time()
    server = FakeBatch(fingerprint, failing=failing, vanishing=0.01, strangers=5, seed=seed)
    with tempfile.TemporaryDirectory() as run, server:
        spec = AnnotatorSpec(MODEL, "batch", MODEL, base_urls=(server.url,), run=Path(run))
        done = False
        while not done:
            runs += 1
            done = one_run(spec, [request for request in wanted if request.key not in replies], replies)
        asked = server.asked
    mispaired = sum(replies[request.key] != fingerprint({"messages": request.messages}) for request in wanted)
    return {
        "rows": rows,
        "mispaired": mispaired,
        "bought_twice": bought_twice(server),
        "batches": len(server.batches),
        "rows_submitted": len(asked),
        "runs": runs,
        "cpu_seconds_with_server": round(time.process_time() - started, 2),
    }


def main() -> None:
    """Measure and print one line per seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--failing", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    results = [measure(options.rows, options.failing, seed) for seed in range(options.seeds)]
    for seed, result in enumerate(results):
        print(f"seed {seed}: " + ", ".join(f"{name} {value}" for name, value in result.items()))
    save_results("batch_alignment", results)
    if any(result["mispaired"] or result["bought_twice"] for result in results):
        sys.exit("rows were mis-paired or bought twice")


if __name__ == "__main__":
    main()
