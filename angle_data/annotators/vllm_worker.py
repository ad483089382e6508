"""The process that holds a vLLM engine for `vllm_offline`.

Its settings and then chunks come on stdin, answers go to stdout. A process of its own because vLLM prints on
stdout, starts processes that a Ctrl-C in the terminal would end in the middle of a chunk, and takes its
process along when memory runs out. Ends when stdin does; in the middle of a chunk at once, with all that vLLM
started.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import IO

from angle_data.annotators.vllm_chunks import ChunkServer
from angle_data.annotators.vllm_engine import EngineSettings


def main() -> None:
    """Serve the process on the other end of stdin and stdout until it closes them."""
    # What vLLM and its libraries print must not mix with the answers: it goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = ChunkServer(EngineSettings(**json.loads(sys.stdin.readline())))
    working = threading.Event()
    chunks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, chunks, working), daemon=True).start()
    while (chunk := chunks.get()) is not None:
        answer = server(chunk)
        working.clear()  # before the answer is out: the next chunk may follow at once
        answers.write(answer + "\n")
        answers.flush()


def _read(source: IO[str], chunks: queue.SimpleQueue[str | None], working: threading.Event) -> None:
    for line in source:
        working.set()
        chunks.put(line)
    # Nobody waits for the answer any more, and the engine's own processes would outlive this one.
    if working.is_set() and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    chunks.put(None)


if __name__ == "__main__":
    main()
