"""The settings of a labelling run, and the requests that follow from them and the texts.

Decides what is asked, not of whom, and keeps nothing: every pass over the requests reads the texts anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.annotators.base import ChatRequest, KeyMaker
from angle_data.errors import InputError
from angle_data.labelling.engine import EngineConfig
from angle_data.labelling.prompts import PromptSet
from angle_data.labelling.texts import TextFile
from angle_data.records import Polarity

_POLARITIES: dict[str, tuple[Polarity, ...]] = {
    "both": ("synonym", "antonym"),
    "synonym": ("synonym",),
    "antonym": ("antonym",),
}
# Paraphrases run a little longer than what they paraphrase; used before any reply is known.
_REPLY_STRETCH = 1.3


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """Everything a labelling run needs; checks itself and holds no secret.

    `engine` says of whom is asked; `size` is the number of sentences asked for per text and polarity. With
    `retry_rejected`, requests whose replies gave no sentence at all are asked once more.

    Raises:
        InputError: A value is out of its range.
    """

    engine: EngineConfig
    texts: Path
    out: Path
    size: int = 2
    polarity: str = "both"
    prompts: str = "paper"
    text_field: str = "text"
    id_field: str = "id"
    limit: int | None = None
    retry_rejected: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name} must be at least 1, got {value}")
        if self.polarity not in _POLARITIES:
            raise InputError(f"--polarity must be one of {', '.join(_POLARITIES)}, got {self.polarity!r}")

    @property
    def polarities(self) -> tuple[Polarity, ...]:
        """Return the polarities asked for."""
        return _POLARITIES[self.polarity]

    def settings(self, prompts: PromptSet) -> dict[str, Any]:
        """Return what of these settings decides what is asked, for run.json."""
        return {
            "texts": self.texts,
            "limit": self.limit,
            "size": self.size,
            "polarity": self.polarity,
            "prompts": {
                "name": prompts.name,
                "synonym_sha256": prompts.synonym.sha256,
                "antonym_sha256": prompts.antonym.sha256,
            },
        }

    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply."""
        return self.size * len(request.source) * _REPLY_STRETCH


class Requests:
    """One request per text and polarity, in the order of the texts; call it for a new pass.

    `checkpoint` is the model as the service knows it, `identity` as the request keys do.

    Raises:
        InputError: The texts cannot be used; see `TextFile`.
    """

    def __init__(self, config: LabelConfig, prompts: PromptSet, *, checkpoint: str, identity: str) -> None:
        self.texts = TextFile(
            config.texts, text_field=config.text_field, id_field=config.id_field, limit=config.limit
        )
        self._config, self._checkpoint = config, checkpoint
        self._parts = []
        for polarity in config.polarities:
            prompt = prompts.of(polarity)
            sampling = config.engine.sampling(_reply_schema(config.size) if prompt.reply == "json" else None)
            self._parts.append((polarity, prompt, sampling, KeyMaker(identity, sampling)))

    def __len__(self) -> int:
        """Return the number of requests; with a shard, about as many as its share is large."""
        count = self.texts.count * len(self._parts)
        shard = self._config.engine.shard
        return count if shard is None else -(-count // shard[1])

    def __call__(self) -> Iterator[ChatRequest]:
        """Yield the requests."""
        engine, size = self._config.engine, self._config.size
        for text in self.texts:
            if not engine.takes(text.text):
                continue
            for polarity, prompt, sampling, key in self._parts:
                messages = ({"role": "user", "content": prompt.render(size=size, text=text.text)},)
                yield ChatRequest(
                    key=key(messages),
                    source_id=text.id,
                    source=text.text,
                    task=polarity,
                    messages=messages,
                    model=self._checkpoint,
                    sampling=sampling,
                )


def polarity_of(request: ChatRequest) -> Polarity:
    """Return the polarity that a labelling request asks for."""
    assert request.task != "score", "labelling asks for sentences only"
    return request.task


def _reply_schema(size: int) -> dict[str, Any]:
    sentences = {"type": "array", "items": {"type": "string"}, "minItems": size, "maxItems": size}
    return {
        "type": "object",
        "properties": {"sentences": sentences},
        "required": ["sentences"],
        "additionalProperties": False,
    }
