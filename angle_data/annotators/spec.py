"""A fully decided annotator: what an engine needs to be built. Decides nothing itself; see `choice`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Dialect = Literal["openai", "vllm", "glm"]
"""What a server's API understands.

`openai`: replies bound to a JSON Schema. `vllm`: the same, as `vllm serve` has it. `glm`: the GLM cloud,
which knows `json_object` only and thinks aloud unless told not to.
"""


@dataclass(frozen=True, slots=True)
class AnnotatorSpec:
    """Everything an engine may rely on; holds the *name* of the variable with the API key, never the key.

    `name` labels the candidates. `checkpoint` is the model as the service knows it, `revision` its version
    for engines that load it themselves. `base_urls` () is the service's own default address. `replies` is the
    file of the recorded engine. `timeout_s` bounds one attempt of one request. `requests_per_minute` and
    `tokens_per_minute` None are limits the engine has to find out. `run` is the run folder, where the batch
    engine keeps its state. `engine_options` are the engine's own, from `--engine-option KEY=VALUE`.
    """

    name: str
    engine: str
    checkpoint: str
    base_urls: tuple[str, ...] = ()
    api_key_env: str | None = None
    replies: Path | None = None
    concurrency: int = 64
    timeout_s: float = 120.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    dialect: Dialect = "openai"
    revision: str | None = None
    run: Path | None = None
    engine_options: Mapping[str, Any] = field(default_factory=dict)
