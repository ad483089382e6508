"""Splits a reply that is, or holds, JSON or a table into its pieces; JSON may be broken or cut off.

It decides where a piece begins and ends and which field or column holds the sentences. `parse` judges what a
piece is worth.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from angle_data.labelling.replies.chatter import is_chatter, polarity_named
from angle_data.records import Polarity
from angle_data.text import normalise, words

Kind = Literal["structured", "marked", "line", "around", "open", "data", "beside"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply.

    `kind` says how sure we are that it is an offered sentence: `structured` (a closed JSON string), `marked`
    (a list item or a cell of a table), `line` (an unmarked line), `around` (a line beside a list or JSON),
    `open` (a JSON string that never closes, so certainly cut off), `data` (JSON that is the whole reply and
    holds no sentences), `beside` (what a reply holds beside its sentences: another list, a note, a list item
    of another kind).
    """

    text: str
    kind: Kind


def around(text: str) -> list[Piece]:
    """Return the lines of `text` that hold more than punctuation, as talk around the answer."""
    return [Piece(line, "around") for line in text.splitlines() if line.strip(" \t,.;")]


# --- JSON ---------------------------------------------------------------------------------------------

_LINE_START = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_INSIDE = re.compile(r"""(?=\{\s*["']|\[\s*["'{])""")
_MOST_INSIDE = 20  # each costs an attempt at decoding, and a hostile reply has thousands
_COMMENT = re.compile(r"^[ \t]*(?://|#).*$", re.MULTILINE)
_ASSIGNED = re.compile(r"\w+\s*=\s*")
MARKER = re.compile(r"[\W\d_]*")
"""What may stand before an item and is no word: a number, a bullet, brackets."""
_ANSWER = (
    r"(?:synonym(?:ous)?|antonym(?:ous)?|paraphrased?|rephrased|rewritten|reworded|opposite|output|answer)"
)
_ANSWER_KEY = re.compile(rf"{_ANSWER}s?(?:[ _-]?(?:sentence|text)s?)?[ _-]?\d*", re.I)
_TEXT_KEY = re.compile(rf"(?:(?:sentence|text|{_ANSWER})s?(?:[ _-]?(?:sentence|text)s?)?)?[ _-]?\d*", re.I)
_BROKEN = re.compile(r"""(?:\{\s*"[^"\n]{1,40}"\s*:\s*\[?|\[)\s*(?:\{\s*"[^"\n]{1,40}"\s*:\s*)?["']""")
_LISTED = re.compile(r"\s*(?:\d{1,2}[.)]|[-*•{\[])")
_LITERAL = re.compile(r'"((?:\\.|[^\\])*?)"(?=\s*(:|,\s*["{]|[\]}]|,?\s*\Z))', re.DOTALL)

_Parts = tuple[list[str], list[Any]]


def unquoted(text: str) -> str:
    """Return what a reply says that is one string in JSON: other JSON, several lines, a list in an object."""
    for _ in range(3):
        if not text.lstrip().startswith(('"', "{")):
            break
        try:
            inner = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            break
        if isinstance(inner, dict) and len(inner) == 1:
            (inner,) = inner.values()
            if isinstance(inner, str) and not _LISTED.match(inner):
                break
        if not isinstance(inner, str) or not ("\n" in inner or inner.lstrip().startswith(("{", "["))):
            break
        text = inner
    return text


def json_pieces(text: str, source: str, polarity: Polarity | None) -> list[Piece] | None:
    """Return the pieces of a reply that holds JSON answers, one or several, anywhere; else None."""
    if text.lstrip().startswith(("{", "[")):
        text = _COMMENT.sub("", text)
    found: list[Piece] = []
    structured, done = False, 0
    for start in _starts(text):
        if start < done:
            continue
        decoded = _decode(text, start)
        if decoded is None:
            continue
        value, end = decoded
        parts = _sentences_in(value, source, polarity)
        if parts is None:
            if text.strip() == text[start:end]:
                return None if source.startswith(("{", "[")) else [Piece(text, "data")]
            continue
        before = text[text.rfind("\n", 0, start) + 1 : start]
        after = text[end:].split("\n", 1)[0].strip(" \t\r,.;")
        if (before.strip() or after) and not _is_answer(value, before, after, source):
            continue
        above = text[done : start - len(before)] if start - len(before) > done else ""
        found += around(above) + ([] if MARKER.fullmatch(before) else around(before))
        sentences, others = parts
        found += [Piece(sentence, "structured") for sentence in without_numbers(sentences)]
        found += [Piece(_as_text(other), "beside") for other in others]
        structured, done = True, end
    if structured:
        return found + around(text[done:])
    return _broken_json(text, source)


def _starts(text: str) -> list[int]:
    """Return where JSON may begin: at the start of any line, and at the first few places inside of one."""
    if "{" not in text and "[" not in text:
        return []
    inside = islice(_INSIDE.finditer(text), _MOST_INSIDE)
    return sorted({m.end() for m in _LINE_START.finditer(text)} | {m.start() for m in inside})


def _is_answer(value: Any, before: str, after: str, source: str) -> bool:
    """Whether JSON that shares its line with words is the answer, rather than a part of a sentence."""
    if "{" in source or "[" in source:
        return False
    talk = [part for part in (before, after) if part.strip()]
    if all(_ASSIGNED.fullmatch(part.strip()) or is_chatter(part, source) for part in talk):
        return True
    if isinstance(value, dict):
        return any(
            _ANSWER_KEY.fullmatch(_as_text(key)) or re.fullmatch(r"sentences?[ _-]?\d*", _as_text(key), re.I)
            for key in value
        )
    if all(isinstance(item, str) for item in value):
        return all(len(item.split()) >= 3 for item in value)
    return all(isinstance(item, dict) and _is_answer(item, "x", "", source) for item in value)


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    """Return the JSON (or, failing that, Python literal) value at `start` and where it ends."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    if text[start + 1 : start + 2] in "\"'":
        rest = text[start:].rstrip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.literal_eval(rest), len(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return None


def _sentences_in(value: Any, source: str, polarity: Polarity | None, depth: int = 0) -> _Parts | None:
    """Return the sentences of a decoded value and what stands beside them; None when it has no place for any.

    In an object one list with sentences counts, first one whose name tells of the polarity that was asked
    for, then one with a telling name, or its own strings with such a name.
    """
    if isinstance(value, list):
        return _sentences_in_list(value, source)
    if not isinstance(value, dict) or depth >= 3:
        return None
    empty: _Parts | None = None
    for name in sorted(value, key=lambda name: _rank(_as_text(name), polarity)):
        inner = value[name]
        parts = None
        if isinstance(inner, list | dict):
            parts = _sentences_in(inner, source, polarity, depth + 1)
        if parts is not None and parts[0]:
            rest = [v for key, v in value.items() if key != name and _says_something(v)]
            return parts[0], parts[1] + rest
        empty = empty or parts
    named = {key: v for key, v in value.items() if isinstance(v, str) and _TEXT_KEY.fullmatch(_as_text(key))}
    if not named:
        return empty
    answers = {key: v for key, v in named.items() if _ANSWER_KEY.fullmatch(_as_text(key))} or named
    return list(answers.values()), [
        v for key, v in value.items() if key not in answers and _says_something(v)
    ]


def _rank(name: str, polarity: Polarity | None) -> tuple[bool, bool, bool]:
    """Return how telling the name of a field is, the most telling first."""
    named = polarity_named(name) if polarity else None
    return (named not in (None, polarity), named is None, not _TEXT_KEY.fullmatch(name))


def _sentences_in_list(items: list[Any], source: str) -> _Parts | None:
    sentences: list[str] = []
    others: list[Any] = []
    for item in items:
        key = _text_key(item, source)
        if isinstance(item, str):
            sentences.append(item)
        elif key is None:
            others.append(item)
        else:
            sentences.append(item[key])
            others += [v for name, v in item.items() if name != key and _says_something(v)]
    return (sentences, others) if sentences or not items else None


def _says_something(value: Any) -> bool:
    """Whether a value may be text that someone misses; numbers, flags and empty values are not."""
    return isinstance(value, str | list | dict) and bool(value)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        # A Python literal can hold what JSON cannot: a number of thousands of digits, a tuple as a key.
        return f"({type(value).__name__} that cannot be shown)"


def _text_key(item: Any, source: str) -> Any:
    """Return under which key an item of a list holds its sentence, None when it holds none.

    `{"sentence": …, "paraphrase": …}` repeats the source before it answers.
    """
    if not isinstance(item, dict):
        return None
    texts = [key for key, text in item.items() if isinstance(text, str)]
    named = [key for key in texts if _TEXT_KEY.fullmatch(_as_text(key))]
    if not named:
        return texts[0] if len(texts) == 1 else None
    new = [key for key in named if normalise(item[key]) != normalise(source)] or named
    return next((key for key in new if _ANSWER_KEY.fullmatch(_as_text(key))), new[0])


def without_numbers(sentences: list[str]) -> list[str]:
    """Strip "1. ", "2. " … when every sentence of a list carries its own number as well."""
    numbered = [re.match(r"\s*\(?(\d{1,2})[.)]\s+(?=\S)", sentence) for sentence in sentences]
    if all(m is not None and int(m[1]) == i for i, m in enumerate(numbered, start=1)):
        return [s[m.end() :] for s, m in zip(sentences, numbered, strict=True) if m is not None]
    return sentences


def _broken_json(text: str, source: str) -> list[Piece] | None:
    """Return the closed strings of JSON that does not parse, and the string at its end if that is open."""
    start = _BROKEN.search(text) if '"' in text or "'" in text else None
    if start is None or not all(is_chatter(p.text, source) for p in around(text[: start.start()])):
        return None
    pieces, end = around(text[: start.start()]), start.start()
    for match in _LITERAL.finditer(text, start.start()):
        end = match.end()
        if match[2] != ":":
            with suppress(ValueError):
                pieces.append(Piece(json.loads(f'"{match[1]}"', strict=False), "structured"))
                continue
            pieces.append(Piece(match[1], "structured"))
    _, quote, rest = text[end:].partition('"')
    return [*pieces, Piece(rest, "open")] if quote else pieces


# --- tables -------------------------------------------------------------------------------------------

_ROW = re.compile(r"\s*\|.*\S")
_RULE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
_CELLS = re.compile(r"(?<!\\)\|")
_ASKED = re.compile(r"\b(?:original|input|source|given)\b", re.IGNORECASE)
_ANSWERED = re.compile(
    r"synonym|antonym|paraphras|opposite|rephras|rewrit|reword|output|answer|version", re.IGNORECASE
)


def table_pieces(lines: Sequence[str], source: str) -> list[Piece] | None:
    """Return the pieces of a reply that holds a table: the cells of the column with the sentences.

    Rows open with a bar, or stand around a rule of dashes. A source that holds a bar rules tables out.
    """
    rule = next((i for i, line in enumerate(lines) if _RULE.fullmatch(line)), None)
    is_row = _ROW.fullmatch if rule is None else _CELLS.search
    first = next((i for i, line in enumerate(lines) if is_row(line)), None)
    if first is None or "|" in source:
        return None
    end = first
    while end < len(lines) and is_row(lines[end]):
        end += 1
    rows = [_cells(line) for line in lines[first:end] if not _RULE.fullmatch(line)]
    if end - first < 2 or not rows:
        return None
    head = rows.pop(0) if rule is not None and rule == first + 1 else []
    column = _column(head, rows, source)
    if column is None:
        return None
    pieces = around("\n".join([*lines[:first], *([" ".join(head)] if head else [])]))
    for row in rows:
        pieces += [Piece(cell, "marked") for cell in row[column : column + 1]]
        rest = [cell for i, cell in enumerate(row) if i != column and not MARKER.fullmatch(cell)]
        pieces += [Piece(cell, "beside") for cell in rest]
    return pieces + around("\n".join(lines[end:]))


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _CELLS.split(inside)]


def _column(head: list[str], rows: list[list[str]], source: str) -> int | None:
    """Return which column holds the sentences: named so, else the one with the most words."""
    ranks: dict[int, tuple[bool, int]] = {}
    for i in range(max(map(len, rows), default=0)):
        cells = [row[i] for row in rows if i < len(row)]
        name = head[i] if i < len(head) else ""
        asked = _ASKED.search(name) or all(normalise(cell) == normalise(source) for cell in cells)
        if not asked and not all(MARKER.fullmatch(cell) for cell in cells):
            ranks[i] = (_ANSWERED.search(name) is not None, sum(len(words(cell)) for cell in cells))
    return max(ranks, key=lambda i: ranks[i]) if ranks else None
