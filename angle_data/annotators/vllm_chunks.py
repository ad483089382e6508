"""Chunks of questions and their answers as lines of JSON: how an engine in another process is spoken to.

Both ends are here, so that a process (`vllm_worker`) and a Ray actor (`ray_offline`) are asked alike. Errors
travel as answers.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from angle_data import errors
from angle_data.annotators.base import ChatRequest, Failure, Reply
from angle_data.annotators.vllm_engine import EngineSettings, Question, VLLMEngine, one_line
from angle_data.errors import AngleError, AnnotatorError

log = logging.getLogger("angle.annotators")


class ChunkServer:
    """Answers encoded chunks; loads the model on the first, which may be empty, and after an error never."""

    def __init__(
        self, settings: EngineSettings, load: Callable[[EngineSettings], VLLMEngine] = VLLMEngine
    ) -> None:
        self._settings, self._load = settings, load
        self._engine: VLLMEngine | None = None
        self._error: dict[str, str] | None = None

    def __call__(self, line: str) -> str:
        """Return the encoded answer to an encoded chunk; never raises for what the engine does."""
        if self._error is None:
            try:
                return json.dumps(self._answer(json.loads(line)))
            except AngleError as error:
                self._error = {"error": type(error).__name__, "message": str(error)}
            except Exception as error:
                # A defect of the model's code or of vLLM: the log has its traceback, the user one line.
                log.exception("vLLM failed")
                self._error = {"error": "AnnotatorError", "message": f"vLLM failed: {one_line(error)}"}
        return json.dumps(self._error)

    def _answer(self, chunk: list[dict[str, Any]]) -> dict[str, Any]:
        if self._engine is None:
            self._engine = self._load(self._settings)
        started = time.monotonic()
        answers = self._engine.answer([Question(**fields) for fields in chunk])
        return {**asdict(answers), "seconds": time.monotonic() - started}


def encode(requests: Iterable[ChatRequest]) -> str:
    """Return a chunk as one line, without its end."""
    return json.dumps([asdict(Question.of(request)) for request in requests])


def decode(line: str | bytes) -> list[Reply | Failure]:
    """Return the outcomes of an encoded answer, in the order of the chunk.

    Raises:
        AngleError: The error that the engine ended with.
    """
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        kind: type[AngleError] = getattr(errors, answer["error"], AnnotatorError)
        # The message is complete, and what the classes make one of at first is not known here.
        raise kind.__new__(kind, answer["message"])
    outcomes = [_outcome(fields) for fields in answer["outcomes"]]
    log.debug(
        "%d requests in %.1f s; %d of %d prompt tokens from the prefix cache",
        len(outcomes),
        answer["seconds"],
        answer["cached_tokens"],
        answer["prompt_tokens"],
    )
    return outcomes


def check_refusals(outcomes: list[Reply | Failure]) -> None:
    """End a run that gets nothing but the same refusal.

    Raises:
        AnnotatorError: Every request of a chunk was refused for the same reason.
    """
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Failure) and outcome.kind == "refused"]
    if len(refusals) == len(outcomes) and len({refusal.message for refusal in refusals}) == 1:
        raise AnnotatorError(f"vLLM refuses every request: {refusals[0].message}")


def _outcome(fields: dict[str, Any]) -> Reply | Failure:
    return Failure(**fields) if "kind" in fields else Reply(**fields)
