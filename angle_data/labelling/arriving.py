"""Texts that are in no file yet, from stdin (`-`) or the hub (`hub:ID`), as a file that is read like others.

Runs read their texts several times, and must find the same ones when they go on.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from functools import cache
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import dumps, write_text
from angle_data.tables import HUB_PREFIX, load_hub_dataset
from angle_data.text import whole_characters

log = logging.getLogger("angle.labelling")

STDIN = Path("-")
_SPLIT = "train"  # of a data set of the hub: most have it


def as_file(texts: Path, folder: Path) -> Path:
    """Return the file of texts: itself, or what came from stdin or the hub, in `folder` by its content.

    On stdin there are objects of JSON, one a line or in a list, or else a text a line. Of the hub the split
    `train` is read, and its columns of texts and numbers.

    Raises:
        InputError: There is nothing, no UTF-8, or the data set cannot be loaded.
    """
    if texts != STDIN and not str(texts).startswith(HUB_PREFIX):
        return texts
    content, kind = _from_stdin() if texts == STDIN else _from_hub(str(texts).removeprefix(HUB_PREFIX))
    path = folder / hashlib.sha256(content.encode()).hexdigest()[:16] / f"texts{kind}"
    if not path.exists():
        write_text(path, content)
    return path


@cache  # stdin can be read once
def _from_stdin() -> tuple[str, str]:
    log.info("reading texts from stdin")
    try:
        content = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the texts on stdin are no UTF-8; convert them") from None
    start = content.lstrip()[:1]
    if not start:
        raise InputError(
            "no texts on stdin; pipe some in, as in `cat notes.txt | angle-data …`, or name a file"
        )
    return content, {"{": ".jsonl", "[": ".json"}.get(start, ".txt")


@cache
def _from_hub(dataset_id: str) -> tuple[str, str]:
    log.info("loading %s (split %s) from the hub", dataset_id, _SPLIT)
    rows = load_hub_dataset(dataset_id, _SPLIT)
    lines = (dumps({name: cell for name, cell in row.items() if _is_plain(cell)}) for row in rows)
    return "".join(whole_characters(line) + "\n" for line in lines), ".jsonl"


def _is_plain(cell: Any) -> bool:
    return cell is None or isinstance(cell, str | int | float)
