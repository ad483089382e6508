"""The registry of annotators and model names, and the choice between them; imports an engine only on use.

Add an engine: a module with a class that takes an `AnnotatorSpec` and has `stream`, and a line in ANNOTATORS.
Add a model name: a line in MODELS.
"""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from angle_data.annotators.base import Annotator
from angle_data.errors import InputError

__all__ = ["ANNOTATORS", "MODELS", "AnnotatorSpec", "ModelAlias", "choose_annotator", "load_annotator"]

ANNOTATORS: dict[str, str] = {
    "recorded": "angle_data.annotators.recorded:Recorded",
    "server": "angle_data.annotators.openai_server:OpenAIServer",
}
"""Engine name -> "module:Class"."""


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """What a short model name stands for; without `api_key_env` the model has to be served by the user."""

    checkpoint: str
    engine: str = "server"
    api_key_env: str | None = None


MODELS: dict[str, ModelAlias] = {
    "chatglm": ModelAlias("zai-org/GLM-4-9B-0414"),
    "chatgpt": ModelAlias("gpt-4o-mini", api_key_env="OPENAI_API_KEY"),
    "llama": ModelAlias("meta-llama/Llama-3.1-8B-Instruct"),
}


@dataclass(frozen=True, slots=True)
class AnnotatorSpec:
    """A fully decided annotator; holds the *name* of the variable with the API key, never the key.

    `name` labels its candidates. `checkpoint` is the model as the service knows it. `base_url` None is the
    service's own default address. `timeout_s` bounds one attempt of one request.
    """

    name: str
    engine: str
    checkpoint: str
    base_url: str | None = None
    api_key_env: str | None = None
    replies: Path | None = None
    concurrency: int = 64
    timeout_s: float = 120.0


def choose_annotator(
    model: str,
    *,
    engine: str = "auto",
    checkpoint: str | None = None,
    base_url: str | None = None,
    api_key_env: str | None = None,
    replies: Path | None = None,
    concurrency: int = 64,
) -> AnnotatorSpec:
    """Decide engine, checkpoint and address from what the user gave; contacts nobody.

    Raises:
        InputError: An unknown engine or model name, or an option that is missing or does not fit the engine.
    """
    alias = MODELS.get(model)
    if engine == "auto":
        engine = "recorded" if replies is not None else alias.engine if alias else "server"
    if engine not in ANNOTATORS:
        raise InputError(f"unknown engine {engine!r}; known: auto, {', '.join(ANNOTATORS)}")
    if engine == "recorded":
        if replies is None:
            raise InputError("--engine recorded needs --replies FILE with the recorded replies")
        return AnnotatorSpec(model, engine, checkpoint or _fingerprint(replies), replies=replies)
    if replies is not None:
        raise InputError(f"--replies is only for --engine recorded, not for {engine}")
    served = checkpoint or (alias.checkpoint if alias else model)
    _check_address(base_url, model, served)
    if api_key_env is None and base_url is None and alias is not None:
        # A key is sent to an address of the user's own only when --api-key-env says so.
        api_key_env = alias.api_key_env
    return AnnotatorSpec(model, engine, served, base_url, api_key_env, concurrency=concurrency)


def _check_address(base_url: str | None, model: str, served: str) -> None:
    if base_url is not None:
        if not base_url.startswith(("http://", "https://")):
            raise InputError(f"--base-url must start with http:// or https://, got {base_url!r}")
        if "@" in base_url:
            raise InputError("--base-url must hold no user name or password; name a key with --api-key-env")
    elif model not in MODELS:
        raise InputError(
            f"unknown model {model!r}; known: {', '.join(MODELS)}. Any other name needs the address of a "
            "server (--base-url URL) or recorded replies (--engine recorded --replies FILE)"
        )
    elif MODELS[model].api_key_env is None:
        raise InputError(
            f"model {model!r} has no public address: start `vllm serve {served}` and pass "
            "--base-url http://localhost:8000/v1"
        )


def load_annotator(spec: AnnotatorSpec) -> Annotator:
    """Import the engine of `spec` and build the annotator.

    Raises:
        InputError: The recorded replies cannot be used.
        CredentialsError: The variable that should hold the API key is not set.
    """
    module, name = ANNOTATORS[spec.engine].split(":")
    return cast(Annotator, getattr(importlib.import_module(module), name)(spec))


def _fingerprint(replies: Path) -> str:
    """Name the recorded replies by content: an edited file is a new checkpoint and is asked again."""
    try:
        with replies.open("rb") as stream:
            return f"recorded-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"
    except FileNotFoundError:
        raise InputError(f"{replies} does not exist; check --replies") from None
    except (IsADirectoryError, PermissionError) as error:
        raise InputError(f"{replies} cannot be read: {error.strerror}") from None
