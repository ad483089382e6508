"""What is given to a function in a notebook, rows in memory or paths, as the files that its command reads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from angle_data.calling.options import is_path
from angle_data.errors import InputError
from angle_data.jsonl import dumps, write_text
from angle_data.text import whole_characters

IN_MEMORY = ".angle"
"""The folder inside an output folder that holds what was given as rows in memory, or came from elsewhere."""


def sources(value: Any, folder: Path, name: str, text_field: str | None = None) -> list[str]:
    """Return the files of what was given: a path, a list of paths, or rows in memory; none for None.

    Rows are a list of dictionaries, a `datasets.Dataset` or a pandas data frame; `name` is what readers and
    errors call them. Their file is `FOLDER/HASH/NAME.jsonl`, by a hash of their content, so that the same
    call goes on where it stopped. With a `text_field`, strings are texts, which stand in that field.
    """
    if value is None:
        return []
    paths = [value] if is_path(value) else value if text_field is None else None
    if isinstance(paths, list | tuple) and all(map(is_path, paths)):
        return [os.path.expanduser(os.fspath(path)) for path in paths]  # what is none, as `hub:ID`, stays so
    lines = [whole_characters(dumps(row)) + "\n" for row in _rows(value, name, text_field)]
    if not lines:
        raise InputError(f"{name}: an empty {type(value).__name__}; give at least one")
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
    path = folder / digest / f"{name}.jsonl"
    if not path.exists():
        write_text(path, "".join(lines))
    return [str(path)]


def _rows(value: Any, name: str, text_field: str | None) -> Iterator[dict[str, Any]]:
    """Yield rows in memory as plain dictionaries; what JSON cannot hold is left out."""
    wanted = "dictionaries" if text_field is None else "strings or dictionaries"
    if hasattr(value, "iterrows"):  # a pandas data frame, whose own iterator gives its columns
        value = value.to_dict("records")
    if isinstance(value, Mapping):
        raise InputError(f"{name}: got a {type(value).__name__}; give one part of it, or a list of {wanted}")
    if not isinstance(value, Iterable):
        raise InputError(f"{name}: got {value!r}; give a path, or a list of {wanted}")
    for number, row in enumerate(value, start=1):
        if text_field is not None and isinstance(row, str):
            row = {text_field: row}
        if not isinstance(row, Mapping):
            raise InputError(f"{name}: item {number} is of type {type(row).__name__}; give {wanted}")
        plain = ((str(key), _plain(item)) for key, item in row.items())
        yield {key: item for key, item in plain if item is None or isinstance(item, str | int | float | list)}


def _plain(value: Any) -> Any:
    """Return numbers and lists of numpy as Python's, others as they are; lists but of strings are dropped."""
    value = value.tolist() if hasattr(value, "tolist") else value
    is_list = isinstance(value, list)
    return () if is_list and not all(isinstance(item, str) for item in value) else value
