"""Takes off a reply what chat templates put around it, and splits it into pieces by its layout.

Every pattern is bounded or begins at a mark of its own, so that the work grows with the length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from angle_data.labelling.replies.chatter import is_chatter, is_heading
from angle_data.labelling.replies.structured import Piece, json_pieces, without_numbers
from angle_data.records import Polarity


def split_reply(text: str, *, source: str, size: int, polarity: Polarity | None = None) -> list[Piece]:
    """Return the pieces of `text` in order; nothing but blank lines, markers and markup is lost.

    With `polarity`, of JSON that holds sentences of both, the others are `beside`.
    """
    pieces = json_pieces(text, source, polarity)
    if pieces is not None:
        return pieces
    if "|" not in source and _TABLE.search(text):
        return [Piece(text, "data")]
    lines = _break_headings(text.splitlines(), source)
    return _list_pieces(lines, source, size) or _plain_pieces(lines, source, size)


# --- marked lists -------------------------------------------------------------------------------------

_NAME = (
    r"(?:sentence|synonym|antonym|paraphrase|opposite|output|answer|option|version|alternative|example|"
    r"variation|rephrasing)s?"
)
_LEAD = r"[ \t]{0,12}(?:[-*•][ \t]{1,4})?[*_#]{0,4}[ \t]{0,2}"
# After a number comes white space; without one, only what no number or identifier goes on with.
_NEXT = r"(?=\s|$|[\"“'*\[A-Z\u4e00-\u9fff])"
_LETTERS, _CHINESE, _CIRCLED = "abcdefgh", "一二三四五六七八九", "①②③④⑤⑥⑦⑧⑨"
# "1. A", "(2) A", "[3] A"; "Sentence 1: A", also as a heading of its own; "a) A", "一、A", "① A"; "- A".
_MARKERS = (
    re.compile(
        rf"{_LEAD}#?(?:\(?(?P<n>\d{{1,2}})[.)．、]|\[(?P<m>\d{{1,2}})\])[*_]{{0,3}}{_NEXT}",
    ),
    re.compile(
        rf"{_LEAD}{_NAME}(?:[ \t]sentence)?[ \t]?#?(?P<n>\d{{1,2}})[ \t]?[*_]{{0,3}}"
        r"(?:[ \t]?[:.)]|$)[*_]{0,3}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_LEAD}\(?(?:(?P<n>[a-hA-H])\)[*_]{{0,3}}[ \t]|(?P<m>[{_CHINESE}])[、.]|(?P<o>[{_CIRCLED}]))"
        r"\s{0,8}"
    ),
    re.compile(r"[ \t]{0,12}(?:[-*•‣·●–—→➤✓✔✅]\ufe0f?|->)[ \t]{1,8}(?=\S)"),
)
_SIGNS = (_LETTERS, _CHINESE, _CIRCLED)
_ENDS = re.compile(r"[.!?…。！？][\"”'’*_)\]]{0,4}$")


def _list_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return the pieces of a list whose markers open lines; empty when there is no such list."""
    found = _markers(lines)
    if not found:
        return []
    first = min(found)
    is_bullet, from_two = not found[first].groups(), _value(found[first]) == 2
    items = list_items(lines, {number: match.end() for number, match in found.items()})
    if len(found) == 1:
        parts = _split_inline(items[0].text, _value(found[first]), source)
        items[:1] = [Piece(part, "marked") for part in parts]
    texts = [item.text for item in items]
    texts = without_numbers(texts) if is_bullet else texts
    before: list[Piece] = []
    for line in filter(str.strip, lines[:first]):
        talk = is_chatter(line, "") or line.rstrip().endswith((":", "："))
        # A list that opens with "2." answers a prompt that ended in "1."; bullets may follow a first item.
        offered = (from_two or is_bullet) and not talk and len(texts) < size
        before.append(Piece(line, "line" if offered else "around"))
    return before + [Piece(text, item.kind) for text, item in zip(texts, items, strict=True)]


def _value(match: re.Match[str]) -> int:
    sign = match[match.lastindex] if match.lastindex else "0"
    if sign.isdecimal():
        return int(sign)
    return next(signs.index(sign.casefold()) + 1 for signs in _SIGNS if sign.casefold() in signs)


def _markers(lines: list[str]) -> dict[int, re.Match[str]]:
    """Return line number -> marker, of the kind that starts first; a list begins with 1 (or 0).

    Where it begins with 2, something stands before it.
    """
    best: dict[int, re.Match[str]] = {}
    for pattern in _MARKERS:
        hits = {number: match for number, line in enumerate(lines) if (match := pattern.match(line))}
        if not hits or (best and min(hits) >= min(best)):
            continue
        value = _value(next(iter(hits.values())))
        if value <= 1 or (value == 2 and any(map(str.strip, lines[: min(hits)]))):
            best = hits
    return best


def list_items(lines: list[str], starts: Mapping[int, int]) -> list[Piece]:
    """Return the list items and the lines between and after them.

    `starts` says where the text of an item begins, by the number of its line.
    """
    pieces: list[Piece] = []
    within = gap = False  # an item, and a blank line after it
    for number, line in enumerate(lines[min(starts) :], start=min(starts)):
        if (start := starts.get(number)) is not None:
            pieces.append(Piece(line[start:].strip(), "marked"))
            within, gap = True, False
        elif not line.strip():
            gap = True
        else:
            item = pieces[-1].text
            wraps = not gap and not _ENDS.search(item[-8:]) and (line[0].isspace() or line[0].islower())
            within = within and (wraps or not item.strip("*_ "))
            if within:
                pieces[-1] = Piece(f"{item} {line.strip()}".strip(), "marked")
            else:
                pieces.append(Piece(line, "around"))
    return pieces


_INLINE = re.compile(r"[ \t]{1,4}\(?(\d{1,2})[.)][ \t]{1,4}(?=\S)")


def _split_inline(item: str, value: int, source: str) -> list[str]:
    """Split "A. 2. B." where the list stands on one line.

    A number is a marker after the end of a sentence, or where the source has no such number ("version 2.").
    """
    parts, start, mentioned = list[str](), 0, set(re.findall(r"\d+", source))
    for match in _INLINE.finditer(item):
        ends = _ENDS.search(item[max(match.start() - 8, 0) : match.start()].rstrip(";,"))
        if int(match[1]) == value + len(parts) + 1 and (ends or match[1] not in mentioned):
            parts.append(re.sub(r"(?<=[.!?])[;,]$", "", item[start : match.start()]))
            start = match.end()
    return [*parts, item[start:]]


# --- plain lines --------------------------------------------------------------------------------------

_STRONG = re.compile(r"sentence|synonym|antonym|paraphras|output|opposite|rephras|\bhere\b", re.IGNORECASE)
_GREETED = re.compile(
    r"((?:sure(?: thing)?|certainly|of course|absolutely)!)[ \t]{1,4}(\S.*)", re.IGNORECASE | re.DOTALL
)
_HEADED = re.compile(r"([^\n]{1,400}?[:：])[ \t]{0,4}(\S.*)", re.DOTALL)
_OPEN_END = re.compile(r"[:：][\s*_]{0,8}$")
_SLASH = re.compile(r"[ \t]{1,4}[/|][ \t]{1,4}")
_QUOTATIONS = re.compile(r'"[^"]+"')


def _break_headings(lines: list[str], source: str) -> list[str]:
    """Put a heading that shares its line with the answer ("Output: The pod …") on a line of its own."""
    broken: list[str] = []
    for line in lines:
        is_item = any(pattern.match(line) for pattern in _MARKERS)
        greeting = None if is_item else _GREETED.match(line.strip())
        if greeting is not None and not source.casefold().startswith(greeting[1].casefold()):
            broken.append(greeting[1])
            line = greeting[2]
        match = None if is_item else _HEADED.match(line.strip())
        repeats = match is not None and source.casefold().startswith(match[1].casefold())
        if match is None or repeats or not (is_heading(match[1]) and _STRONG.search(match[1])):
            broken.append(line)
        else:
            broken += [match[1], match[2]]
    return broken


def _plain_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return every non-blank line; quotations on one line, or `size` parts between " / ", are split."""
    pieces: list[Piece] = []
    for line in filter(str.strip, lines):
        quoted = _QUOTATIONS.findall(line)
        between = set(re.sub(r"[,;/|.]", " ", _QUOTATIONS.sub("", line)).casefold().split())
        if len(quoted) > 1 and between <= {"either", "and", "or"}:
            pieces += [Piece(quotation, "line") for quotation in quoted]
        elif len(parts := _SLASH.split(line)) == size and not _SLASH.search(source):
            pieces += [Piece(part, "line") for part in parts]
        else:
            pieces.append(Piece(line, "line"))
    # Talk in words that `chatter` lacks ("Aquí tienes dos oraciones:"), as far as enough lines are left.
    opens = [index for index, piece in enumerate(pieces) if _OPEN_END.search(piece.text[-10:])]
    for index in opens[: max(0, len(pieces) - size)] if not _OPEN_END.search(source[-10:]) else ():
        pieces[index] = Piece(pieces[index].text, "around")
    return pieces


# --- markup -------------------------------------------------------------------------------------------

_FENCE = re.compile(r"```(?:[a-zA-Z]{1,12}(?=[ \t]{0,4}\n))?")
# <|im_end|>, <|eot_id|>, </s>, [/INST], <end_of_turn>: the turns of a chat, as templates write them.
_TOKEN = re.compile(r"<[|｜][^|｜<>\n]{1,40}[|｜]>|</?s>|\[/?INST\]|<(?:start_of_turn|end_of_turn|eos|bos)>")
_ROLE = re.compile(r"\s{0,8}(?:#{1,6} ?|\*\*)?(?:assistant|model)(?:\*\*)?(?::|[ \t]{0,4}\n)", re.IGNORECASE)
_NEXT_TURN = re.compile(r"\s{0,8}(?:user|human|system)\b", re.IGNORECASE)
_TABLE = re.compile(r"^[ \t]{0,8}\|?[ \t]{0,4}:?-{2,}:?[ \t]{0,4}\|", re.MULTILINE)


def without_fences(text: str) -> str:
    """Return the reply without the marks of code fences; what they hold stays."""
    return _FENCE.sub("", text)


def only_answer(text: str, source: str) -> tuple[str, str]:
    """Return the annotator's own turn without special tokens and role, and what a made-up next turn says.

    A token that the source holds is a part of the subject, and nothing is taken off.
    """
    if ("<" in text or "[" in text) and any(token in source for token in set(_TOKEN.findall(text))):
        return text, ""
    turns = [turn for turn in _TOKEN.split(text) if turn.strip()]
    if turns and turns[0].strip().casefold() in ("assistant", "model"):  # the header of the turn
        turns = turns[1:]
    if not turns:
        return "", ""
    role = _ROLE.match(turns[0])
    if role is not None and "assistant" not in source.casefold():
        turns[0] = turns[0][role.end() :]
    # What another role says is made up, and so is all that does not begin a line of the same turn.
    own = 1
    while own < len(turns) and turns[own].startswith("\n") and not _NEXT_TURN.match(turns[own]):
        own += 1
    return "\n".join(turns[:own]), "\n".join(turns[own:]).strip()
