"""Cuts marked text into sentences in which every reference is one character, and maps back to the comment.

Works on what `markdown.own_words` and `references.mark_references` leave, with lists, soft line breaks and
the full stops of several scripts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from angle_data.gis.comments.references import FILL, REF, SELF, Reference

LONGEST = 800
"""Sentences are cut here, in characters, so that no pattern sees more."""

_FOLD = str.maketrans("’‘`，：；（）、＃“”\u2060\u200b", "''',:;(),#\"\"  ")
# Finds: "1. first"
_BULLET = re.compile(r"\s*(?:[-*+•·‣]|\d{1,2}[.)])\s+")
# Finds: "## Summary"
_HEADING = re.compile(r"\s*#{1,6}\s+|\s*\|")
# Finds: "Done."
_STOP = re.compile(r"[.!?…]+(?=[\s\"')\]*_]|$)|[。！？]+|(?<=\s)[-=]{3,}(?=\s|$)")
# Finds: "cf."
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|dupe?|no|nr|resp|approx|bzw|z\.\s?b|p\.\s?ej|aka|incl|ref)\.$",
    re.IGNORECASE,
)
# Finds: "continued here"
_SOFT = re.compile(rf"\s*[a-z({REF}{SELF}&+]")
# Finds: "Done."
_ENDS = re.compile(r"[.!?:。！？…][\"')\]*_\s]*$")
# Finds: "** "
_SQUEEZE = re.compile(rf"{FILL}+|(?:[\s*_~|\[\]\\]|</?[A-Za-z](?![a-z]*:)[^<>]{{0,300}}>)+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, white space and emphasis squeezed, each reference one `REF` character.

    `refs` are the references in order of their `REF`s; `ending` is the character that closes the sentence
    (`?`, `.`, `:` or empty); `item`: it stands in a list or table; `paragraph` counts the comment's blocks.
    """

    text: str
    refs: tuple[Reference, ...]
    ending: str
    item: bool
    paragraph: int
    _from: tuple[int, ...]
    _to: tuple[int, ...]

    def offset(self, position: int) -> int:
        """Return where in the comment the character at `position` of the sentence stands."""
        index = bisect_right(self._from, position) - 1
        return self._to[index] + position - self._from[index]

    def refs_between(self, start: int, end: int) -> tuple[Reference, ...]:
        """Return the references whose characters lie in `text[start:end]`."""
        first = self.text.count(REF, 0, start)
        return self.refs[first : first + self.text.count(REF, start, end)]


def split_sentences(marked: str, references: list[Reference]) -> list[Sentence]:
    """Return the sentences of a marked text, in order; those without letters or references are left out."""
    wanted = [ref for ref in references if marked[ref.start] == REF]
    sentences: list[Sentence] = []
    used = 0
    for start, end, item, paragraph in _units(marked):
        for first, last in _stops(marked, start, end):
            count = marked.count(REF, first, last)
            sentence = _squeeze(marked, first, last, tuple(wanted[used : used + count]), item, paragraph)
            used += count
            if sentence is not None:
                sentences.append(sentence)
    return sentences


def _units(marked: str) -> Iterator[tuple[int, int, bool, int]]:
    """Yield (start, end, is list item, paragraph) of runs of lines that belong together."""
    start = end = -1
    item = gap = False
    paragraph = position = 0
    for line in marked.split("\n"):
        begin, position = position, position + len(line) + 1
        if not line.strip():
            gap = gap or start >= 0
            continue
        bullet = _BULLET.match(line) or _HEADING.match(line)
        ending = _ENDS.search(marked, max(start, end - 9), end) if start >= 0 else None
        if bullet or start < 0:
            joined = False
        elif ending:  # a colon leads to the reference below it, even across a blank line
            joined = ":" in ending[0] and line.lstrip().startswith(REF)
        else:
            joined = not gap and _SOFT.match(line) is not None
        if not joined:
            if start >= 0:
                yield start, end, item, paragraph
                paragraph += gap
            start = begin + (bullet.end() if bullet else 0)
            item = bullet is not None and not line.lstrip().startswith("#")
        gap = False
        end = begin + len(line)
    if start >= 0:
        yield start, end, item, paragraph


def _stops(marked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _STOP.finditer(marked, start, end):
        if match[0] == "." and _ABBREVIATION.search(marked, max(start, match.end() - 9), match.end()):
            continue
        yield from _chunks(marked, start, match.end())
        start = match.end()
    if start < end:
        yield from _chunks(marked, start, end)


def _chunks(marked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut what is too long for one sentence at white space, never inside a reference."""
    while end - start > LONGEST and marked.count(FILL, start, end) < end - start - LONGEST:
        cut = marked.rfind(" ", start, start + LONGEST)
        cut = cut if cut > start else start + LONGEST
        while cut < end and marked[cut] == FILL:
            cut += 1
        yield start, cut
        start = cut
    yield start, end


def _squeeze(
    marked: str, start: int, end: int, refs: tuple[Reference, ...], item: bool, paragraph: int
) -> Sentence | None:
    raw = marked[start:end].translate(_FOLD)
    parts, place, origin = list[str](), [0], [start]
    length = last = 0
    for match in _SQUEEZE.finditer(raw):
        parts.append(raw[last : match.start()])
        length += match.start() - last
        if match[0][0] != FILL and length:
            parts.append(" ")
            length += 1
        last = match.end()
        place.append(length)
        origin.append(start + last)
    parts.append(raw[last:])
    text = "".join(parts).rstrip()
    if not text.strip(" .,;:!?-()'\"#=>"):
        return None
    tail = text.rstrip(" \"')*")[-1:]
    ending = "?" if tail in "?？" else tail if tail in ".:!。！…" else ""
    return Sentence(text, refs, ending, item, paragraph, tuple(place), tuple(origin))
