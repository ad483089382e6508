"""The pairs to be graded, from .jsonl(.gz), .csv or .parquet, each unordered pair once.

A file is read and checked as a whole before the first pair is given out, so that a bad row near its end is
found before anything is paid for. What stays in memory is a number a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.tables import read_table
from angle_data.text import pair_key, stable_hash, whole_characters

_NAMES = (("text1", "text2"), ("sentence1", "sentence2"), ("source", "text"))
_COLUMNS = tuple(chain.from_iterable(_NAMES))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts; `rank` is a hash of the unordered pair, an order that has nothing to do with its content."""

    text1: str
    text2: str
    rank: int


class PairFile:
    """The pairs of one file; iterate over it as often as you like.

    Columns are `text1, text2`, `sentence1, sentence2`, or `source, text` as in candidates.jsonl. Rows with a
    blank text and repeated pairs are passed over; `blank` and `repeated` count them, `count` the pairs left.
    With `limit`, only the first pairs are used.

    Raises:
        InputError: The file is missing, of an unknown kind or without pairs; a row has no two texts, or NUL
            characters in one.
    """

    def __init__(self, path: Path, *, limit: int | None = None) -> None:
        self._path, self._limit = path, limit
        self.blank = self.repeated = self.count = 0
        for _ in self:
            pass
        if not self.count:
            raise InputError(f"{path} holds no pairs; give a file with at least one")

    def __iter__(self) -> Iterator[Pair]:
        self.blank = self.repeated = self.count = 0
        seen: set[int] = set()
        for where, row in read_table(self._path, columns=_COLUMNS):
            if self._limit is not None and self.count >= self._limit:
                return
            texts = _texts(row, where)
            if texts is None:
                raise self._without_texts(where)
            text1, text2 = texts
            if not (text1 and text2):
                self.blank += 1
                continue
            rank = stable_hash("\n".join(pair_key(text1, text2)))
            if rank in seen:
                self.repeated += 1
                continue
            seen.add(rank)
            self.count += 1
            yield Pair(text1, text2, rank)

    def _without_texts(self, where: str) -> InputError:
        # The row is read again: of a parquet file only the columns of the texts were.
        row = next(row for place, row in read_table(self._path) if place == where)
        known = "; ".join(" and ".join(names) for names in _NAMES)
        found = ", ".join(sorted(map(str, row))) or "none"
        return InputError(f"{where}: no two texts; fields found: {found}; needed: {known}")


def _texts(row: dict[str, Any], where: str) -> tuple[str, str] | None:
    """Return the two texts of a row; None when it lacks the columns."""
    for names in _NAMES:
        if all(name in row for name in names):
            values = [row[name] for name in names]
            for name, value in zip(names, values, strict=True):
                if not isinstance(value, str):
                    raise InputError(f"{where}: field {name!r} must be a string, got {type(value).__name__}")
                if "\0" in value:
                    raise InputError(
                        f"{where}: field {name!r} holds NUL characters, as a file in UTF-16 does; convert "
                        "the file to UTF-8"
                    )
            return whole_characters(values[0].strip()), whole_characters(values[1].strip())
    return None
