"""The texts to be embedded, row by row from any supported kind of file, or from standard input.

Reads lazily. Does not know what becomes of them.
"""

from __future__ import annotations

import gzip
import json
import logging
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import open_text
from angle_data.tables import is_table, read_table
from angle_data.text import content_id, whole_characters

log = logging.getLogger("angle.encode")

ID_FIELD = "id"
"""Where ids are looked for if nothing is said."""
STANDARD_INPUT = "-"
"""Stands for standard input in place of a file."""

_TEXT_KINDS = (".txt", ".txt.gz")


@dataclass(frozen=True, slots=True)
class TextRow:
    """One text, the name that its embedding goes by, and whether the row itself gave that."""

    id: str
    text: str
    named: bool = True


def read_texts(path: Path, text_field: str = "text", id_field: str = ID_FIELD) -> Iterator[TextRow]:
    """Yield the texts of a file in order, lazily.

    Raises:
        InputError: The file is missing, damaged or of an unknown kind, or a row has no text; names the row.
    """
    if path.name.lower().endswith(_TEXT_KINDS):
        for number, line in _lines(path):
            yield _row(f"{path}:{number}", {text_field: line.rstrip("\r\n")}, text_field, id_field)
    elif is_table(path):
        for place, row in read_table(path, require=(text_field,), columns=(text_field, id_field)):
            yield _row(place, row, text_field, id_field)
    else:
        raise InputError(
            f"{path}: unknown kind of file; give .jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or .txt"
        )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with open_text(path) as stream:
        number = 0
        try:
            for number, line in enumerate(stream, start=1):
                yield number, line
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number + 1}: not UTF-8 text; convert the file to UTF-8") from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path}: damaged gzip file ({error})") from None


def _row(place: str, row: dict[str, Any], text_field: str, id_field: str) -> TextRow:
    text = row.get(text_field)
    if not isinstance(text, str):
        if text_field in row:
            kind = type(text).__name__
            raise InputError(f"{place}: field {text_field!r} must be a string, got {kind}")
        found = ", ".join(sorted(map(str, row))) or "none"
        raise InputError(
            f"{place}: no field {text_field!r}; fields found: {found} (choose with --text-field)"
        )
    if "\0" in text:
        raise InputError(f"{place}: the text holds NUL characters; convert the file to UTF-8")
    identity = row.get(id_field)
    if identity is not None and (isinstance(identity, bool) or not isinstance(identity, str | int)):
        kind = type(identity).__name__
        raise InputError(f"{place}: field {id_field!r} must be a string or integer, got {kind}")
    text = whole_characters(text)
    if identity is None:
        return TextRow(content_id(text), text, named=False)
    return TextRow(whole_characters(str(identity)), text)


@contextmanager
def standard_input() -> Iterator[Path]:
    """Yield a file with what comes on standard input, since texts are read more than once.

    Raises:
        InputError: The block raised one; it names standard input in place of the file.
    """
    with TemporaryDirectory() as folder:
        first = sys.stdin.buffer.readline()
        kind = ".jsonl" if _is_object(first) else ".txt"
        log.info("standard input is read as %s", "JSON Lines" if kind == ".jsonl" else "a text a line")
        path = Path(folder) / f"texts{kind}"
        with path.open("wb") as stream:
            stream.write(first)
            shutil.copyfileobj(sys.stdin.buffer, stream)
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), "standard input")) from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:  # UnicodeDecodeError is one too
        return False
