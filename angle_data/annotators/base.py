"""What every annotator takes and gives: chat requests, replies, failures, and the key of a request.

How many requests are in flight, and in which order answers come, is up to each annotator.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from angle_data.errors import InputError

_T = TypeVar("_T")
_KEY_VERSION = 1
_BREATHE_EVERY = 64

Task = Literal["synonym", "antonym", "degrees", "query", "score", "duplicate"]
"""What a request asks for: sentences of one polarity, one for each degree, queries, grades of pairs, or which
issues a comment calls duplicates."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Everything beside model and messages that changes the answer.

    `temperature` and `seed` None leave the choice to the service; `schema` is the JSON Schema of the reply,
    None for any text; `params` are further fields of the request's body.
    """

    temperature: float | None
    max_tokens: int
    seed: int | None = None
    schema: dict[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for the journal and the request key."""
        found = {name: getattr(self, name) for name in ("temperature", "max_tokens", "seed", "schema")}
        # Parameters only if there are any, so that the keys of earlier versions hold.
        return found | ({"params": dict(self.params)} if self.params else {})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model about one text; `model` is the checkpoint that the service knows.

    `source_id` and `source` say what it is about (a text, or a pair to be graded), `task` what it asks for.
    """

    key: str
    source_id: str
    source: str
    task: Task
    messages: tuple[dict[str, str], ...]
    model: str
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as it came; what it says is read by `answers.answer_of`, from its row in the journal.

    `text` is its content where that is text, `finish_reason` the service's word, None when unknown,
    `raw` what else the message holds. `usage` is in tokens, `seconds` from request to reply.
    """

    key: str
    text: str
    finish_reason: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request without an answer; `kind` is a short code, `message` one line that holds no secret.

    `usage` are the tokens that its attempts took all the same. `said` are the words of a reply that came with
    it, as a row of the journal holds them: `reply`, `finish_reason`, `raw`.
    """

    key: str
    kind: str
    message: str
    usage: dict[str, int] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)


TEXT_KINDS = frozenset({"no_reply", "blocked", "too_long"})
"""Kinds of failure of a text: a service answers it without a reply, stops it, or finds it too long."""
REFUSED_KINDS = TEXT_KINDS | {"http_400", "http_413", "http_422", "too_large", "refused"}
"""Kinds of failure that are about the request itself: to ask it again in the same way would not help.

Beside `TEXT_KINDS`, a field that it does not know, say. A service set up wrongly says the same of all.
"""


NOT_RECORDED = "not_recorded"
"""Kind of the failure of a request whose reply a file of recorded replies does not hold."""


@dataclass(frozen=True, slots=True)
class Held:
    """Requests that earlier runs have paid for, and the tokens they may take in all."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Annotator(ABC):
    """Anything that answers chat requests.

    `drains`: whether an interrupt is to wait for what is in flight. `held` is what earlier runs have left
    with the service; it is known once requests are pulled.
    """

    drains = True
    held = Held()

    @abstractmethod
    def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer every request, in any order, pulling them lazily so that memory stays flat.

        Raises:
            AnnotatorError: Going on is pointless; what was answered until then has been yielded.
        """

    def holds(self, key: str) -> bool:
        """Whether a request is one of those held: its answer costs nothing more."""
        return False

    def found(self) -> dict[str, Any]:
        """Return what the answers so far have shown of the service, for `probe`.

        `form`, `max_tokens_field` and `without`: the form in which it is asked (`transport.Form`); `limits`
        that its headers tell, by name; `usage` as the last answer had it.
        """
        return {}

    def wind_down(self) -> int | None:
        """Send nothing more, no second attempt either.

        Returns how many requests are under way: what else is in hand stays unanswered. None: all are.
        """
        return None


async def breathing(items: Iterable[_T]) -> AsyncGenerator[_T, None]:
    """Yield the items where nothing else waits, and let an interrupt through now and then."""
    for number, item in enumerate(items):
        if number % _BREATHE_EVERY == 0:
            await asyncio.sleep(0)
        yield item


_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def request_key(model: str, messages: tuple[dict[str, str], ...], sampling: Sampling) -> str:
    """Return the identity of a request: 32 hexadecimal digits over all that changes the answer.

    `model` is the checkpoint, with its revision where one is fixed. Service address, API key, concurrency,
    paths and the reply parser are no part of the key, so a journal stays valid when they change.
    """
    asked = {"model": model, "messages": messages, "sampling": sampling.to_dict()}
    content = _canonical({**asked, "sample": 0, "version": _KEY_VERSION})
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def take_count(options: dict[str, Any], name: str, default: int) -> int:
    """Take an engine option out of `options`; an `InputError` unless it is a whole number of at least 1."""
    value = options.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"--engine-option {name} must be a whole number of at least 1, got {value!r}")
    return value


def take_seconds(options: dict[str, Any], name: str, default: float) -> float:
    """Take an engine option out of `options`; an `InputError` unless it is a number of seconds.

    Where it is not 0 by `default`, 0 is refused: as a limit it would mean none.
    """
    value = options.pop(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf or (default and not value):
        wanted = "above 0" if default else "0 or more"
        raise InputError(f"--engine-option {name} must be a number of seconds, {wanted}, got {value!r}")
    return float(value)


def check_options(engine: str, options: Mapping[str, Any], *known: str) -> None:
    """Raise an `InputError` for an option that was left, because it is not one of those `known`."""
    if options:
        raise InputError(
            f"--engine {engine} has no option {min(options)!r}; it has: {', '.join(sorted(known))}"
        )


def check_not_ours(options: Mapping[str, Any], ours: Mapping[str, str]) -> None:
    """Raise an `InputError` if a user's option is one of `ours`, each with the way in which it is set."""
    for name, instead in ours.items():
        if name in options:
            raise InputError(f"--engine-option {name} cannot be set; use {instead}")
