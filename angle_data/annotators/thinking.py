"""Takes a model's thoughts off its answer, however the two are marked.

What precedes the answer never counts: the text after the last mark that closes thoughts is the answer,
also when the opening mark is missing (some servers take it off) or stands twice. Thoughts that never end
leave nothing. A text that is JSON from end to end is an answer, whatever its strings hold. A mark that the
source holds as well may be echoed in a sentence, and then is none (see `_by_quoted_tags`).

Everything here is linear in the length of the text: each pattern is bounded, and looks for one mark.
"""

from __future__ import annotations

import json
import re
from itertools import islice

_NAME = (
    r"(?:[a-z]{1,12}:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|reflection|scratchpad|rationale|cot|"
    r"(?:inner|internal)_(?:monologue|thoughts?)|chain_of_thought|thought_process|begin_of_thought)"
)
# DeepSeek, Qwen and many others (<think>), ByteDance (<seed:think>), Mistral ([THINK]), Kimi (◁think▷),
# Cohere (<|START_THINKING|>), Open Thoughts (<|begin_of_thought|>), Gemma (<|channel>thought), Open
# WebUI (<details …>).
_OPEN = re.compile(
    rf"<{_NAME}>|\[(?:THINK|THINKING|REASONING)\]|◁think▷|<\|(?:START_THINKING|begin_of_thought|think(?:ing)?)\|>"
    r"|<\|channel>\s?(?:thought|analysis)|<unused94>|<details\s[^<>]{0,40}\breasoning\b[^<>]{0,80}>",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</{_NAME}>|\[/(?:THINK|THINKING|REASONING)\]|◁/think▷|<\|(?:END_THINKING|end_of_thought|/think(?:ing)?)\|>"
    r"|<channel\|>|<unused95>|</details>|(?:^|\n)\.{3}done thinking\.",
    re.IGNORECASE,
)
# https://github.com/openai/harmony: only what is in the channel `final` is meant for the reader.
_CHANNEL = re.compile(r"<\|channel\|>")
_FINAL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")
# The same with its special tokens taken off.
_BARE_CHANNEL = re.compile(r"\s{0,20}(?:assistant)?(?:analysis|commentary)(?=[A-Z\n]|\s{1,3}[A-Z])")
_BARE_FINAL = re.compile(r"assistant\s?(?:commentary)?\s?final")
# What opens and closes the answer itself, once the thoughts are off.
_ANSWER = re.compile(
    r"<\|(?:START_RESPONSE|begin_of_solution|begin_of_box)\|>|<(?:final_?answer|answer|response|final)>|\[RESPONSE\]",
    re.IGNORECASE,
)
_ANSWER_END = re.compile(
    r"<\|(?:END_RESPONSE|end_of_solution|end_of_box)\|>|</(?:final_?answer|answer|response|final)>|\[/RESPONSE\]",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"\s{0,20}(?P<markup>[#*_]{1,6}\s?)?(?:okay, |so, )?(?:(?:here(?:'s| is)|this is|the|my|a)\s){0,2}"
    r"(?:(?P<thought>thinking|thoughts?|chain[ -]of[ -]thought)|reasoning|analysis|rationale)"
    r"(?P<process>\sprocess)?"
    r"\s?(?P<end>[*_]{0,3}(?::|\.{3}|…)[*_]{0,3}|[*_]{1,3}[ \t]*\n|[ \t]*\n)",
    re.IGNORECASE,
)
_ANSWER_HEADING = re.compile(
    r"^[ \t]{0,8}[#*_]{0,6}\s?(?:(?:here(?:'s| is)|the|my|so)\s){0,2}(?:final\s)?"
    r"(?:answer|response|output|result|sentences?|score|grade|rating)"
    r"[ \t]?(?:[*_]{0,3}:[*_]{0,3}|[*_]{1,3}[ \t]*$|(?<=[#*_ ]final answer)[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)


_ANSWER_LINE = re.compile(
    r"^[ \t]{0,8}(?:final\s)?(?:answer|response|output|result|sentences?|score|grade|rating)[ \t]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)
_LISTS = re.compile(r"^[ \t]{0,8}(?:\d{1,2}[.)][ \t]|[-*•][ \t]|[{\[]|```)", re.MULTILINE)
_ENDS_LINE = re.compile(r"[ \t]{0,8}(?:\n|$|[{\[]|```)")
_LONGEST_HEADING = 200
_SIGNS = ("<", "◁", "[/", "[T", "[t", "[R", "[r", "done thinking")
"""What every mark of thoughts or answers holds."""


def split_thinking(text: str, source: str = "") -> tuple[str, str]:
    """Return the answer in a text, and the thoughts that stood around it; either may be empty.

    `source` is the text that was asked about.
    """
    if not any(sign in text for sign in _SIGNS):  # the usual case, and much faster
        answer, thoughts = _by_channels(text)
        return (answer, thoughts) if thoughts else _by_headings(text, source)
    quoted = _marks_in(source)
    answer, thoughts = text, ""
    if not quoted or text.lstrip().startswith("<|"):  # a channel of which a sentence speaks opens no reply
        answer, thoughts = _by_channels(text)
    if not thoughts:
        answer, thoughts = _by_quoted_tags(text, source, quoted) if quoted else _by_tags(text)
    if not thoughts:
        answer, thoughts = _by_headings(text, source)
    return _unwrapped(answer if thoughts else text, quoted), thoughts


def answer_in_thoughts(thoughts: str, source: str = "") -> str:
    """Return the answer that a server has filed under thoughts: what follows their end, or JSON at their end.

    A server with a parser for thoughts takes all for them where a model does not mark their end. Plain words
    cannot be told from thoughts, so nothing else counts.
    """
    answer, before = split_thinking(thoughts, source)
    if before:
        return answer
    bare = thoughts.strip().removesuffix("```").rstrip()
    if bare.endswith(("}", "]")):
        # The last line that opens JSON and goes on to the end; the whole text, or one line, as a rule.
        for start in _line_starts(bare)[-_MOST_LINES:]:
            if _is_json(bare[start:]):
                return bare[start:]
    return ""


_MOST_LINES = 40
_JSON_LINE = re.compile(r"^[ \t]{0,8}(?=[{\[])", re.MULTILINE)


def _line_starts(text: str) -> list[int]:
    return [found.end() for found in _JSON_LINE.finditer(text)]


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for last in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return last


def _by_channels(text: str) -> tuple[str, str]:
    """Split a text in the channels of Harmony, with or without its special tokens."""
    if (channel := _CHANNEL.search(text)) is not None:
        final = _last(_FINAL, text)
        start, end = (final.start(), final.end()) if final else (channel.start(), len(text))
        answer = text[end:] if final else text[:start]
        later = _CHANNEL.search(answer)
        return answer[: later.start()] if later else answer, text[:start] or text
    if _BARE_CHANNEL.match(text):
        final = _last(_BARE_FINAL, text)
        if final is not None:
            return text[final.end() :], text[: final.start()]
        if re.match(r"\s*(?:assistant)?(?:analysis|commentary)[A-Z]", text):
            return "", text
    return text, ""


def _by_tags(text: str) -> tuple[str, str]:
    close, opening = _last(_CLOSE, text), _OPEN.search(text)
    if (close is None and opening is None) or _is_json(text):
        return text, ""
    if close is not None and close[0].casefold() == "</details>" and opening is None:
        return text, ""  # of any page
    before = text[: opening.start()] if opening else ""
    if close is None:
        return before, text[len(before) :]
    if (end := _json_after_a_close(text)) is not None:
        return text[end:], text[:end]
    after = text[close.end() :]
    again = _OPEN.search(after)
    answer = after[: again.start()] if again else after
    # An answer may also come before all thoughts.
    return (answer, text[: close.end()]) if answer.strip() else (before, text[len(before) :])


def _json_after_a_close(text: str) -> int | None:
    """Return where JSON begins that goes from a closing mark to the end; its strings may hold marks."""
    for close in islice(_CLOSE.finditer(text), _MOST_LINES):
        if _is_json(text[close.end() :]):
            return close.end()
    return None


def _marks_in(source: str) -> frozenset[str]:
    """Return the marks that a source holds, which its sentences may hold as well."""
    if not any(sign in source for sign in _SIGNS):
        return frozenset()
    patterns = (_OPEN, _CLOSE, _CHANNEL, _ANSWER, _ANSWER_END)
    return frozenset(found[0].casefold() for pattern in patterns for found in pattern.finditer(source))


def _by_quoted_tags(text: str, source: str, quoted: frozenset[str]) -> tuple[str, str]:
    """Split thoughts off an answer to a source that holds marks of thoughts itself, losing no sentence.

    Only a mark that opens the reply opens thoughts. They end with the first mark that stands alone on its
    line, else with the first at the end of one or before JSON, else with the first of all, unless the source
    begins as the reply does: then no mark is more than a word of both. Without an opening mark, only closing
    marks that the source lacks end thoughts.
    """
    if _is_json(text):
        return text, ""
    closes = list(_CLOSE.finditer(text))
    start = _OPEN.match(text, len(text) - len(text.lstrip()))
    if start is None:
        strange = [close for close in closes if close[0].casefold() not in quoted]
        return (text[strange[-1].end() :], text[: strange[-1].end()]) if strange else (text, "")
    echoes = source.lstrip().casefold().startswith(start[0].casefold())
    closes = [close for close in closes if close.start() >= start.end()]
    ends_line = [close for close in closes if _ENDS_LINE.match(text, close.end())]
    alone = [close for close in ends_line if text[: close.start()].endswith("\n")]
    close = next(iter(alone or ends_line or (() if echoes else closes)), None)
    if close is None:
        return (text, "") if echoes else ("", text)
    return text[close.end() :], text[: close.end()]


def _by_headings(text: str, source: str) -> tuple[str, str]:
    """Split thoughts under a heading from the answer under another."""
    if (heading := _HEADING.match(text)) is None:
        return text, ""
    if source[:_LONGEST_HEADING].lstrip(" #*_").casefold().startswith(heading[0].strip(" #*_\n").casefold()):
        return text, ""  # a sentence as the source has it
    rest = text[heading.end() :]
    is_line = heading["end"].endswith("\n")
    answer = _last(_ANSWER_HEADING, rest) or (_last(_ANSWER_LINE, rest) if is_line else None)
    if answer is not None:
        end = heading.end() + answer.end()
        return text[end:], text[:end]
    if is_line and not heading["thought"]:
        # "Reasoning" on a line of its own: what follows it are words of reasoning, up to a list or JSON.
        begins = _LISTS.search(rest)
        end = heading.end() + (begins.start() if begins and rest[: begins.start()].strip() else len(rest))
        return text[end:], text[:end]
    # "Thinking: …" may be a sentence; a heading of its own, or of a process, is none.
    sure = heading["thought"] and (heading["markup"] or heading["process"] or "\n" in heading["end"])
    return ("", text) if sure else (text, "")


def _unwrapped(text: str, quoted: frozenset[str] = frozenset()) -> str:
    """Return what stands in the marks of an answer, line by line if several do, and all of a text without."""
    openings = list(_ANSWER.finditer(text))
    if not openings or _is_json(text):
        return text
    if any(opening[0].casefold() in quoted for opening in openings):
        return text  # marks of which the source speaks
    ahead = [opening.start() for opening in openings[1:]] + [len(text)]
    within = [text[opening.end() : end] for opening, end in zip(openings, ahead, strict=True)]
    closed = [part[: end.start()] for part in within if (end := _ANSWER_END.search(part))]
    # A mark that is not closed is only spoken of, or the answer was cut off.
    return "\n".join(closed) if closed and _ANSWER_END.search(within[-1]) else within[-1]
