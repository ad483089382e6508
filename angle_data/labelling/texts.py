"""The domain texts to be labelled, from .jsonl(.gz), .csv(.gz), .parquet or .txt(.gz).

A file is read and checked as a whole before the first text is given out, so that a bad row near its end is
found before anything is paid for. After that it is streamed: what stays in memory is one byte a row.
"""

from __future__ import annotations

import gzip
import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import open_text, read_jsonl
from angle_data.records import Text
from angle_data.tables import is_table, read_table
from angle_data.text import content_id, whole_characters

_KINDS = ".jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or .txt"
_BATCH_LINES = 512

_Place = str | int  # `file:line`, or the line alone
_Batches = Iterator[tuple[Sequence[_Place], list[dict[str, Any]]]]


class TextFile:
    """The texts of one file, white space stripped at both ends; iterate over it as often as you like.

    A row without id gets one made from its text. Blank texts, null among them, and exact repetitions are
    passed over; `blank` and `repeated` count them, `count` the texts that are left. With `limit`, only the
    first texts are used and the file is read at most about twice as far.

    Raises:
        InputError: The file is missing, of an unknown kind or holds no texts; a row lacks the text field or
            holds no string there, or NUL characters; one id stands for two different texts.
    """

    def __init__(
        self, path: Path, *, text_field: str = "text", id_field: str = "id", limit: int | None = None
    ) -> None:
        self._path, self._text_field, self._id_field = path, text_field, id_field
        self.blank = self.repeated = 0
        # One byte a row: whether its text is given out.
        self._wanted = self._check(limit)
        self.count = sum(self._wanted)
        if not self.count:
            raise InputError(f"{path} holds no texts; give a file with at least one")

    def __iter__(self) -> Iterator[Text]:
        start = 0
        for places, rows in self._batches():
            wanted = self._wanted[start : start + len(rows)]
            start += len(rows)
            # Only the rows that were checked: with a limit, others may follow in the batch.
            texts, ids = self._columns(places, rows[: len(wanted)])
            for use, identity, text in zip(wanted, ids, texts, strict=True):
                if use:
                    yield Text(identity or content_id(text), text)
            if start >= len(self._wanted):
                return

    def _check(self, limit: int | None) -> bytearray:
        """Return which rows hold texts, for all rows or as many as hold `limit` of them."""
        wanted = bytearray()
        hashes = _Hashes()
        check_at = limit
        for places, rows in self._batches():
            texts, ids = self._columns(places, rows)
            hashes.add(texts, ids)
            wanted += bytes(map(bool, texts))
            if limit is not None and check_at is not None and len(wanted) >= check_at:
                self._pass_over(wanted, hashes)
                if sum(wanted) >= limit:
                    return self._cut(wanted, hashes, limit)
                # Looking for repetitions sorts all rows so far, too much to do for every batch.
                check_at = 2 * len(wanted)
        self._pass_over(wanted, hashes)
        return wanted if limit is None or sum(wanted) < limit else self._cut(wanted, hashes, limit)

    def _pass_over(self, wanted: bytearray, hashes: _Hashes) -> None:
        """Take repetitions out of `wanted` and count them; the hashes tell them for all rows at once."""
        self.blank = hashes.blank
        repeated, bad = hashes.repeated()
        if bad is not None:
            place, row = next(islice(self._each(), bad, None))
            raise InputError(
                f"{self._where(place)}: id {self._identity(place, row)!r} stands for two different texts; "
                "make the ids unique"
            )
        for index in repeated:
            wanted[index] = 0
        self.repeated = len(repeated)

    def _cut(self, wanted: bytearray, hashes: _Hashes, limit: int) -> bytearray:
        """Return the rows up to the last text within the limit, and count what they pass over."""
        last = next(islice((row for row, use in enumerate(wanted) if use), limit - 1, None))
        del wanted[last + 1 :]
        self.repeated = sum(row <= last for row in hashes.repeated()[0])
        self.blank = wanted.count(0) - self.repeated
        return wanted

    def _columns(self, places: Sequence[_Place], rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
        """Return the texts and the ids (empty: none) of some rows; column by column, which is faster."""
        texts: list[Any] = [row.get(self._text_field) for row in rows]
        if not all(type(text) is str for text in texts):
            texts = list(map(self._text, places, rows))
        if "\0" in "".join(texts):
            place = next(place for place, text in zip(places, texts, strict=True) if "\0" in text)
            raise InputError(
                f"{self._where(place)}: the text holds NUL characters, as a file in UTF-16 does; convert the "
                "file to UTF-8"
            )
        ids: list[Any] = [row.get(self._id_field) for row in rows]
        if not all(type(identity) is str for identity in ids):
            ids = list(map(self._identity, places, rows))
        return [_clean(text) for text in texts], [_clean(identity) for identity in ids]

    def _text(self, place: _Place, row: dict[str, Any]) -> str:
        value = row.get(self._text_field)
        if isinstance(value, str):
            return value
        if self._text_field in row:
            if value is None:  # how tables write an empty cell
                return ""
            raise InputError(
                f"{self._where(place)}: field {self._text_field!r} must be a string, got "
                f"{type(value).__name__}"
            )
        found = ", ".join(sorted(map(str, row))) or "none"
        raise InputError(
            f"{self._where(place)}: no field {self._text_field!r}; fields found: {found} (choose with "
            "--text-field)"
        )

    def _identity(self, place: _Place, row: dict[str, Any]) -> str:
        value = row.get(self._id_field)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(
                f"{self._where(place)}: field {self._id_field!r} must be a string or integer, got "
                f"{type(value).__name__}"
            )
        return _clean(str(value))

    def _where(self, place: _Place) -> str:
        return f"{self._path}:{place}" if isinstance(place, int) else place

    def _each(self) -> Iterator[tuple[_Place, dict[str, Any]]]:
        for places, rows in self._batches():
            yield from zip(places, rows, strict=True)

    def _batches(self) -> _Batches:
        """Yield the rows of any supported kind of file, many at a time, and where they are."""
        path = self._path
        name = path.name.lower()
        if name.endswith(".jsonl"):
            return _json_batches(path)
        if is_table(path):
            columns = (self._text_field, self._id_field)
            hint = " (choose with --text-field)"
            return _batched(read_table(path, require=columns[:1], columns=columns, hint=hint))
        if name.endswith((".txt", ".txt.gz")):
            return _batched(_lines(path, self._text_field))
        raise InputError(f"{path}: unknown kind of file; give {_KINDS}")


class _Hashes:
    """Hashes of the ids and texts of rows; finds the rows whose id was there before."""

    def __init__(self) -> None:
        self._ids, self._contents = array("q"), array("q")
        self.blank = 0

    def add(self, texts: list[str], ids: list[str]) -> None:
        """Note some rows; one without id stands for itself by its text, a blank one for nothing."""
        contents = list(map(hash, texts))
        self._contents.extend(contents)
        if "" in texts or "" in ids:
            self.blank += texts.count("")
            pairs = zip(ids, contents, strict=True)
            self._ids.extend(
                [hash(identity) if identity else hash((content,)) for identity, content in pairs]
            )
        else:
            self._ids.extend(map(hash, ids))

    def repeated(self) -> tuple[list[int], int | None]:
        """Return the rows that repeat an earlier one, and the first with an earlier id and another text."""
        import numpy as np  # comes with datasets

        ids, contents = np.frombuffer(self._ids, np.int64), np.frombuffer(self._contents, np.int64)
        kept = np.flatnonzero(contents != hash(""))
        order = kept[np.argsort(ids[kept], kind="stable")]
        again = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
        rows = order[again + 1]
        other = rows[contents[rows] != contents[order[again]]]
        return rows.tolist(), int(other.min()) if len(other) else None


def _clean(text: str) -> str:
    text = text.strip()
    return text if text.isascii() else whole_characters(text)


def _batched(rows: Iterator[tuple[_Place, dict[str, Any]]]) -> _Batches:
    while batch := list(islice(rows, _BATCH_LINES)):
        yield [place for place, _ in batch], [row for _, row in batch]


def _json_batches(path: Path) -> _Batches:
    """Yield the rows of a file of JSON Lines; many lines are decoded at once, which takes half the time."""
    first = 1
    if path.is_file():
        with path.open("rb") as stream:
            while lines := list(islice(stream, _BATCH_LINES)):
                rows = _decode(lines)
                if rows is None:
                    break
                yield range(first, first + len(rows)), rows
                first += len(rows)
            else:
                return
    # Something is odd from here on, such as a blank line: line by line, which names what is wrong.
    yield from _batched((number, row) for number, row in read_jsonl(path) if number >= first)


def _decode(lines: list[bytes]) -> list[dict[str, Any]] | None:
    """Return one object a line, None when it is not as simple as that."""
    try:
        rows = json.loads(b"[%b]" % b",".join(lines))
    except ValueError:
        return None
    plain = len(rows) == len(lines) and all(type(row) is dict for row in rows)
    return rows if plain else None


def _lines(path: Path, text_field: str) -> Iterator[tuple[_Place, dict[str, Any]]]:
    with open_text(path) as stream:
        number = 0
        try:
            for number, line in enumerate(stream, start=1):
                yield number, {text_field: line}
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number + 1}: not UTF-8 text; convert the file to UTF-8") from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path}: damaged gzip file ({error})") from None
