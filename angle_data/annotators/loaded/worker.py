"""Keeps a model in a process of its own, and asks it in chunks: one start for all requests, no server.

A process of its own, because the engines print as they like, go on while a Ctrl-C in the terminal ends ours,
and take their process along when memory runs out. `LoadedModel` is the annotator. `ChunkServer` is the other
end: this module as a program serves it on stdin and stdout, `ray_offline` in the actors of a cluster.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Any, ClassVar, Protocol

from angle_data.annotators.base import Annotator, ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.transport import one_line
from angle_data.errors import AngleError, AnnotatorError

log = logging.getLogger("angle.annotators")

_END_S = 10.0
_LOG_TAIL_BYTES = 200_000
_ALIKE = 5


class Engine(Protocol):
    """A loaded model; made from its arguments, which may take minutes, or raises an `AngleError`."""

    def answer(self, requests: Sequence[ChatRequest]) -> list[Reply | Failure]:
        """Answer a chunk, in the order of its requests; one that cannot be asked costs none of the others."""
        ...


class LoadedModel(Annotator):
    """An annotator around a model, from the engine's `arguments`; loaded on the first request.

    Its classes say what the process of an engine is told and called: `name` for people, `engine`, the
    "module:Class" of the `Engine`, `log_name`, the file that takes what it prints, `cause`, which finds the
    errors in that log (the text in its last group), and `environment`, unless set already. `chunk` requests
    go to it at a time. `run` is the folder of the log, None for none.
    """

    name: ClassVar[str]
    engine: ClassVar[str]
    log_name: ClassVar[str]
    cause: ClassVar[re.Pattern[str]]
    environment: ClassVar[Mapping[str, str]] = {}

    def __init__(self, arguments: Mapping[str, Any], chunk: int, run: Path | None) -> None:
        self._arguments, self._chunk = arguments, chunk
        self._log_path = run and run / self.log_name
        self._log: IO[bytes] | None = None  # to our stderr
        self._process: subprocess.Popen[bytes] | None = None

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer chunk by chunk, each in the order of its requests.

        Raises:
            AnnotatorError: All is refused alike, or the engine failed; and as of `Engine`.
        """
        source = iter(requests)
        refusals = Refusals(self.name)
        while chunk := list(islice(source, self._chunk)):
            try:
                outcomes = await asyncio.to_thread(self._ask, chunk)
            except asyncio.CancelledError:
                self.close()  # ends the chunk, and with it the thread that waits for it
                raise
            for outcome in outcomes:
                yield outcome
            refusals.check(outcomes)

    def close(self) -> None:
        """End the engine at once; what is being answered is lost. The next request loads the model anew."""
        if self._process is not None:
            _kill(self._process)
            self._finalizer()
            self._process = None

    def _ask(self, chunk: list[ChatRequest]) -> list[Reply | Failure]:
        try:
            if self._process is None:
                started = time.monotonic()
                log.info("loading %s with %s", self._arguments["model"], self.name)
                self._exchange(self._start(), encode([]))
                log.info("loaded in %.0f s", time.monotonic() - started)
            assert self._process is not None
            return self._exchange(self._process, encode(chunk))
        except AngleError:
            self.close()  # it would give the same error again, and hold its memory
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process, in a session of its own: signals of the terminal do not reach it."""
        if not log.isEnabledFor(logging.DEBUG):
            path = self._log_path
            self._log = path.open("w+b") if path else tempfile.TemporaryFile()  # noqa: SIM115 - see _end
        self._process = subprocess.Popen(
            # -P: a folder named vllm or torch in the working directory is not meant.
            [sys.executable, "-P", "-m", __spec__.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={**self.environment, **os.environ},
        )
        self._finalizer = weakref.finalize(self, _end, self._process, self._log)
        _send(self._process, json.dumps([self.name, self.engine, self._arguments]))
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], chunk: str) -> list[Reply | Failure]:
        """Send an encoded chunk and return its outcomes, or raise why the engine could not load or failed."""
        _send(process, chunk)
        assert process.stdout is not None
        name, answer = self.name, process.stdout.readline()
        place = f" (more in {self._log_path})" if self._log and self._log_path else ""
        if not answer.endswith(b"\n"):
            if (status := process.wait()) == -signal.SIGKILL:
                raise AnnotatorError(f"the {name} process was killed, perhaps for want of memory{place}")
            cause = self._cause()
            said = f": {cause}" if cause else ""
            raise AnnotatorError(f"the {name} process ended with status {status}{said}{place}")
        try:
            return decode(answer)
        except AnnotatorError as error:
            message = str(error)
            if SEE_LOG in message:
                # llama.cpp logs from a thread: only when the process has ended is the cause surely there.
                _let_end(process)
                if cause := self._cause():
                    message = f"{name} cannot load the model: {cause}"
            raise AnnotatorError(message + place) from None

    def _cause(self) -> str | None:
        """Return the first error in the log that is not the consequence of another."""
        if self._log is None:
            return None
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES, 0))
        for found in self.cause.finditer(self._log.read().decode(errors="replace")):
            if SEE_LOG not in found[0]:
                return one_line(found[found.lastindex or 0])
        return None


def _send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has died; reading its answer finds out why
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


SEE_LOG = "root cause above"
"""What the message of an engine holds whose cause stands in its log only."""


def _let_end(process: subprocess.Popen[bytes]) -> None:
    """Tell an idle worker that nothing more comes, and give it a moment to end."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)


def _end(process: subprocess.Popen[bytes], output: IO[bytes] | None) -> None:
    """Let an idle worker go, and make sure that it went."""
    for stream in (process.stdout, output):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    _let_end(process)
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The group, not the process alone: vLLM's own processes are in it and may live on.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class ChunkServer:
    """Answers encoded chunks; loads the model on the first, which may be empty, and after an error never.

    `name` is the engine's for people, `engine` its "module:Class".
    """

    def __init__(self, name: str, engine: str, arguments: Mapping[str, Any]) -> None:
        self._name = name
        self._class = engine
        self._arguments = arguments
        self._engine: Engine | None = None
        self._error = ""

    def __call__(self, line: str) -> str:
        """Return the encoded answer to an encoded chunk; errors of the engine travel as answers."""
        if not self._error:
            try:
                self._engine = self._engine or resolve_name(self._class)(self._arguments)
                assert self._engine is not None
                outcomes = self._engine.answer([_request(row) for row in json.loads(line)])
                return json.dumps({"outcomes": list(map(asdict, outcomes))})
            except AngleError as error:
                self._error = str(error)
            except Exception as error:
                # A defect of the model's code or of its engine: the log has its traceback, the user one line.
                log.exception("%s failed", self._name)
                self._error = f"{self._name} failed: {one_line(error)}"
        return json.dumps({"error": self._error})


def encode(requests: Iterable[ChatRequest]) -> str:
    """Return a chunk as one line, without its end."""
    return json.dumps([asdict(request) for request in requests])


def _request(row: dict[str, Any]) -> ChatRequest:
    changed = {"messages": tuple(row["messages"]), "sampling": Sampling(**row["sampling"])}
    return ChatRequest(**(row | changed))


def decode(line: str | bytes) -> list[Reply | Failure]:
    """Return the outcomes of an encoded answer, or raise what the engine ended with."""
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise AnnotatorError(answer["error"])
    return [Failure(**fields) if "kind" in fields else Reply(**fields) for fields in answer["outcomes"]]


class Refusals:
    """Tells when the engine of this name refuses everything."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._replied = False
        self._refused = Counter[str]()

    def check(self, outcomes: list[Reply | Failure]) -> None:
        """Raise an error where five requests at least were refused, all alike, and none was answered."""
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        self._replied = self._replied or len(failures) < len(outcomes)
        self._refused.update(failure.message for failure in failures if failure.kind == "refused")
        if not self._replied and len(self._refused) == 1 and self._refused.total() >= _ALIKE:
            raise AnnotatorError(f"{self._name} refuses every request: {min(self._refused)}")


def main() -> None:
    """Serve the process on the other end of stdin and stdout until it closes them."""
    # What engines and their libraries print must not mix with the answers: it goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = ChunkServer(*json.loads(sys.stdin.readline()))
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
