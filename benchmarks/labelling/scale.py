"""A labelling run over a million texts against an annotator that answers at once: memory, start, resume.

    python benchmarks/labelling/scale.py [--texts 1000000]                        one request each

Prints seconds from the call to the first request, requests per second, the time to derive the candidates,
how much the resident memory grew over the start (with the packages loaded, nothing read), and the time to
scan the journal, as a resume does before it derives. What a service or network adds is no part of it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from pathlib import Path

import numpy  # noqa: F401 - loaded before the start is measured, as openai would be
from calls import ChatRequest, Reply
from common import options

from angle_data.annotators.base import Annotator
from angle_data.annotators.choice import ANNOTATORS
from angle_data.annotators.spec import AnnotatorSpec, EngineConfig
from angle_data.errors import StoppedError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.asking.journal import read_journal
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label

USAGE = {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80}


class Null(Annotator):
    """Answers every request at once, or stops at the first one while `only_first` is set."""

    only_first = True
    first = last = (0.0, 0.0)
    """Wall and CPU seconds when the first request came and after the last reply."""

    def __init__(self, spec: AnnotatorSpec) -> None:
        del spec

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply, None]:
        """Yield one reply a request, and let others run now and then, as sockets would."""
        for number, request in enumerate(requests):
            if number == 0:
                Null.first = now()
                if Null.only_first:
                    raise StoppedError("that was the first")
            if number % 64 == 0:
                await asyncio.sleep(0)
            reply = f"1. In other words, {request.source}\n2. Put differently: {request.source}"
            yield Reply(request.key, reply, "stop", USAGE, 0.05)
        Null.last = now()
        show("all asked", "")  # deriving takes longer than asking an annotator like this


def now() -> tuple[float, float]:
    """Return wall and CPU seconds."""
    return time.perf_counter(), time.process_time()


def seconds(since: tuple[float, float], until: tuple[float, float] | None = None) -> tuple[str, str]:
    """Return what has passed in words, wall and CPU."""
    wall, cpu = (end - start for start, end in zip(since, until or now(), strict=True))
    return f"{wall:.2f}", f"{cpu:.2f} of CPU"


def show(name: str, value: str, *notes: str) -> None:
    """Print one line of the table at once."""
    print(f"{name:<32}{value:>12}   {'; '.join(notes)}".rstrip(), flush=True)


def measure(config: LabelConfig, texts: int) -> None:
    """Start, run and read the journal, and print what it took."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    start = now()
    with suppress(StoppedError):
        label(config)
    show("seconds to the first request", *seconds(start, Null.first), "goal 3")
    Null.only_first = False
    label(config)
    show("seconds to derive", *seconds(Null.last))
    show("requests a second", f"{texts / (Null.last[0] - Null.first[0]):,.0f}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    show("memory above the start, MB", f"{(most - before) / 1e6:.0f}", "goal 200")
    start = now()
    with read_journal(config.out, "null") as journal:
        took = seconds(start)
        size = (config.out / "journal.jsonl").stat().st_size / len(journal)
        show("journal rows", f"{len(journal):,}", f"{size:.0f} bytes a row")
    show("seconds to scan the journal", *took, "goal 15")


def main() -> None:
    """Write texts of about 65 characters and measure a run over them."""
    parser = options(__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    texts = parser.parse_args().texts
    ANNOTATORS["null"] = f"{__name__}:Null"
    with tempfile.TemporaryDirectory(prefix="angle-scale-") as name:
        file = Path(name, "texts.jsonl")
        text = "Node {} has left the cluster and its pods were moved elsewhere."
        write_jsonl(file, ({"id": f"t{i}", "text": text.format(i)} for i in range(texts)))
        engine = EngineConfig("null", engine="null", base_urls=("http://localhost/v1",))
        measure(LabelConfig(engine, file, Path(name, "run"), polarity="synonym"), texts)


if __name__ == "__main__":
    main()
