"""The choice of an annotator: engine, checkpoint, address, key and dialect, from what the user gave.

Contacts nobody and imports no engine.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from angle_data.annotators.models import DEFAULT_URL, MODELS, ModelAlias, service_of
from angle_data.annotators.registry import ANNOTATORS
from angle_data.annotators.spec import AnnotatorSpec, Dialect
from angle_data.annotators.transport import masked
from angle_data.errors import InputError
from angle_data.resources import install_command

_LOCAL = ("offline", "ray")
_REMOTE = ("server", "batch")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENAI_ADDRESS = "OPENAI_BASE_URL"
_TIMEOUT_S = 120.0


def choose_annotator(
    model: str,
    *,
    engine: str = "auto",
    checkpoint: str | None = None,
    revision: str | None = None,
    base_urls: tuple[str, ...] = (),
    api_key_env: str | None = None,
    replies: Path | None = None,
    concurrency: int = 64,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    run: Path | None = None,
    engine_options: Mapping[str, Any] | None = None,
    forecast: bool = False,
) -> AnnotatorSpec:
    """Decide what is asked, where and how; contacts nobody.

    Without `base_urls`, a model of OpenAI's is asked at the address in OPENAI_BASE_URL, if that is set. For a
    `forecast`, which asks nobody, a model without any address is taken to stand behind some server.

    Raises:
        InputError: An unknown engine or model name, or an option that is missing or does not fit the engine.
    """
    _check_names(model, api_key_env)
    alias = MODELS.get(model)
    if engine == "auto":
        engine = _engine(model, alias, checkpoint, base_urls, replies, forecast)
    if engine not in ANNOTATORS:
        raise InputError(f"unknown engine {engine!r}; known: auto, {', '.join(ANNOTATORS)}")
    _check_fit(engine, base_urls, replies, revision, engine_options)
    options = dict(engine_options or {})
    if engine == "recorded":
        if replies is None:
            raise InputError("--engine recorded needs --replies FILE with the recorded replies")
        return AnnotatorSpec(model, engine, checkpoint or _fingerprint(replies), replies=replies, run=run)
    if engine in _LOCAL:
        if alias is not None and alias.host is not None and checkpoint is None:
            raise InputError(f"{model!r} cannot be loaded here; name a model that can be with --checkpoint")
        loaded = checkpoint or (alias.checkpoint if alias else model)
        return AnnotatorSpec(
            model,
            engine,
            loaded,
            concurrency=concurrency,
            dialect="vllm",
            revision=revision,
            run=run,
            engine_options=options,
        )
    base_urls = base_urls or _address_of_environment(alias)
    if base_urls or not forecast:
        _check_addresses(base_urls, model, alias, checkpoint)
    if engine == "batch" and _dialect(alias, base_urls) == "glm":
        raise InputError("--engine batch speaks OpenAI's Batch API, not the GLM cloud's; use --engine server")
    host = urlsplit(base_urls[0]).hostname if base_urls else None
    return AnnotatorSpec(
        model,
        engine,
        checkpoint or (alias.checkpoint_at(host) if alias else model),
        base_urls,
        _key_variable(alias, base_urls, api_key_env),
        concurrency=concurrency,
        timeout_s=_timeout_s(options) if engine == "server" else _TIMEOUT_S,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        dialect=_dialect(alias, base_urls),
        run=run,
        engine_options=options,
    )


def _engine(
    model: str,
    alias: ModelAlias | None,
    checkpoint: str | None,
    base_urls: tuple[str, ...],
    replies: Path | None,
    forecast: bool,
) -> str:
    """Return the engine for `auto`: what was given says it; else a public API; else vLLM in this process."""
    if replies is not None:
        return "recorded"
    if base_urls or (alias is not None and alias.host is not None):
        return "server"
    if alias is None and checkpoint is None and not Path(model).is_dir():
        if forecast:
            return "server"
        raise InputError(
            f"unknown model {model!r}; known: {', '.join(MODELS)}. Any other name needs the address of a "
            "server (--base-url URL), a checkpoint (--engine offline --checkpoint ID) or recorded replies "
            "(--replies FILE)"
        )
    # find_spec, not the package's metadata: the CPU build of vLLM is published under another name.
    if find_spec("vllm") is None:
        if forecast:
            return "server"
        raise InputError(_unserved(model, checkpoint or (alias.checkpoint if alias else model)))
    return "offline"


def _unserved(model: str, served: str) -> str:
    return (
        f"model {model!r} has no public address: start `vllm serve {served}` and pass --base-url "
        f"http://localhost:8000/v1, or load it here after {install_command('vllm')}"
    )


def _check_names(model: str, api_key_env: str | None) -> None:
    if not model.strip():
        raise InputError(f"--model is empty; give {', '.join(MODELS)} or another name")
    if api_key_env is not None and not _VARIABLE.fullmatch(api_key_env):
        # What was given is not shown: it may well be the key.
        raise InputError("--api-key-env takes the name of the variable with the key, not the key itself")


def _check_fit(
    engine: str,
    base_urls: tuple[str, ...],
    replies: Path | None,
    revision: str | None,
    engine_options: Mapping[str, Any] | None,
) -> None:
    """Refuse options that the engine would silently ignore."""
    if replies is not None and engine != "recorded":
        raise InputError(f"--replies is only for --engine recorded, not for {engine}")
    if base_urls and engine in (*_LOCAL, "recorded"):
        raise InputError(f"--base-url is for --engine server and batch, not for {engine}")
    if len(base_urls) > 1 and engine == "batch":
        raise InputError("--engine batch works with one --base-url")
    if revision is not None and engine in (*_REMOTE, "recorded"):
        raise InputError(f"--revision is for engines that load the model (offline, ray), not for {engine}")
    if engine_options and engine == "recorded":
        raise InputError(f"--engine-option is for offline, ray, server and batch, not for {engine}")


def _timeout_s(options: Mapping[str, Any]) -> float:
    """Return the only option that the server engine has: the seconds for one answer."""
    if unknown := sorted(options.keys() - {"timeout_s"}):
        raise InputError(f"--engine server knows no option {unknown[0]!r}; it has: timeout_s")
    given = options.get("timeout_s", _TIMEOUT_S)
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"--engine-option timeout_s must be a number of seconds, more than 0, got {given!r}")
    return seconds


def _address_of_environment(alias: ModelAlias | None) -> tuple[str, ...]:
    """Return the address in OPENAI_BASE_URL for a model that OpenAI serves, () without one.

    OpenAI's own programs go there. Resolved here, so that the rules for a key and a price hold for it.
    """
    url = os.environ.get(_OPENAI_ADDRESS, "").strip()
    if not url or alias is None or alias.host != urlsplit(DEFAULT_URL).hostname:
        return ()
    try:
        _check_address(url)
    except InputError as error:
        raise InputError(f"{_OPENAI_ADDRESS}, used in place of --base-url: {error}") from None
    return (url,)


def _check_addresses(
    base_urls: tuple[str, ...], model: str, alias: ModelAlias | None, checkpoint: str | None
) -> None:
    for base_url in base_urls:
        _check_address(base_url)
    if len(set(base_urls)) < len(base_urls):
        raise InputError("the same --base-url is given twice; name each server once")
    if len({_dialect(alias, (url,)) for url in base_urls}) > 1:
        raise InputError("the servers of one run must speak alike; give other services their own runs")
    if base_urls:
        return
    if alias is None:
        raise InputError(
            f"unknown model {model!r}; known: {', '.join(MODELS)}. Any other name needs the address of a "
            "server (--base-url URL)"
        )
    if alias.host is None:
        raise InputError(_unserved(model, checkpoint or alias.checkpoint))


def _check_address(base_url: str) -> None:
    if not base_url.startswith(("http://", "https://")):
        raise InputError(f"--base-url must start with http:// or https://, got {masked(base_url)!r}")
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"--base-url {masked(base_url)!r} is no address: {masked(str(error))}") from None
    if "@" in parts.netloc:
        raise InputError("--base-url must hold no user name or password; name a key with --api-key-env")
    if not host:
        raise InputError(
            f"--base-url {masked(base_url)!r} names no host; give one, as in http://localhost:8000/v1"
        )
    if parts.query or parts.fragment:
        raise InputError("--base-url must be an address without ? and #; name a key with --api-key-env")


def _key_variable(
    alias: ModelAlias | None, base_urls: tuple[str, ...], api_key_env: str | None
) -> str | None:
    """Return the key's variable; a server of the user's own gets a key only when the user says so."""
    if api_key_env is not None:
        return api_key_env
    if not base_urls:
        service = service_of(f"https://{alias.host}") if alias else None
    else:
        # The usual key of a service goes to that service, over an encrypted connection, and nowhere else.
        known = [service_of(url) if url.startswith("https://") else None for url in base_urls]
        service = known[0] if all(each is known[0] for each in known) else None
    return service.api_key_env if service else None


def _dialect(alias: ModelAlias | None, base_urls: tuple[str, ...]) -> Dialect:
    service = service_of(base_urls[0]) if base_urls else None
    if service is not None:
        return service.dialect
    return alias.dialect if alias is not None and base_urls else "openai"


def _fingerprint(replies: Path) -> str:
    """Name the recorded replies by content: an edited file is a new checkpoint and is asked again."""
    try:
        with replies.open("rb") as stream:
            return f"recorded-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"
    except FileNotFoundError:
        raise InputError(f"{replies} does not exist; check --replies") from None
    except (IsADirectoryError, PermissionError) as error:
        raise InputError(f"{replies} cannot be read: {error.strerror}") from None
