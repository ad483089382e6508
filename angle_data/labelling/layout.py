"""Splits a raw reply into pieces by its layout: JSON, a marked list, several on one line, or plain lines.

Decides only where a piece begins and ends. What a piece is worth (refusal, echo, cut off …) is judged in
`replies`, and which wording is talk around the answer in `chatter`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from angle_data.labelling.chatter import is_chatter, is_heading

__all__ = ["Piece", "split_reply"]

Kind = Literal["structured", "marked", "line", "around", "open", "data", "beside"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply.

    `kind` says how sure we are that it is an offered sentence: `structured` (a closed JSON string), `marked`
    (a list item), `line` (an unmarked line), `around` (a line beside a list or JSON), `open` (a JSON string
    that never closes, so certainly cut off), `data` (JSON that is the whole reply and holds no sentences),
    `beside` (what a JSON reply holds beside its sentences: another list, a note, a list item of another
    kind).
    """

    text: str
    kind: Kind


def split_reply(text: str, *, source: str, size: int) -> list[Piece]:
    """Return the pieces of `text` in order; nothing but blank lines, markers and code fences is lost."""
    text = _FENCE.sub("", text)
    pieces = _json_pieces(text, source)
    if pieces is not None:
        return pieces
    lines = _break_headings(text.splitlines(), source)
    return _list_pieces(lines, source, size) or _plain_pieces(lines, source, size)


_FENCE = re.compile(r"```(?:[a-zA-Z]+(?=\s*\n))?")

# --- JSON ---------------------------------------------------------------------------------------------

_JSON_START = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_TEXT_KEY = re.compile(
    r"(?:sentence|text|synonym|antonym|paraphrase|opposite|output|answer)?s?[ _-]?\d*", re.I
)
_BROKEN = re.compile(r"""\s*(?:\{\s*"[^"\n]{1,40}"\s*:\s*\[?|\[)\s*(?:\{\s*"[^"\n]{1,40}"\s*:\s*)?["']""")
_LITERAL = re.compile(r'"((?:\\.|[^\\])*?)"(?=\s*(:|,\s*["{]|[\]}]|,?\s*\Z))', re.DOTALL)


def _json_pieces(text: str, source: str) -> list[Piece] | None:
    """Return the pieces of a reply that holds JSON answers (also several objects, one a line); else None."""
    found: list[Piece] = []
    structured = False
    done = 0
    for match in _JSON_START.finditer(text):
        if match.end() < done:
            continue
        decoded = _decode(text, match.end())
        parts = None if decoded is None else _sentences_in(decoded[0])
        if decoded is None or text[decoded[1] :].split("\n", 1)[0].strip(" \t\r,.;"):
            continue
        if parts is None:
            if text.strip() == text[match.end() : decoded[1]]:
                return None if source.startswith(("{", "[")) else [Piece(text, "data")]
            continue
        found += _around(text[done : match.end()])
        sentences, others = parts
        found += [Piece(sentence, "structured") for sentence in _without_markers(sentences)]
        found += [Piece(_as_text(other), "beside") for other in others]
        structured, done = True, decoded[1]
    if structured:
        return found + _around(text[done:])
    return _broken_json(text) if _BROKEN.match(text) else None


def _around(text: str) -> list[Piece]:
    return [Piece(line, "around") for line in text.splitlines() if line.strip(" \t,.;")]


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


def _sentences_in(value: Any, depth: int = 0) -> tuple[list[str], list[Any]] | None:
    """Return the sentences of a decoded value and what stands beside them; None when it has no place for any.

    In an object the first list with sentences counts, or its own strings with a telling name.
    """
    if isinstance(value, list):
        return _sentences_in_list(value)
    if not isinstance(value, dict) or depth >= 3:
        return None
    empty: tuple[list[str], list[Any]] | None = None
    for name, inner in value.items():
        parts = _sentences_in(inner, depth + 1) if isinstance(inner, list | dict) else None
        if parts is not None and parts[0]:
            rest = [v for key, v in value.items() if key != name and _says_something(v)]
            return parts[0], parts[1] + rest
        empty = empty or parts
    named = {key: v for key, v in value.items() if isinstance(v, str) and _TEXT_KEY.fullmatch(_as_text(key))}
    if not named:
        return empty
    return list(named.values()), [v for key, v in value.items() if key not in named and _says_something(v)]


def _sentences_in_list(items: list[Any]) -> tuple[list[str], list[Any]] | None:
    sentences: list[str] = []
    others: list[Any] = []
    for item in items:
        key = _text_key(item)
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


def _text_key(item: Any) -> Any:
    """Return under which key an item of a list holds its sentence, None when it holds none."""
    if not isinstance(item, dict):
        return None
    texts = [key for key, text in item.items() if isinstance(text, str)]
    named = [key for key in texts if _TEXT_KEY.fullmatch(_as_text(key))]
    return named[0] if named else texts[0] if len(texts) == 1 else None


def _without_markers(sentences: list[str]) -> list[str]:
    """Strip "1. ", "2. " … when every sentence of the JSON list carries its own number."""
    numbered = [re.match(r"\s*\(?(\d{1,2})[.)]\s+(?=\S)", sentence) for sentence in sentences]
    if all(m is not None and int(m[1]) == i for i, m in enumerate(numbered, start=1)):
        return [s[m.end() :] for s, m in zip(sentences, numbered, strict=True) if m is not None]
    return sentences


def _broken_json(text: str) -> list[Piece]:
    """Return the closed strings of JSON that does not parse, and the string at its end if that is open."""
    pieces, end = [], 0
    for match in _LITERAL.finditer(text):
        end = match.end()
        if match[2] != ":":
            try:
                pieces.append(Piece(json.loads(f'"{match[1]}"', strict=False), "structured"))
            except ValueError:
                pieces.append(Piece(match[1], "structured"))
    _, quote, rest = text[end:].partition('"')
    return [*pieces, Piece(rest, "open")] if quote else pieces


# --- marked lists -------------------------------------------------------------------------------------

_LABEL_WORDS = (
    r"(?:sentences?|synonyms?|antonyms?|paraphrases?|opposites?|outputs?|answers?|options?|versions?|alternatives?|"
    r"examples?|variations?|rephrasings?)"
)
# After a marker comes white space; without one, only a character that no number or identifier goes on with.
_NEXT = r"(?=\s|$|[\"“'*\[A-Z\u4e00-\u9fff])"
_OPEN = r"\s*(?:\*\*|__)?\s*"
_FAMILIES: dict[str, re.Pattern[str]] = {
    "number": re.compile(
        rf"{_OPEN}#?(?:\(?(?P<n>\d{{1,2}})[.)．、]|\[(?P<m>\d{{1,2}})\])(?:\*\*|__)?{_NEXT}"
    ),
    "label": re.compile(
        rf"{_OPEN}{_LABEL_WORDS}(?:\s+sentence)?\s*#?(?P<n>\d{{1,2}})\s*(?:\*\*)?\s*[:.)]\s*(?:\*\*)?", re.I
    ),
    "letter": re.compile(rf"{_OPEN}\(?(?P<n>[a-hA-H])[.)](?:\*\*)?(?=\s)"),
    "chinese": re.compile(r"\s*[（(]?(?P<n>[一二三四五六七八九])[）)]?[、.．:：)）]"),
    "circled": re.compile(r"\s*(?P<n>[①-⑨])"),
    "bullet": re.compile(r"\s*[-*•‣·●◦▪–—]\s+(?=\S)"),
}
_ORDINALS = {
    **{letter: i for i, letter in enumerate("abcdefgh", start=1)},
    **{sign: i for i, sign in enumerate("一二三四五六七八九", start=1)},
    **{sign: i for i, sign in enumerate("①②③④⑤⑥⑦⑧⑨", start=1)},
}
_ENDS = re.compile(r"[.!?…。！？][\"”'’*_)\]]*\s*$")


def _value(match: re.Match[str]) -> int:
    sign = match[match.lastindex] if match.lastindex else "0"
    return int(sign) if sign.isdecimal() else _ORDINALS[sign.casefold()]


def _list_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return the pieces of a list whose markers open lines; empty when there is no such list."""
    found = _markers(lines)
    if not found:
        return []
    first = min(found)
    from_two = _value(found[first]) == 2
    bullets = not found[first].groups()
    pieces = []
    for line in filter(str.strip, lines[:first]):
        talk = is_chatter(line, source) or line.rstrip().endswith((":", "："))
        # A list that opens with "2." answers a prompt that ended in "1."; bullets may follow a first item.
        pieces.append(Piece(line, "line" if (from_two or bullets) and not talk else "around"))
    return pieces + list(_items(lines, found, source, size))


def _markers(lines: list[str]) -> dict[int, re.Match[str]]:
    """Return line number -> marker for the family that starts first; sequences start at 1 (or 0)."""
    best: dict[int, re.Match[str]] = {}
    for name, pattern in _FAMILIES.items():
        hits = {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}
        if not hits:
            continue
        values = [_value(match) for match in hits.values()]
        starts = values[0] <= 1 or (values[0] == 2 and any(line.strip() for line in lines[: min(hits)]))
        if name == "letter":
            starts = values[:2] == [1, 2] or (values == [1] and ")" in hits[min(hits)][0])
        if starts and (not best or min(hits) < min(best)):
            best = hits
        if 0 in best:  # none can start earlier
            break
    return best


def _items(lines: list[str], found: dict[int, re.Match[str]], source: str, size: int) -> Iterator[Piece]:
    """Yield the list items and the lines between and after them."""
    item: str | None = None
    gap = False
    for i in range(min(found), len(lines)):
        line = lines[i]
        if (match := found.get(i)) is not None:
            if item is not None:
                yield Piece(item, "marked")
            item, gap = line[match.end() :].strip(), False
        elif not line.strip():
            gap = True
        elif item is not None and _continues(item, line, gap):
            item = f"{item} {line.strip()}".strip()
        else:
            if item is not None:
                yield Piece(item, "marked")
            item = None
            yield Piece(line, "around")
        if item is not None and match is not None and len(found) == 1:
            *complete, item = _split_inline(item, _value(match), source, size)
            yield from (Piece(part, "marked") for part in complete)
    if item is not None:
        yield Piece(item, "marked")


def _continues(item: str, line: str, gap: bool) -> bool:
    """Whether an unmarked line goes on with `item`: it is still blank, or open and the line wraps it."""
    if not item.strip("*_ "):
        return True
    return not gap and not _ENDS.search(item) and (line[0].isspace() or line[0].islower())


def _split_inline(item: str, value: int, source: str, size: int) -> list[str]:
    """Split "A 2. B 3. C", the rest of a one-line list that opened with marker `value`.

    A number counts as a marker after a sentence end, or when the source does not mention it ("version 2.").
    """
    parts = []
    for number in range(value + 1, max(size, value) + 8):
        mentioned = re.search(rf"\b{number}\b", source) is not None
        before = r"(?<=[.!?…。！？\"”'*)])" if mentioned else ""
        match = re.search(rf"{before}\s+(?:\*\*)?\(?{number}[.)](?:\*\*)?\s+(?=\S)", item)
        if match is None:
            break
        parts.append(item[: match.start()])
        item = item[match.end() :]
    return [*parts, item]


# --- plain lines --------------------------------------------------------------------------------------

_STRONG = re.compile(r"sentence|synonym|antonym|paraphras|output|opposite|rephras|\bhere\b", re.I)
_HEADED = re.compile(r"(.{1,400}?[:：])\s*(\S.*)")
_GREETED = re.compile(r"((?:sure(?: thing)?|certainly|of course|absolutely)!)\s+(\S.*)", re.I)
_QUOTED_RUN = re.compile(r'"[^"]+"(?:\s*[,;/|]?\s*(?:and\s+|or\s+)?"[^"]+")+[.,]?')


def _break_headings(lines: list[str], source: str) -> list[str]:
    """Put a heading that shares its line with the answer ("Output: The pod …") on a line of its own."""
    broken: list[str] = []
    for line in lines:
        rest = line
        may_open = "!" in line or ":" in line or "：" in line
        if may_open and not any(pattern.match(line) for pattern in _FAMILIES.values()):
            for pattern in (_GREETED, _HEADED):
                match = pattern.match(rest.strip())
                if match and _is_announcement(match[1], match[2], source):
                    broken.append(match[1])
                    rest = match[2]
        broken.append(rest)
    return broken


def _is_announcement(head: str, rest: str, source: str) -> bool:
    if source.casefold().startswith(head.casefold()) or not re.search(r"\w", rest):
        return False
    return is_heading(head) and (head.endswith("!") or _STRONG.search(head) is not None)


def _plain_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return every non-blank line; a line of quotations only, or of `size` parts between " / ", is split."""
    pieces = []
    for line in filter(str.strip, lines):
        parts = re.split(r"\s+[/|]\s+", line)
        if _QUOTED_RUN.fullmatch(line.strip()):
            pieces += [Piece(quotation, "line") for quotation in re.findall(r'"[^"]+"', line)]
        elif len(parts) == size and not re.search(r"\s[/|]\s", source):
            pieces += [Piece(part, "line") for part in parts]
        else:
            pieces.append(Piece(line, "line"))
    return pieces
