"""Programs that follow a run as it goes: which there are, what they need, and where their files go."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from angle_data.errors import InputError

TRACKERS: dict[str, tuple[str, ...]] = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "trackio": ("trackio",),
    "wandb": ("wandb",),
}
"""Name for `--report-to` -> packages of which one is needed."""

_FOLDER_VARIABLE = "TENSORBOARD_LOGGING_DIR"


def check_trackers(names: Sequence[str]) -> None:
    """Check that the trackers are known and installed, without importing them.

    Raises:
        InputError: One is not; names the command that installs it.
    """
    for name in names:
        if name not in TRACKERS:
            raise InputError(f"--report-to {name}: known are {', '.join(TRACKERS)}")
        if not any(importlib.util.find_spec(package) for package in TRACKERS[name]):
            raise InputError(f"--report-to {name} needs a package: pip install {TRACKERS[name][0]}")


@contextmanager
def tracker_folder(out: Path) -> Iterator[None]:
    """Let TensorBoard write into `out`/tensorboard during the block, unless the user said where.

    Its own default is inside the checkpoints, which go when the run is finished.
    """
    if _FOLDER_VARIABLE in os.environ:
        yield
        return
    os.environ[_FOLDER_VARIABLE] = str(out / "tensorboard")
    try:
        yield
    finally:
        del os.environ[_FOLDER_VARIABLE]
