"""Which of the settings that a user gave have no effect with the engine that was chosen.

Options whose neglect would change what is asked (an address, a revision) are refused in `choice`; those here
make a run slower, faster or less repeatable than its user thinks, which one line says.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from angle_data.annotators.spec import AnnotatorSpec

_PACE = ("concurrency", "requests_per_minute", "tokens_per_minute")
UNUSED: dict[str, tuple[str, ...]] = {
    "batch": _PACE,
    "offline": (*_PACE, "api_key_env"),
    "ray": (*_PACE, "api_key_env"),
    "recorded": (*_PACE, "api_key_env", "temperature", "seed", "max_tokens"),
}
"""Engine -> the settings that it does not use."""

_INSTEAD = {
    "batch": "the service sets the pace of its batches",
    "offline": "vLLM sets its own pace; see --engine-option max_num_seqs=N and chunk=N",
    "ray": "vLLM sets its own pace; see --engine-option concurrency=N (engines) and chunk=N",
    "recorded": "the replies are there already",
}


def unused_options(spec: AnnotatorSpec, settings: Any) -> str | None:
    """Return one line on the options that were given in vain, None when there are none.

    The fields of the dataclass `settings` are named like the options; what is not at its default was given.
    """
    given = {
        field.name for field in fields(settings) if _is_set(field.default, getattr(settings, field.name))
    }
    unused = [name for name in UNUSED.get(spec.engine, ()) if name in given]
    if unused:
        return f"--engine {spec.engine} does not use {_options(unused)}: {_INSTEAD[spec.engine]}"
    if spec.dialect == "glm" and "seed" in given:
        return "--seed is not sent, since the GLM cloud takes none: its replies differ from call to call"
    return None


def _is_set(default: Any, value: Any) -> bool:
    return default is not MISSING and value != default


def _options(names: list[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)
