"""Loads a model with vLLM on this machine and answers in chunks: no server, one start for all requests.

The engine lives in a process of its own (`vllm_worker`), so a Ctrl-C drains the chunk that is worked on. What
vLLM prints goes to vllm.log in the run folder. A kill loses at most one chunk. Does not spread over machines;
see `ray_offline`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO

from angle_data.annotators.base import ChatRequest, Failure, Reply
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.vllm_chunks import check_refusals, decode, encode
from angle_data.annotators.vllm_engine import DEFAULT_CHUNK, EngineSettings, one_line, take_count
from angle_data.errors import AngleError, AnnotatorError, MissingExtraError

log = logging.getLogger("angle.annotators")

_WORKER = "angle_data.annotators.vllm_worker"
_LOG_NAME = "vllm.log"
_END_S = 10.0
_LOG_TAIL_BYTES = 200_000
# The last line of a traceback, with or without the process name and time that vLLM puts before it.
_RAISED = re.compile(r"^(?:.*\] )?([A-Za-z_][\w.]*(?:Error|Exception)): (.+)$", re.MULTILINE)


class VLLMOffline:
    """An annotator that loads `spec.checkpoint` itself; the model is loaded on the first request.

    `spec.engine_options` are keyword arguments for `vllm.LLM` (tensor_parallel_size, gpu_memory_utilization,
    max_model_len, dtype, quantization …), and `chunk`, the prompts per call.

    Raises:
        MissingExtraError: vLLM is not installed.
        InputError: An option that cannot be used.
    """

    def __init__(self, spec: AnnotatorSpec) -> None:
        # Not the package's metadata: the CPU build is published under another name.
        if find_spec("vllm") is None:
            raise MissingExtraError("--engine offline", "vllm")
        options = dict(spec.engine_options)
        self._chunk = take_count(options, "chunk", DEFAULT_CHUNK)
        self._settings = EngineSettings(spec.checkpoint, spec.revision, options)
        self._run = spec.run
        self._worker: _Worker | None = None

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer chunk by chunk, each in the order of its requests.

        Raises:
            InputError: vLLM does not know one of the options.
            AnnotatorError: The model cannot be loaded, a whole chunk was refused, or the engine failed.
        """
        source = iter(requests)
        while chunk := list(islice(source, self._chunk)):
            try:
                outcomes = await asyncio.to_thread(self._ask, chunk)
            except asyncio.CancelledError:
                self.close()  # ends the chunk, and with it the thread that waits for it
                raise
            for outcome in outcomes:
                yield outcome
            check_refusals(outcomes)

    def close(self) -> None:
        """End the engine at once; what is being answered is lost. The next request loads the model anew."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _ask(self, chunk: list[ChatRequest]) -> list[Reply | Failure]:
        try:
            if self._worker is None:
                started = time.monotonic()
                log.info("loading %s with vLLM", self._settings.checkpoint)
                self._worker = _Worker(self._settings, self._run)
                self._worker.exchange(encode([]))
                log.info("loaded in %.0f s", time.monotonic() - started)
            return self._worker.exchange(encode(chunk))
        except AngleError:
            self.close()  # it would give the same error again, and hold its memory
            raise


class _Worker:
    """The process with the engine, in a session of its own: signals of the terminal do not reach it."""

    def __init__(self, settings: EngineSettings, run: Path | None) -> None:
        self._log, self._log_place = _open_log(run)
        self._process = subprocess.Popen(
            # -P: a folder named vllm or torch in the working directory is not meant.
            [sys.executable, "-P", "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={"VLLM_NO_USAGE_STATS": "1", **os.environ},
        )
        self._finalizer = weakref.finalize(self, _end, self._process, self._log)
        self._send(json.dumps(asdict(settings)))

    def exchange(self, chunk: str) -> list[Reply | Failure]:
        """Send an encoded chunk and wait for its outcomes.

        Raises:
            AngleError: The engine could not be loaded, or it failed.
        """
        self._send(chunk)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise AnnotatorError(self._death() + self._log_place)
        try:
            return decode(answer)
        except AnnotatorError as error:
            cause = root_cause(self._tail()) if "root cause above" in str(error) else None
            message = f"vLLM cannot load the model: {cause}" if cause else str(error)
            raise type(error)(message + self._log_place) from None

    def kill(self) -> None:
        """End the worker and all it started, without waiting for anything."""
        _kill(self._process)
        self._finalizer()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the worker has died; reading its answer finds out why
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _death(self) -> str:
        status = self._process.wait()
        if status == -signal.SIGKILL:
            return "the vLLM process was killed, perhaps for want of memory"
        cause = root_cause(self._tail())
        return f"the vLLM process ended with status {status}" + (f": {cause}" if cause else "")

    def _tail(self) -> str:
        if self._log is None:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(size - _LOG_TAIL_BYTES, 0))
        return self._log.read().decode(errors="replace")


def root_cause(output: str) -> str | None:
    """Return the first error in the output of vLLM's processes that is not the consequence of another."""
    for name, message in _RAISED.findall(output):
        if "root cause above" not in message:
            return one_line(f"{name}: {message}")
    return None


def _open_log(run: Path | None) -> tuple[IO[bytes] | None, str]:
    """Return where the worker's output goes (None: our stderr), and how a message names the place."""
    if log.isEnabledFor(logging.DEBUG):
        return None, ""
    if run is None:
        return tempfile.TemporaryFile(), ""
    path = run / _LOG_NAME
    return path.open("w+b"), f" (more in {path})"


def _end(process: subprocess.Popen[bytes], output: IO[bytes] | None) -> None:
    """Let an idle worker go, and make sure that it went."""
    for stream in (process.stdin, process.stdout, output):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The group, not the process alone: vLLM's own processes are in it and may live on.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
