"""One process at a time in a run directory, whichever command it runs; the lock ends with the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from angle_data.errors import InputError

LOCK_NAME = ".lock"


@contextmanager
def hold(directory: Path) -> Iterator[None]:
    """Keep other processes out of `directory`, which is made if missing, until the block ends.

    Raises:
        InputError: Another process holds it, which is named by number; or the system has no such locks.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InputError("run directories need Linux or macOS; on Windows use WSL") from None
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        # The path itself, or one it goes through: of those that exist, the longest.
        file = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
        within = "" if file == directory else f" goes through {file}, which"
        raise InputError(f"--out {directory}{within} is a file; give a directory") from None
    with (directory / LOCK_NAME).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(directory) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def check_free(directory: Path) -> None:
    """Check that no process holds `directory` now, to refuse early; only `hold` keeps others out.

    Raises:
        InputError: Another process holds it, which is named by number.
    """
    try:
        import fcntl

        with (directory / LOCK_NAME).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(directory) from None
    except (ModuleNotFoundError, OSError):
        return  # there is nothing to hold, or `hold` says why not


def _in_use(directory: Path) -> InputError:
    owner = (directory / LOCK_NAME).read_text().strip() or "unknown"
    return InputError(
        f"{directory} is in use by another process (pid {owner}); wait for it or give another --out"
    )
