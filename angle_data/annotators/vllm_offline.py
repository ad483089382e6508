"""Loads a model with vLLM on this machine and answers in chunks: no server, one start for all requests.

`VLLMOffline` is the annotator. It keeps the engine in a process of its own, because vLLM prints on stdout,
starts processes that a Ctrl-C in the terminal would end in the middle of a chunk, and takes its process along
when memory runs out. What vLLM prints goes to vllm.log in the run folder. A kill loses at most one chunk.

`ChunkServer` is the other end: it loads a `VLLMEngine` and answers encoded chunks, each a line of JSON. This
module as a program serves them on stdin and stdout; `ray_offline` runs the same in the actors of a cluster.
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
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any

from angle_data import errors
from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling, take_count
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import one_line
from angle_data.errors import AngleError, AnnotatorError, InputError, MissingExtraError

log = logging.getLogger("angle.annotators")

DEFAULT_CHUNK = 2048
"""Prompts per call. Enough to keep a GPU full for most of the call; the price of a kill is one call."""

_OURS = {
    "model": "--checkpoint",
    "tokenizer_revision": "--revision",
    "revision": "--revision",
    "hf_token": "the environment variable HF_TOKEN",
}
_LOG_NAME = "vllm.log"
_END_S = 10.0
_LOG_TAIL_BYTES = 200_000
# The last line of a traceback, with or without the process name and time that vLLM puts before it:
# `(EngineCore pid=1) ERROR 11-21 [core.py:1] ValueError: no room`
_RAISED = re.compile(r"^(?:.*\] )?([A-Za-z_][\w.]*(?:Error|Exception)): (.+)$", re.MULTILINE)

# What the hub's libraries say, in a dozen words each, of a model that is not there.
_HUB = (
    (
        re.compile(r"gated|restricted|authoriz", re.IGNORECASE),
        "it is gated; accept its licence on its page of the hub and set HF_TOKEN",
    ),
    (
        re.compile(r"couldn't connect|cached|outgoing traffic|offline mode|not known", re.IGNORECASE),
        "it is not on this machine and the hub cannot be reached; get it with `hf download`",
    ),
    (
        re.compile(r"not a (?:valid model identifier|local folder)|repository not found", re.IGNORECASE),
        "it is no folder here and no public model of the hub; correct the name",
    ),
)


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
        self._arguments = engine_arguments(spec, options)
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
                log.info("loading %s with vLLM", self._arguments["model"])
                self._worker = _Worker(self._arguments, self._run)
                self._worker.exchange(encode([]))
                log.info("loaded in %.0f s", time.monotonic() - started)
            return self._worker.exchange(encode(chunk))
        except AngleError:
            self.close()  # it would give the same error again, and hold its memory
            raise


class _Worker:
    """The process with the engine, in a session of its own: signals of the terminal do not reach it."""

    def __init__(self, arguments: Mapping[str, Any], run: Path | None) -> None:
        self._log: IO[bytes] | None = None  # to our stderr
        self._log_place = ""
        if not log.isEnabledFor(logging.DEBUG):
            path = run and run / _LOG_NAME
            self._log = path.open("w+b") if path else tempfile.TemporaryFile()  # noqa: SIM115 - see _end
            self._log_place = f" (more in {path})" if path else ""
        self._process = subprocess.Popen(
            # -P: a folder named vllm or torch in the working directory is not meant.
            [sys.executable, "-P", "-m", __spec__.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={"VLLM_NO_USAGE_STATS": "1", **os.environ},
        )
        self._finalizer = weakref.finalize(self, _end, self._process, self._log)
        self._send(json.dumps(arguments))

    def exchange(self, chunk: str) -> list[Reply | Failure]:
        """Send an encoded chunk and wait for its outcomes.

        Raises:
            AngleError: The engine could not be loaded, or it failed.
        """
        self._send(chunk)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer.endswith(b"\n"):
            status, message = self._process.wait(), "the vLLM process was killed, perhaps for want of memory"
            if status != -signal.SIGKILL:
                cause = self._cause()
                message = f"the vLLM process ended with status {status}" + (f": {cause}" if cause else "")
            raise AnnotatorError(message + self._log_place)
        try:
            return decode(answer)
        except AnnotatorError as error:
            cause = self._cause() if "root cause above" in str(error) else None
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

    def _cause(self) -> str | None:
        """Return the first error in the log that is not the consequence of another."""
        if self._log is None:
            return None
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES, 0))
        for name, message in _RAISED.findall(self._log.read().decode(errors="replace")):
            if "root cause above" not in message:
                return one_line(f"{name}: {message}")
        return None


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


def engine_arguments(spec: AnnotatorSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM`: those of the user in `options`, on top of what labelling needs.

    Prompts share their head, so prefix caching is on. White space between JSON tokens is off: small models
    can fill a reply with it. `max_model_len` -1 is the longest context that fits into memory.

    Raises:
        InputError: An option that the user sets in another way.
    """
    for name, instead in _OURS.items():
        if name in options:
            raise InputError(f"--engine-option {name} cannot be set; use {instead}")
    defaults = {
        "enable_prefix_caching": True,
        "max_model_len": -1,
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    return {**defaults, **options, "model": spec.checkpoint, "revision": spec.revision}


class VLLMEngine:
    """A loaded model, from the arguments of `vllm.LLM`. Loading takes from seconds to minutes.

    Raises:
        MissingExtraError: vLLM is not installed.
        InputError: An option that vLLM does not know.
        AnnotatorError: The model cannot be loaded, or it has no chat template.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        try:
            from vllm import LLM
        except ModuleNotFoundError:
            raise MissingExtraError("loading a model", "vllm") from None
        self._faulty: tuple[type[Exception], ...] = (ValueError,)
        with suppress(ImportError):  # earlier versions have no error of their own for a faulty request
            from vllm.exceptions import VLLMClientError

            self._faulty = (ValueError, VLLMClientError)
        try:
            self._llm = LLM(**arguments)
        except TypeError as error:
            unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if unknown is None:
                raise
            raise InputError(
                f"--engine-option {unknown[1]}: vLLM has no such option; see its engine arguments"
            ) from None
        # The loaders raise errors of a dozen libraries; every one means that the model is not there.
        except Exception as error:
            raise AnnotatorError(f"vLLM cannot load {arguments['model']}: {_why(error)}") from error
        self._context = int(self._llm.model_config.max_model_len)
        self._tokenizer = self._llm.get_tokenizer()
        if not (getattr(self._tokenizer, "chat_template", None) or self._llm.chat_template):
            raise AnnotatorError(
                f"{arguments['model']} has no chat template, so it may not be a chat model; name one with "
                "--engine-option chat_template=FILE"
            )

    def answer(self, requests: Sequence[ChatRequest]) -> list[Reply | Failure]:
        """Answer a chunk in one call of vLLM; a request that cannot be asked costs none of the others.

        Returns the outcomes in the order of the requests.
        """
        started = time.monotonic()
        outcomes: dict[str, Reply | Failure] = {}
        fitting = []
        for request, tokens in zip(requests, self._prompt_lengths(requests), strict=True):
            if tokens < self._context:
                fitting.append(request)
                continue
            message = f"the prompt has {tokens} tokens, the model holds {self._context} with the reply"
            outcomes[request.key] = Failure(request.key, "too_long", message)
        # Neighbours with a common head find its blocks in the prefix cache before they are evicted.
        fitting.sort(key=lambda request: [message["content"] for message in request.messages])
        for request, output in self._chat(fitting):
            failed, seconds = isinstance(output, Failure), time.monotonic() - started
            outcomes[request.key] = output if failed else _outcome(request.key, output, seconds)
        return [outcomes[request.key] for request in requests]

    def _prompt_lengths(self, requests: Sequence[ChatRequest]) -> list[int]:
        prompts = [
            self._tokenizer.apply_chat_template(
                list(request.messages),
                chat_template=self._llm.chat_template,
                add_generation_prompt=True,
                tokenize=False,
            )
            for request in requests
        ]
        if not prompts:
            return []
        return [len(ids) for ids in self._tokenizer(prompts, add_special_tokens=False)["input_ids"]]

    def _chat(self, requests: list[ChatRequest]) -> list[tuple[ChatRequest, Any]]:
        """Return a vLLM output or a failure for each request.

        vLLM checks every request before it starts on the first, and refuses all for the fault of one: the
        faulty ones are found by halving.
        """
        if not requests:
            return []
        try:
            outputs = self._llm.chat(
                [list(request.messages) for request in requests],
                [self._sampling(request) for request in requests],
                use_tqdm=False,
            )
        except self._faulty as error:
            if len(requests) > 1:
                half = len(requests) // 2
                return self._chat(requests[:half]) + self._chat(requests[half:])
            return [(requests[0], Failure(requests[0].key, "refused", one_line(error)))]
        return list(zip(requests, outputs, strict=True))

    def _sampling(self, request: ChatRequest) -> Any:
        """Return vLLM's parameters: the model's own defaults (top-p …), as its server has them, and ours."""
        from vllm.sampling_params import StructuredOutputsParams

        params = self._llm.get_default_sampling_params()
        if request.sampling.temperature is not None:
            params.temperature = request.sampling.temperature
        params.max_tokens = request.sampling.max_tokens
        params.seed = request.sampling.seed
        if request.sampling.schema is not None:
            params.structured_outputs = StructuredOutputsParams(
                json=request.sampling.schema, disable_any_whitespace=True
            )
        return params


def _why(error: Exception) -> str:
    """Return why a model cannot be loaded, with a way out where it is about the hub."""
    for pattern, why in _HUB:
        if pattern.search(str(error)):
            return f"{why}, name a folder or another model with --checkpoint, or a server with --base-url"
    return one_line(error)


def _outcome(key: str, output: Any, seconds: float) -> Reply | Failure:
    (completion,) = output.outputs
    if completion.finish_reason not in ("stop", "length"):
        return Failure(key, "aborted", f"vLLM ended the reply early: {completion.finish_reason}")
    prompt, reply = len(output.prompt_token_ids), len(completion.token_ids)
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    return Reply(key, completion.text, completion.finish_reason, usage, seconds)


class ChunkServer:
    """Answers encoded chunks; loads the model on the first, which may be empty, and after an error never."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._engine: VLLMEngine | None = None
        self._error: dict[str, str] | None = None

    def __call__(self, line: str) -> str:
        """Return the encoded answer to an encoded chunk; errors of the engine travel as answers."""
        if self._error is None:
            try:
                self._engine = self._engine or VLLMEngine(self._arguments)
                outcomes = self._engine.answer([_request(row) for row in json.loads(line)])
                return json.dumps({"outcomes": list(map(asdict, outcomes))})
            except AngleError as error:
                self._error = {"error": type(error).__name__, "message": str(error)}
            except Exception as error:
                # A defect of the model's code or of vLLM: the log has its traceback, the user one line.
                log.exception("vLLM failed")
                self._error = {"error": "AnnotatorError", "message": f"vLLM failed: {one_line(error)}"}
        return json.dumps(self._error)


def encode(requests: Iterable[ChatRequest]) -> str:
    """Return a chunk as one line, without its end."""
    return json.dumps([asdict(request) for request in requests])


def _request(row: dict[str, Any]) -> ChatRequest:
    changed = {"messages": tuple(row["messages"]), "sampling": Sampling(**row["sampling"])}
    return ChatRequest(**(row | changed))


def decode(line: str | bytes) -> list[Reply | Failure]:
    """Return the outcomes of an encoded answer, in the order of the chunk.

    Raises:
        AngleError: The error that the engine ended with.
    """
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        kind: type[AngleError] = getattr(errors, answer["error"], AnnotatorError)
        raise kind.__new__(kind, answer["message"])  # complete; some classes build theirs from parts
    return [Failure(**fields) if "kind" in fields else Reply(**fields) for fields in answer["outcomes"]]


def check_refusals(outcomes: list[Reply | Failure]) -> None:
    """End a run that gets nothing but the same refusal.

    Raises:
        AnnotatorError: Every request of a chunk was refused for the same reason.
    """
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Failure) and outcome.kind == "refused"]
    if len(refusals) == len(outcomes) and len({refusal.message for refusal in refusals}) == 1:
        raise AnnotatorError(f"vLLM refuses every request: {refusals[0].message}")


def main() -> None:
    """Serve the process on the other end of stdin and stdout until it closes them."""
    # What vLLM and its libraries print must not mix with the answers: it goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = ChunkServer(json.loads(sys.stdin.readline()))
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
