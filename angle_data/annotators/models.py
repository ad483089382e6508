"""The short model names: what each stands for, where it is served, and what it costs.

Prices are in USD per million tokens, as the services listed them in November 2026; `--usd-per-million`
overrides them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from angle_data.annotators.spec import AnnotatorSpec, Dialect
from angle_data.errors import InputError

BATCH_PRICE_FACTOR = 0.5
"""What a token costs in a batch, relative to a direct request; https://developers.openai.com/api/docs/guides/batch."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens of the prompt (`input`) and of the reply (`output`)."""

    input: float
    output: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the cost in USD."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Service:
    """A public API: what it understands, its key's usual variable, and the prices of its models by name."""

    dialect: Dialect
    api_key_env: str
    prices: Mapping[str, Price] = field(default_factory=dict)


_OPENAI = "api.openai.com"
DEFAULT_URL = f"https://{_OPENAI}/v1"
"""The address of OpenAI, for an `AnnotatorSpec` without any."""
_GLM = "open.bigmodel.cn"

SERVICES: dict[str, Service] = {
    # https://developers.openai.com/api/docs/pricing
    _OPENAI: Service("openai", "OPENAI_API_KEY", {"gpt-4o-mini": Price(0.15, 0.60)}),
    # https://docs.bigmodel.cn/cn/guide/models/text/glm-4: glm-4-flash is free
    _GLM: Service("glm", "ZHIPUAI_API_KEY", {"glm-4-flash": Price(0.0, 0.0)}),
}
"""Host name -> service, for the addresses that the toolkit knows."""


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """What a short model name stands for.

    `checkpoint` is the model by default. `host` is the public service that answers without `--base-url`; None
    for models that the user serves or loads. `dialect` is that of a server of the user's own. `hosted` names
    the model at services that know it by another name, by host.
    """

    checkpoint: str
    host: str | None = None
    dialect: Dialect = "openai"
    hosted: Mapping[str, str] = field(default_factory=dict)

    def checkpoint_at(self, host: str | None) -> str:
        """Return the model's name at a service, by host name."""
        return self.hosted.get(host or "", self.checkpoint)


MODELS: dict[str, ModelAlias] = {
    "chatglm": ModelAlias("zai-org/GLM-4-9B-0414", dialect="vllm", hosted={_GLM: "glm-4-flash"}),
    "chatgpt": ModelAlias("gpt-4o-mini", host=_OPENAI),
    "llama": ModelAlias("meta-llama/Llama-3.1-8B-Instruct", dialect="vllm"),
}


def service_of(base_url: str) -> Service | None:
    """Return the known service behind an address, None for a server of the user's own."""
    return SERVICES.get(urlsplit(base_url).hostname or "")


def price_of(spec: AnnotatorSpec) -> Price | None:
    """Return what the tokens of `spec` cost, None when they cost nothing or the price is not known.

    Raises:
        InputError: `max_usd` is set and the price is not known.
    """
    price = Price(*spec.usd_per_million) if spec.usd_per_million is not None else _listed_price(spec)
    if price is None and spec.max_usd is not None:
        at = f" at {spec.base_urls[0]}" if spec.base_urls else ""
        raise InputError(
            f"--max-usd needs a price, and that of {spec.checkpoint!r}{at} is not known: give "
            "--usd-per-million IN,OUT, or bound the tokens with --max-tokens-total"
        )
    return price


def _listed_price(spec: AnnotatorSpec) -> Price | None:
    if not spec.paid:
        return None
    if spec.base_urls:
        service = service_of(spec.base_urls[0])
    else:
        alias = MODELS.get(spec.model)
        service = SERVICES.get(alias.host or "") if alias else None
    price = service.prices.get(spec.checkpoint) if service else None
    if price is not None and spec.engine == "batch":
        return Price(price.input * BATCH_PRICE_FACTOR, price.output * BATCH_PRICE_FACTOR)
    return price
