"""The records that flow from one step to the next; frozen, and strict about unknown or missing fields.

They hold data only. How they are stored is `jsonl`'s business, how they are made each step's own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self, cast, get_args

from angle_data.errors import InputError

Polarity = Literal["synonym", "antonym"]


def check_polarity(value: object, where: str) -> Polarity:
    """Return `value` as a `Polarity`; `where` names its origin in the error.

    Raises:
        InputError: It is neither `synonym` nor `antonym`.
    """
    if value not in get_args(Polarity):
        raise InputError(f"{where}: polarity must be one of {', '.join(get_args(Polarity))}, got {value!r}")
    return cast(Polarity, value)


@dataclass(frozen=True, slots=True)
class Record:
    """Base of the records: conversion to and from plain dictionaries."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in declaration order, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: dict[str, Any], where: str) -> Self:
        """Build the record from a dictionary; `where` (`file:line`) opens every error.

        Raises:
            InputError: A field is missing or unknown.
        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(row.keys() - known)
        if unknown:
            raise InputError(f"{where}: unknown field {unknown[0]!r} in a {cls.__name__} record")
        try:
            return cls(**row)
        except TypeError:
            missing = sorted(known - row.keys())
            raise InputError(f"{where}: a {cls.__name__} record lacks {', '.join(missing)}") from None


@dataclass(frozen=True, slots=True)
class Text(Record):
    """One unlabelled domain text; `id` is unique within its file."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A sentence an annotator offered as synonym or antonym of a source text.

    `model` is the annotator's name, `key` the journal key of the request that produced it.
    """

    source_id: str
    source: str
    polarity: Polarity
    text: str
    model: str
    key: str


@dataclass(frozen=True, slots=True)
class Rejection(Record):
    """A reply, or a part of one, that became no candidate or no pair.

    `text` is the part dropped, `raw` the whole reply it came from, `reason` the code of what was
    wrong with it.
    """

    source_id: str
    source: str
    polarity: Polarity
    text: str
    model: str
    key: str
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class LabelledPair(Record):
    """One training pair.

    `label` is the integer class of the AnglE papers (1 similar, 0 not); `score` orders pairs in [0, 1];
    `weight` in (0, 1] says how far the pair is trusted; `polarity` is `synonym`, `antonym` or `random`;
    `models` are the annotators that support it, `flags` notes such as `near_copy`.
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
