"""Errors about what was given as rows in memory, in the words of whoever gave it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from angle_data.errors import InputError

_COMMAND = re.compile(r"\bangle-(?:data|train) ")


@contextmanager
def errors_naming_rows(folder: Path, **given_as: str) -> Iterator[None]:
    """Let errors say `data, row 3`, where they name a line of a file that `rows.sources` wrote into `folder`.

    Who gave rows in memory has never seen that file. A command that an error suggests reads the file, so its
    path stays there. `given_as` has what callers call what readers call otherwise: `train="data"`.
    """
    try:
        yield
    except InputError as error:
        path = re.escape(f"{folder}{os.sep}") + r"[0-9a-f]{16}[\\/](\w+)\.jsonl(?::(\d+))?"

        def as_given(found: re.Match[str]) -> str:
            name = given_as.get(found[1], found[1])
            return f"{name}, row {found[2]}" if found[2] else name

        said = str(error)
        command = _COMMAND.search(said)
        end = command.start() if command else len(said)
        error.args = (re.sub(rf"(?:--[\w-]+ )?{path}", as_given, said[:end]) + said[end:],)
        raise
