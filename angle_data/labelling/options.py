"""The command-line options of everything that asks a language model, and what they become.

Shared, so that the commands agree in names, help and defaults. Imports nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from angle_data.errors import InputError
from angle_data.labelling.engine import EngineConfig

Model = Annotated[str, typer.Option(help="chatgpt, llama, chatglm, or another name (see --base-url).")]
Engine = Annotated[
    str,
    typer.Option(
        help="auto, server (an API), batch (the OpenAI Batch API, half the price), offline (vLLM in this "
        "process), ray (vLLM over Ray Data) or recorded."
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(help="Model as the server knows it, or to be loaded.", show_default="the model's own"),
]
Revision = Annotated[str | None, typer.Option(help="Version of the checkpoint, for offline and ray.")]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        help="OpenAI-compatible server, such as http://localhost:8000/v1; repeat it to spread the work.",
        show_default="the model's public API",
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(help="Variable that holds the API key.", show_default="the public API's usual one"),
]
Replies = Annotated[Path | None, typer.Option(help="Recorded replies, for --engine recorded.")]
Concurrency = Annotated[int, typer.Option(help="Requests in flight.")]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Setting of the engine itself. offline, ray: any argument of vllm.LLM, and chunk=N (prompts per "
        "call); ray: concurrency=N (engines); server: timeout_s=SECONDS for one answer (120); batch: "
        "wait_s=SECONDS.",
    ),
]
RequestsPerMinute = Annotated[
    float | None, typer.Option(help="Most requests a minute.", show_default="learnt from the server")
]
TokensPerMinute = Annotated[
    float | None, typer.Option(help="Most tokens a minute.", show_default="learnt from the server")
]
MaxUsd = Annotated[
    float | None,
    typer.Option(
        help="Stop when the run folder would cost more (exit 75). The first requests count with the longest "
        "reply allowed, later ones with the mean: replies in flight that are longer can pass the limit."
    ),
]
MaxTokensTotal = Annotated[
    int | None,
    typer.Option(help="Stop when the run folder would take more tokens (exit 75); counted as --max-usd."),
]
UsdPerMillion = Annotated[
    str | None,
    typer.Option(
        metavar="IN,OUT",
        help="USD per million prompt and reply tokens; for --engine batch those of a batch.",
        show_default="the known price",
    ),
]
Temperature = Annotated[float, typer.Option(help="Sampling temperature, 0 to 2.")]
Seed = Annotated[int | None, typer.Option(help="Sampling seed, if the server takes one.")]
MaxTokens = Annotated[int, typer.Option(help="Longest reply in tokens.")]
Shard = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Take the I-th of N shares, each with its own --out, to be run apart."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Forecast requests, tokens and cost, and send nothing.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show details.")]
Json = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]


def engine_config(options: Mapping[str, Any]) -> EngineConfig:
    """Return the settings of the asking from a command's options by name; other options are passed over.

    Raises:
        InputError: A value cannot be read or is out of its range.
    """
    given = {field.name: options[field.name] for field in fields(EngineConfig) if field.name in options}
    given["base_urls"] = tuple(options["base_url"] or ())
    given["engine_options"] = dict(map(_key_value, options["engine_option"] or ()))
    if (shard := options["shard"]) is not None:
        given["shard"] = _pair(shard, "/", int, f"--shard {shard!r}: give I/N, such as 1/8")
    if (prices := options["usd_per_million"]) is not None:
        message = f"--usd-per-million {prices!r}: give two prices, such as 0.15,0.60"
        given["usd_per_million"] = _pair(prices, ",", float, message)
    return EngineConfig(**given)


def _pair(text: str, separator: str, kind: type[int] | type[float], message: str) -> tuple[Any, Any]:
    try:
        first, second = map(kind, text.split(separator))
    except ValueError:
        raise InputError(message) from None
    return first, second


def _key_value(option: str) -> tuple[str, Any]:
    """Read KEY=VALUE; a value that is no JSON (a number, true, a list …) is a string."""
    key, separator, value = option.partition("=")
    if not (separator and key.isidentifier()):
        raise InputError(f"--engine-option {option!r}: give KEY=VALUE, such as max_model_len=4096")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
