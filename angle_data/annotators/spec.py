"""The options of everything that asks a language model, and the annotator that follows from them.

`EngineConfig` is the only place where these options are listed. The commands make their command-line options
from its fields, and `choice` turns it into an `AnnotatorSpec`, in which nothing is left open. Add an option
here: a field with its default and its help.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal

from angle_data.annotators.base import Sampling
from angle_data.errors import InputError
from angle_data.text import normalise, stable_hash

Dialect = Literal["openai", "vllm", "glm"]
"""What a server's API understands.

`openai`: replies bound to a JSON Schema. `vllm`: the same, as `vllm serve` has it. `glm`: the GLM cloud,
which has `json_object` only and adds its reasoning unless a request turns that off.
"""

TIMEOUT_S = 120.0
"""Seconds for one answer, unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of `EngineConfig` looks on the command line.

    `flag` replaces the field's name there, `shown` its default in the help. `read` makes the value from the
    text that was given, or from a list of texts where the flag can be repeated (`many`).
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    shown: str | None = None
    read: Callable[[Any], Any] | None = None
    many: bool = False


def option(help: str, default: Any = MISSING, *, factory: Any = MISSING, **looks: Any) -> Any:
    """Make a field that is an option of the command line; `looks` are those of `Option`."""
    return field(default=default, default_factory=factory, metadata={"option": Option(help, **looks)})


def _two(kind: type, separator: str, flag: str, wanted: str) -> Callable[[str], tuple[Any, Any]]:
    """Return what reads two numbers with a separator between them."""

    def read(text: str) -> tuple[Any, Any]:
        try:
            first, second = map(kind, text.split(separator))
        except ValueError:
            raise InputError(f"{flag} {text!r}: give {wanted}") from None
        return first, second

    return read


def _read_engine_options(texts: list[str]) -> dict[str, Any]:
    """Read each KEY=VALUE; a value that is no JSON (a number, true, a list …) is a string."""
    options: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not (separator and key.isidentifier()):
            raise InputError(f"--engine-option {text!r}: give KEY=VALUE, such as max_model_len=4096")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Who is asked, how, and how much; the help of each field says what it means. Holds no secret.

    `max_usd` and `max_tokens_total` bound what a run folder costs over all its sessions. `seed` None leaves
    sampling to the service. `shard` (i, n) takes the i-th of n shares, from 1.

    Raises:
        InputError: A value is out of its range.
    """

    model: str = option("chatgpt, llama, chatglm, or another name (see --base-url).")
    engine: str = option(
        "auto, server (an API), batch (the OpenAI Batch API, half the price), offline (vLLM in this "
        "process), ray (vLLM over Ray Data) or recorded.",
        "auto",
    )
    checkpoint: str | None = option(
        "Model as the server knows it, or to be loaded.", None, shown="the model's own"
    )
    _: KW_ONLY
    revision: str | None = option("Version of the checkpoint, for offline and ray.", None)
    base_urls: tuple[str, ...] = option(
        "OpenAI-compatible server, such as http://localhost:8000/v1; repeat it to spread the work.",
        (),
        flag="base_url",
        shown="the model's public API",
        read=tuple,
        many=True,
    )
    api_key_env: str | None = option(
        "Variable that holds the API key.", None, shown="the public API's usual one"
    )
    replies: Path | None = option(  # noqa: RUF009 - makes a field
        "Recorded replies, for --engine recorded: .jsonl[.gz] with text, polarity and reply (for degrees: "
        "task instead of polarity; llm-score: text1, text2 and reply), and annotator if there are several.",
        None,
    )
    engine_options: Mapping[str, Any] = option(
        "Setting of the engine itself. offline, ray: any argument of vllm.LLM, and chunk=N (prompts per "
        "call); ray: concurrency=N (engines); server: timeout_s=SECONDS for one answer (120); batch: "
        "wait_s=SECONDS, batch_size=N.",
        factory=dict,
        flag="engine_option",
        metavar="KEY=VALUE",
        read=_read_engine_options,
        many=True,
    )
    concurrency: int = option("Requests in flight.", 64)
    requests_per_minute: float | None = option(
        "Most requests a minute.", None, shown="learnt from the server"
    )
    tokens_per_minute: float | None = option("Most tokens a minute.", None, shown="learnt from the server")
    max_usd: float | None = option(
        "Stop when the run folder would cost more (exit 75). The first requests count with the longest "
        "reply allowed, later ones with the mean: replies in flight that are longer can pass the limit.",
        None,
    )
    max_tokens_total: int | None = option(
        "Stop when the run folder would take more tokens (exit 75); counted as --max-usd.", None
    )
    usd_per_million: tuple[float, float] | None = option(
        "USD per million prompt and reply tokens; for --engine batch those of a batch.",
        None,
        metavar="IN,OUT",
        shown="the known price",
        read=_two(float, ",", "--usd-per-million", "two prices, such as 0.15,0.60"),
    )
    temperature: float = option("Sampling temperature, 0 to 2.", 0.7)
    seed: int | None = option("Sampling seed, if the server takes one.", None)
    max_tokens: int = option("Longest reply in tokens.", 512)
    shard: tuple[int, int] | None = option(
        "Take the I-th of N shares, each with its own --out, to be run apart.",
        None,
        metavar="I/N",
        read=_two(int, "/", "--shard", "I/N, such as 1/8"),
    )

    def __post_init__(self) -> None:
        for name in ("max_tokens", "concurrency", "max_tokens_total"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        for name in ("requests_per_minute", "tokens_per_minute", "max_usd"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"--{name.replace('_', '-')} must be more than 0, got {value}")
        if not 0 <= self.temperature <= 2:
            raise InputError(f"--temperature must be between 0 and 2, got {self.temperature}")
        if self.usd_per_million is not None and not all(0 <= p < math.inf for p in self.usd_per_million):
            raise InputError(f"--usd-per-million must hold two prices, got {self.usd_per_million}")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise InputError(f"--shard i/n needs 1 <= i <= n, got {self.shard[0]}/{self.shard[1]}")

    def sampling(self, schema: dict[str, Any] | None = None) -> Sampling:
        """Return the sampling settings of a request; `schema` is the JSON Schema of its reply, if any."""
        return Sampling(self.temperature, self.max_tokens, self.seed, schema)

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

    `engine` is a registered one, `checkpoint` the model as the service knows it. `base_urls` () is the
    service's own default address. `timeout_s` bounds one attempt of one request. `run` is the run folder,
    where the batch engine keeps its state.
    """

    checkpoint: str = ""
    _: KW_ONLY
    timeout_s: float = TIMEOUT_S
    dialect: Dialect = "openai"
    run: Path | None = None

    @property
    def name(self) -> str:
        """Return the annotator's name, the label of its candidates: the model as the user called it."""
        return self.model

    @property
    def identity(self) -> str:
        """Return the model as request keys know it: the checkpoint, and its revision if one is given."""
        return self.checkpoint if self.revision is None else f"{self.checkpoint}@{self.revision}"

    @property
    def paid(self) -> bool:
        """Whether replies may cost money: recorded ones and those of a model loaded here do not."""
        return self.engine not in ("offline", "ray", "recorded")
