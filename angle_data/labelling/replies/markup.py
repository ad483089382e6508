"""Takes off a reply what chat templates and renderers put around it: reasoning, special tokens, fences, tags.

`layout` and `structured` split what is left.
"""

from __future__ import annotations

import re
from collections import Counter

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
_TAG_NAMES = (
    r"(?:sentence|synonym|antonym|paraphrase|opposite|output|answer|final_answer|result|response|item|option|"
    r"text|li|ol|ul|p|s(?=[_-]?\d))s?"
)
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_TAG_NAMES})(?:[_-]?\d{{1,2}})?(?:\s[^<>\n]{{0,80}})?>", re.I)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKER = re.compile(r"[\W\d_]*")


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


def without_tags(text: str, source: str) -> str:
    """Put what stands in tags named after answers, or in lists of HTML, on lines of its own.

    Only tags that open a line, alone or around what follows, count, and none that the source holds.
    """
    if "<" not in text:
        return text
    parts, position, opened = [], 0, Counter[str]()
    for match in _TAG.finditer(text):
        name = match["name"].casefold()
        if f"<{name}" in source.casefold():
            continue
        start = max(text.rfind("\n", 0, match.start()) + 1, position)
        opens = _MARKER.fullmatch(text, start, match.start()) is not None
        if opens or (match["close"] and opened[name]):
            opened[name] += -1 if match["close"] else 1
            parts.append(text[position : match.start()])
            position = match.end()
    text = "\n".join([*parts, text[position:]])
    return text if _BREAK.search(source) else _BREAK.sub("\n", text)
