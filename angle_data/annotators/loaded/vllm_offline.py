"""Loads a checkpoint with vLLM on this machine and answers in chunks (`worker`)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, ClassVar

from angle_data.annotators.answers import failure_of, reply_of
from angle_data.annotators.base import ChatRequest, Failure, Reply, check_not_ours, take_count
from angle_data.annotators.loaded.worker import LoadedModel
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import one_line
from angle_data.errors import AnnotatorError, InputError, MissingExtraError
from angle_data.http import CallError

DEFAULT_CHUNK = 2048
"""Prompts per call. Enough to keep a GPU full for most of the call; the price of a kill is one call."""

_OURS = {
    "model": "--checkpoint",
    "tokenizer_revision": "--revision",
    "revision": "--revision",
    "hf_token": "the environment variable HF_TOKEN",
}


class VLLMOffline(LoadedModel):
    """An annotator that loads `spec.checkpoint` itself; the model is loaded on the first request.

    `spec.engine_options` are keyword arguments for `vllm.LLM` (tensor_parallel_size, gpu_memory_utilization,
    max_model_len, dtype, quantization …), and `chunk`, the prompts per call.
    """

    name = "vLLM"
    engine = "angle_data.annotators.loaded.vllm_offline:VLLMEngine"
    log_name = "vllm.log"
    # The last line of a traceback, with or without the process name and time that vLLM puts before it:
    # `(EngineCore pid=1) ERROR 11-21 [core.py:1] ValueError: no room`
    cause = re.compile(r"^(?:.*\] )?([A-Za-z_][\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
    environment: ClassVar = {"VLLM_NO_USAGE_STATS": "1"}

    def __init__(self, spec: AnnotatorSpec) -> None:
        # Not the package's metadata: the CPU build is published under another name.
        if find_spec("vllm") is None:
            raise MissingExtraError("--engine offline", "vllm")
        options = dict(spec.engine_options)
        chunk = take_count(options, "chunk", DEFAULT_CHUNK)
        super().__init__(engine_arguments(spec, options), chunk, spec.run)


def engine_arguments(spec: AnnotatorSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM`: those of the user in `options`, on top of what labelling needs.

    Prompts share their head, so prefix caching is on. White space between JSON tokens is off: small models
    can fill a reply with it. `max_model_len` -1 is the longest context that fits into memory.
    """
    check_not_ours(options, _OURS)
    defaults = {
        "enable_prefix_caching": True,
        "max_model_len": -1,
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    return {**defaults, **options, "model": spec.checkpoint, "revision": spec.revision}


class VLLMEngine:
    """A loaded model, from the arguments of `vllm.LLM`."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        from vllm import LLM

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
            raise AnnotatorError(
                f"vLLM cannot load {arguments['model']} ({one_line(error)}); name a folder or, without "
                "HF_HUB_OFFLINE, a public model of the hub with --checkpoint, set HF_TOKEN for a gated one, "
                "or name a server with --base-url"
            ) from error
        self._context = int(self._llm.model_config.max_model_len)
        self._tokenizer = self._llm.get_tokenizer()
        if not (getattr(self._tokenizer, "chat_template", None) or self._llm.chat_template):
            raise AnnotatorError(
                f"{arguments['model']} has no chat template, so it may not be a chat model; name one with "
                "--engine-option chat_template=FILE"
            )

    def answer(self, requests: Sequence[ChatRequest]) -> list[Reply | Failure]:
        """Answer a chunk in one call of vLLM; see `worker.Engine`."""
        if not requests:  # only to be loaded
            return []
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
            key, seconds = request.key, time.monotonic() - started
            if isinstance(output, Failure):
                outcomes[key] = output
                continue
            try:
                outcomes[key] = reply_of(key, _completion(output), seconds)
            except CallError as error:
                outcomes[key] = failure_of(key, error, one_line(error))
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
        return [len(ids) for ids in self._tokenizer(prompts, add_special_tokens=False)["input_ids"]]

    def _chat(self, requests: list[ChatRequest]) -> list[tuple[ChatRequest, Any]]:
        """Return a vLLM output or a failure for each request.

        vLLM refuses all for the fault of one, before it starts: the faulty ones are found by halving.
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


def _completion(output: Any) -> dict[str, Any]:
    """Return an output of vLLM as its server would send it."""
    (completion,) = output.outputs
    choice = {"message": {"content": completion.text}, "finish_reason": completion.finish_reason}
    counts = len(output.prompt_token_ids), len(completion.token_ids)
    usage = dict(
        zip(("prompt_tokens", "completion_tokens", "total_tokens"), (*counts, sum(counts)), strict=True)
    )
    return {"choices": [choice], "usage": usage}
