"""Finds what a comment points at, as GitHub's own autolinks and as people write it: `of#26`, `＃26`.

https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

REF, FILL, OTHER, SELF = "\ue000", "\ue001", "\ue002", "\ue003"
"""What stands for a reference in marked text: first character `REF` (`SELF` for the issue itself, `OTHER` for
a link to something else), the rest `FILL`."""


PUBLIC_HOSTS = frozenset(
    {"github.com", "www.github.com", "redirect.github.com", "togithub.com", "www.togithub.com"}
)
"""The hosts whose addresses lead to github.com."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Something pointed at, between `start` and `end` of the text.

    `repo` is `owner/name` as written or that of the comment; `number` is 0 and `repo` empty for a link to
    something that is no issue. `pull`: the writer says that it is a pull request.
    """

    start: int
    end: int
    repo: str
    number: int
    pull: bool = False

    @property
    def target(self) -> tuple[str, int]:
        """What two references to one issue share: (`repo` in lower case, number)."""
        return self.repo.casefold(), self.number


# Finds: "see #5"
_MAY_REFER = re.compile(
    r"[#＃]\d|\bgh-\d|/(?:issues|pull)/\d|\b(?:dup|dupe|duplicate)(?: of)?(?: issue| bug| ticket)? +\d",
    re.IGNORECASE,
)
# Finds: "26"
_NUMBER = r"[1-9]\d{0,6}(?!_{0,3}[A-Za-z0-9]|\.\d)"  # the underscores of emphasis may follow
# Finds: "lumen"
_OWNER = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}"
# Finds: "of"
_GLUED = r"issues?|bugs?|tickets?|pr|of|to|in|see|by|with|as|is|for|dupe?|duplicate"
# Finds: "lumen/editor#26"
_TOKEN = re.compile(
    rf"""^[ ]{{0,3}}\[[^\[\]\n]{{1,60}}\]:[ ]{{0,4}}(?P<definition>\S{{1,500}})
    | \[(?P<text>[^\[\]\n]{{0,300}})\]\(<?(?P<dest>[^()\s<>]{{1,500}})>?(?:\s"[^"\n]{{0,200}}")?\)
    | \[(?P<label_text>[^\[\]\n]{{1,300}})\]\ ?\[(?P<label>[^\[\]\n]{{1,60}})\]
    | <a\s[^<>]{{0,300}}?href=["'](?P<href>[^"'<>]{{1,500}})["'][^<>]{{0,200}}>(?P<anchor>[^<]{{0,300}})</a>
    | <?(?P<url>(?:https?://|www\.|(?<![\w./@])(?:redirect\.)?github\.com/)[^\s<>"'`()\[\]]{{4,1000}})>?
    | (?<![\w./@-])(?P<path>{_OWNER}/[A-Za-z0-9_.-]{{1,100}}/(?:issues|pull)/{_NUMBER})
    | (?<![\w/.\-])(?P<owner>{_OWNER}/[A-Za-z0-9_.-]{{1,100}})[#＃](?P<foreign>{_NUMBER})
    | (?<![A-Za-z0-9\#&.-])(?<![A-Za-z0-9]_)[#＃](?P<hash>{_NUMBER})
    | (?<![A-Za-z0-9_])(?:{_GLUED}|-)[#＃](?P<glued>{_NUMBER})
    | (?<![A-Za-z0-9_/.-])gh-(?P<gh>{_NUMBER})
    | ^[ ]{{0,3}}/(?:duplicate|dupe?)(?:[ ]of)?[ ]{{1,4}}(?P<command>{_NUMBER})
    | (?<![\w/])(?:duplicate|dupe?)[ ](?:of[ ])?(?:(?:issue|bug|ticket)[ ])?(?:no\.?[ ]|number[ ])?
        (?P<bare>[1-9]\d{{1,6}})(?=[.,;:)!]?(?:\s|$))(?![ ]\w)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# Finds: "https://github.com/lumen/editor/issues/26"
_ISSUE_URL = re.compile(
    r"(?:https?://)?(?P<host>[\w.-]+(?::\d+)?)/(?P<repo>[A-Za-z0-9][\w-]{0,38}/[\w.-]{1,100})/(?P<kind>issues"
    r"|pull)/(?P<number>[1-9]\d{0,8})(?:[/?#].*)?",
    re.IGNORECASE,
)
# Finds: "../issues/26"
_RELATIVE = re.compile(
    r"(?:\.\./){0,4}/?(?P<kind>issues|pull)/(?P<number>[1-9]\d{0,8})(?:[?#].*)?", re.IGNORECASE
)
# Finds: "[1]: https://github.com/lumen/editor/issues/26"
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]{1,60})\]: {0,4}<?(\S{1,500}?)>? *$", re.MULTILINE)
# Finds: "Duplicate"
_MARKER_TEXT = re.compile(
    r"dup|track|favou?r|same|clos|already|supersed|reported|covered by|replaced by", re.IGNORECASE
)

# "#3" counts things in these; it is no issue.
# Finds: "see option "
_COUNTED_BEFORE = re.compile(
    r"\b(?:priority|prio|step|option|point|item|foot-?note|note|question|answer|case|comment|section|chapter|"
    r"figure|fig|table|example|attempt|build|run|job|pipeline|test|scenario|discussion|commit|milestone|"
    r"release|version|phase|part|stage|rule|reason|bullet|line|page|slide|day|week|sprint|cl|change|"
    r"changeset|revision|patch|color|colour|channel|room|apartment|candidate|cause|variant|approach|number "
    r"one|todo|bpo|rank|schritt|punkt|étape|paso|шаг)s? $|\bbpo-$",
    re.IGNORECASE,
)
# Finds: " priority"
_COUNTED_AFTER = re.compile(
    r"\s(?:priority|reason|cause|request|feature|concern|thing|rule|choice|pick|favou?rite|above|below|"
    r"in (?:a series|the (?:list|guide))|of (?:the|this|my) (?:list|series))\b",
    re.IGNORECASE,
)
# Finds: "background"
_COLOUR = re.compile(r"colou?r|palette|hex|css|rgb|background|fill|theme", re.IGNORECASE)
# Finds: "merged PR "
_PULL_BEFORE = re.compile(r"\b(?:pr|prs|pull requests?|merge request)[ :]*$", re.IGNORECASE)


def hosts_of(site: str) -> frozenset[str]:
    """Return the hosts (with the port where it is not the usual one) whose addresses lead to a site."""
    host = urlsplit(site).netloc
    return PUBLIC_HOSTS if host in PUBLIC_HOSTS else frozenset({host})


def may_refer(text: str) -> bool:
    """Whether the text can hold a reference at all: a quick look that never misses one."""
    return _MAY_REFER.search(text) is not None or (("](" in text or "href" in text) and "issues/" in text)


def find_references(text: str, repo: str, hosts: frozenset[str] = PUBLIC_HOSTS) -> list[Reference]:
    """Return every reference and every other link in `text`, in order, none overlapping.

    `repo` is where short forms such as `#26` belong. `hosts` are those whose addresses count, in lower case,
    with the port where it is not the usual one; an issue elsewhere is something else.
    """
    labels = {m[1].casefold(): m[2] for m in _DEFINITION.finditer(text)} if "]:" in text else {}
    return [_read(match, text, repo, hosts, labels) for match in _TOKEN.finditer(text)]


def mark_references(text: str, references: list[Reference], repo: str, number: int) -> str:
    """Return `text`, of issue `number` in `repo`, with a stand-in of equal length for each reference."""
    parts: list[str] = []
    last = 0
    for ref in references:
        own = ref.number == number and ref.repo.casefold() == repo.casefold()
        sign = SELF if own else REF if ref.number else OTHER
        parts += (text[last : ref.start], sign, FILL * (ref.end - ref.start - 1))
        last = ref.end
    return "".join((*parts, text[last:]))


def _read(
    match: re.Match[str], text: str, repo: str, hosts: frozenset[str], labels: dict[str, str]
) -> Reference:
    kind = str(match.lastgroup)
    start, end = match.span()
    if kind == "url":
        url = match["url"].rstrip(".,;:!?*_~'")
        closing = match[0].startswith("<") and match[0].endswith(">")
        return _url(url, start, end if closing else match.start("url") + len(url), hosts)
    if kind == "path":
        return _url(f"github.com/{match['path']}", start, end, PUBLIC_HOSTS)
    if kind in ("dest", "label", "anchor"):
        return _link(match, kind, repo, hosts, labels)
    if kind == "foreign":
        return Reference(start, end, match["owner"], int(match["foreign"]))
    if kind == "definition":
        return Reference(start, end, "", 0)
    signed = kind in ("hash", "glued")
    first = match.start(kind) - signed
    colour = end - first in (4, 7) and _COLOUR.search(text, max(0, first - 60), end + 30)
    counted = _COUNTED_BEFORE.search(text, max(0, first - 24), first) or _COUNTED_AFTER.match(text, end)
    if signed and (colour or counted):
        return Reference(first, end, "", 0)
    pull = _PULL_BEFORE.search(text, max(0, first - 20), first) is not None
    return Reference(start if kind == "gh" else first, end, repo, int(match[kind]), pull)


def _link(
    match: re.Match[str], kind: str, repo: str, hosts: frozenset[str], labels: dict[str, str]
) -> Reference:
    """A link with a text of its own; where the text says what the link means, only the address is taken."""
    group = {"dest": "text", "label": "label_text", "anchor": "anchor"}[kind]
    address = match["dest"] or match["href"] or labels.get((match["label"] or "").casefold(), "")
    start, end = match.span()
    found = _url(address, start, end, hosts)
    relative = _RELATIVE.fullmatch(address)
    if relative and kind != "label":
        found = Reference(start, end, repo, int(relative["number"]), relative["kind"].lower() == "pull")
    if found.number and not _MARKER_TEXT.search(match[group]):
        return found
    # The closing bracket stays, so that text and address do not run together.
    return replace(found, start=match.end(group) + (kind != "anchor"))


def _url(url: str, start: int, end: int, hosts: frozenset[str]) -> Reference:
    parsed = _ISSUE_URL.fullmatch(url)
    if parsed and parsed["host"].casefold() in hosts:
        pull = parsed["kind"].casefold() == "pull"
        return Reference(start, end, parsed["repo"], int(parsed["number"]), pull)
    return Reference(start, end, "", 0)
