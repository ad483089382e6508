"""The options of everything that asks a language model, and the annotator that follows from them.

`EngineConfig` is the only place where these options are listed. The commands make their command-line options
from its fields, and `choice` turns it into an `AnnotatorSpec`, in which nothing is left open. Add an option
here: a field with its default and its help.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

from angle_data.annotators.base import Sampling
from angle_data.calling.options import check_values, option
from angle_data.errors import InputError
from angle_data.jsonl import loads
from angle_data.text import normalise, stable_hash

Dialect = Literal["openai", "glm"]
"""What a server's API understands.

`openai`: replies bound to a JSON Schema. `glm`: the GLM cloud, which has `json_object` only and adds its
reasoning unless a request turns that off.
"""

_OURS = {
    **{name: f"use --{name.replace('_', '-')}" for name in ("model", "temperature", "max_tokens", "seed")},
    "max_completion_tokens": "use --max-tokens",
    **dict.fromkeys(("messages", "response_format"), "the prompts decide it (--prompts)"),
    **dict.fromkeys(("n", "stream"), "one reply, sent as a whole, is all that can be read"),
}
# Fields of a request's body that --param must not set, and what to do instead.

_HEADER, _VARIABLE = re.compile(r"[A-Za-z0-9-]{1,80}"), re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

LOADED = ("local", "offline", "ray")
"""The engines that load the model themselves."""
DEFAULT_URL = "https://api.openai.com/v1"
"""The address where no other is given."""


def _two(kind: type, separator: str, flag: str, wanted: str) -> Callable[[str], tuple[Any, Any]]:
    """Return what reads two numbers with a separator between them."""

    def read(text: str) -> tuple[Any, Any]:
        try:
            first, second = map(kind, text.split(separator))
        except ValueError:
            raise InputError(f"{flag} {text!r}: give {wanted}") from None
        return first, second

    return read


read_price = _two(float, ",", "--price", "two prices, such as 0.15,0.60")


def _fields(flag: str, example: str) -> Callable[[list[str]], dict[str, Any]]:
    """Return what reads each KEY=VALUE; a value that is no JSON (a number, true, a list …) is a string."""

    def read(texts: list[str]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for text in texts:
            key, separator, value = text.partition("=")
            if not (separator and key.isidentifier()):
                raise InputError(f"{flag} {text!r}: give KEY=VALUE, such as {example}")
            try:
                options[key] = loads(value)
            except ValueError:
                options[key] = value
        return options

    return read


def _read_headers(texts: list[str]) -> dict[str, str]:
    """Return the variable of each header; what was given is not shown: it may well hold a key."""
    found = {}
    for text in texts:
        name, _, variable = text.partition("=")
        if not (_HEADER.fullmatch(name) and _VARIABLE.fullmatch(variable)):
            raise InputError(
                "--header takes NAME=VARIABLE, such as api-key=AZURE_OPENAI_API_KEY: the name of the "
                "variable with the value, not the value itself"
            )
        found[name] = variable
    return found


def _read_temperature(text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise InputError(f"--temperature {text!r}: give a number from 0 to 2, or none") from None


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Who is asked, how, and how much; the help of each field says what it means. Holds no secret.

    `max_usd` and `max_tokens_total` bound what a run folder costs over all its sessions. `seed` None leaves
    sampling to the service. `shard` (i, n) takes the i-th of n shares, from 1. Checks itself.
    """

    model: str = option(
        "A name that says where it is asked: gpt-4o-mini, claude-…, gemini-…, deepseek-…, mistral-…, "
        "ollama/NAME, openrouter/NAME and others (docs/annotators.md); chatgpt, llama, chatglm, smollm2 "
        "(small, runs on this machine; for trying out, not for quality); or any name, with --base-url."
    )
    engine: str = option(
        "auto, server (an API), batch (OpenAI Batch API, half the price), local (GGUF file, llama.cpp on "
        "this machine), offline (vLLM on this machine), ray (vLLM on Ray Data) or recorded (see --replies).",
        "auto",
    )
    checkpoint: str | None = option(
        "Model name on the server, or model to load; for local, a GGUF file.", None, shown="the model's own"
    )
    _: KW_ONLY
    revision: str | None = option("Checkpoint revision, for offline and ray.", None)
    base_urls: tuple[str, ...] = option(
        "OpenAI-compatible server, such as http://localhost:8000/v1. Repeat to spread the load.",
        (),
        flag="base_url",
        shown="the model's public API",
        read=tuple,
        many=True,
    )
    api_key_env: str | None = option(
        "Environment variable with the API key.", None, shown="the service's own, such as OPENAI_API_KEY"
    )
    headers: Mapping[str, str] = option(
        "Further HTTP header, with its value in an environment variable: api-key=AZURE_OPENAI_API_KEY.",
        factory=dict,
        flag="header",
        metavar="NAME=VARIABLE",
        read=_read_headers,
        many=True,
    )
    replies: Path | None = option(  # noqa: RUF009 - makes a field
        "Recorded replies, for --engine recorded: .jsonl[.gz] with text, polarity and reply (for degrees: "
        "task instead of polarity; for llm-score: text1, text2 and reply), plus annotator if there are "
        "several.",
        None,
    )
    engine_options: Mapping[str, Any] = option(
        "Engine-specific setting. local: n_ctx=TOKENS (default 4096), n_threads=N (1 for a small file), "
        "n_parallel=N (concurrent requests, default 1), or another llama.cpp parameter; offline, ray: any "
        "vllm.LLM argument, and chunk=N (prompts per call); ray: concurrency=N (engines); server: "
        "timeout_s=SECONDS per reply (default 120); batch: wait_s=SECONDS, batch_size=N.",
        factory=dict,
        flag="engine_option",
        metavar="KEY=VALUE",
        read=_fields("--engine-option", "max_model_len=4096"),
        many=True,
    )
    concurrency: int = option("Maximum concurrent requests.", 64, ge=1)
    requests_per_minute: float | None = option(
        "Maximum requests per minute.", None, shown="learnt from the server", gt=0
    )
    tokens_per_minute: float | None = option(
        "Maximum tokens per minute.", None, shown="learnt from the server", gt=0
    )
    max_usd: float | None = option(
        "Stop when the run folder would cost more than this (exit 75). The first requests count at the "
        "maximum reply length, later ones at the mean, so longer replies in flight can exceed the limit.",
        None,
        gt=0,
    )
    max_tokens_total: int | None = option(
        "Stop when the run folder would use more tokens than this (exit 75); counted as for --max-usd.",
        None,
        ge=1,
    )
    price: tuple[float, float] | None = option(
        "USD per million prompt and reply tokens; for --engine batch, the batch prices.",
        None,
        metavar="IN,OUT",
        shown="the known price",
        read=read_price,
    )
    prices: Path | None = option(  # noqa: RUF009 - makes a field
        "TOML file of additional prices, in the format of annotators/prices.toml.", None
    )
    temperature: float | None = option(
        "Sampling temperature, 0 to 2, or none for the model's own.", 0.7, read=_read_temperature, ge=0, le=2
    )
    params: Mapping[str, Any] = option(
        "Extra field of the request body, such as reasoning_effort=low; the value may be JSON. For "
        "--engine server, batch and local.",
        factory=dict,
        flag="param",
        metavar="KEY=VALUE",
        read=_fields("--param", "reasoning_effort=low"),
        many=True,
    )
    seed: int | None = option("Sampling seed, if the server supports one.", None)
    max_tokens: int = option("Maximum reply length in tokens.", 512, ge=1)
    max_useless: int = option(
        "Stop (exit 75) after this many answers in a row of which nothing is of use: refusals, empty or "
        "unreadable ones; 0: never.",
        50,
        ge=0,
    )
    min_yield: float = option(
        "Warn if less than this percentage of what was asked for is usable.", 50.0, ge=0, le=100
    )
    shard: tuple[int, int] | None = option(
        "Process only the I-th of N shares; run each separately, with its own --out.",
        None,
        metavar="I/N",
        read=_two(int, "/", "--shard", "I/N, such as 1/8"),
    )

    def __post_init__(self) -> None:
        check_values(self)
        if ours := sorted(_OURS.keys() & self.params):
            raise InputError(f"--param {ours[0]} cannot be set; {_OURS[ours[0]]}")
        if self.price is not None and not all(0 <= p < math.inf for p in self.price):
            raise InputError(f"--price must hold two prices, got {self.price}")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise InputError(f"--shard i/n needs 1 <= i <= n, got {self.shard[0]}/{self.shard[1]}")

    def sampling(self, schema: dict[str, Any] | None = None) -> Sampling:
        """Return the sampling settings of a request; `schema` is the JSON Schema of its reply, if any."""
        return Sampling(self.temperature, self.max_tokens, self.seed, schema, self.params)

    def takes(self, content: str) -> bool:
        """Whether `content` (a text, or the texts of a pair) belongs to this shard.

        A hash of the normalised content alone decides, so the order and the rest of a file do not matter.
        """
        if self.shard is None:
            return True
        index, count = self.shard
        return stable_hash(normalise(content)) % count == index - 1

    def share_of(self, count: int) -> int:
        """Return about how many of `count` this shard takes."""
        return count if self.shard is None else math.ceil(count / self.shard[1])


@dataclass(frozen=True, slots=True)
class AnnotatorSpec(EngineConfig):
    """An `EngineConfig` with nothing left open: everything that an engine may rely on.

    `model` is the annotator's name and the label of its candidates, `engine` a registered one, `checkpoint`
    the model as the service knows it. `run` is the run folder,
    where the batch engine keeps its state. `file` is the GGUF file of the local engine.
    """

    checkpoint: str = ""
    _: KW_ONLY
    dialect: Dialect = "openai"
    run: Path | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        """Check nothing: the values are those of an `EngineConfig`, which has checked them."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return the servers that are asked."""
        return self.base_urls or (DEFAULT_URL,)

    @property
    def identity(self) -> str:
        """Return the model as request keys know it: the checkpoint, and its revision if one is given."""
        return self.checkpoint if self.revision is None else f"{self.checkpoint}@{self.revision}"

    @property
    def loads(self) -> bool:
        """Whether the engine loads the model itself."""
        return self.engine in LOADED

    @property
    def paid(self) -> bool:
        """Whether replies may cost money: recorded ones and those of a model loaded here do not."""
        return not self.loads and self.engine != "recorded"
