"""Rows of .jsonl, .csv, .tsv (plain or .gz) and .parquet files as dictionaries with their places, lazily."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl, read_lines

TABLE_KINDS = ".jsonl[.gz], .csv[.gz], .tsv[.gz] or .parquet"
"""The kinds of file that are read, for error messages and help texts."""

PAIR_COLUMNS = (("text1", "text2"), ("sentence1", "sentence2"))
"""The usual names of the columns of two texts, which every command reads."""

Rows = Iterator[tuple[str, dict[str, Any]]]
_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_MARKS = {".csv": ",;\t", ".tsv": "\t,;"}  # what the fields may stand between, the likeliest first
_BATCH_ROWS = 4096
_FORMULA = ("=", "+", "-", "@", "\t")
_LONGEST_FIELD = 1 << 30  # characters; the csv module's own 131,072 is less than a log can have


def is_table(path: Path) -> bool:
    """Return whether the name of `path` says that `read_table` can read it."""
    return path.name.lower().endswith(_SUFFIXES)


def read_table(
    path: Path, *, require: Sequence[str] = (), columns: Sequence[str] | None = None, hint: str = ""
) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line`, or `file: row N` in a parquet file.

    Values of a CSV or TSV file are strings, those of the others what they are there. The fields stand between
    commas, semicolons (as where a comma is the decimal point) or tabs, as the header says. Lines of JSON may
    each have other fields; of the other kinds some columns can be required (`require`), and `hint` is what
    the error of a missing one ends with. Of a parquet file `columns` alone are read, as far as it has them.
    An `InputError` names what is missing, damaged or of an unknown kind.
    """
    if not is_table(path):
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}")
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".jsonl"):
        return ((f"{path}:{line}", row) for line, row in read_jsonl(path))
    if marks := _MARKS.get(name[-4:]):
        return _csv_rows(path, marks, require, hint)
    return _parquet_rows(path, require, columns, hint)


def read_texts(path: Path, text_field: str, id_field: str, require: Sequence[str], hint: str) -> Rows:
    """Yield the rows of a table of texts, see `read_table`; a line of a .txt[.gz] file is a text alone."""
    if path.name.lower().endswith((".txt", ".txt.gz")):
        return ((f"{path}:{number}", {text_field: line.rstrip("\r\n")}) for number, line in read_lines(path))
    if not is_table(path):
        kind = "is a folder" if path.is_dir() else "unknown kind of file"
        raise InputError(f"{path}: {kind}; give {TABLE_KINDS}, or .txt[.gz]")
    return read_table(path, require=require, columns=(text_field, id_field), hint=hint)


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula, and so lose."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def unguarded(text: str) -> str:
    """Return a text that `guarded` may have changed as it was."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def _check(place: str, found: Sequence[str], require: Sequence[str], hint: str) -> None:
    for name in require:
        if name not in found:
            names = ", ".join(found) or "none"
            raise InputError(f"{place}: no column {name!r}; columns found: {names}{hint}")


def _csv_rows(path: Path, marks: str, require: Sequence[str], hint: str) -> Rows:
    csv.field_size_limit(_LONGEST_FIELD)
    lines = (line for _, line in read_lines(path))
    header = next(lines, "")
    mark = next((mark for mark in marks if mark in header), marks[0])
    reader = csv.DictReader(chain([header], lines), strict=True, delimiter=mark)
    try:
        names = list(reader.fieldnames or ())
        if names:
            _check(f"{path}:1", names, require, hint)
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"{path}:1: column {twice!r} stands there twice; rename one")
        for row in reader:
            where = f"{path}:{reader.line_num}"
            # DictReader puts surplus fields under None and fills missing ones with None.
            if None in row or None in row.values():
                raise InputError(
                    f"{where}: expected {len(names)} fields as in the header; quote texts that hold {mark!r}"
                )
            yield where, row
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not valid CSV ({error})") from None


def _parquet_rows(path: Path, require: Sequence[str], columns: Sequence[str] | None, hint: str) -> Rows:
    if not path.is_file():
        raise InputError(f"{path} does not exist; check the path")
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            found = file.schema_arrow.names
            _check(str(path), found, require, hint)
            wanted = None if columns is None else [name for name in columns if name in found]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}: row {number}", row
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: not a readable parquet file ({reason}); write it again") from None
