"""Takes off a reply what chat templates put around it, and splits it into pieces by its layout."""

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

_LABEL_WORDS = (
    r"(?:sentences?|synonyms?|antonyms?|paraphrases?|opposites?|outputs?|answers?|options?|versions?|alternatives?|"
    r"examples?|variations?|rephrasings?)"
)
_ROMAN = ("iv", "iii", "ii", "i")
_WORDS = ("first", "second", "third", "fourth")
_CIRCLED, _CHINESE = "①②③④⑤⑥⑦⑧⑨", "一二三四五六七八九"
_ORDINALS = {
    sign: i
    for signs in ("abcdefgh", _CHINESE, _CIRCLED, _ROMAN[::-1], _WORDS)
    for i, sign in enumerate(signs, start=1)
}
# After a marker comes white space; without one, only a character that no number or identifier goes on with.
_NEXT = r"(?=\s|$|[\"“'*\[A-Z\u4e00-\u9fff])"
_OPEN = r"\s*(?:\*\*|__)?\s*"
_SIGN = "|".join(("[A-H]", *_ROMAN, *_WORDS, f"[{_CHINESE}{_CIRCLED}]"))
# number: "1. A", "(2) A", "[3] A"; label: "Sentence 1: A"; heading: "**Sentence 1**" alone; bullet: "- A";
# counted: "a) A", "Option B: A", "First, A", "1: A", "ii. A", "一、A", "① A".
_FAMILIES: dict[str, re.Pattern[str]] = {
    "number": re.compile(
        rf"{_OPEN}#?(?:\(?(?P<n>\d{{1,2}})[.)．、]|\[(?P<m>\d{{1,2}})\])(?:\*\*|__)?{_NEXT}"
    ),
    "label": re.compile(
        rf"{_OPEN}{_LABEL_WORDS}(?:\s+sentence)?\s*#?(?P<n>\d{{1,2}})\s*(?:\*\*)?\s*[:.)]\s*(?:\*\*)?", re.I
    ),
    "heading": re.compile(
        rf"\s*(?:(?:#{{1,6}}\s*|\*\*|_{{1,2}})(?:{_LABEL_WORDS}\s*#?)?|{_LABEL_WORDS}\s*#?)(?P<n>\d{{1,2}})[\s*_:]*$",
        re.I,
    ),
    "bullet": re.compile(r"\s*(?:[-*•‣·●◦▪–—→➤►✓✔✅]\ufe0f?|->|=>|\\item)\s+(?:\[[ xX]\]\s+)?(?=\S)"),
    "counted": re.compile(
        rf"{_OPEN}(?:{_LABEL_WORDS}\s+)?[(（#]?(?P<n>\d{{1,2}}|{_SIGN})(?:\ufe0f?\u20e3)?(?:\*\*)?"
        r"[:：.．、)）,\s–—-]\s*(?:\*\*)?",
        re.I,
    ),
}
# Other marks than these could as well belong to the first sentence: a list of them has a first and a second,
# and its source does not open with one.
_SURE = frozenset({"number", "label", "bullet"})
_ENDS = re.compile(r"[.!?…。！？][\"”'’*_)\]]*\s*$")


def _value(match: re.Match[str]) -> int:
    sign = match[match.lastindex] if match.lastindex else "0"
    return int(sign) if sign.isdecimal() else _ORDINALS[sign.casefold()]


def _list_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return the pieces of a list whose markers open lines; empty when there is no such list."""
    found = _markers(lines, source)
    if not found:
        return []
    first = min(found)
    from_two = _value(found[first]) == 2
    bullets = not found[first].groups()
    items = list_items(lines, {i: match.end() for i, match in found.items()})
    if len(found) == 1:
        parts = _split_inline(items[0].text, _value(found[first]), source, size)
        items[:1] = [Piece(part, "marked") for part in parts]
    texts = [item.text for item in items]
    texts = without_numbers(texts) if bullets else texts
    before: list[Piece] = []
    for line in filter(str.strip, lines[:first]):
        talk = is_chatter(line, source) or line.rstrip().endswith((":", "："))
        # A list that opens with "2." answers a prompt that ended in "1."; bullets may follow a first item.
        offered = (from_two or bullets) and not talk and len(texts) < size
        before.append(Piece(line, "line" if offered else "around"))
    return before + [Piece(text, item.kind) for text, item in zip(texts, items, strict=True)]


def _markers(lines: list[str], source: str) -> dict[int, re.Match[str]]:
    """Return line number -> marker for the family that starts first; sequences start at 1 (or 0)."""
    best: dict[int, re.Match[str]] = {}
    for name, pattern in _FAMILIES.items():
        hits = {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}
        if not hits or (best and min(hits) >= min(best)):
            continue
        values = [_value(match) for match in hits.values()]
        if name not in _SURE:
            is_list = values[:2] == [1, 2] and pattern.match(source) is None
        else:  # where the first is 2, something stands before it
            is_list = values[0] <= 1 or (values[0] == 2 and any(map(str.strip, lines[: min(hits)])))
        if is_list:
            best = hits
    return best


def list_items(lines: list[str], starts: Mapping[int, int]) -> list[Piece]:
    """Return the list items and the lines between and after them.

    `starts` says where the text of an item begins, by the number of its line.
    """
    pieces: list[Piece] = []
    within = gap = False  # an item, and a blank line after it
    for i, line in enumerate(lines[min(starts) :], start=min(starts)):
        if (start := starts.get(i)) is not None:
            pieces.append(Piece(line[start:].strip(), "marked"))
            within, gap = True, False
        elif not line.strip():
            gap = True
        else:
            item = pieces[-1].text
            wraps = not gap and not _ENDS.search(item) and (line[0].isspace() or line[0].islower())
            within = within and (wraps or not item.strip("*_ "))
            if within:
                pieces[-1] = Piece(f"{item} {line.strip()}".strip(), "marked")
            else:
                pieces.append(Piece(line, "around"))
    return pieces


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
        parts.append(re.sub(r"(?<=[.!?])[;,]$", "", item[: match.start()]))
        item = item[match.end() :]
    return [*parts, item]


# --- plain lines --------------------------------------------------------------------------------------

_STRONG = re.compile(r"sentence|synonym|antonym|paraphras|output|opposite|rephras|\bhere\b", re.I)
_HEADED = re.compile(r"(.{1,400}?[:：])\s*(\S.*)")
_GREETED = re.compile(r"((?:sure(?: thing)?|certainly|of course|absolutely)!)\s+(\S.*)", re.I)
_OPEN_END = re.compile(r"[:：][\s*_]*$")
_QUOTED_RUN = re.compile(r'(?:[Ee]ither\s+)?"[^"]+"(?:\s*[,;/|]?\s*(?:and\s+|or\s+)?"[^"]+")+[.,]?')


def _break_headings(lines: list[str], source: str) -> list[str]:
    """Put a heading that shares its line with the answer ("Output: The pod …") on a line of its own."""
    broken: list[str] = []
    for line in lines:
        patterns = () if any(pattern.match(line) for pattern in _FAMILIES.values()) else (_GREETED, _HEADED)
        for pattern in patterns:
            match = pattern.match(line.strip())
            if match is None or source.casefold().startswith(match[1].casefold()):
                continue
            announces = is_heading(match[1]) and (match[1][-1] == "!" or _STRONG.search(match[1]))
            if announces and re.search(r"\w", match[2]):
                broken.append(match[1])
                line = match[2]
        broken.append(line)
    return broken


def _plain_pieces(lines: list[str], source: str, size: int) -> list[Piece]:
    """Return every non-blank line; a line of quotations only, or of `size` parts between " / ", is split."""
    pieces: list[Piece] = []
    for line in filter(str.strip, lines):
        parts = re.split(r"\s+[/|]\s+", line)
        if _QUOTED_RUN.fullmatch(line.strip()):
            pieces += [Piece(quotation, "line") for quotation in re.findall(r'"[^"]+"', line)]
        elif len(parts) == size and not re.search(r"\s[/|]\s", source):
            pieces += [Piece(part, "line") for part in parts]
        else:
            pieces.append(Piece(line, "line"))
    # Talk in words that `chatter` lacks ("Aquí tienes dos oraciones:"), as far as enough lines are left.
    opens = [i for i, piece in enumerate(pieces) if _OPEN_END.search(piece.text)]
    for index in opens[: max(0, len(pieces) - size)] if not _OPEN_END.search(source) else ():
        pieces[index] = Piece(pieces[index].text, "around")
    return pieces


# --- markup -------------------------------------------------------------------------------------------

_FENCE = re.compile(r"```(?:[a-zA-Z]+(?=\s*\n))?")
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THINK_START = re.compile(r"<think(?:ing)?>.*", re.DOTALL | re.IGNORECASE)
# The channels of https://github.com/openai/harmony: only what is in `final` is meant for the reader.
_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_CHANNEL = re.compile(r"<\|channel\|>.*", re.DOTALL)
# <|im_end|>, <|eot_id|>, </s>, [/INST], <end_of_turn>: the turns of a chat, as templates write them.
_TOKEN = r"(?:<[|｜][^|｜<>\n]{1,40}[|｜]>|</?s>|\[/?INST\]|<(?:start_of_turn|end_of_turn|eos|bos)>)"
_SPECIAL = re.compile(_TOKEN)
_HEADER = re.compile(rf"\s*(?:{_TOKEN}\s*(?:(?:assistant|model)\b(?!\s*:))?\s*)+")
_ROLE = re.compile(
    r"\s*(?:#{1,6}[ \t]*|\*\*)?assistant(?:\*\*)?[ \t]*(?::(?:\*\*)?|(?=\n))\s*", re.IGNORECASE
)
_END = re.compile(rf"(?:{_TOKEN})+(?P<more>[ \t]*\n\s*(?!{_TOKEN}|user\b|human\b|system\b)(?=\S))?")
_TABLE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*\|", re.MULTILINE)


def without_fences(text: str) -> str:
    """Return the reply without the marks of code fences; what they hold stays."""
    return _FENCE.sub("", text)


def without_thinking(raw: str) -> str:
    """Return the reply without reasoning blocks, also when their opening or closing tag is missing."""
    if "<" not in raw:
        return raw
    if finals := list(_FINAL.finditer(raw)):
        raw = raw[finals[-1].end() :]
    text = _THINK_END.split(_THINKING.sub("", raw))[-1]
    return _THINK_START.sub("", _CHANNEL.sub("", text))


def only_answer(text: str, source: str) -> tuple[str, str]:
    """Return the annotator's own turn without special tokens and role, and what a made-up next turn says.

    A token that the source holds is a part of the subject, and nothing is taken off.
    """
    if ("<" in text or "[" in text) and any(token in source for token in set(_SPECIAL.findall(text))):
        return text, ""
    if (header := _HEADER.match(text)) is not None:
        text = text[header.end() :]
    if (role := _ROLE.match(text)) is not None and "assistant" not in source.casefold():
        text = text[role.end() :]
    kept, position = [], 0
    for match in _END.finditer(text):
        kept.append(text[position : match.start()])
        position = match.end()
        if match["more"] is None:  # neither another line of the same turn nor the last word
            rest = _SPECIAL.sub("\n", text[position:]).strip()
            return "\n".join(kept), rest
    return "\n".join([*kept, text[position:]]), ""
