"""A model loaded by vLLM in this process: questions in, replies out, a chunk at a time.

Knows nothing about journals, signals, processes and who asks; see `vllm_chunks`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from angle_data.annotators.base import ChatRequest, Failure, Reply
from angle_data.errors import AnnotatorError, InputError, MissingExtraError

DEFAULT_CHUNK = 2048
"""Prompts per call. Enough to keep a GPU full for most of the call; the price of a kill is one call."""

_OURS = {
    "model": "--checkpoint",
    "tokenizer_revision": "--revision",
    "revision": "--revision",
    "hf_token": "the environment variable HF_TOKEN",
}
_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What is loaded: a model id or folder, its revision, and keyword arguments for `vllm.LLM`."""

    checkpoint: str
    revision: str | None
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, instead in _OURS.items():
            if name in self.options:
                raise InputError(f"--engine-option {name} cannot be set; use {instead}")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `vllm.LLM`: the user's, on top of what labelling needs.

        Prompts share their head, so prefix caching is on. White space between JSON tokens is off: small
        models can fill a reply with it. `max_model_len` -1 is the longest context that fits into memory.
        """
        defaults = {
            "enable_prefix_caching": True,
            "max_model_len": -1,
            "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        }
        return {**defaults, **self.options, "model": self.checkpoint, "revision": self.revision}


@dataclass(frozen=True, slots=True)
class Question:
    """The part of a request that an engine needs, in a form that travels between processes."""

    key: str
    messages: list[dict[str, str]]
    temperature: float
    max_tokens: int
    seed: int | None
    schema: dict[str, Any] | None

    @classmethod
    def of(cls, request: ChatRequest) -> Self:
        """Take what matters from a request."""
        return cls(request.key, list(request.messages), **request.sampling.to_dict())


@dataclass(frozen=True, slots=True)
class Answers:
    """The outcomes of one chunk in the order of its questions, and how far the prefix cache helped."""

    outcomes: list[Reply | Failure]
    prompt_tokens: int
    cached_tokens: int


class VLLMEngine:
    """A loaded model. Loading takes from seconds to minutes; nothing is loaded twice.

    Raises:
        MissingExtraError: vLLM is not installed.
        InputError: An option that vLLM does not know.
        AnnotatorError: The model cannot be loaded, or it has no chat template.
    """

    def __init__(self, settings: EngineSettings) -> None:
        try:
            from vllm import LLM
        except ModuleNotFoundError:
            raise MissingExtraError("loading a model", "vllm") from None
        self._faulty = _faulty()
        try:
            self._llm = LLM(**settings.arguments())
        except TypeError as error:
            unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if unknown is None:
                raise
            raise InputError(
                f"--engine-option {unknown[1]}: vLLM has no such option; see its engine arguments"
            ) from None
        # The loaders raise errors of a dozen libraries; every one means that the model is not there.
        except Exception as error:
            raise AnnotatorError(f"vLLM cannot load {settings.checkpoint}: {one_line(error)}") from error
        self._context = int(self._llm.model_config.max_model_len)
        self._tokenizer = self._llm.get_tokenizer()
        if not (getattr(self._tokenizer, "chat_template", None) or self._llm.chat_template):
            raise AnnotatorError(
                f"{settings.checkpoint} has no chat template, so it may not be a chat model; name one with "
                "--engine-option chat_template=FILE"
            )

    def answer(self, questions: Sequence[Question]) -> Answers:
        """Answer a chunk in one call of vLLM. A question that cannot be asked costs none of the others."""
        started = time.monotonic()
        outcomes: dict[str, Reply | Failure] = {}
        fitting = []
        for question, tokens in zip(questions, self._prompt_lengths(questions), strict=True):
            if tokens < self._context:
                fitting.append(question)
                continue
            message = f"the prompt has {tokens} tokens, the model holds {self._context} with the reply"
            outcomes[question.key] = Failure(question.key, "too_long", message)
        # Neighbours with a common head find its blocks in the prefix cache before they are evicted.
        fitting.sort(key=lambda question: [message["content"] for message in question.messages])
        prompt_tokens = cached_tokens = 0
        for question, output in self._chat(fitting):
            if isinstance(output, Failure):
                outcomes[question.key] = output
                continue
            prompt_tokens += len(output.prompt_token_ids)
            cached_tokens += output.num_cached_tokens or 0
            outcomes[question.key] = _outcome(question.key, output, time.monotonic() - started)
        return Answers([outcomes[question.key] for question in questions], prompt_tokens, cached_tokens)

    def _prompt_lengths(self, questions: Sequence[Question]) -> list[int]:
        prompts = [
            self._tokenizer.apply_chat_template(
                question.messages,
                chat_template=self._llm.chat_template,
                add_generation_prompt=True,
                tokenize=False,
            )
            for question in questions
        ]
        if not prompts:
            return []
        return [len(ids) for ids in self._tokenizer(prompts, add_special_tokens=False)["input_ids"]]

    def _chat(self, questions: list[Question]) -> list[tuple[Question, Any]]:
        """Return a vLLM output or a failure for each question.

        vLLM checks every question before it starts on the first, and refuses all for the fault of one: the
        faulty ones are found by halving.
        """
        if not questions:
            return []
        try:
            outputs = self._llm.chat(
                [question.messages for question in questions],
                [self._sampling(question) for question in questions],
                use_tqdm=False,
            )
        except self._faulty as error:
            if len(questions) > 1:
                half = len(questions) // 2
                return self._chat(questions[:half]) + self._chat(questions[half:])
            return [(questions[0], Failure(questions[0].key, "refused", one_line(error)))]
        return list(zip(questions, outputs, strict=True))

    def _sampling(self, question: Question) -> Any:
        """Return vLLM's parameters: the model's own defaults (top-p …), as its server has them, and ours."""
        from vllm.sampling_params import StructuredOutputsParams

        params = self._llm.get_default_sampling_params()
        params.temperature = question.temperature
        params.max_tokens = question.max_tokens
        params.seed = question.seed
        if question.schema is not None:
            params.structured_outputs = StructuredOutputsParams(
                json=question.schema, disable_any_whitespace=True
            )
        return params


def _faulty() -> tuple[type[Exception], ...]:
    """Return what vLLM raises for a faulty request; before it had an error of its own, a ValueError."""
    try:
        from vllm.exceptions import VLLMClientError
    except ImportError:
        return (ValueError,)
    return (ValueError, VLLMClientError)


def one_line(error: BaseException | str) -> str:
    """Return an error's message on one line of at most 300 characters."""
    text = " ".join(str(error).split())
    if not text and isinstance(error, BaseException):
        text = type(error).__name__
    return text if len(text) <= _MESSAGE_CHARS else text[: _MESSAGE_CHARS - 1] + "…"


def take_count(options: dict[str, Any], name: str, default: int) -> int:
    """Remove an option of ours from the engine's and return it: a whole number of at least 1.

    Raises:
        InputError: The value is something else.
    """
    value = options.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"--engine-option {name} must be a whole number of at least 1, got {value!r}")
    return value


def _outcome(key: str, output: Any, seconds: float) -> Reply | Failure:
    (completion,) = output.outputs
    if completion.finish_reason not in ("stop", "length"):
        return Failure(key, "aborted", f"vLLM ended the reply early: {completion.finish_reason}")
    prompt, reply = len(output.prompt_token_ids), len(completion.token_ids)
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    return Reply(key, completion.text, completion.finish_reason, usage, seconds)
