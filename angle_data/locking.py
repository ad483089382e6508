"""One process at a time in a run directory, whichever command it runs; the lock ends with the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from angle_data.errors import InputError

LOCK_NAME = ".lock"


@contextmanager
def hold(directory: Path, out: Path | None = None) -> Iterator[None]:
    """Keep other processes out of `directory`, which is made if missing, until the block ends.

    An `InputError` gives the number of the process that holds it. `out` is the directory that the user
    named, where `directory` is a hidden one in it.
    """
    from filelock import FileLock, Timeout

    place = out or directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        said = "is a file, a link to nothing, or below a file"
        raise InputError(f"--out {place} {said}; give a directory") from None
    path = directory / LOCK_NAME
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        owner = "unknown"  # on Windows nobody else may read or write a locked file
        with suppress(OSError):
            owner = path.read_text().strip() or owner
        raise InputError(
            f"{place} is in use by another process (pid {owner}); wait for it or give another --out"
        ) from None
    try:
        with suppress(OSError):
            path.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()
