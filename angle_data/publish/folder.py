"""Puts a data set folder in its place: readers see the old one or the new one, never a part.

The layout is `README.md`, `data/*.parquet` and `figures/*.png`.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from angle_data.errors import InputError

_FILE = re.compile(r"data/.*\.parquet|figures/[^/]+\.png")


@contextmanager
def replace_dataset(directory: Path) -> Iterator[Path]:
    """Yield an empty folder (with `data/`) to fill, which takes the place of `directory` at the end.

    What a killed process left beside it is cleared first. When anything fails or is interrupted, the earlier
    data set stays or is put back. One process at a time may write there.

    Raises:
        InputError: `directory` is a file, holds files that a data set does not, or cannot be written.
    """
    _check_replaceable(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(directory)
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(directory), dir=directory.parent))
    except OSError as error:
        raise InputError(
            f"cannot write to {directory.parent}: {error.strerror}; choose another folder"
        ) from None
    try:
        new, old = temporary / "new", temporary / "old"
        (new / "data").mkdir(parents=True)
        yield new
        if directory.exists():
            os.replace(directory, old)
        os.replace(new, directory)
    finally:
        _clear(temporary, directory)


def _prefix(directory: Path) -> str:
    return f".{directory.name}.writing-"


def _clear_leftovers(directory: Path) -> None:
    """Clear the temporary folders of killed processes."""
    for leftover in sorted(directory.parent.glob(glob.escape(_prefix(directory)) + "*")):
        _clear(leftover, directory)


def _clear(temporary: Path, directory: Path) -> None:
    """Put back a data set that was moved aside and got no successor; then remove the temporary folder."""
    if (temporary / "old").is_dir() and not directory.exists():
        os.replace(temporary / "old", directory)
    shutil.rmtree(temporary, ignore_errors=True)


def _check_replaceable(directory: Path) -> None:
    """Refuse to replace a folder that holds anything but an earlier data set."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; give another folder")
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        known = name in ("README.md", "data", "figures") or _FILE.fullmatch(name)
        if not known:
            raise InputError(f"{directory} holds {name}, which is not of a data set; choose another folder")
