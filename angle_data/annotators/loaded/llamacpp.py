"""Loads any GGUF file with llama.cpp, through the xllamacpp wheel: no server, no GPU, nothing to compile.

llama.cpp speaks the chat protocol of `transport`, so requests and replies are made and read there.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from angle_data.annotators.answers import failure_of, reply_of, wrong_with_text
from angle_data.annotators.base import ChatRequest, Failure, Reply, check_not_ours, take_count
from angle_data.annotators.loaded.worker import SEE_LOG, LoadedModel
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import bounded_schema, one_line, request_body
from angle_data.errors import AnnotatorError, InputError, MissingExtraError
from angle_data.http import CallError

_CONTEXT = 4096
_LARGE_BYTES = 1e9
_OURS = {"model": "--checkpoint", "port": "nothing: no server is wanted", "seed": "--seed"}


class LlamaLocal(LoadedModel):
    """An annotator that loads the GGUF file `spec.file`; the model is loaded on the first request.

    `spec.engine_options` are fields of llama.cpp's `common_params`, such as `n_ctx` (tokens of a prompt and
    its reply, 4096), `n_parallel` (requests at a time, 1) and `n_gpu_layers`, and `n_threads`: one unless the
    file has more than a gigabyte, since a small model is slower with two.
    """

    name = "llama.cpp"
    engine = "angle_data.annotators.loaded.llamacpp:LlamaEngine"
    log_name = "llama.log"
    cause = re.compile(r"^(?:[\d.]+ E |(?=\w+Error: ))(.+)$", re.MULTILINE)

    def __init__(self, spec: AnnotatorSpec) -> None:
        if find_spec("xllamacpp") is None:
            raise MissingExtraError("--engine local", "local")
        assert spec.file is not None, "the choice of the engine gives its file"
        with spec.file.open("rb") as stream:
            if stream.read(4) != b"GGUF":
                raise InputError(f"{spec.file} is not a GGUF file, which is what --engine local loads")
        options = dict(spec.engine_options)
        check_not_ours(options, _OURS)
        threads = (os.cpu_count() or 1) if spec.file.stat().st_size > _LARGE_BYTES else 1
        usual = {"n_ctx": _CONTEXT, "n_parallel": 1, "n_threads": threads}
        counts = {name: take_count(options, name, default) for name, default in usual.items()}
        arguments = {**counts, "model": str(spec.file), "options": options}
        super().__init__(arguments, counts["n_parallel"], spec.run)


class LlamaEngine:
    """A loaded model, from the arguments that `LlamaLocal` makes."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        import xllamacpp

        self._parallel = arguments["n_parallel"]
        params = xllamacpp.CommonParams()
        params.model.path = arguments["model"]
        params.n_parallel, params.n_ctx = self._parallel, self._parallel * arguments["n_ctx"]
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments["n_threads"]
        params.verbosity = 1  # errors
        params.warmup = params.ui = False
        params.cache_ram_mib = 0  # of old prompts, which may take gigabytes; the last one is kept anyway
        params.api_keys = [secrets.token_hex()]  # its server listens on this machine, and is for nobody
        for name, value in arguments["options"].items():
            try:
                setattr(params, name, value)
            except AttributeError:
                raise InputError(f"--engine-option {name}: llama.cpp has no such option") from None
            except (TypeError, ValueError) as error:
                raise InputError(f"--engine-option {name}={value!r}: {one_line(error)}") from None
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise AnnotatorError(f"llama.cpp cannot load {arguments['model']} ({SEE_LOG})") from error
        self._grammar = xllamacpp.json_schema_to_grammar

    def answer(self, requests: Sequence[ChatRequest]) -> list[Reply | Failure]:
        """Answer a chunk, `n_parallel` requests at a time; the outcomes are in the order of the requests."""
        with ThreadPoolExecutor(self._parallel) as threads:
            return list(threads.map(self._ask, requests))

    def _ask(self, request: ChatRequest) -> Reply | Failure:
        started = time.monotonic()
        body = request_body(request)
        if (schema := request.sampling.schema) is not None:
            del body["response_format"]
            body["grammar"] = self._grammar(bounded_schema(schema, request.source) | _COMPACT)
        try:
            answer = self._server.handle_chat_completions(body)
        except (RuntimeError, ValueError) as error:
            return Failure(request.key, "refused", one_line(error))
        try:
            return reply_of(request.key, answer, time.monotonic() - started)
        except CallError as error:
            kind = wrong_with_text(error) or ("refused" if error.status_code else error.kind)
            return failure_of(request.key, error, one_line(error), kind)


_COMPACT = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}
# For llguidance, which holds the replies to the schema: a small model can fill a reply with white space.
