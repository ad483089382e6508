"""The records that flow from one step to the next; frozen, and strict about unknown or missing fields.

They hold data only. How they are stored is `jsonl`'s business, how they are made each step's own.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, Self, cast, get_args

from angle_data.errors import InputError

Polarity = Literal["synonym", "antonym"]

PURPOSES = ("opposites", "topics")
"""What pairs can be for: to keep opposites apart, or to bring texts on one topic together, opposites too."""
DEGREES = (5, 4, 3, 2, 1)
"""Degrees of similarity that a sentence can be asked for: 5 same meaning … 1 the same topic only."""


def check_polarity(value: object, where: str) -> Polarity:
    """Return `value` as a `Polarity`; `where` names its origin in the error.

    Raises:
        InputError: It is neither `synonym` nor `antonym`.
    """
    if value not in get_args(Polarity):
        raise InputError(f"{where}: polarity must be one of {', '.join(get_args(Polarity))}, got {value!r}")
    return cast(Polarity, value)


def _check_asked(polarity: object, degree: object, where: str) -> None:
    """Raise an `InputError` unless at most one of the two is set, to a polarity or a degree."""
    if polarity is not None:
        check_polarity(polarity, where)
        if degree is not None:
            raise InputError(f"{where}: polarity and degree are both set; a record has one of them")
    elif degree is not None and (type(degree) is not int or degree not in DEGREES):
        raise InputError(f"{where}: degree must be a whole number from 1 to 5, got {degree!r}")


@dataclass(frozen=True, slots=True)
class Record:
    """Base of the records: conversion to and from plain dictionaries."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in declaration order, ready for JSON; without a field that is None by default."""
        found = ((item, getattr(self, name)) for name, item in self.__dataclass_fields__.items())
        return {item.name: value for item, value in found if value is not None or item.default is not None}

    @classmethod
    def from_dict(cls, row: dict[str, Any], where: str) -> Self:
        """Build the record from a dictionary; `where` (`file:line`) opens every error.

        Raises:
            InputError: A field is missing or unknown, or has a value that it must not have.
        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(row.keys() - known)
        if unknown:
            raise InputError(f"{where}: unknown field {unknown[0]!r} in a {cls.__name__} record")
        needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        if missing := sorted(needed - row.keys()):
            raise InputError(f"{where}: a {cls.__name__} record lacks {', '.join(missing)}")
        record = cls(**row)
        record.check(where)
        return record

    def check(self, where: str) -> None:
        """Raise an `InputError` that opens with `where` if a value cannot be."""


@dataclass(frozen=True, slots=True)
class Text(Record):
    """One unlabelled domain text; `id` is unique within its file."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A sentence an annotator offered for a source text: as its synonym or antonym, or at a degree.

    Exactly one of `polarity` and `degree` is set; a `degree` of None is not written. `model` is the
    annotator's name, `key` the journal key of the request that produced it.
    """

    source_id: str
    source: str
    polarity: Polarity | None
    text: str
    model: str
    key: str
    degree: int | None = None

    def check(self, where: str) -> None:
        """Raise an `InputError` unless the record says what was asked for, once."""
        if self.polarity is None and self.degree is None:
            raise InputError(f"{where}: polarity and degree are both missing; a candidate has one of them")
        _check_asked(self.polarity, self.degree, where)


@dataclass(frozen=True, slots=True)
class Rejection(Record):
    """A reply, or a part of one, that became no candidate or no pair.

    `text` is the part dropped, `raw` the whole reply it came from, `reason` the code of what was
    wrong with it. Where degrees were asked for `polarity` is None; `degree` is None, and not written, for a
    part that belongs to no degree, such as a refusal.
    """

    source_id: str
    source: str
    polarity: Polarity | None
    text: str
    model: str
    key: str
    reason: str
    raw: str
    degree: int | None = None

    def check(self, where: str) -> None:
        """Raise an `InputError` if polarity or degree cannot be, or both are set."""
        _check_asked(self.polarity, self.degree, where)


@dataclass(frozen=True, slots=True)
class LabelledPair(Record):
    """One training pair.

    `label` is the integer class of the AnglE papers (1 similar, 0 not); `score` orders pairs in [0, 1];
    `weight` in (0, 1] says how far the pair is trusted; `polarity` is `synonym`, `antonym` or `random`, and
    empty for others; `models` are the annotators that offered it, `flags` notes such as `near_copy`.
    `supervision` says what the score rests on, and so which scores can be compared: `polarity`, `degrees`
    (what was asked for), `grades` (of a pair that nobody was asked for) or `random` (the low end of each).
    `purpose`, one of `PURPOSES`, is that of the whole data set, and in every row so that no copy loses it;
    None, where the user did not say, is not written.
    """

    text1: str
    text2: str
    label: int
    score: float
    weight: float
    polarity: str
    source_id: str
    models: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    supervision: str = ""
    purpose: str | None = None
