"""Reads the domain texts to be labelled from .jsonl(.gz), .csv, .parquet or .txt, one at a time.

Streams, so that millions of rows fit: all that stays in memory are two 64-bit hashes a row, to notice ids
that occur twice.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import open_text, read_jsonl
from angle_data.records import Text
from angle_data.text import content_id

__all__ = ["Skipped", "read_texts"]

_KINDS = ".jsonl, .jsonl.gz, .csv, .parquet or .txt"
_BATCH_ROWS = 4096


@dataclass(slots=True)
class Skipped:
    """How many rows `read_texts` passed over: blank texts, and repetitions of an id with the same text."""

    blank: int = 0
    repeated: int = 0


def read_texts(
    path: Path,
    *,
    text_field: str = "text",
    id_field: str = "id",
    limit: int | None = None,
    skipped: Skipped | None = None,
) -> Iterator[Text]:
    """Yield the texts of a file in order, white space stripped at both ends, at most `limit` of them.

    A row without id gets one made from its text. Blank texts and exact repetitions are passed over and
    counted in `skipped`.

    Raises:
        InputError: The file is missing, of an unknown kind or holds no texts; a row lacks the text field or
            holds no string there; one id stands for two different texts.
    """
    skipped = skipped if skipped is not None else Skipped()
    seen: dict[int, int] = {}
    for where, row in _rows(path, text_field, id_field):
        text = _text(row, text_field, where)
        if not text:
            skipped.blank += 1
            continue
        identity = _identity(row.get(id_field), id_field, where) or content_id(text)
        key, content = _hash(identity), _hash(text)
        if key not in seen:
            seen[key] = content
            yield Text(identity, text)
        elif seen[key] == content:
            skipped.repeated += 1
        else:
            raise InputError(f"{where}: id {identity!r} stands for two different texts; make the ids unique")
        if len(seen) == limit:
            return
    if not seen:
        raise InputError(f"{path} holds no texts; give a file with at least one")


def _hash(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest())


def _text(row: dict[str, Any], text_field: str, where: str) -> str:
    if text_field not in row:
        found = ", ".join(sorted(map(str, row))) or "none"
        raise InputError(
            f"{where}: no field {text_field!r}; fields found: {found} (choose with --text-field)"
        )
    value = row[text_field]
    if not isinstance(value, str):
        raise InputError(f"{where}: field {text_field!r} must be a string, got {type(value).__name__}")
    return value.strip()


def _identity(value: Any, id_field: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            f"{where}: field {id_field!r} must be a string or integer, got {type(value).__name__}"
        )
    return str(value).strip()


def _rows(path: Path, text_field: str, id_field: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield `(file:line, row)` of any supported kind of file."""
    match path.suffixes[-2:]:
        case [*_, ".jsonl"] | [".jsonl", ".gz"]:
            return ((f"{path}:{number}", row) for number, row in read_jsonl(path))
        case [*_, ".csv"] | [".csv", ".gz"]:
            return _csv_rows(path, text_field)
        case [*_, ".txt"] | [".txt", ".gz"]:
            return _txt_rows(path, text_field)
        case [*_, ".parquet"]:
            return _parquet_rows(path, text_field, id_field)
    raise InputError(f"{path}: unknown kind of file; give {_KINDS}")


def _txt_rows(path: Path, text_field: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with open_text(path) as stream:
        number = 0
        try:
            for number, line in enumerate(stream, start=1):
                yield f"{path}:{number}", {text_field: line}
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number + 1}: not UTF-8 text; convert the file to UTF-8") from None


def _csv_rows(path: Path, text_field: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with open_text(path) as stream:
        reader = csv.DictReader(stream, restkey="", strict=True)
        try:
            if reader.fieldnames is not None and text_field not in reader.fieldnames:
                found = ", ".join(reader.fieldnames)
                raise InputError(f"{path}:1: no column {text_field!r}; columns found: {found}")
            for row in reader:
                # A short row lacks its last columns; DictReader fills them with None.
                yield f"{path}:{reader.line_num}", {k: v for k, v in row.items() if v is not None}
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: not valid CSV ({error})") from None
        except UnicodeDecodeError:
            raise InputError(f"{path}:{reader.line_num + 1}: not UTF-8 text; convert it to UTF-8") from None


def _parquet_rows(path: Path, text_field: str, id_field: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path} does not exist; check the path")
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from None
    with file:
        columns = file.schema_arrow.names
        if text_field not in columns:
            raise InputError(f"{path}: no column {text_field!r}; columns found: {', '.join(columns)}")
        number = 0
        wanted = [name for name in (text_field, id_field) if name in columns]
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", row
