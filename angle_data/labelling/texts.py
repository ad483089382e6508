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
from angle_data.tables import TEXT_COLUMNS, identity_of, read_table, read_texts, text_of
from angle_data.text import content_id, pair_key, stable_hash

_PAIR_COLUMNS = (*TEXT_COLUMNS, ("source", "text"))


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts; `rank` is a hash of the unordered pair, an order that has nothing to do with its content."""

    text1: str
    text2: str
    rank: int


_Item = TypeVar("_Item", Text, TextPair)


class _InputFile(ABC, Generic[_Item]):
    """The items of one file; iterate over it as often as you like.

    Blank rows and exact repetitions are passed over; `blank` and `repeated` count them, `count` the items
    left, `rows` all that were read. With `limit`, the rest of the file after the first items is not read. A
    byte a row stays in memory.
    """

    def __init__(self, path: Path, limit: int | None, what: str) -> None:
        self._wanted = bytearray()  # whether the item of each row is given out
        self.blank = 0
        seen: dict[int, int] = {}
        for where, item in self._items():
            known = len(seen)
            if item is None:
                self.blank += 1
            else:
                self._note(where, item, seen)
            self._wanted.append(len(seen) > known)
            if len(seen) == limit:
                break
        self.count, self.rows = len(seen), len(self._wanted)
        self.repeated = self.rows - self.blank - self.count
        if not self.count:
            raise InputError(f"{path} holds no {what}; give a file with at least one")

    def __iter__(self) -> Iterator[_Item]:
        return (item for _, item in self.placed())

    def placed(self) -> Iterator[tuple[int, _Item]]:
        """Yield every item with the number of its row, from 0 and with the rows passed over."""
        for number, (wanted, (_, item)) in enumerate(zip(self._wanted, self._items(), strict=False)):
            if wanted and item is not None:
                yield number, item

    @abstractmethod
    def _items(self) -> Iterator[tuple[str, _Item | None]]:
        """Yield the item of every row, None if it is blank, and where the row is."""

    @abstractmethod
    def _note(self, where: str, item: _Item, seen: dict[int, int]) -> None:
        """Put the hash of an item among those `seen`, if it is new."""


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
        self._path = path
        self._text_field = text_field
        self._id_field = id_field
        super().__init__(path, limit, "texts")

    def _items(self) -> Iterator[tuple[str, Text | None]]:
        field = self._text_field
        id_field = self._id_field
        hint = " (choose with --text-field)"
        for where, row in read_texts(self._path, field, id_field, require=[field], hint=hint):
            if field not in row:
                raise InputError(f"{where}: no field {field!r}; fields found: {_names(row)}{hint}")
            text = _clean(row, field, where)
            identity = identity_of(row, id_field, where) or content_id(text)
            yield where, Text(identity, text) if text else None

    def _note(self, where: str, item: Text, seen: dict[int, int]) -> None:
        content = hash(item.text)
        if seen.setdefault(hash(item.id), content) != content:
            raise InputError(f"{where}: id {item.id!r} stands for two different texts; make the ids unique")


class PairFile(_InputFile[TextPair]):
    """The pairs of one or more files, each unordered pair once over all of them; see `_InputFile`.

    Columns are those of `tables.TEXT_COLUMNS`, or `source, text` as in candidates.jsonl. A row with null for
    one of its texts is blank.

    Raises:
        InputError: A file is missing or of an unknown kind, there are no pairs at all; a row has no two
            texts, or NUL characters in one.
    """

    def __init__(self, *paths: Path, limit: int | None = None) -> None:
        self._paths = paths
        super().__init__(paths[0], limit, "pairs")

    def _items(self) -> Iterator[tuple[str, TextPair | None]]:
        for where, row in chain.from_iterable(map(read_table, self._paths)):
            names = next((names for names in _PAIR_COLUMNS if all(name in row for name in names)), None)
            if names is None:
                known = "; ".join(" and ".join(names) for names in _PAIR_COLUMNS)
                raise InputError(f"{where}: no two texts; fields found: {_names(row)}; needed: {known}")
            text1, text2 = (_clean(row, name, where) for name in names)
            yield where, make_pair(text1, text2) if text1 and text2 else None

    def _note(self, where: str, item: TextPair, seen: dict[int, int]) -> None:
        seen.setdefault(item.rank, 0)


def make_pair(text1: str, text2: str) -> TextPair:
    """Return a pair with its rank."""
    return TextPair(text1, text2, stable_hash("\n".join(pair_key(text1, text2))))


def _names(row: dict[str, Any]) -> str:
    return ", ".join(sorted(map(str, row))) or "none"


def _clean(row: dict[str, Any], name: str, where: str) -> str:
    """Return a text without white space at its ends; that of an empty cell is blank."""
    return (text_of(row, name, where) or "").strip()
