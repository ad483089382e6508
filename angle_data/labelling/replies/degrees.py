"""Turns one raw reply to a request for degrees into their sentences, with a reason for every dropped part.

What says the degree of a sentence:

- in JSON, whole or broken, the name of its field (`5`, `degree 5`, `5 (same meaning)`), or a field such as
  `degree` beside it;
- in a list, `5: …`, `**5 (same meaning)** - …`, `Degree 5: …`, or a heading like these above it.

A list numbered upwards from 1 says nothing: its numbers may be degrees, or places in the order that was asked
for. Nor do numbers that do not fit a scale from 5 to 1. Nothing is guessed then: the reply is `unparseable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from angle_data.labelling.replies.layout import list_items, without_fences
from angle_data.labelling.replies.parse import Part, read_reply
from angle_data.labelling.replies.structured import (
    TEXT_KEY,
    Field,
    Piece,
    around,
    decode,
    fields_of,
    starts,
    strings,
    unquoted,
)
from angle_data.records import DEGREES

_OFF_SCALE = 99
_WORD = r"(?:degree|level|score|similarity|grade|rating)"
_NAME = re.compile(
    rf"[\W_]*(?:{_WORD}[\W_]*)?(?P<n>\d{{1,2}})(?!\s*[-–.,]\s*\d)(?:\s*/\s*5)?(?P<gloss>[\W_].*)?",
    re.I | re.S,
)
_DEGREE_KEY = re.compile(rf"(?:{_WORD}|label)(?:[ _-]?of[ _-]?similarity)?", re.I)
_NOT_ONE = re.compile(r"same[\W_]meaning|exact|identical|equivalent", re.I)
# What a label may say of its degree: any words in brackets, or these alone.
_RUBRIC_WORDS = (
    "a added almost and but changed contradict contradicts contradiction contradictory degree detail "
    "details different differ differs equivalent exact exactly identical important in is it largely lost "
    "matter matters meaning meanings minor missing most mostly nearly not nothing of only opposite or "
    "paraphrase partly related roughly same sentence share shared shares similar similarity slightly "
    "small some something somewhat subject that the topic unimportant very with words wording"
)
_TELLING = (
    r"(?:same|meaning|topic|details?|similar|different|identical|equivalent|contradict\w*|opposite|"
    r"paraphrase)"
)
_RUBRIC = rf"(?=[^:\n]*\b{_TELLING}\b)(?:\b(?:{_RUBRIC_WORDS.replace(' ', '|')})\b[ ,;/-]*){{1,15}}"
_GLOSS = rf"[ \t]*(?:[(\[][^()\[\]\n]{{1,80}}[)\]]|[:–—-]?[ \t]*{_RUBRIC}(?=[*_]*[ \t]*(?::|$)))"
_MARK = r"(?:(?:[:：.．、)|]+|->|=>?|→)[*_]*(?=[ \t]|[^\s\d]|$)|[–—-][*_]*(?=[ \t]|$)|(?<=\*)(?=[ \t])|$)"
_LABEL = (
    rf"[ \t>|#*_•·‣–—-]*[(\[]?(?P<word>{_WORD}\W{{0,4}})?[(\[]?(?P<n>\d{{1,2}})(?P<of>[ \t]*/[ \t]*5\b)?"
    rf"[)\]]?[*_]*(?:(?P<gloss>{_GLOSS})?[*_]*[ \t]*{_MARK}|(?<=[)\]])(?=[ \t]))"
    rf"[ \t]*(?:[(\[]{_RUBRIC}[)\]]:?[ \t]*)?"
)
_LABELLED = re.compile(_LABEL, re.I)
_FURTHER = re.compile(r"\s[*_(\[]*[1-4][)\]]?[*_]*[:.)]")  # all degrees on one line are not read
_BARE_KEY = re.compile(r"""([{,]\s*)(\d)(?=\s*:\s*["'])""")
_NO_COMMA = re.compile(r'"[ \t]*\n(\s*"[^"\n]{1,40}"\s*:)')
_OPENS = re.compile(r"""[{\[]\s*["'{]""")


def parse_degrees(raw: str, *, source: str, finish_reason: str | None, prompt: str = "") -> list[Part]:
    """Return the sentences of the reply `raw` from degree 5 to 1, then what was dropped; never raises.

    The other arguments are those of `parse_reply`.
    """
    size = len(DEGREES)
    return read_reply(
        raw, _split, "unparseable", source=source, size=size, finish_reason=finish_reason, prompt=prompt
    )


def _split(text: str) -> list[Piece]:
    """Return the pieces of a reply, each with the degree of its label; none if there is no label."""
    text = _BARE_KEY.sub(r'\1"\2"', unquoted(without_fences(text)))
    pieces = _of_json(text) or _of_broken(text) or _of_lines(text.splitlines())
    numbers = {piece.degree for piece in pieces if piece.degree is not None}
    if not numbers or max(numbers) > max(DEGREES) or (0 in numbers and max(DEGREES) not in numbers):
        return []
    # On a scale that goes down to 0, that is what has nothing in common.
    return [piece if piece.degree != 0 else Piece(piece.text, "beside") for piece in pieces]


def _number(match: re.Match[str] | None) -> int | None:
    """Return the number of a label; one that its own words contradict is off the scale."""
    if match is None:
        return None
    number, gloss = int(match["n"]), match["gloss"] or ""
    turned = number == 1 and _NOT_ONE.search(gloss) and not re.search(r"\bnot\b", gloss, re.I)
    return _OFF_SCALE if turned else number


# --- JSON ---------------------------------------------------------------------------------------------


def _of_json(text: str) -> list[Piece]:
    """Return the pieces of a reply that holds labelled JSON, one value or several, anywhere."""
    found: list[Piece] = []
    done = 0
    for start in starts(text):
        decoded = decode(text, start) if start >= done else None
        pieces = [] if decoded is None else list(_of_value(decoded[0]))
        if decoded is not None and any(piece.degree is not None for piece in pieces):
            found += _talk(text[done:start]) + pieces
            done = decoded[1]
    rest = text[done:]
    return found and found + (_of_broken(rest, within=True) or _talk(rest))


def _of_broken(text: str, *, within: bool = False) -> list[Piece]:
    """Return the strings of broken JSON with the names of their fields; `within`: also where none has one."""
    if (opens := _OPENS.search(text)) is None:
        return []
    pieces: list[Piece] = []
    number: int | None = None
    for string, kind in strings(_NO_COMMA.sub(r'",\n\1', text[opens.start() :])):
        if kind == "key":
            named = _number(_NAME.fullmatch(string))
            number = number if named is None else named
            continue
        pieces.append(Piece(string, "beside" if number is None and kind == "structured" else kind, number))
        number = None
    if not within and all(piece.degree is None for piece in pieces):
        return []
    return _talk(text[: opens.start()]) + pieces


def _talk(text: str) -> list[Piece]:
    return [piece for piece in around(text) if re.search(r"\w", piece.text)]


def _of_value(value: Any) -> Iterator[Piece]:
    """Yield the pieces of {"5": …}, {"degree": 5, "sentence": …}, "5: …" in a list, or any of them."""
    fields = [field for field in fields_of(value) if not _is_degree(field.names[-1:])]
    pieces = [Piece(field.text, "structured", _degree_of(field)) for field in fields]
    if all(piece.degree is None for piece in pieces):
        pieces = _of_lines([" ".join(field.text.split()) for field in fields])
    for piece in pieces:
        yield replace(piece, kind="beside" if piece.degree is None else "structured")


def _is_degree(names: tuple[str, ...]) -> bool:
    """Whether the field that these names end with says the degree of those beside it."""
    return any(map(_DEGREE_KEY.fullmatch, names))


def _degree_of(field: Field) -> int | None:
    """Return the degree of a string: that of a field beside it, or the last number among its names.

    Of several strings in an object only those count that have the name of a sentence, or a number.
    """
    texts = [name for name, item in field.within.items() if isinstance(item, str) and not _is_degree((name,))]
    name = field.names[-1] if field.names else ""
    if len(texts) > 1 and not (name and TEXT_KEY.fullmatch(name)) and not _NAME.fullmatch(name):
        return None
    # Names that are numbers may be places, where the objects have their own.
    beside = [_plain(item) for name, item in field.within.items() if _is_degree((name,))]
    numbers = [_number(_NAME.fullmatch(name)) for name in reversed(field.names)]
    return next((number for number in (*beside, *numbers) if number is not None), None)


def _plain(value: Any) -> int | None:
    """Return the number that the value of a field such as `degree` stands for; None if it is none."""
    if isinstance(value, str):
        return _number(_NAME.fullmatch(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value in (0, *DEGREES) else _OFF_SCALE


# --- lists --------------------------------------------------------------------------------------------


def _of_lines(lines: Sequence[str]) -> list[Piece]:
    """Return the items of a labelled list and the lines around them; empty when no line has a label."""
    lines = [line.strip(" |") if line.lstrip().startswith("|") else line for line in lines]  # a table
    found = _labels(lines)
    if not found or (len(found) == 1 and any(_FURTHER.search(lines[i], m.end()) for i, m in found.items())):
        return []
    before = [Piece(line, "around") for line in lines[: min(found)] if line.strip()]
    items = list_items(lines, {i: match.end() for i, match in found.items()})
    numbers = iter([_number(match) for match in found.values()])
    marked = [replace(item, degree=next(numbers)) if item.kind == "marked" else item for item in items]
    return before + marked


def _labels(lines: Sequence[str]) -> dict[int, re.Match[str]]:
    """Return line number -> label, where the numbers can be nothing but degrees."""
    found = {i: match for i, line in enumerate(lines) if (match := _LABELLED.match(line))}
    if named := {i: match for i, match in found.items() if match["word"] or match["of"]}:
        return named
    numbers = [int(match["n"]) for match in found.values()]
    top = max(DEGREES)  # from which another set of sentences may begin
    falls = all(after <= before or after == top for before, after in pairwise(numbers))
    if numbers and falls and (numbers[0] == top or numbers[0] > numbers[-1]):
        return found
    return {i: match for i, match in found.items() if re.search(_TELLING, match["gloss"] or "", re.I)}
