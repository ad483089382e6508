"""Turns one raw reply to a request for degrees into their sentences.

The degree of a sentence is told by JSON, whole or broken: by the name of its field (`5`, `degree 5`,
`5 (same meaning)`), or by a field such as `degree` beside it. Numbers that do not fit a scale from 5 to 1 say
nothing. Nothing is guessed then, and nothing of lists, whose numbers may be places in the order that was
asked for: the reply is `unparseable`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from angle_data.labelling.replies.parse import parse_reply
from angle_data.labelling.replies.structured import (
    TEXT_KEY,
    Field,
    Piece,
    around,
    fields_of,
    pieces_of_values,
    strings,
)
from angle_data.records import DEGREES

_OFF_SCALE = 99
_WORD = r"(?:degree|level|score|similarity|grade|rating)"
_NAME = re.compile(
    rf"[\W_]{{0,8}}(?:{_WORD}[\W_]{{0,4}})?(?P<n>\d{{1,2}}(?:[.,]\d{{1,3}})?)(?!\s?[-–]\s?\d)"
    r"(?P<gloss>[\W_].{0,200})?",
    re.IGNORECASE | re.DOTALL,
)
_DEGREE_KEY = re.compile(rf"(?:{_WORD}|label)(?:[ _-]?of[ _-]?similarity)?", re.IGNORECASE)
_DENIAL = re.compile(r"\bnot\b|n't\b", re.IGNORECASE)
_NOT_ONE = re.compile(r"same[\W_]meaning|exact|identical|equivalent", re.IGNORECASE)


def _split(text: str) -> list[Piece]:
    """Return the pieces of a reply, each with the degree of its label; none if a label is no degree."""
    pieces = pieces_of_values(text, _of_value) or _of_broken(text)
    numbers = {piece.degree for piece in pieces if piece.degree is not None}
    return pieces if numbers and numbers <= set(DEGREES) else []


parse_degrees = partial(parse_reply, split=_split, size=len(DEGREES))
"""`parse_reply` for a reply to a request for degrees."""


def _number(name: str) -> int | None:
    """Return the number in a name; one that its own words contradict, or no degree is, is off the scale."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number, gloss = float(match["n"].replace(",", ".")), match["gloss"] or ""
    turned = number == 1 and not _DENIAL.search(gloss) and _NOT_ONE.search(gloss)
    return int(number) if number in DEGREES and not turned else _OFF_SCALE


def _of_value(value: Any) -> list[Piece]:
    """Return the strings of a JSON value, those that a degree labels with it; empty if there is none."""
    fields = [f for f in fields_of(value) if not any(map(_DEGREE_KEY.fullmatch, f.names[-1:]))]
    degrees = [(field.text, _degree_of(field)) for field in fields]
    pieces = [Piece(text, "beside" if degree is None else "structured", degree) for text, degree in degrees]
    return pieces if any(piece.degree is not None for piece in pieces) else []


def _of_broken(text: str) -> list[Piece]:
    """Return the strings of broken JSON with the names of their fields; empty if none names a degree."""
    start = text.find("{")
    found: list[Piece] = []
    number: int | None = None
    for string, kind in strings(text[start:]) if start >= 0 else ():
        if kind == "key":
            named = _number(string)
            number = number if named is None else named
            continue
        found.append(Piece(string, "beside" if number is None and kind == "structured" else kind, number))
        number = None
    return around(text[:start]) + found if any(piece.degree is not None for piece in found) else []


def _degree_of(field: Field) -> int | None:
    """Return the degree of a string: that of a field beside it, or the last number among its names.

    Of several strings in an object only those count that have the name of a sentence, or a number.
    """
    # Names that are numbers may be places, where the objects have their own.
    beside = [str(item) for name, item in field.within.items() if _DEGREE_KEY.fullmatch(name)]
    texts = [n for n, item in field.within.items() if isinstance(item, str) and not _DEGREE_KEY.fullmatch(n)]
    name = field.names[-1] if field.names else ""
    if len(texts) > 1 and not (name and TEXT_KEY.fullmatch(name)) and not _NAME.fullmatch(name):
        return None
    return next((n for n in map(_number, (*beside, *reversed(field.names))) if n is not None), None)
