"""What a run is about: the texts to be labelled, or the pairs to be graded, from a file of rows.

A file is read and checked as a whole before the first text or pair is given out, so that a bad row near its
end is found before anything is paid for. After that it is streamed, as often as needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from angle_data.errors import InputError
from angle_data.records import Text
from angle_data.tables import PAIR_COLUMNS, Rows, read_table, read_texts
from angle_data.text import content_id, pair_key, stable_hash, whole_characters

_PAIR_COLUMNS = (*PAIR_COLUMNS, ("source", "text"))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts; `rank` is a hash of the unordered pair, an order that has nothing to do with its content."""

    text1: str
    text2: str
    rank: int


_Item = TypeVar("_Item", Text, Pair)


class _InputFile(ABC, Generic[_Item]):
    """The items of one file; iterate over it as often as you like.

    Blank rows and exact repetitions are passed over; `blank` and `repeated` count them, `count` the items
    left. With `limit`, the rest of the file after the first items is not read. A byte a row stays in memory.
    """

    def __init__(self, path: Path, limit: int | None, what: str) -> None:
        self._path = path
        self.count = self.blank = self.repeated = 0
        self._wanted = bytearray()  # whether the item of each row is given out
        seen: dict[int, int] = {}
        for where, row in self._rows():
            item = self._read(where, row)
            new = item is not None and self._is_new(where, item, seen)
            self.blank += item is None
            self.repeated += item is not None and not new
            self._wanted.append(new)
            self.count += new
            if self.count == limit:
                break
        if not self.count:
            raise InputError(f"{path} holds no {what}; give a file with at least one")

    def __iter__(self) -> Iterator[_Item]:
        return (item for _, item in self.placed())

    @property
    def rows(self) -> int:
        """Return how many rows were read, with those passed over."""
        return len(self._wanted)

    def placed(self) -> Iterator[tuple[int, _Item]]:
        """Yield every item with the number of its row, from 0 and with the rows passed over."""
        for number, (wanted, (where, row)) in enumerate(zip(self._wanted, self._rows(), strict=False)):
            if wanted and (item := self._read(where, row)) is not None:
                yield number, item

    @abstractmethod
    def _rows(self) -> Rows:
        """Yield every row, and where it is."""

    @abstractmethod
    def _read(self, where: str, row: dict[str, Any]) -> _Item | None:
        """Return the item of a row, None if it is blank."""

    @abstractmethod
    def _is_new(self, where: str, item: _Item, seen: dict[int, int]) -> bool:
        """Put the hash of an item among those `seen`, and return whether it is none of them."""


class TextFile(_InputFile[Text]):
    """The texts of one file, white space stripped at both ends; see `_InputFile`.

    A row without id gets one made from its text. A row with null for its text is blank.

    Raises:
        InputError: The file is missing, of an unknown kind or holds no texts; a row lacks the text field or
            holds no string there, or NUL characters; one id stands for two different texts.
    """

    def __init__(
        self, path: Path, *, text_field: str = "text", id_field: str = "id", limit: int | None = None
    ) -> None:
        self._text_field, self._id_field = text_field, id_field
        super().__init__(path, limit, "texts")

    def _read(self, where: str, row: dict[str, Any]) -> Text | None:
        text, identity = row.get(self._text_field), row.get(self._id_field)
        if self._text_field not in row:
            raise InputError(
                f"{where}: no field {self._text_field!r}; fields found: {_names(row)} (choose with "
                "--text-field)"
            )
        if text is not None:  # None is how tables write an empty cell
            text = _clean(text, where, f"field {self._text_field!r}", "the text")
        if identity is not None and (isinstance(identity, bool) or not isinstance(identity, str | int)):
            kind = type(identity).__name__
            raise InputError(f"{where}: field {self._id_field!r} must be a string or integer, got {kind}")
        if not text:
            return None
        given = "" if identity is None else whole_characters(str(identity).strip())
        return Text(given or content_id(text), text)

    def _is_new(self, where: str, item: Text, seen: dict[int, int]) -> bool:
        content, known = hash(item.text), len(seen)
        if seen.setdefault(hash(item.id), content) != content:
            raise InputError(f"{where}: id {item.id!r} stands for two different texts; make the ids unique")
        return len(seen) > known

    def _rows(self) -> Rows:
        names = self._text_field, self._id_field
        return read_texts(self._path, *names, require=names[:1], hint=" (choose with --text-field)")


class PairFile(_InputFile[Pair]):
    """The pairs of one or more files, each unordered pair once over all of them; see `_InputFile`.

    Columns are `text1, text2`, `sentence1, sentence2`, or `source, text` as in candidates.jsonl.

    Raises:
        InputError: A file is missing or of an unknown kind, there are no pairs at all; a row has no two
            texts, or NUL characters in one.
    """

    def __init__(self, *paths: Path, limit: int | None = None) -> None:
        self._paths = paths
        super().__init__(paths[0], limit, "pairs")

    def _rows(self) -> Rows:
        return chain.from_iterable(map(read_table, self._paths))

    def _read(self, where: str, row: dict[str, Any]) -> Pair | None:
        names = next((names for names in _PAIR_COLUMNS if all(name in row for name in names)), None)
        if names is None:
            known = "; ".join(" and ".join(names) for names in _PAIR_COLUMNS)
            raise InputError(f"{where}: no two texts; fields found: {_names(row)}; needed: {known}")
        text1, text2 = (_clean(row[name], where, f"field {name!r}", f"field {name!r}") for name in names)
        return make_pair(text1, text2) if text1 and text2 else None

    def _is_new(self, where: str, item: Pair, seen: dict[int, int]) -> bool:
        return seen.setdefault(item.rank, len(self._wanted)) == len(self._wanted)


def make_pair(text1: str, text2: str) -> Pair:
    """Return a pair with its rank."""
    return Pair(text1, text2, stable_hash("\n".join(pair_key(text1, text2))))


def _names(row: dict[str, Any]) -> str:
    return ", ".join(sorted(map(str, row))) or "none"


def _clean(value: object, where: str, field: str, what: str) -> str:
    """Return a text without white space at its ends and halves of surrogate pairs."""
    if not isinstance(value, str):
        raise InputError(f"{where}: {field} must be a string, got {type(value).__name__}")
    if "\0" in value:
        raise InputError(
            f"{where}: {what} holds NUL characters, as a file in UTF-16 does; convert the file to UTF-8"
        )
    return whole_characters(value.strip())
