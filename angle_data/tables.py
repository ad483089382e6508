"""Rows of the files and folders in which people keep tables, as dictionaries with their places, lazily.

The one reader of both packages: every command reads its texts and pairs with it. Cells are read by the same
rules too: `text_of`, `identity_of`, `number_of`.
"""

from __future__ import annotations

import csv
import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.folders import split_files
from angle_data.jsonl import loads, read_jsonl, read_lines
from angle_data.text import whole_characters

TABLE_KINDS = ".jsonl, .json, .csv, .tsv (also .gz), .parquet or a data set folder"
"""The kinds of source that are read, for error messages and help texts."""

HUB_PREFIX = "hub:"
TOKEN_REFUSED = "the hub refuses the access token (401); check HF_TOKEN, or log in with `hf auth login`"

INFERENCE_COLUMNS = (("premise", "hypothesis"), ("question", "sentence"))
"""Names of texts whose labels are classes of inference, not grades: in their numbers 0 is entailment."""
TEXT_COLUMNS = (
    *(("text1", "text2"), ("sentence1", "sentence2")),
    *(("question1", "question2"), ("sentence_A", "sentence_B")),
    *INFERENCE_COLUMNS,
)
"""The usual names of the columns of two texts, which every command reads; the first that a row has count."""

Rows = Iterator[tuple[str, dict[str, Any]]]
_SUFFIXES = (
    *(".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    *(".parquet", ".arrow"),
)
_MARKS = {".csv": ",;\t", ".tsv": "\t,;"}  # what the fields may stand between, the likeliest first
_BATCH_ROWS = 4096
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_FIELD = 1 << 30  # characters; the csv module's own 131,072 is less than a log can have
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_HEADER = "; the first line must name the columns"


def is_table(path: Path) -> bool:
    """Return whether the name of `path` says that `read_table` can read it as a file."""
    return path.name.lower().endswith(_SUFFIXES)


def base_name(path: Path) -> str:
    """Return the name of a file without what says its kind."""
    name = path.name.removesuffix(".gz")
    return name.removesuffix(Path(name).suffix) if is_table(path) else path.name


def read_table(
    path: Path,
    *,
    require: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    hint: str = "",
    split: str | None = None,
) -> Rows:
    """Yield `(place, row)` of every row, where place is `file:line`, or `file: row N` where lines say little.

    Values of a CSV or TSV file are strings, those of the others what they are there. The fields stand between
    commas, semicolons (as where a comma is the decimal point) or tabs, as the header says. Lines of JSON may
    each have other fields; of the other kinds some columns can be required (`require`), and `hint` is what
    the error of a missing one ends with. Of a parquet or arrow file `columns` alone are read, as far as it
    has them. Of a folder the rows of one `split` are read, see `folders.split_files`. In a `.tsv` every line
    is one row, see `_tsv_fields`. An `InputError` names what is missing, damaged or of an unknown kind.
    """
    if path.is_dir():
        parts = split_files(path, split)
        return chain.from_iterable(_part_rows(part, require, columns, hint) for part in parts)
    return _part_rows(path, require, columns, hint)


def read_texts(path: Path, text_field: str, id_field: str, require: Sequence[str], hint: str) -> Rows:
    """Yield the rows of a table of texts, see `read_table`; a line of a .txt[.gz] file is a text alone."""
    if path.name.lower().endswith((".txt", ".txt.gz")):
        return ((f"{path}:{number}", {text_field: line.rstrip("\r\n")}) for number, line in read_lines(path))
    if not (is_table(path) or path.is_dir()):
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}, or .txt[.gz]")
    return read_table(path, require=require, columns=(text_field, id_field), hint=hint)


def text_of(row: Mapping[str, Any], name: str, place: str) -> str | None:
    """Return the text in a cell, as `place` has it; None for an empty one, which tables write as null or NaN.

    Raises:
        InputError: There is something else than a text, or a text with a NUL character.
    """
    text = row.get(name)
    if text is None or (isinstance(text, float) and math.isnan(text)):
        return None
    if not isinstance(text, str):
        raise InputError(f"{place}: field {name!r} must be a string, got {type(text).__name__}")
    if "\0" in text:
        raise InputError(
            f"{place}: field {name!r} holds NUL characters, as in UTF-16; convert the file to UTF-8, or "
            "remove them"
        )
    return whole_characters(text)


def identity_of(row: Mapping[str, Any], name: str, place: str) -> str | None:
    """Return the id in a cell as a string; None where there is none.

    Tables write whole numbers as 12.0 where some rows have no id; that is 12.
    """
    value = row.get(name)
    if isinstance(value, float) and (math.isnan(value) or value.is_integer()):
        value = None if math.isnan(value) else int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise InputError(f"{place}: field {name!r} must be a string or integer, got {type(value).__name__}")
    return None if value is None else whole_characters(str(value).strip()) or None


def number_of(value: object) -> float:
    """Return a cell as a number; NaN where it is none, or not finite.

    True and yes are 1, false and no are 0, as words too; a comma between digits is a decimal point.
    """
    if isinstance(value, str):
        text = value.strip().lower()
        value = _WORDS.get(text, text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula, and so lose."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def unguarded(text: str) -> str:
    """Return a text that `guarded` may have changed as it was."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def _part_rows(path: Path, require: Sequence[str], columns: Sequence[str] | None, hint: str) -> Rows:
    name = path.name.lower().removesuffix(".gz")
    if path.is_dir():
        return _columnar_rows(path, require, columns, hint)
    if not is_table(path):
        raise InputError(f"{path}: unknown kind of file; give {TABLE_KINDS}")
    if name.endswith(".jsonl"):
        return ((f"{path}:{line}", row) for line, row in read_jsonl(path))
    if name.endswith(".json"):
        return _json_rows(path)
    if name.endswith((".csv", ".tsv")):
        return _delimited_rows(path, _MARKS[name[-4:]], require, hint)
    return _columnar_rows(path, require, columns, hint)


def _check(place: str, found: Sequence[str], require: Sequence[str], hint: str) -> None:
    for name in require:
        if name not in found:
            names = ", ".join(found) or "none"
            raise InputError(f"{place}: no column {name!r}; columns found: {names}{hint}")


def _json_rows(path: Path) -> Rows:
    """Yield the objects of a list, or one a line, as several programs write them under this name."""
    start = next((line for _, line in read_lines(path) if line.strip()), "")
    if not start.lstrip().startswith("["):
        try:
            yield from ((f"{path}:{line}", row) for line, row in read_jsonl(path))
        except InputError as error:
            raise InputError(f"{error}; a .json file holds a list of objects, or an object a line") from None
        return
    try:
        rows = loads("".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not valid JSON ({error}); write the file again") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error}); write the file again") from None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(f"{path}: row {number}: expected a JSON object, got {type(row).__name__}")
        yield f"{path}: row {number}", row


def _delimited_rows(path: Path, marks: str, require: Sequence[str], hint: str) -> Rows:
    csv.field_size_limit(_LONGEST_FIELD)
    lines = read_lines(path)
    first = next(lines, (1, ""))
    if first[1].lower().startswith("sep=") and len(first[1].strip()) == len("sep=,"):
        first = next(lines, (2, ""))  # a line for Excel alone
    mark = next((mark for mark in marks if mark in first[1]), marks[0])
    if marks[0] == mark == "\t":
        rows = _tsv_fields(path, chain([first], lines))
        fix = "a text in a .tsv holds no tabs and no line ends: write blanks for them, or write .csv"
    else:
        rows = _csv_fields(path, chain([first], lines), mark)
        fix = f"quote texts that hold {mark!r}"
    names = [name.strip() for name in next(rows, (1, []))[1]]
    if any(names):
        _check(f"{path}:{first[0]}", names, require, f"{hint}{_HEADER}")
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise InputError(f"{path}:{first[0]}: column {twice!r} stands there twice; rename one{_HEADER}")
    for number, fields in rows:
        if len(fields) != len(names):
            raise InputError(
                f"{path}:{number}: expected {len(names)} fields as in the header; found {len(fields)}; {fix}"
            )
        yield f"{path}:{number}", dict(zip(names, fields, strict=True))


def _csv_fields(path: Path, lines: Iterable[tuple[int, str]], mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of every row that is not blank, and the number of its last line."""
    number = 0

    def read() -> Iterator[str]:
        nonlocal number
        for place, line in lines:
            number = place
            yield line

    reader = csv.reader(read(), strict=True, delimiter=mark)
    while True:
        begun = number + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            quote = "; quotes inside a quoted text must be doubled, and every quote closed"
            raise InputError(f"{path}:{begun}: not valid CSV ({error}){quote}") from None
        if fields:
            yield number, fields


# A field in quotes, with those inside doubled, or one without any quote.
_TSV_FIELD = re.compile(r'(?:"((?:[^"]|"")*+)"|([^"\t]*+))(?:\t|$)')


def _tsv_fields(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of every line and its number; no field spans lines, and quotes are part of the text.

    Quotes enclose fields, as some programs write them around every field or around some, only where the whole
    file says so, see `_encloses`. Blank lines are passed over unless there is one column.
    """
    lines = iter(lines)
    first = next(lines, (1, ""))
    enclosed = _encloses(path, first[1].rstrip("\r\n"))
    width = 0
    for number, line in chain([first], lines):
        line = line.rstrip("\r\n")
        fields = _split_enclosed(line) if enclosed else line.split("\t")
        if fields is None:
            raise InputError(
                f"{path}:{number}: the fields of the header are in quotes, but a quote in this line neither "
                "is doubled nor ends a field; double those inside texts, or put no quotes around fields"
            )
        width = width or len(fields)
        if line or width == 1:
            yield number, fields


def _encloses(path: Path, header: str) -> bool:
    """Return whether quotes enclose fields in a `.tsv`: its header is enclosed, or else all of this holds.

    Every field that has a quote is enclosed, with quotes inside doubled; every line with one has then as many
    fields as the header; and there is a reason to enclose: a doubled quote, a tab or nothing at all inside,
    or commas, which Excel encloses, while no other field has one.
    """
    fields = _split_enclosed(header)
    if fields and header.startswith('"') and header.count('"') >= 2 * len(fields):
        return True
    columns = header.count("\t") + 1
    reason = comma = bare_comma = False
    for _, line in read_lines(path):
        line = line.rstrip("\r\n")
        if '"' not in line:
            bare_comma = bare_comma or "," in line
            continue
        found = _enclosed_fields(line)
        if found is None or len(found) + line.endswith("\t") != columns:
            return False
        for field in found:
            if field[1] is None:
                bare_comma = bare_comma or "," in field[2]
            else:
                reason = reason or not field[1] or '""' in field[1] or "\t" in field[1]
                comma = comma or "," in field[1]
    return reason or (comma and not bare_comma)


def _split_enclosed(line: str) -> list[str] | None:
    """Return the fields of a line in which quotes enclose, or None if they do not."""
    found = _enclosed_fields(line)
    if found is None:
        return None
    fields = [field[2] if field[1] is None else field[1].replace('""', '"') for field in found]
    return [*fields, ""] if line.endswith("\t") else fields


def _enclosed_fields(line: str) -> list[re.Match[str]] | None:
    """Return the fields of a line one behind another, without an empty last one; None if they do not join."""
    found: list[re.Match[str]] = []
    place = 0
    while field := _TSV_FIELD.match(line, place):
        found.append(field)
        place = field.end()
        if place == len(line):
            return found
    return None


def _columnar_rows(path: Path, require: Sequence[str], columns: Sequence[str] | None, hint: str) -> Rows:
    """Yield the rows of a parquet or arrow file, or of a folder that `save_to_disk` of `datasets` wrote."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    import pyarrow as pa

    read = _parquet_batches if path.suffix.lower() == ".parquet" else _arrow_batches
    number = 0
    try:
        for batch in read(path, lambda found: _wanted(path, found, require, columns, hint)):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", row
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        kind = "parquet file" if read is _parquet_batches else "arrow file or saved data set"
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: not a readable {kind} ({reason}); write it again") from None


def _wanted(
    path: Path, found: Sequence[str], require: Sequence[str], columns: Sequence[str] | None, hint: str
) -> list[str] | None:
    """Return which columns of those `found` are read, None for all, having checked that none is missing."""
    _check(str(path), found, require, hint)
    return None if columns is None else [name for name in columns if name in found]


_Choice = Callable[[list[str]], list[str] | None]


def _parquet_batches(path: Path, choose: _Choice) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        wanted = choose(file.schema_arrow.names)
        yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted)


def _arrow_batches(path: Path, choose: _Choice) -> Iterator[Any]:
    from datasets import Dataset, load_from_disk

    data: Any = load_from_disk(str(path)) if path.is_dir() else Dataset.from_file(str(path))
    wanted = choose(data.column_names)
    chosen = data if wanted is None else data.select_columns(wanted)
    yield from chosen.with_format("arrow").iter(batch_size=_BATCH_ROWS)


def load_hub_dataset(
    dataset_id: str,
    split: str | None,
    *,
    config: str | None = None,
    revision: str | None = None,
    instead: str = "",
) -> Any:
    """Return a split of a dataset on the hub, or all splits by name.

    The library downloads every split in any case, once. What cannot be loaded is an InputError: why, as far
    as that is known, and what the user can do `instead`. `config` names a part that has splits of its own,
    `revision` a branch, tag or commit.
    """
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    # It warns of every attempt, and tries for half a minute before the error below.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return load_dataset(dataset_id, config, split=split, revision=revision)
    except Exception as error:  # noqa: BLE001 - the hub's HTTP library has errors of its own kinds
        part = f" (split {split})" if split else ""
        message = " ".join(str(error).split())
        reason = message.split(". ")[0][:200] or type(error).__name__
        cause = (
            f"{reason}; check the id, the split, HF_ENDPOINT if it is set, and that the hub can be reached"
        )
        if re.search(r"\b401 (Client Error|Unauthorized)", message):
            cause = TOKEN_REFUSED
        raise InputError(f"hub:{dataset_id}{part} cannot be loaded: {cause}{instead}") from None
