"""Takes off a reply what chat templates put around it, and splits it into pieces by its layout.

Every pattern is bounded or begins at a mark of its own, so that the work grows with the length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from angle_data.labelling.replies.chatter import is_heading
from angle_data.labelling.replies.structured import Piece, json_pieces, without_numbers
from angle_data.records import Polarity

_END_MARKS = (".", "!", "?", "…", "。", "！", "？")


def split_reply(text: str, *, source: str, size: int, polarity: Polarity | None = None) -> list[Piece]:
    """Return the pieces of `text` in order; nothing but blank lines, markers and markup is lost.

    With `polarity`, of JSON that holds sentences of both, the others are `beside`.
    """
    if pieces := json_pieces(text, source, polarity):
        return pieces
    if "|" not in source and _TABLE.search(text):
        return [Piece(text, "data")]
    lines = [part for line in text.splitlines() for part in _broken_at_headings(line, source)]
    return _list_pieces(lines, source, size) or _plain_pieces(lines, source, size)


def is_complete(text: str) -> bool:
    """Whether a text ends as a sentence does, with any marks that close it."""
    return text.rstrip(" \t\r\n\"”'’»」*_)]`").endswith(_END_MARKS)


# --- marked lists -------------------------------------------------------------------------------------

# A mark of each kind: "1. A", "1: A", "1 - A", "(2) A", "[3] A"; "Sentence 1: A", also as a heading of its
# own, "Option A: A", "First: A"; "a) A", "A. A"; "一、A"; "① A"; "- A", or LaTeX's item. After a number comes
# white space, or what no number or identifier goes on with.
_NAME = (
    r"(?:sentence|synonym|antonym|paraphrase|opposite|output|answer|option|version|alternative|example|"
    r"variation|rephrasing)s?"
)
_MARK = re.compile(
    rf"""[ \t]{{0,12}}[*_#]{{0,4}}[ \t]{{0,2}}
    (?: \#?(?:\(?(?P<number>\d{{1,2}})(?:[.)．、]|\ufe0f?\u20e3|[ \t]?[-–—](?=[ \t])|(?=\t))
                | (?P<colon>\d{{1,2}}): | \[(?P<square>\d{{1,2}})\])[*_]{{0,3}}
            (?=\s|$|["“'*\[A-Z\u4e00-\u9fff])
      | (?i:{_NAME})(?:[ \t](?i:sentence))?[ \t]?\#?(?:(?P<named>\d{{1,2}})|(?P<option>[A-H]))
            [ \t]?[*_]{{0,3}}(?:[ \t]?[:.)]|$)[*_]{{0,3}}
      | (?P<ordinal>(?i:first|second|third|fourth|fifth))(?:[ \t](?i:{_NAME}))?[*_]{{0,3}}:[*_]{{0,3}}[ \t]
      | \(?(?:(?P<letter>[a-hA-H])\)[*_]{{0,3}}[ \t]|(?P<capital>[A-H])\.[ \t]
             |(?P<chinese>[一二三四五六七八九])[、.]|(?P<circled>[①-⑨]))\s{{0,8}})
    | [ \t]{{0,12}}(?P<bullet>[-*•‣·●–—→➤✓✔✅]\ufe0f?|->|\\item)[ \t]{{1,8}}(?=\S)""",
    re.VERBOSE,
)
_FIRST = ("0", "1", "a", "first", "一", "①")
_SECOND = ("2", "b", "second", "二", "②")
# Of these one alone is a part of a sentence ("A. Smith called", "Option A: wait"), as are those of a source.
_OF_SEVERAL = ("capital", "colon", "option", "ordinal")


def _list_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return the pieces of a list whose marks open lines; empty when there is no such list."""
    marks = _marks(lines, source)
    if not marks:
        return []
    first = min(marks)
    kind, sign = _sign(marks[first])
    items = _list_items(lines, {number: match.end() for number, match in marks.items()})
    if len(marks) == 1:
        parts = _split_inline(items[0].text, sign, source)
        items[:1] = [Piece(part, "marked") for part in parts]
    texts = [item.text for item in items]
    if kind == "bullet":
        texts = without_numbers(texts)
    # A list that opens with "2." answers a prompt that ended in "1."; bullets may follow a first item.
    offered = (sign in _SECOND or kind == "bullet") and len(texts) < size
    before = [
        Piece(line, "line" if offered and not line.rstrip().endswith((":", "：")) else "around")
        for line in filter(str.strip, lines[:first])
    ]
    return before + [Piece(text, item.kind) for text, item in zip(texts, items, strict=True)]


def _sign(match: re.Match[str]) -> tuple[str, str]:
    """Return the kind of a mark and its sign."""
    kind = match.lastgroup or ""
    return kind, match[kind].casefold()


def _marks(lines: list[str], source: str) -> dict[int, re.Match[str]]:
    """Return line number -> mark, of the kind that starts first; a list begins with 1 (or 0).

    Where it begins with 2, something stands before it.
    """
    in_source = {match.lastgroup for match in map(_MARK.match, source.splitlines()) if match}
    kinds: dict[str, dict[int, re.Match[str]]] = {}
    for number, line in enumerate(lines):
        if match := _MARK.match(line):
            kinds.setdefault(match.lastgroup or "", {})[number] = match
    for kind, found in kinds.items():
        if kind in _OF_SEVERAL and (len(found) == 1 or kind in in_source):
            continue
        begin = min(found)
        sign = _sign(found[begin])[1]
        if kind == "bullet" or sign in _FIRST or (sign in _SECOND and any(map(str.strip, lines[:begin]))):
            return found
    return {}


def _list_items(lines: list[str], starts: dict[int, int]) -> list[Piece]:
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
            wraps = not gap and not is_complete(item) and (line[0].isspace() or line[0].islower())
            within = within and (wraps or not item.strip("*_ "))
            if within:
                pieces[-1] = Piece(f"{item} {line.strip()}".strip(), "marked")
            else:
                pieces.append(Piece(line, "around"))
    return pieces


_INLINE = re.compile(r"[ \t]{1,4}\(?(\d{1,2})[.)][ \t]{1,4}(?=\S)")


def _split_inline(item: str, sign: str, source: str) -> list[str]:
    """Split "A. 2. B." where the list stands on one line.

    A number is a mark after the end of a sentence, or where the source has no such number ("version 2.").
    """
    parts: list[str] = []
    start = 0
    mentioned = set(re.findall(r"\d+", source))
    for match in _INLINE.finditer(item) if sign.isdecimal() else ():
        ends = is_complete(item[max(match.start() - 8, 0) : match.start()].rstrip(";,"))
        if int(match[1]) == int(sign) + len(parts) + 1 and (ends or match[1] not in mentioned):
            parts.append(re.sub(r"(?<=[.!?])[;,]$", "", item[start : match.start()]))
            start = match.end()
    return [*parts, item[start:]]


# --- plain lines --------------------------------------------------------------------------------------

_GREETING = re.compile(r"(?:sure(?: thing)?|certainly|of course|absolutely)!", re.IGNORECASE)
_STRONG = re.compile(r"sentence|synonym|antonym|paraphras|output|opposite|rephras|\bhere\b", re.IGNORECASE)
_HEADED = re.compile(rf"({_GREETING.pattern}(?=[ \t])|[^\n]{{1,400}}?[:：])[ \t]{{0,4}}(\S.*)", re.IGNORECASE)
_MOST_HEADINGS = 3  # on one line
_OPEN_END = re.compile(r"[:：][\s*_]{0,8}$")
_SLASH = re.compile(r"[ \t]{1,4}[/|][ \t]{1,4}")
_QUOTATIONS = re.compile(r'"[^"]+"')


def _broken_at_headings(line: str, source: str) -> Iterator[str]:
    """Yield a line, its greeting and heading ("Sure! Output: The pod …") each on a line of its own."""
    for _ in range(_MOST_HEADINGS):
        match = None if _MARK.match(line) else _HEADED.match(line.strip())
        if match is None:
            break
        talk = _GREETING.fullmatch(match[1]) or (is_heading(match[1]) and _STRONG.search(match[1]))
        if not talk or source.casefold().startswith(match[1].casefold()):
            break
        yield match[1]
        line = match[2]
    yield line


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
    if "assistant" not in source.casefold():
        turns[0] = turns[0].removeprefix(match[0] if (match := _ROLE.match(turns[0])) else "")
    # What another role says is made up, and so is all that does not begin a line of the same turn.
    own = 1
    while own < len(turns) and turns[own].startswith("\n") and not _NEXT_TURN.match(turns[own]):
        own += 1
    return "\n".join(turns[:own]), "\n".join(turns[own:]).strip()
