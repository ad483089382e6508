"""A labelling run over a million texts against an annotator that answers at once: memory, start, resume.

    python benchmarks/labelling/scale.py                        # a million texts, one request each
    python benchmarks/labelling/scale.py --texts 200000 --polarity both

Prints seconds from the call to the first request, requests per second, the time of a resume over the whole
journal, the time to derive the candidates, and how much the resident memory grew over the start (with the
packages loaded, nothing read). What a service or network adds is no part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import ClassVar

from angle_data.annotators.base import ChatRequest, Reply
from angle_data.annotators.registry import ANNOTATORS
from angle_data.annotators.spec import AnnotatorSpec, EngineConfig
from angle_data.errors import StoppedError
from angle_data.labelling.asking.journal import read_journal
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label

USAGE = {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80}


class Null:
    """Answers every request at once, or stops at the first when `only_first` is set."""

    only_first: ClassVar[bool] = False
    first: ClassVar[float | None] = None
    last: ClassVar[float] = 0.0
    last_cpu: ClassVar[float] = 0.0
    called: ClassVar[float] = 0.0
    cpu: ClassVar[float] = 0.0
    asked: ClassVar[int] = 0

    def __init__(self, spec: AnnotatorSpec) -> None:
        self._name = spec.name

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply, None]:
        """Yield one reply a request, and let others run now and then, as sockets would."""
        for number, request in enumerate(requests):
            if Null.first is None:
                Null.first = time.perf_counter()
                if Null.only_first:
                    cpu = f"goal 3; {time.process_time() - Null.cpu:.2f} of CPU"
                    show("seconds to the first request", f"{Null.first - Null.called:.2f}", cpu)
                    raise StoppedError("that was the first")
            if number % 64 == 0:
                await asyncio.sleep(0)
            reply = f"1. In other words, {request.source}\n2. Put differently: {request.source}"
            yield Reply(request.key, reply, "stop", USAGE, 0.05)
            Null.asked += 1
        Null.last, Null.last_cpu = time.perf_counter(), time.process_time()
        show("asked by now", f"{Null.asked:,}")  # deriving takes longer than asking an annotator like this


def write_texts(path: Path, count: int) -> None:
    """Write `count` texts of about 65 characters."""
    with path.open("w", encoding="utf-8") as stream:
        for i in range(count):
            text = f"Node {i} has left the cluster and its pods were moved elsewhere."
            stream.write(json.dumps({"id": f"t{i}", "text": text}) + "\n")


def megabytes() -> tuple[float, float]:
    """Return the resident memory now, and the most there was so far, in MB."""
    now = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return now / 1e6, most / 1e6


def show(name: str, value: str, note: str = "") -> None:
    """Print one line of the table at once."""
    print(f"{name:<32}{value:>12}   {note}".rstrip(), flush=True)


def main() -> None:
    """Run once, resume once, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--polarity", choices=("synonym", "antonym", "both"), default="synonym")
    options = parser.parse_args()
    ANNOTATORS["null"] = f"{__name__}:Null"
    folder = Path(tempfile.mkdtemp(prefix="angle-scale-"))
    try:
        write_texts(folder / "texts.jsonl", options.texts)
        engine = EngineConfig("null", engine="null", base_urls=("http://localhost/v1",))
        config = LabelConfig(engine, folder / "texts.jsonl", folder / "run", polarity=options.polarity)
        measure(config)
    finally:
        shutil.rmtree(folder)


def first_request(config: LabelConfig) -> None:
    """Print the seconds from a call on a new folder to its first request, and stop there."""
    Null.only_first, Null.called, Null.cpu = True, time.perf_counter(), time.process_time()
    with contextlib.suppress(StoppedError):
        label(config)
    Null.first, Null.only_first = None, False


def measure(config: LabelConfig) -> None:
    """Run and resume, and print what it took."""
    import numpy  # noqa: F401 - loaded before the start is measured, as openai would be

    before, _ = megabytes()
    first_request(config)
    start = time.perf_counter()
    label(config)
    ended, cpu = time.perf_counter(), time.process_time() - Null.last_cpu
    _, most = megabytes()
    assert Null.first is not None
    asked, asking = Null.asked, Null.last - Null.first
    show("requests a second", f"{asked / asking:,.0f}")
    show("seconds to derive", f"{ended - Null.last:.1f}", f"{cpu:.1f} of CPU")
    show("memory above the start, MB", f"{most - before:.0f}", "goal 200")
    size = (config.out / "journal.jsonl").stat().st_size
    start, cpu = time.perf_counter(), time.process_time()
    with read_journal(config.out, "null") as journal:
        scanned, cpu = time.perf_counter() - start, time.process_time() - cpu
        show("journal rows", f"{len(journal):,}", f"{size / len(journal):.0f} bytes a row")
    show("seconds to scan the journal", f"{scanned:.2f}", f"goal 15; {cpu:.2f} of CPU")
    with config.texts.open("a", encoding="utf-8") as stream:
        stream.write('{"id": "new", "text": "One more text at the end."}\n')
    Null.first = None
    stop = Null.asked
    start = time.perf_counter()
    result = label(config)
    assert Null.first is not None
    show("seconds to the one new request", f"{Null.first - start:.2f}")
    assert Null.asked - stop == result.counts["asked"] == len(config.polarities), result.counts


if __name__ == "__main__":
    sys.exit(main())
