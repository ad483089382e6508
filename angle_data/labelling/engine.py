"""The settings of the asking itself, shared by every command that asks a language model.

One source of truth: it checks itself, decides the annotator, its price, the sampling and the share of the
work. Holds no secret and contacts nobody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec, choose_annotator
from angle_data.annotators.base import Sampling
from angle_data.annotators.models import BATCH_PRICE_FACTOR, MODELS, SERVICES, Price, Service, service_of
from angle_data.errors import InputError
from angle_data.text import normalise, stable_hash

_WITHOUT_PRICE = ("offline", "ray", "recorded")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Of whom is asked, how, and how much; see `AnnotatorSpec` for what the first nine fields become.

    `requests_per_minute` and `tokens_per_minute` None are found out from the server. `max_usd` and
    `max_tokens_total` bound what a run folder costs over all its runs. `usd_per_million` are the prices of a
    million prompt and reply tokens, for models whose price is not known or has changed. `seed` None leaves
    sampling to the service; `max_tokens` bounds one reply. `shard` (i, n) takes the i-th of n shares, from 1.

    Raises:
        InputError: A value is out of its range.
    """

    model: str
    engine: str = "auto"
    checkpoint: str | None = None
    revision: str | None = None
    base_urls: tuple[str, ...] = ()
    api_key_env: str | None = None
    replies: Path | None = None
    concurrency: int = 64
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_usd: float | None = None
    max_tokens_total: int | None = None
    usd_per_million: tuple[float, float] | None = None
    temperature: float = 0.7
    seed: int | None = None
    max_tokens: int = 512
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name in ("max_tokens", "concurrency", "max_tokens_total"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{_option(name)} must be at least 1, got {value}")
        for name in ("requests_per_minute", "tokens_per_minute", "max_usd"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{_option(name)} must be more than 0, got {value}")
        if not 0 <= self.temperature <= 2:
            raise InputError(f"--temperature must be between 0 and 2, got {self.temperature}")
        if self.usd_per_million is not None and not all(0 <= p < math.inf for p in self.usd_per_million):
            raise InputError(f"--usd-per-million must hold two prices, got {self.usd_per_million}")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise InputError(f"--shard i/n needs 1 <= i <= n, got {self.shard[0]}/{self.shard[1]}")

    def spec(self, run: Path | None = None, *, forecast: bool = False) -> AnnotatorSpec:
        """Decide the annotator; for a `forecast` it needs no address.

        Raises:
            InputError: An unknown engine or model name, or options that do not fit each other.
        """
        return choose_annotator(
            self.model,
            engine=self.engine,
            checkpoint=self.checkpoint,
            revision=self.revision,
            base_urls=self.base_urls,
            api_key_env=self.api_key_env,
            replies=self.replies,
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            run=run,
            engine_options=self.engine_options,
            forecast=forecast,
        )

    def sampling(self, schema: dict[str, Any] | None = None) -> Sampling:
        """Return the sampling settings of a request; `schema` is the JSON Schema of its reply, if any."""
        return Sampling(self.temperature, self.max_tokens, self.seed, schema)

    def takes(self, content: str) -> bool:
        """Whether `content` (a text, or the texts of a pair) belongs to this shard.

        Decided by a hash of the normalised content alone, so the order and the rest of a file play no part.
        """
        if self.shard is None:
            return True
        index, count = self.shard
        return stable_hash(normalise(content)) % count == index - 1

    def price(self, spec: AnnotatorSpec) -> Price | None:
        """Return what the tokens of `spec` cost, None when nobody is paid or the price is not known.

        Raises:
            InputError: `max_usd` is set and the price is not known.
        """
        price = self._price(spec)
        if price is None and self.max_usd is not None:
            at = f" at {spec.base_urls[0]}" if spec.base_urls else ""
            raise InputError(
                f"--max-usd needs a price, and that of {spec.checkpoint!r}{at} is not known: give "
                "--usd-per-million IN,OUT, or bound the tokens with --max-tokens-total"
            )
        return price

    def _price(self, spec: AnnotatorSpec) -> Price | None:
        if self.usd_per_million is not None:
            return Price(*self.usd_per_million)
        service = _service(spec) if is_paid(spec) else None
        price = service.prices.get(spec.checkpoint) if service else None
        if price is not None and spec.engine == "batch":
            return Price(price.input * BATCH_PRICE_FACTOR, price.output * BATCH_PRICE_FACTOR)
        return price


def is_paid(spec: AnnotatorSpec) -> bool:
    """Whether there may be somebody to pay: not for recorded replies, nor for a model that is loaded here."""
    return spec.engine not in _WITHOUT_PRICE


def model_identity(spec: AnnotatorSpec) -> str:
    """Return what stands for the model in request keys: the checkpoint, and its revision if one is given."""
    return spec.checkpoint if spec.revision is None else f"{spec.checkpoint}@{spec.revision}"


def _service(spec: AnnotatorSpec) -> Service | None:
    if spec.base_urls:
        return service_of(spec.base_urls[0])
    alias = MODELS.get(spec.name)
    return SERVICES.get(alias.host or "") if alias else None


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
