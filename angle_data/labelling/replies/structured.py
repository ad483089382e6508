"""Finds the JSON in a reply, whole, amid words, broken or cut off, and the sentences in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

from angle_data.labelling.replies.chatter import is_chatter, polarity_named
from angle_data.records import Polarity
from angle_data.text import normalise

Kind = Literal["structured", "marked", "line", "around", "open", "data", "beside"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply.

    `kind` says how sure we are that it is an offered sentence: `structured` (a closed JSON string), `marked`
    (a list item), `line` (an unmarked line), `around` (a line beside a list or JSON), `open` (a JSON string
    that never closes, so certainly cut off), `data` (JSON that is the whole reply and holds no sentences),
    `beside` (what a reply holds beside its sentences: another list, a note, a list item of another kind).
    `degree` is the one that it is labelled with, if degrees were asked for.
    """

    text: str
    kind: Kind
    degree: int | None = None


class Field(NamedTuple):
    """A string in a JSON value: the names of the fields that lead to it, and the object that holds it.

    `within` is empty for an item of a list.
    """

    names: tuple[str, ...]
    text: str
    within: Mapping[str, Any]


_ANSWER = (
    r"(?:synonym(?:ous)?|antonym(?:ous)?|paraphrased?|rephrased|rewritten|reworded|opposite|output|answer)"
)
TEXT_KEY = re.compile(
    rf"(?:(?:sentence|text|{_ANSWER})s?(?:[ _-]?(?:sentence|text)s?)?)?[ _-]?\d{{0,4}}", re.IGNORECASE
)
_ANSWER_KEY = re.compile(_ANSWER, re.IGNORECASE)
_NUMBERED = re.compile(r"[ _-]?\d{1,4}$")
_LIST_INSIDE = re.compile(r"\n[ \t]{0,8}(?:\d{1,2}[.)]|[-*•])\s")
_MOST_WITHIN = 5
_STARTS = re.compile(r"""^[ \t]{0,8}(?=[\[{])|(?=\{\s{0,20}["']|\[\s{0,20}["'{])""", re.MULTILINE)
_MOST_STARTS = 30  # each costs an attempt at decoding, and a hostile reply has thousands
_NUMBER = re.compile(r"[ \t]{0,8}\(?(\d{1,2})[.)][ \t]{1,8}(?=\S)")
_BROKEN = re.compile(r"""(?:\{\s{0,20}"[^"\n]{1,40}"\s{0,20}:\s{0,20}\[?|\[)\s{0,20}["']""")
_OPENS = re.compile(r"""\s{0,20}\{\s{0,20}["']""")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)("?)(?=\s{0,20}(:?))', re.DOTALL)


# --- any JSON -----------------------------------------------------------------------------------------


def unquoted(text: str) -> str:
    """Return what a reply says that is one string in JSON."""
    with suppress(ValueError, RecursionError):
        if text.lstrip().startswith('"') and isinstance(inner := json.loads(text, strict=False), str):
            return inner
    return text


def around(text: str) -> list[Piece]:
    """Return the lines of `text` that hold a word, as talk around the answer."""
    return [Piece(line, "around") for line in text.splitlines() if re.search(r"\w", line)]


def values_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the JSON lists and objects in `text` as start, end and value; one within another comes after."""
    for match in islice(_STARTS.finditer(text), _MOST_STARTS):
        with suppress(ValueError, RecursionError):
            value, end = json.JSONDecoder(strict=False).raw_decode(text, match.end())
            if isinstance(value, list | dict):
                yield match.end(), end, value


def pieces_of_values(text: str, read: Callable[[Any], list[Piece]]) -> list[Piece]:
    """Return what `read` makes of the JSON values in `text`, and the talk around them; empty without any.

    A value with several sentences that answers again what one before it answered replaces it: that was a
    draft.
    """
    found: list[Piece] = []
    done = 0
    for start, end, value in values_in(text):
        if start < done or not (pieces := read(value)):
            continue
        answers = [piece.degree for piece in pieces if piece.kind == "structured"]
        if len(answers) > 1 and any(p.kind == "structured" and p.degree in answers for p in found):
            found = [replace(p, kind="beside", degree=None) if p.kind == "structured" else p for p in found]
        found += around(text[done:start]) + pieces
        done = end
    return found and found + around(text[done:])


def fields_of(
    value: Any, names: tuple[str, ...] = (), within: Mapping[str, Any] = {}, depth: int = 0
) -> Iterator[Field]:
    """Yield the strings of a JSON value in their order, down to a depth."""
    if isinstance(value, str):
        yield Field(names, value, within)
    elif isinstance(value, dict) and depth <= _MOST_WITHIN:
        for name, item in value.items():
            yield from fields_of(item, (*names, name), value, depth + 1)
    elif isinstance(value, list) and depth <= _MOST_WITHIN:
        for item in value:
            yield from fields_of(item, names, depth=depth + 1)


def strings(text: str) -> Iterator[tuple[str, Literal["key", "structured", "open"]]]:
    """Yield the strings of JSON that does not parse: names of fields, closed ones, and one that is open."""
    for match in _STRING.finditer(text):
        string = match[1]
        with suppress(ValueError):
            string = json.loads(f'"{string}"', strict=False)
        yield string, "key" if match[3] else "structured" if match[2] else "open"


# --- sentences ----------------------------------------------------------------------------------------


def json_pieces(text: str, source: str, polarity: Polarity | None) -> list[Piece]:
    """Return the pieces of a reply that is JSON, or holds JSON answers; empty for other replies."""
    with suppress(ValueError, RecursionError):
        whole = json.loads(text, strict=False)
        if isinstance(whole, list | dict):
            pieces = _of_value(whole, source, polarity)
            if pieces and not any(p.kind == "structured" and _LIST_INSIDE.search(p.text) for p in pieces):
                return pieces
            return [] if source.startswith(("{", "[")) else [Piece(text, "data")]
    found: list[Piece] = []
    if not ("{" in source or "[" in source):
        found = pieces_of_values(text, lambda v: _of_value(v, source, polarity) if _is_answer(v) else [])
    return found or _broken_json(text, source)


def _of_value(value: Any, source: str, polarity: Polarity | None) -> list[Piece]:
    """Return the sentences in a JSON value (those with the most telling names), then its other strings.

    Empty if there is no sentence. `{"sentence": …, "paraphrase": …}` repeats the source before it answers.
    """
    placed = [(_place(field, polarity), field.text) for field in fields_of(value)]
    known = normalise(source)
    new = [place for place, text in placed if place and normalise(text) != known]
    best = min(new or [place for place, _ in placed if place], key=lambda place: place[0], default=())
    sentences = without_numbers([text for place, text in placed if place == best])
    if not sentences:
        return []
    others = [Piece(text, "beside") for place, text in placed if place != best]
    return [*(Piece(sentence, "structured") for sentence in sentences), *others]


def _is_answer(value: Any) -> bool:
    """Whether JSON is the answer, rather than a part of a sentence that quotes some."""
    if isinstance(value, dict):
        return any(key and TEXT_KEY.fullmatch(key) for key in value)
    if all(isinstance(item, str) for item in value):
        return all(len(item.split()) > 2 for item in value)
    return all(isinstance(item, dict) and _is_answer(item) for item in value)


def _place(field: Field, polarity: Polarity | None) -> tuple[tuple[bool, ...], tuple[str, ...]] | None:
    """Return how telling a string's names are, most telling first, and what holds it; None if not offered."""
    name = field.names[-1] if field.names else ""
    if field.within and not TEXT_KEY.fullmatch(name):
        return None
    named = polarity_named(" ".join(field.names)) if polarity else None
    rank = (named not in (None, polarity), named is None, not _ANSWER_KEY.match(name))
    holder = field.names[:-1] if field.within else field.names
    return (*rank, not TEXT_KEY.fullmatch(name)), tuple(_NUMBERED.sub("", name) for name in holder)


def without_numbers(sentences: list[str]) -> list[str]:
    """Strip "1. ", "2. " … when every sentence of a list carries its own number as well."""
    numbered = [_NUMBER.match(sentence) for sentence in sentences]
    if all(m is not None and int(m[1]) == i for i, m in enumerate(numbered, start=1)):
        return [s[m.end() :] for s, m in zip(sentences, numbered, strict=True) if m is not None]
    return sentences


def _broken_json(text: str, source: str) -> list[Piece]:
    """Return the closed strings of JSON that does not parse, and the string at its end if that is open.

    What is written as Python writes it, in single quotation marks, has no such strings: it is one piece.
    """
    start = _BROKEN.search(text)
    if start is None or not all(is_chatter(p.text, source) for p in around(text[: start.start()])):
        return [Piece(text, "data")] if _OPENS.match(text) and "{" not in source else []
    found = [Piece(string, kind) for string, kind in strings(text[start.start() :]) if kind != "key"]
    return around(text[: start.start()]) + found if found else [Piece(text, "data")]
