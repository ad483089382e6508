"""Turns one raw reply to a request for degrees into their sentences.

What says the degree of a sentence:

- in JSON, whole or broken, the name of its field (`5`, `degree 5`, `5 (same meaning)`), or a field such
as `degree` beside it;
- in a list `5: …`, `**5 (same meaning)** - …`, `Degree 5: …`, or a heading like these above it.

A list numbered upwards from 1 says nothing: its numbers may be degrees, or places in the order that was asked
for. Nor do numbers that do not fit a scale from 5 to 1. Nothing is guessed then: the reply is `unparseable`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from angle_data.labelling.replies.layout import list_items
from angle_data.labelling.replies.parse import parse_reply
from angle_data.labelling.replies.structured import (
    TEXT_KEY,
    Field,
    Piece,
    around,
    fields_of,
    strings,
    values_in,
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
_NOT_ONE = re.compile(r"same[\W_]meaning|exact|identical|equivalent", re.IGNORECASE)
_LABEL = re.compile(
    rf"[ \t>|#*_•·‣–—-]{{0,12}}[(\[]?(?P<word>{_WORD}\W{{1,4}})?(?P<n>\d{{1,2}})(?:/5\b)?[)\]]?[*_]{{0,3}}"
    r"(?:[ \t]?[(\[][^()\[\]\n]{1,80}[)\]])?[*_]{0,3}[ \t]?"
    r"(?:[:：.．、)|]{1,2}[*_]{0,3}(?=\s|\D|$)|(?:->|→|[–—-])[*_]{0,3}(?=[ \t]|$)|(?<=\*)(?=[ \t])|$)"
    r"[ \t]{0,8}",
    re.IGNORECASE,
)


def _split(text: str) -> list[Piece]:
    """Return the pieces of a reply, each with the degree of its label; none if a label is no degree."""
    pieces = _of_json(text) or _of_broken(text) or _of_lines(text.splitlines())
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
    turned = number == 1 and "not" not in gloss.casefold().split() and _NOT_ONE.search(gloss)
    return int(number) if number in DEGREES and not turned else _OFF_SCALE


def _of_json(text: str) -> list[Piece]:
    """Return the pieces of a reply that holds labelled JSON, one value or several, anywhere.

    A value that labels a degree again replaces what came before it: that was a draft.
    """
    found: list[Piece] = []
    done = 0
    for start, end, value in values_in(text):
        fields = [f for f in fields_of(value) if not any(map(_DEGREE_KEY.fullmatch, f.names[-1:]))]
        degrees = [(field.text, _degree_of(field)) for field in fields]
        labels = {degree for _, degree in degrees if degree is not None}
        if start < done or not labels:
            continue
        if len(labels) > 1 and labels & {piece.degree for piece in found}:
            found = [Piece(piece.text, "beside") for piece in found]
        found += _talk(text[done:start])
        found += [Piece(said, "beside" if d is None else "structured", d) for said, d in degrees]
        done = end
    return found and found + _talk(text[done:])


def _of_broken(text: str) -> list[Piece]:
    """Return the strings of broken JSON with the names of their fields; empty if none names a degree."""
    start, found, number = text.find("{"), list[Piece](), None
    for string, kind in strings(text[start:]) if start >= 0 else ():
        if kind == "key":
            named = _number(string)
            number = number if named is None else named
            continue
        found.append(Piece(string, "beside" if number is None and kind == "structured" else kind, number))
        number = None
    return _talk(text[:start]) + found if any(piece.degree is not None for piece in found) else []


def _talk(text: str) -> list[Piece]:
    return [piece for piece in around(text) if re.search(r"\w", piece.text)]


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


def _of_lines(lines: Sequence[str]) -> list[Piece]:
    """Return the items of a labelled list and the lines around them; empty when no two lines have labels."""
    # Numbers without a word such as "degree" must fall; from 5 another set of sentences may begin.
    lines = [line.strip(" |") if line.lstrip().startswith("|") else line for line in lines]  # a table
    found = {i: match for i, line in enumerate(lines) if (match := _LABEL.match(line))}
    named = {i: match for i, match in found.items() if match["word"]}
    found = named or found
    numbers = [int(match["n"]) for match in found.values()]
    top = max(DEGREES)
    falls = all(after <= before or after == top for before, after in pairwise(numbers))
    if len(numbers) < 2 or not (named or (falls and (numbers[0] == top or numbers[0] > numbers[-1]))):
        return []
    before = [Piece(line, "around") for line in lines[: min(found)] if line.strip()]
    items, degrees = list_items(lines, {i: match.end() for i, match in found.items()}), iter(numbers)
    return before + [replace(item, degree=next(degrees)) if item.kind == "marked" else item for item in items]
