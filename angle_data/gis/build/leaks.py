"""Takes out of an issue's own text what would tell its label: references, and what it says of duplicates.

Many originals and duplicates were edited to say so, or come from another tracker with a list of links. What
is a reference and what is a statement is decided by the grammar that reads the comments (`markers`). A
sentence that names no issue is only recognised where it calls the issue itself a duplicate, in English. Keys
of other trackers are no references.
"""

from __future__ import annotations

import re

from angle_data.gis.comments.reading import read_comment
from angle_data.gis.comments.references import find_references, may_refer

_HERE = "this/issue"
# They send the reader on or compare, in sentences that say much else; masking is enough.
_MASKED_ONLY = frozenset({"similar", "pointer", "continued"})
_ROUNDS = 4
_FARTHEST = 300

_DUP = r"(?:dup|dupe|duped|duplicate[sd]?)"
_OF = r"(?:\s+(?:of\s+\S{1,100}|[#＃]?\d{1,9}))?"
_ADMITS = re.compile(
    r"\b(?:this|mine)(?: (?:issue|bug|one|ticket|report|request))?"
    r"(?:'s| is| was| may be| might be| seems to be| looks like)"
    r"(?: (?:already|probably|likely|possibly|now|an?|the|exact|possible)){0,3} (?:dup|dupe|duplicate)\b"
    r"(?=[ \t]*(?:[.,;:!?)]|$)|[ \t]+(?:please|so|and|issue|bug|ticket|report)\b)"
    r"|\b(?:clos(?:ed|ing)(?: (?:this|it|mine))?|mark(?:ed|ing) (?:this|mine)) as (?:an? )?(?:exact )?"
    rf"{_DUP}\b",
    re.IGNORECASE | re.MULTILINE,
)
_EDGE = re.compile(r"[.!?。！？][\"')\]*_]{0,4}(?:[ \t]+|(?=\n)|\Z)|\n")
_TAG = re.compile(
    rf"[\[({{]\s{{0,3}}(?:closed[ ,:-]{{1,3}}(?:as )?)?(?:an? |exact |possible |potential )?{_DUP}{_OF}"
    r"\s{0,3}[\])}][ \t]*[:\-–—]?",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"^(?:possible |potential )?{_DUP}{_OF}(?:\s?:|\s{{1,3}}[-–—|]{{1,3}})\s+", re.IGNORECASE
)
_AFTER = re.compile(rf"\s[-–—:|]{{1,3}}\s{{0,3}}{_DUP}{_OF}[.!]?$", re.IGNORECASE)
_LINKED = re.compile(
    r"^[ \t]*[#*_]{0,8}[ \t]*(?:issue ?links?|linked issues?|duplicates?(?: issues?)?|is duplicated by"
    r"|duplicate of)[ \t]*:?[*_]{0,4}[ \t]*:?[ \t]*\n(?:[ \t]*\n){0,2}"
    r"(?:[ \t]*(?:[-*+]|\d{1,2}[.)])[ \t]+[^\n]{0,300}?[#＃/-]\d[^\n]*(?:\n|\Z))+",
    re.IGNORECASE | re.MULTILINE,
)
_RELATION = re.compile(
    r"^[ \t]*[-*+][^\n]{0,300}?[\"(_*]{1,6}(?:is )?duplicate[sd](?: by)?[\")_*]{1,6}[^\n]*(?:\n|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD = re.compile(
    r"^[ \t]*(?:[-*+|][ \t]*)?[*_]{0,3}(?:labels?|resolution|resolved|status|state|close reason|merged ?into)"
    rf"[*_]{{0,3}}[ \t]*[:|][*_ \t|]*(?:[\w-]{{1,20}}[,;/ \t]{{1,3}}){{0,3}}?{_DUP}\b"
    r"[*_. \t]{0,9}(?:(?:[,;/|)(#]|of\b)[^\n]{0,80})?(?:\n|\Z)"
    r"|^[ \t]*duplicate-of[ \t]*:[^\n]{0,200}(?:\n|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_ASKED = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*)(?=[^\n]{0,200}\?)"
    r"(?:is|are|was|has|have|did|could) (?:this|there|it|you|your|the)\b[^\n]{0,120}?"
    r"\b(?:duplicat\w{1,5}|existing (?:issues?|tickets?)|already (?:been )?(?:reported|exists?|filed)|"
    r"searched)\b"
    r"[^\n]{0,160}(?:\n|\Z)(?:[ \t]*\n){0,3}"
    r"(?:[ \t]*(?:[-*][ \t]*)?"
    r"(?:yes|no|nope|yep|n/?a|none|not|searched|checked|I(?:'ve| have| did| searched)?)\b[^\n]{0,160}"
    r"(?:\n|\Z))?",
    re.IGNORECASE | re.MULTILINE,
)
_VOWS = re.compile(
    r"^[ \t]*(?:[-*+☑☒✅✔✓][ \t]*){0,3}"
    r"(?:I (?:confirm|certify|agree|believe)\b[^\n]{0,60}\bnot\b|this is not|not)\b"
    r"[^\n]{0,20}\bduplicate\b[^\n#/]{0,60}(?:\n|\Z)",
    re.IGNORECASE | re.MULTILINE,
)


def mask_references(text: str) -> str:
    """Return `text` with `[issue]` for every reference to an issue or pull request."""
    if not may_refer(text):
        return text
    parts: list[str] = []
    last = 0
    for found in find_references(text, _HERE):
        if found.number:
            parts += (text[last : found.start], "[issue]")
            last = found.end
    return "".join((*parts, text[last:]))


def cut_sections(text: str) -> str:
    """Return `text` without lists of linked issues, fields and vows that speak of duplicates."""
    if "uplica" not in text and "UPLICA" not in text and "ink" not in text and "xisting" not in text:
        return text
    for pattern in (_LINKED, _RELATION, _FIELD, _ASKED, _VOWS):
        text = pattern.sub("", text)
    return text


def cut_tags(title: str) -> str:
    """Return a title without tags such as `[duplicate]` and `DUPLICATE - `, and the statement it may hold."""
    title = _AFTER.sub("", _BEFORE.sub("", _TAG.sub("", title).strip()))
    for start, end in _statements(title):
        title = (title[:start] + title[end:]).strip(" -–—:,")
        break
    return "" if re.fullmatch(rf"{_DUP}[.!]*", title, re.IGNORECASE) else title


def cut_statements(text: str) -> str:
    """Return `text` without the sentences that say that the issue is, or is not, a duplicate."""
    for _ in range(_ROUNDS):
        spans = _statements(text)
        if not spans:
            break
        text = _without(text, spans)
    return text


def _statements(text: str) -> list[tuple[int, int]]:
    spans = [match.span() for match in _ADMITS.finditer(text)] if "dup" in text.casefold() else []
    if may_refer(text):
        reading = read_comment(text, _HERE, 0)
        said = (*reading.links, *reading.denials)
        spans += [link.span for link in said if link.family not in _MASKED_ONLY]
    return sorted(spans)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Cut the sentences around the spans; of one without an end, what is near."""
    edges = [(0, 0), *(match.span() for match in _EDGE.finditer(text)), (len(text), len(text))]
    parts: list[str] = []
    last = position = 0
    for start, end in spans:
        while position + 1 < len(edges) and edges[position + 1][1] <= start:
            position += 1
        closing = position
        while closing + 1 < len(edges) and edges[closing][1] < end:
            closing += 1
        first, after = max(edges[position][1], start - _FARTHEST), min(edges[closing][1], end + _FARTHEST)
        if first >= last:
            parts.append(text[last:first])
        last = max(last, after)
        if text[last - 1 : last] == "\n" and text[first - 1 : first] not in ("\n", ""):
            last -= 1
    return "".join((*parts, text[last:]))
