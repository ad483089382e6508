"""Cuts marked text into sentences in which every reference is one character, and maps back to the comment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from angle_data.gis.comments.references import FILL, REF, SELF, Reference

LONGEST = 800
"""Sentences are cut here, in characters, so that no pattern sees more."""

_FOLD = str.maketrans("’‘`，：；（）、＃“”\u2060\u200b", "''',:;(),#\"\"  ")
# Finds: "1. first"
_BULLET = re.compile(r"\s*(?:[-*+•·‣]|\d{1,2}[.)])\s+")
# Finds: "## Summary"
_HEADING = re.compile(r"\s*#{1,6}\s+|\s*\|")
# Finds: "Done."
_STOP = re.compile(r"(?<![.!?…])[.!?…]++(?=[\s\"')\]*_]|$)|[。！？]+|(?<=\s)[-=]{3,}(?=\s|$)")
# Finds: "cf."
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|dupe?|no|nr|resp|approx|bzw|z\.\s?b|p\.\s?ej|aka|incl|ref)\.$",
    re.IGNORECASE,
)
# Finds: "continued here"
_SOFT = re.compile(rf"\s*[a-z({REF}{SELF}&+]")
# Finds: "Done."
_ENDS = re.compile(r"[.!?:。！？…][\"')\]*_\s]*$")
# Finds: "(#5) crashes"
_OPENS = re.compile(rf"\W{{0,3}}{REF}")
# Finds: "** "
_SQUEEZE = re.compile(rf"{FILL}+|(?:[\s*_~|\[\]\\]|</?[A-Za-z](?![a-z]*:)[^<>]{{0,300}}>)+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, white space and emphasis squeezed, each reference one `REF` character.

    `refs` are the references in order of their `REF`s; `places` says where in the comment each character
    stands; `item`: it stands in a list or table; `head`: another issue that its list item opens with.
    """

    text: str
    refs: tuple[Reference, ...]
    places: list[int]
    item: bool
    head: Reference | None = None

    def refs_between(self, start: int, end: int) -> tuple[Reference, ...]:
        """Return the references whose characters lie in `text[start:end]`."""
        first = self.text.count(REF, 0, start)
        return self.refs[first : first + self.text.count(REF, start, end)]


def split_sentences(marked: str, references: list[Reference]) -> list[Sentence]:
    """Return the sentences of a marked text, in order; those without letters or references are left out."""
    wanted = iter([ref for ref in references if marked[ref.start] == REF])
    sentences: list[Sentence] = []
    for start, end, item in _units(marked):
        head: Reference | None = None
        for first, last in _stops(marked, start, end):
            refs = tuple(islice(wanted, marked.count(REF, first, last)))
            text, places = _squeeze(marked, first, last)
            if text.strip(" .,;:!?-()'\"#=>"):
                sentences.append(Sentence(text, refs, places, item, head))
            if item and refs and _OPENS.match(text):
                head = refs[0]
    return sentences


def _units(marked: str) -> list[tuple[int, int, bool]]:
    """Return (start, end, is list item) of runs of lines that belong together."""
    units: list[tuple[int, int, bool]] = []
    gap, position = False, 0
    for line in marked.split("\n"):
        begin, position = position, position + len(line) + 1
        if not line.strip():
            gap = True
            continue
        bullet = _BULLET.match(line) or _HEADING.match(line)
        start, last, item = units[-1] if units else (0, 0, False)
        if bullet or not units:
            joined = False
        elif ending := _ENDS.search(marked, max(start, last - 9), last):
            # A colon leads to the reference below it, even across a blank line.
            joined = ":" in ending[0] and line.lstrip().startswith(REF)
        else:
            joined = not gap and _SOFT.match(line) is not None
        if joined:
            units.pop()
        else:
            start = begin + (bullet.end() if bullet else 0)
            item = bullet is not None and not line.lstrip().startswith("#")
        units.append((start, begin + len(line), item))
        gap = False
    return units


def _stops(marked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of sentences; what is too long is cut at white space, never inside a reference."""
    for stop, sign in [*((match.end(), match[0]) for match in _STOP.finditer(marked, start, end)), (end, "")]:
        if sign == "." and _ABBREVIATION.search(marked, max(start, stop - 9), stop):
            continue
        while stop - start > LONGEST and marked.count(FILL, start, stop) < stop - start - LONGEST:
            cut = marked.rfind(" ", start, start + LONGEST)
            cut = cut if cut > start else start + LONGEST
            while cut < stop and marked[cut] == FILL:
                cut += 1
            yield start, cut
            start = cut
        yield start, stop
        start = stop


def _squeeze(marked: str, start: int, end: int) -> tuple[str, list[int]]:
    text, places = marked[start:end].translate(_FOLD), list(range(start, end))
    for match in reversed(list(_SQUEEZE.finditer(text))):
        first, last = match.span()
        kept = "" if text[first] == FILL or not first else " "
        text = text[:first] + kept + text[last:]
        del places[first + len(kept) : last]
    return text.rstrip(), places
