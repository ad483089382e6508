"""What a run is about: the texts to be labelled, or the pairs to be graded, from a file of rows.

A file is read and checked as a whole before the first text or pair is given out, so that a bad row near its
end is found before anything is paid for. After that it is streamed, as often as needed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import open_text
from angle_data.labelling.index import HashTable
from angle_data.records import Text
from angle_data.tables import is_table, read_table
from angle_data.text import content_id, pair_key, stable_hash, whole_characters

_TEXT_KINDS = ".jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or .txt"
_PAIR_COLUMNS = (("text1", "text2"), ("sentence1", "sentence2"), ("source", "text"))

_Rows = Iterator[tuple[str, dict[str, Any]]]


# --- texts --------------------------------------------------------------------------------------------


class TextFile:
    """The texts of one file, white space stripped at both ends; iterate over it as often as you like.

    A row without id gets one made from its text. Blank texts, null among them, and exact repetitions are
    passed over; `blank` and `repeated` count them, `count` the texts that are left. With `limit`, only the
    first texts are used and the rest of the file is not read. One byte a row stays in memory.

    Raises:
        InputError: The file is missing, of an unknown kind or holds no texts; a row lacks the text field or
            holds no string there, or NUL characters; one id stands for two different texts.
    """

    def __init__(
        self, path: Path, *, text_field: str = "text", id_field: str = "id", limit: int | None = None
    ) -> None:
        self._path, self._text_field, self._id_field = path, text_field, id_field
        self.count = self.blank = self.repeated = 0
        self._wanted = self._check(limit)  # whether the text of each row is given out
        if not self.count:
            raise InputError(f"{path} holds no texts; give a file with at least one")

    def __iter__(self) -> Iterator[Text]:
        for wanted, (where, row) in zip(self._wanted, self._rows(), strict=False):
            if wanted:
                text = self._text(where, row)
                yield Text(self._identity(where, row) or content_id(text), text)

    def _check(self, limit: int | None) -> bytearray:
        """Read up to the last text that is wanted, count, and say of each row whether its text is one."""
        wanted = bytearray()
        seen = HashTable()
        for where, row in self._rows():
            text, identity = self._text(where, row), self._identity(where, row)
            new = False
            if not text:
                self.blank += 1
            else:
                # A row without id stands for itself by its text.
                content, known = hash(text), len(seen)
                first = seen.setdefault(hash(identity) if identity else hash((content,)), content)
                if first != content:
                    raise InputError(
                        f"{where}: id {identity!r} stands for two different texts; make the ids unique"
                    )
                new = len(seen) > known
                self.repeated += not new
            wanted.append(new)
            self.count += new
            if self.count == limit:
                break
        return wanted

    def _text(self, where: str, row: dict[str, Any]) -> str:
        value = row.get(self._text_field)
        if not isinstance(value, str):
            if self._text_field not in row:
                found = ", ".join(sorted(map(str, row))) or "none"
                raise InputError(
                    f"{where}: no field {self._text_field!r}; fields found: {found} (choose with "
                    "--text-field)"
                )
            if value is None:  # how tables write an empty cell
                return ""
            raise InputError(
                f"{where}: field {self._text_field!r} must be a string, got {type(value).__name__}"
            )
        if "\0" in value:
            raise InputError(f"{where}: the text {_NUL}")
        return _clean(value)

    def _identity(self, where: str, row: dict[str, Any]) -> str:
        value = row.get(self._id_field)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(
                f"{where}: field {self._id_field!r} must be a string or integer, got {type(value).__name__}"
            )
        return _clean(str(value))

    def _rows(self) -> _Rows:
        """Yield the rows of any supported kind of file, and where they are."""
        path = self._path
        if is_table(path):
            columns = (self._text_field, self._id_field)
            return read_table(path, require=columns[:1], columns=columns, hint=" (choose with --text-field)")
        if path.name.lower().endswith((".txt", ".txt.gz")):
            return _lines(path, self._text_field)
        raise InputError(f"{path}: unknown kind of file; give {_TEXT_KINDS}")


def _lines(path: Path, text_field: str) -> _Rows:
    with open_text(path) as stream:
        number = 0
        try:
            for number, line in enumerate(stream, start=1):
                yield f"{path}:{number}", {text_field: line}
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number + 1}: not UTF-8 text; convert the file to UTF-8") from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path}: damaged gzip file ({error})") from None


# --- pairs --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts; `rank` is a hash of the unordered pair, an order that has nothing to do with its content."""

    text1: str
    text2: str
    rank: int


class PairFile:
    """The pairs of one file, each unordered pair once; iterate over it as often as you like.

    Columns are `text1, text2`, `sentence1, sentence2`, or `source, text` as in candidates.jsonl. Rows with a
    blank text and repeated pairs are passed over; `blank` and `repeated` count them, `count` the pairs left.
    With `limit`, only the first pairs are used. About 30 bytes a pair stay in memory.

    Raises:
        InputError: The file is missing, of an unknown kind or without pairs; a row has no two texts, or NUL
            characters in one.
    """

    def __init__(self, path: Path, *, limit: int | None = None) -> None:
        self._path, self._limit = path, limit
        self.count = self.blank = self.repeated = 0
        for _ in self:
            pass
        if not self.count:
            raise InputError(f"{path} holds no pairs; give a file with at least one")

    def __iter__(self) -> Iterator[Pair]:
        self.count = self.blank = self.repeated = 0
        seen = HashTable()
        for where, row in read_table(self._path, columns=tuple(chain.from_iterable(_PAIR_COLUMNS))):
            if self._limit is not None and self.count >= self._limit:
                return
            text1, text2 = self._texts(where, row)
            if not (text1 and text2):
                self.blank += 1
                continue
            rank = stable_hash("\n".join(pair_key(text1, text2)))
            seen.setdefault(rank, 0)
            if len(seen) == self.count:
                self.repeated += 1
                continue
            self.count += 1
            yield Pair(text1, text2, rank)

    def _texts(self, where: str, row: dict[str, Any]) -> tuple[str, str]:
        names = next((names for names in _PAIR_COLUMNS if all(name in row for name in names)), None)
        if names is None:
            # The row is read again: of a parquet file only the columns of the texts were.
            row = next(row for place, row in read_table(self._path) if place == where)
            known = "; ".join(" and ".join(names) for names in _PAIR_COLUMNS)
            found = ", ".join(sorted(map(str, row))) or "none"
            raise InputError(f"{where}: no two texts; fields found: {found}; needed: {known}")
        for name in names:
            value = row[name]
            if not isinstance(value, str):
                raise InputError(f"{where}: field {name!r} must be a string, got {type(value).__name__}")
            if "\0" in value:
                raise InputError(f"{where}: field {name!r} {_NUL}")
        return _clean(row[names[0]]), _clean(row[names[1]])


_NUL = "holds NUL characters, as a file in UTF-16 does; convert the file to UTF-8"


def _clean(text: str) -> str:
    text = text.strip()
    return text if text.isascii() else whole_characters(text)
