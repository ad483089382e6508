"""The command that repeats a run or an evaluation, for its report.

Relative paths and hub ids stand as they were given. Of an absolute path only the last part is told: where
files lie on the machine is no part of a result.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def command_line(program: str, options: Sequence[tuple[str, str | Sequence[str] | bool | None]]) -> str:
    """Return a command in a shell's quoting.

    Args:
        program: Its first words, such as `angle-train fit`.
        options: Name and value; a sequence is given once for each value, True is a flag, and options with
            None, False or nothing are left out.
    """
    words = [program]
    for name, value in options:
        if value is True:
            words.append(name)
        elif value:
            for one in [value] if isinstance(value, str) else value:
                words.append(f"{name} {shlex.quote(one)}")
    return " ".join(words)


def portable(path: str) -> str:
    """Return a path or hub id as it may be told to others: the last two parts `angle-data` made, or the last.

    `DIR/dataset` is what `angle-data` writes; `dataset` alone would say nothing.
    """
    given = Path(path)
    if not given.is_absolute():
        return path
    parts = given.parts
    return "/".join(parts[-2:] if parts[-1] == "dataset" else parts[-1:])
