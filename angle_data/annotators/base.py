"""What every annotator takes and gives: chat requests, replies, failures, and the key of a request.

Knows no service. How many requests are in flight, and in which order answers come, is each annotator's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from angle_data.records import Polarity

__all__ = ["Annotator", "ChatRequest", "Failure", "Reply", "Sampling", "request_key"]

_KEY_VERSION = 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """Everything beside model and messages that changes the answer.

    `seed` None leaves the choice to the service; `schema` is the JSON Schema of the reply, None for any text.
    """

    temperature: float
    max_tokens: int
    seed: int | None = None
    schema: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for the journal and the request key."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "schema": self.schema,
        }


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model about one text; `model` is the checkpoint that the service knows."""

    key: str
    source_id: str
    source: str
    polarity: Polarity
    messages: tuple[dict[str, str], ...]
    model: str
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Reply:
    """A raw answer; `finish_reason` None when unknown, `usage` in tokens, `seconds` from request to reply."""

    key: str
    text: str
    finish_reason: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A request without an answer; `kind` is a short code, `message` one line that holds no secret."""

    key: str
    kind: str
    message: str


class Annotator(Protocol):
    """Anything that answers chat requests."""

    def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer every request, in any order, pulling them lazily so that memory stays flat.

        Raises:
            AnnotatorError: Going on is pointless; what was answered until then has been yielded.
        """
        ...


def request_key(model: str, messages: tuple[dict[str, str], ...], sampling: Sampling, sample: int = 0) -> str:
    """Return the identity of a request: 32 hexadecimal digits over all that changes the answer.

    Service address, API key, concurrency, paths and the reply parser are no part of it, so a journal stays
    valid when they change. `sample` tells repeated draws of the same request apart.
    """
    content = {
        "version": _KEY_VERSION,
        "model": model,
        "messages": messages,
        "sampling": sampling.to_dict(),
        "sample": sample,
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]
