"""Several processes in one run, as torchrun starts them: all compute, rank zero measures, writes and logs.

With one process nothing here does anything. How they share a batch and its gradients: `objective.loss`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from angle_data.console import at_level
from angle_data.errors import AngleError, InputError

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_FSDP_ASKED = "ACCELERATE_USE_FSDP"
_PATIENCE = timedelta(hours=12)  # the others wait while rank zero measures and writes
_alone = False  # whether rank zero is inside a function that the others do not call


def process_count() -> int:
    """Return how many processes take part in this run, as their launcher says."""
    return max(1, int(os.environ.get("WORLD_SIZE") or 1))


def process_number() -> int:
    """Return the rank of this process: its number, from 0."""
    return int(os.environ.get("RANK") or 0) if process_count() > 1 else 0


def is_first() -> bool:
    """Return whether this is rank zero, which logs and writes."""
    return process_number() == 0


@contextmanager
def connect_processes(device: str | None = None) -> Iterator[None]:
    """Connect the processes for the length of a block; all but the first log errors only.

    Raises:
        InputError: torch cannot connect them, or their launcher asks for a sharded model (FSDP).
    """
    if os.environ.get(_FSDP_ASKED, "").lower() not in ("", "0", "false", "none", "no"):
        raise InputError(
            f"{_FSDP_ASKED}: FSDP (a model divided among processes) is not supported; start data-parallel "
            "processes (DDP) with torchrun --nproc-per-node N -m angle_train fit …"
        )
    if process_count() == 1:
        yield
        return
    import torch
    from accelerate import PartialState

    on_cpu = device == "cpu" or not torch.cuda.is_available()
    try:
        PartialState(cpu=on_cpu, timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{process_count()} processes cannot connect: {reason}; check how they are started"
        ) from None
    with first_process_logs():
        yield


def first_process_logs() -> AbstractContextManager[None]:
    """Return a context in which every process but the first logs errors alone; needs no connection."""
    return nullcontext() if is_first() else at_level(logging.ERROR, "angle")


def rank_zero(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let a function run in rank zero alone; in every process it returns what it returned there.

    All processes must call it. What it calls in turn runs there too, whether marked or not. An error that a
    user can fix ends all processes; rank zero alone reports it.
    """

    @wraps(function)
    def called(*args: Given.args, **options: Given.kwargs) -> Returned:
        global _alone
        if process_count() == 1 or _alone:
            return function(*args, **options)
        import torch.distributed as dist

        message: list[Any] = [None]
        failure: BaseException | None = None
        if is_first():
            _alone = True
            try:
                message = [(True, function(*args, **options))]
            except BaseException as error:  # noqa: BLE001 - raised below, once the others know
                failure = error
                message = [(False, error.exit_code if isinstance(error, AngleError) else 1)]
            finally:
                _alone = False
        dist.broadcast_object_list(message, src=0)
        if failure is not None:
            raise failure
        worked, value = message[0]
        if not worked:
            raise SystemExit(value)
        return cast(Returned, value)

    return called


def any_process(flag: bool) -> bool:
    """Return whether `flag` is set in any process; all must ask at the same time."""
    if process_count() == 1:
        return flag
    import torch.distributed as dist

    flags = [flag] * process_count()
    dist.all_gather_object(flags, flag)
    return any(flags)
