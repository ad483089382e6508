"""The settings of a labelling run, and the requests that follow from them and the texts.

Decides what is asked, not of whom, and keeps nothing: every pass over the requests reads the texts anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.annotators.base import ChatRequest, Sampling, request_key
from angle_data.errors import InputError
from angle_data.labelling.prompts import Prompt, PromptSet
from angle_data.labelling.texts import Skipped, read_texts
from angle_data.records import Polarity

__all__ = ["LabelConfig", "build_requests"]

_POLARITIES: dict[str, tuple[Polarity, ...]] = {
    "both": ("synonym", "antonym"),
    "synonym": ("synonym",),
    "antonym": ("antonym",),
}


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """Everything a labelling run needs; checks itself and holds no secret.

    `model` is a known name, the name of a served model, or the annotator's name in recorded replies; `size`
    the number of sentences asked for per text and polarity; `seed` None leaves sampling to the service.

    Raises:
        InputError: A value is out of its range.
    """

    model: str
    texts: Path
    out: Path
    size: int = 2
    polarity: str = "both"
    engine: str = "auto"
    checkpoint: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    replies: Path | None = None
    prompts: str = "paper"
    text_field: str = "text"
    id_field: str = "id"
    limit: int | None = None
    temperature: float = 0.7
    seed: int | None = None
    max_tokens: int = 512
    concurrency: int = 64

    def __post_init__(self) -> None:
        for name in ("size", "limit", "max_tokens", "concurrency"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        if not 0 <= self.temperature <= 2:
            raise InputError(f"--temperature must be between 0 and 2, got {self.temperature}")
        if self.polarity not in _POLARITIES:
            raise InputError(f"--polarity must be one of {', '.join(_POLARITIES)}, got {self.polarity!r}")

    def sampling(self, prompt: Prompt) -> Sampling:
        """Return the sampling settings for one prompt; a JSON prompt also fixes the schema of the reply."""
        schema = _reply_schema(self.size) if prompt.reply == "json" else None
        return Sampling(self.temperature, self.max_tokens, self.seed, schema)


def build_requests(
    config: LabelConfig, checkpoint: str, prompts: PromptSet, skipped: Skipped | None = None
) -> Iterator[ChatRequest]:
    """Yield one request per text and polarity, in the order of the texts.

    Raises:
        InputError: The texts cannot be used; see `read_texts`.
    """
    polarities = [(name, prompts.of(name)) for name in _POLARITIES[config.polarity]]
    settings = {name: config.sampling(prompt) for name, prompt in polarities}
    texts = read_texts(
        config.texts,
        text_field=config.text_field,
        id_field=config.id_field,
        limit=config.limit,
        skipped=skipped,
    )
    for text in texts:
        for polarity, prompt in polarities:
            messages = ({"role": "user", "content": prompt.render(size=config.size, text=text.text)},)
            yield ChatRequest(
                key=request_key(checkpoint, messages, settings[polarity]),
                source_id=text.id,
                source=text.text,
                polarity=polarity,
                messages=messages,
                model=checkpoint,
                sampling=settings[polarity],
            )


def _reply_schema(size: int) -> dict[str, Any]:
    sentences = {"type": "array", "items": {"type": "string"}, "minItems": size, "maxItems": size}
    return {
        "type": "object",
        "properties": {"sentences": sentences},
        "required": ["sentences"],
        "additionalProperties": False,
    }
