"""Turns title and body of an issue into the text of the data set: what its writer says, without label leaks.

References to other issues are masked, and sentences that speak of duplicates are cut: many issues were
edited to say so, or come from another tracker with a list of links. The grammar that reads the comments
decides what is a reference and what a statement. A sentence that names no issue is recognised only where it
calls the issue itself a duplicate, in English. Every pattern is linear in the length of the text or bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest

from angle_data.gis.build.evidence import Node
from angle_data.gis.build.forms import without_forms
from angle_data.gis.build.scrub import scrub
from angle_data.gis.comments.boilerplate import FOOTER, HTML_COMMENT, PROMISE, TICKED_OR_PROMISE
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.comments.references import find_references, may_refer
from angle_data.gis.crawl.rows import Issue
from angle_data.gis.crawl.store import Store
from angle_data.text import whole_characters, words

_PIECE = re.compile(
    r"(?P<code>^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n`]*\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z))"
    rf"|{HTML_COMMENT}",
    re.DOTALL | re.MULTILINE,
)
_DATA = re.compile(r"data:[a-z]+/[\w.+-]{1,60};base64,[A-Za-z0-9+/=]*", re.IGNORECASE)
_IMAGE = re.compile(
    r"!\[[^\]\n]{0,300}\]\([^()\s]{0,2000}(?:\s\"[^\"\n]{0,200}\")?\)|<(?:img|video)\b[^<>]{0,2000}>",
    re.IGNORECASE,
)
_HOSTED = (
    r"https?://(?:(?:user-images|camo|private-user-images)\.githubusercontent\.com|"
    r"cloud\.githubusercontent\.com|"
    r"[\w.-]{1,100}/user-attachments|[\w.-]{1,100}/[\w.-]{1,100}/[\w.-]{1,100}/(?:files|assets)/\d)"
)
_ATTACHED = re.compile(
    rf"\[([^\]\n]{{0,300}})\]\({_HOSTED}[^()\s]{{0,2000}}\)|{_HOSTED}[^\s()<>\"']{{0,2000}}"
)
_LONG_URL = re.compile(r"(https?://[^\s<>()\"'?#]{1,2000})[?#][^\s<>()\"']{100,}")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{160,}")
_ISSUE_URL = re.compile(
    r"(?:https?://)?(?:www\.)?(?<![\w.-])[\w.-]{1,100}(?::\d{2,5})?/[A-Za-z0-9][\w-]{0,38}/[\w.-]{1,100}/"
    r"(?:issues|pull|discussions)/\d{1,9}(?:[/?#][\w/?=&#.-]{0,200})?",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:(?:possib(?:le|ly)|potential(?:ly)?|maybe|may be|might be|probably|likely|this is|is|an?|exact|"
    r"the same as|same as) ){0,4}(?:dup(?:e|licate)?s?(?: of|:)?|same as|identical to|see also) ?"
    r"(?=(?:\[[^\]\n]{0,100}\]\()?\[issue\])",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[ \t]*(?:(#{1,6})[ \t]+\S|\*\*[^*\n]{1,120}\*\*:?[ \t]*$|__[^_\n]{1,120}__:?[ \t]*$)")
_NO_ANSWER = re.compile(r"[ \t]*[_*]*(?:no response|n/?a|none)\.?[_*]*[ \t]*$", re.IGNORECASE)
_BLANKS = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_DUMMY_WORDS = """
test testing tests asdf asd qwerty foo bar hello hi issue bug title untitled placeholder delete ignore deleted
spam please this is me a the new an it abc aaa sample example dummy
"""
_DUMMY = frozenset(_DUMMY_WORDS.split())
_LEAST_WORDS = 3
_KEPT = 4_096  # cleaned texts in memory

# What an issue says of duplicates in its own text.
_HERE = "this/issue"
# They send the reader on or compare, in sentences that say much else; masking is enough.
_MASKED_ONLY = frozenset({"similar", "continued"})
_ROUNDS = 4
_FARTHEST = 300
_FEW_WORDS = 3

_DUP = r"(?:dup|dupe|duped|duplicate[sd]?)"
_OF = r"(?:\s+(?:of\s+\S{1,100}|[#＃]?\d{1,9}))?"
_LIGHT = (
    r"(?:edit|update|oops|ok|okay|yes|no|sorry|please|pls|ignore|clos(?:e|ed|ing)|deleted?|resolved|mark(?:ed|ing)"
    r"|possibl[ey]|potential(?:ly)?|probabl[ey]|likely|may|maybe|might|could|be|an?|the|exact|this|that|it|it's"
    r"|is|was|as|my|mine|of|above|now|and|so|but|issue|bug|one|ticket|report|request|post|already)"
)
_POINTER = (
    r"(?:see|siehe|voir|véase|ver|vedi|zie|смотри|cf|vgl|ref|like|number|no|nr|issue|bug|ticket|also|please|"
    r"continued|moved|merg(?:ed|ing)|tracked|kept|open|in|into|to|with|under|similar|same|as|my|the|other|"
    r"earlier|older|first|one|report|was|is)"
)
_AGAIN = r"(?:twice|two times|double|more than once|multiple times|again)"
_SENT = r"(?:sent|posted|submitted|filed|opened|created|reported)"
# The issue itself is called a duplicate, or a second report, without the number of the other one.
_LEAKS = re.compile(
    r"\b(?:this|mine)(?: (?:issue|bug|one|ticket|report|request))?"
    r"(?:'s| is| was| may be| might be| seems to be| looks like)"
    r"(?: (?:already|probably|likely|possibly|not|now|an?|the|exact|possible)){0,3} (?:dup|dupe|duplicate)\b"
    r"(?=[ \t]*(?:[.,;:!?)]|$)|[ \t]+(?:please|so|and|issue|bug|ticket|report)\b)"
    r"|\b(?:clos(?:ed|ing)(?: (?:this|it|mine))?|mark(?:ed|ing) (?:this|mine)) as (?:an? )?(?:exact )?"
    rf"{_DUP}\b"
    # Finds: "Oops, duplicate."
    rf"|(?:^|(?<=[.!?] ))(?![*>] )[*_~(>]{{0,3}}[ \t]?(?:{_LIGHT}\b[^\w\n#]{{1,6}}){{0,8}}{_DUP}\b"
    rf"(?:[^\w\n]{{1,6}}{_LIGHT}\b){{0,8}}[^\w\n]{{0,9}}(?:$|(?<=[.!?]) )"
    r"|(?:^|(?<=[.!?] ))(?:this is |it is |it's )?(?:the )?same (?:(?:issue|bug|problem|thing) )?as "
    r"(?:issue |bug )?(?:no\. ?)?\d{2,7}(?: and \d{2,7})?(?=[ \t]*(?:[.,;!)]|$))"
    r"|\b(?:sorry|apologies) (?:for|about|if) (?:(?:the|my|this|is|it's|an?|accidental|possible) ){0,3}"
    r"(?:dup\w*|re-?post\w*|double[- ](?:post|submi)\w+)\b"
    # Finds: "Marked as duplicate by the bot."
    r"|(?:^|(?<=[.!?] ))(?:was |auto(?:matically )?-?)?(?:closed|marked|flagged|labell?ed)"
    rf"(?: by [\w -]{{1,30}})?(?: as|:) (?:an? )?(?:exact |possible |potential )?{_DUP}\b"
    # Finds: "see 47" "Number 55, please merge." "Continued in 4711"
    rf"|(?:^|(?<=[.!?] ))(?:{_POINTER}\b[ :.,]{{1,3}}){{1,6}}\d{{1,7}}"
    r"(?:,? (?:please )?(?:close|merge)d?| again)?[.!]?[ \t]*$"
    # Finds: "[duplicate]" "This one is redundant." "Wurde schon gemeldet." "*** ... a duplicate of bug 5 ***"
    rf"|^[*_ \t]{{0,5}}[\[({{](?:possible |potential )?{_DUP}[\])}}][*_ \t]{{0,5}}$"
    r"|\bthis (?:issue|one|ticket|report|bug) is (?:now )?redundant\b"
    r"|^(?:(?:das|dies|es) )?(?:wurde|ist) (?:schon|bereits) (?:ein(?:mal)? )?gemeldet\b|^bereits gemeldet\b"
    rf"|^[ \t]*\*\*\*[^\n]{{1,200}}\b{_DUP}\b[^\n]{{0,200}}$"
    r"|^re-?post(?:ed)?\b[^\n]{0,20}$"
    # Finds: "This was already reported as 4123." "Already filed, sorry."
    r"|(?:^|(?<=[.!?] )|\b(?:this|it)(?: issue| bug| one)?(?:'s| is| was| has)(?: been)? )"
    rf"already(?: been)? {_SENT}"
    r"(?=[ \t]*(?:[.,;!)]|$)|[ \t]+(?:as|in|at|under|before|elsewhere|here|several|many)\b)"
    # Finds: "This was posted twice by accident." "Submitted twice, sorry."
    rf"|(?:^|(?<=[.!?] )|\bsorry[,:]? |"
    rf"\b(?:I|this|it)(?: issue| bug| one)?(?:'s| is| was| got| has been| have)? )"
    rf"(?:accidentally )?{_SENT} (?:this |it |the issue )?{_AGAIN}\b"
    r"|\b(?:accidental|accidentally|mistakenly) double[- ](?:post|submi)\w+|^double[- ]post\w*\b",
    re.IGNORECASE | re.MULTILINE,
)
_HINT = re.compile(
    r"dup|\d|close|same |sorry|apolog|twice|double|already|again|times|once|redundant|gemeldet|re-?post",
    re.IGNORECASE,
)
_ANSI = re.compile(r"(?:\x1b|\u241b)\[[0-9;?]{0,20}[A-Za-z]")
# Codes that lost their escape character; "[5m, 10m)" and "rate(x[15m])" are none.
_BARE_ANSI = re.compile(r"\[(?:(?:\d{1,3};){1,4}\d{1,3}|[01]|[39][0-7])m(?![\]:,)])")
_FOLD = re.compile(r"(?<![ \t])[ \t]*+</?(?:details|summary)\b[^<>\n]{0,100}>[ \t]*", re.IGNORECASE)
_LETTERS = re.compile(r"[A-Za-zÀ-ӿ'’-]+|[^\W\d_]")
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
_SHOUTED = re.compile(r"^(?:DUP|DUPE|DUPLICATE)\s++(?=[^A-Z]*[a-z])")  # Finds: "DUPLICATE crash on start"
_LINKED = re.compile(
    r"^[ \t]*+[#*_]{0,8}+[ \t]*+(?:issue ?links?|linked issues?|duplicates?(?: issues?)?|is duplicated by"
    r"|duplicate of)[ \t]*+:?[*_]{0,4}+[ \t]*+:?[ \t]*+\n(?:[ \t]*+\n){0,2}"
    r"(?:[ \t]*+(?:[-*+]|\d{1,2}[.)])[ \t]+[^\n]{0,300}?[#＃/-]\d[^\n]*(?:\n|\Z))+",
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

LONGEST_TEXT = 20_000  # characters of a text; what goes beyond are logs, as a rule
CUT = "\n\n[cut]"  # the end of a text that was longer
MASKED = "[issue]"  # what stands for a reference to an issue


def clean_text(title: str, body: str, forms: Collection[str] = ()) -> str:
    """Return the cleaned text of an issue: title, blank line, body; empty if nothing is left of it.

    `forms` are the lines of its repository's issue forms (see `forms.FormLines`), which go.
    """
    title = " ".join(_lines(title).split())
    # Tags such as `[duplicate]` and `DUPLICATE - `, and the statement that it may hold.
    title = _AFTER.sub("", _BEFORE.sub("", _TAG.sub("", title).strip()))
    for start, end in _statements(title)[:1]:
        title = (title[:start] + title[end:]).strip(" -–—:,")
    title = _prose(_SHOUTED.sub("", title)).strip()
    # Prose and what stands between: a block of code, its fence, or None for a comment.
    pieces = _PIECE.split(_lines(body))
    prose = (_without_pointers(_prose(without_forms(piece, forms))) for piece in pieces[::3])
    code = (_code(piece or "") for piece in pieces[1::3])
    parts = "".join(part for both in zip_longest(prose, code, fillvalue="") for part in both)
    body = _BLANKS.sub("\n\n", _without_empty_sections(parts)).strip()
    text = f"{title}\n\n{body}".strip()
    if len(text) <= LONGEST_TEXT:
        return text
    end = text.rfind("\n", LONGEST_TEXT // 2, LONGEST_TEXT)  # of a line near the limit
    return text[: end if end > 0 else LONGEST_TEXT].rstrip() + CUT


def is_dummy(text: str) -> bool:
    """Whether a cleaned text says nothing: a test, a placeholder, or fewer than three distinct words."""
    said = words(text)
    return len(said) < _LEAST_WORDS or said <= _DUMMY


def _lines(text: str) -> str:
    text = whole_characters(text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    text = _ANSI.sub("", text) if "[" in text else text
    return _BARE_ANSI.sub("", text) if "[0m" in text else text


def _prose(text: str) -> str:
    if not text.strip():
        return text
    for pattern in (_FOLD, TICKED_OR_PROMISE, PROMISE, FOOTER):
        text = pattern.sub("", text)
    # Lists of linked issues, and fields that speak of duplicates.
    if "uplica" in text or "UPLICA" in text or "ink" in text:
        for pattern in (_LINKED, _RELATION, _FIELD):
            text = pattern.sub("", text)
    # The sentences that say that the issue is, or is not, a duplicate.
    for _ in range(_ROUNDS):
        if not (spans := _statements(text)):
            break
        text = _without(text, spans)
    for found in reversed(find_references(text, _HERE) if may_refer(text) else ()):
        if found.number:
            text = f"{text[: found.start]}{MASKED}{text[found.end :]}"
    text = _ATTACHED.sub(r"\1", _IMAGE.sub("", text))
    return _SAID.sub("", _code(text, prose=True))


def _code(text: str, *, prose: bool = False) -> str:
    text = _DATA.sub("[data]", _ISSUE_URL.sub(MASKED, text))
    text = scrub(text, code=not prose)
    return _BLOB.sub("[data]", _LONG_URL.sub(r"\1", text))


def _without_empty_sections(text: str) -> str:
    """Drop headings with nothing below them; `#` in code is no heading."""
    kept: list[str] = []  # from the last line to the first
    fenced = [False]
    lines = text.split("\n")
    for line in lines:
        fenced.append(fenced[-1] ^ line.lstrip().startswith(("```", "~~~")))
    level_below = 0  # depth of the heading kept last; 0 at the end of the text
    answered = False  # whether anything but headings stands between that heading and here
    for line, inside in zip(reversed(lines), reversed(fenced[:-1]), strict=True):
        heading = None if inside else _HEADING.match(line)
        if heading is None:
            if not inside and _NO_ANSWER.match(line):
                continue
            answered = answered or bool(line.strip())
            kept.append(line)
            continue
        level = len(heading[1]) if heading[1] else 7
        if not answered and level_below <= level:
            continue
        kept.append(line)
        answered = False
        level_below = level
    return "\n".join(reversed(kept))


def _statements(text: str) -> list[tuple[int, int]]:
    spans = [match.span() for match in _LEAKS.finditer(text)] if _HINT.search(text) else []
    if may_refer(text):
        reading = read_comment(text, _HERE, 0)
        said = (*reading.links, *reading.denials)
        spans += [link.span for link in said if link.family not in _MASKED_ONLY]
    return sorted(spans)


def _without_pointers(text: str) -> str:
    """Cut sentences that say hardly more than that there is another issue ("Zusammengeführt mit [issue]")."""
    if MASKED not in text:
        return text
    parts, start = list[str](), 0
    for end in [*(match.end() for match in _EDGE.finditer(text)), len(text)]:
        sentence, start = text[start:end], end
        words_of_its_own = len(_LETTERS.findall(sentence.replace(MASKED, "")))
        pointer = MASKED in sentence and words_of_its_own <= _FEW_WORDS
        parts.append("\n" * sentence.endswith("\n") if pointer else sentence)
    return "".join(parts)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Cut the sentences around the spans; of one without an end, what is near."""
    ends = [0, *(match.end() for match in _EDGE.finditer(text)), len(text)]
    parts = list[str]()
    last = 0
    for start, end in spans:
        first = max(ends[bisect_right(ends, start) - 1], start - _FARTHEST)
        after = min(ends[bisect_left(ends, end)], end + _FARTHEST)
        if first >= last:
            parts.append(text[last:first])
        last = max(last, after)
        if text[last - 1 : last] == "\n" and text[first - 1 : first] not in ("\n", ""):
            last -= 1
    return "".join((*parts, text[last:]))


class Texts:
    """Cleaned texts, read from the store when asked for; `get` returns an empty one if there is none.

    `forms` has the lines of issue forms that go, by repository id.
    """

    def __init__(self, store: Store, forms: Mapping[int, Collection[str]] | None = None) -> None:
        self._store, self._forms = store, forms or {}
        self.get = lru_cache(_KEPT)(self._clean)

    def of_repository(self, repo_id: int) -> Iterator[tuple[Issue, str]]:
        """Yield the issues of a repository that are there to read, with their cleaned texts, by number."""
        for issue in self._store.issues(repo_id):
            if not issue.is_pull and not issue.gone:
                yield issue, clean_text(issue.title, issue.body, self._forms.get(repo_id, ()))

    def _clean(self, node: Node) -> str:
        for issue in self._store.issues(node[0], [node[1]]):
            return clean_text(issue.title, issue.body, self._forms.get(node[0], ()))
        return ""
