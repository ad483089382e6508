"""Looks whether what a command names is there, before anything is imported that takes seconds.

The steps check the same again, and more, when they come to it; a mistyped path should not wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from angle_data.locking import check_free
from angle_train.data.sources import check_source
from angle_train.model.load import check_model_path
from angle_train.train.checkpoints import check_out
from angle_train.train.processes import process_count


def check_inputs(sources: Iterable[str] = (), models: Iterable[str] = ()) -> None:
    """Check that files, dataset directories and model directories exist; what the hub may have is not asked.

    Args:
        sources: Of pairs, see `rows.read_rows`.
        models: Directories or hub ids.

    Raises:
        InputError: One does not exist, or is of another kind.
    """
    for source in sources:
        check_source(source)
    for model in models:
        check_model_path(model)


def check_run_directory(out: Path) -> None:
    """Check that a run can take `out`: no other process is in it, and nothing else lies there.

    Only where there is one process: of several, the first alone takes the directory, and tells the others.

    Args:
        out: The directory, which need not exist.

    Raises:
        InputError: It cannot.
    """
    if process_count() > 1:
        return
    check_out(out)
    check_free(out)
