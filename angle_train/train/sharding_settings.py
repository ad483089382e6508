"""What a launcher asks of sharding (FSDP): read, checked, and completed before accelerate reads it.

`accelerate launch --use_fsdp` hands its settings over in environment variables, which torchrun's users set
themselves. Knows nothing of models.
"""

from __future__ import annotations

import os

from angle_data.errors import InputError

_ASKED = "ACCELERATE_USE_FSDP"
_REFUSED = {
    "FSDP_OFFLOAD_PARAMS": "leave --fsdp_offload_params out; where memory is short set gradient_cache",
    "FSDP_ACTIVATION_CHECKPOINTING": (
        "leave --fsdp_activation_checkpointing out and set gradient_checkpointing in the recipe"
    ),
    "FSDP_IGNORED_MODULES": "leave fsdp_ignored_modules out: nobody would sum up their gradients",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "leave --use_parallelism_config out",
}


def sharding_asked() -> bool:
    """Return whether the launcher asks for a model divided among the processes."""
    return _is_set(_ASKED)


def forget_sharding() -> None:
    """Make accelerate hold the whole model: a single process has nobody to share it with."""
    if sharding_asked():
        os.environ[_ASKED] = "false"


def settle_sharding() -> None:
    """Check the settings of sharding and choose those that are ours to choose.

    Raises:
        InputError: Runs cannot do what is asked; names the setting.
    """
    version = os.environ.get("FSDP_VERSION", "1")
    if version != "2":
        raise InputError(
            f"a model is sharded by FSDP 2 and this asks for FSDP {version}; start with --fsdp_version 2 "
            "(with torchrun: FSDP_VERSION=2)"
        )
    for name, advice in _REFUSED.items():
        if _is_set(name):
            raise InputError(f"{name} is not supported where a model is sharded; {advice}")
    os.environ |= {
        _ASKED: "true",
        # Every process reads the model; what process 0 measures with must hold weights in any case.
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
        # What is written is whole, so that it is an ordinary model.
        "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    }
    os.environ.setdefault("FSDP_AUTO_WRAP_POLICY", "TRANSFORMER_BASED_WRAP")


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").lower() not in ("", "0", "false", "none", "no")
