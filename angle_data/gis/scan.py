"""Reads the store once, thread by thread, and collects what is said of duplicates; nothing is judged here.

Issues, comments and events of a repository are streamed side by side in the order of their numbers. What is
kept grows with the number of issues and of statements found, not with the number or length of comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar
from urllib.parse import urlsplit

from angle_data.gis.kinds import Direction
from angle_data.gis.references import may_refer
from angle_data.gis.rows import Comment, Event, Issue, Repo
from angle_data.gis.store import Store
from angle_data.gis.texts import Node
from angle_data.gis.threads import read_thread
from angle_data.gis.trust import Facts, Rank, confidence, gather_facts, is_duplicate_label, rank

__all__ = ["Denied", "Head", "Scan", "Statement", "scan_store"]

_MENTION = re.compile(r"(?:[#＃]|\bgh-|/issues/)([1-9]\d{0,8})\b", re.IGNORECASE)
_HIDDEN = frozenset({"spam", "abuse"})
_PUBLIC_WEB = "https://github.com"

_Target = tuple[int | None, int]
"""Repository id (None if it was not crawled) and number."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the build needs to know of an issue beside its text.

    `marked` says that a label or the state calls it a duplicate, of whatever issue.
    """

    created_at: str
    labels: tuple[str, ...]
    is_pull: bool
    gone: str | None
    marked: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """Something says that two issues are duplicates: a comment, or GitHub's own mark (`source` `event`).

    It stands in the thread `here` and names `repo`#`number`. `withdrawn` is why it no longer counts
    (`retracted`, `unmarked`, `reopened`), empty if it does; `disputed`: somebody without the right to take it
    back objected. `url` is where to read it.
    """

    here: Node
    repo: str
    number: int
    direction: Direction
    source: Literal["comment", "event"]
    kind: str
    rank: Rank
    confidence: float
    url: str
    created_at: str
    facts: Facts
    span: tuple[int, int] | None = None
    withdrawn: str = ""
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Denied:
    """Somebody says that issue `here` and `repo`#`number` are no duplicates."""

    here: Node
    repo: str
    number: int
    url: str
    created_at: str


@dataclass
class Scan:
    """Everything found in a store.

    `names` maps every known name of a repository, in lower case, to its id; `mentions` holds for each
    repository the pairs of numbers (smaller, larger) where a thread of one names the other; `web` is the
    address of the site.
    """

    repos: dict[int, Repo] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    heads: dict[Node, Head] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    denied: list[Denied] = field(default_factory=list)
    mentions: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    comments: int = 0
    web: str = _PUBLIC_WEB

    def url(self, node: Node) -> str:
        """Return the page of an issue."""
        return f"{self.web}/{self.repos[node[0]].name}/issues/{node[1]}"

    def mentioned(self, one: Node, other: Node) -> bool:
        """Whether the thread of one of two issues of a repository names the other."""
        pair = (min(one[1], other[1]), max(one[1], other[1]))
        return one[0] == other[0] and pair in self.mentions.get(one[0], ())


def scan_store(store: Store, tell: Callable[[str, int], None] = lambda name, count: None) -> Scan:
    """Read the whole store; `tell` gets the name of a repository and how many issues of it are done."""
    found = Scan()
    for repo in store.repos():
        found.repos[repo.id] = repo
        found.names.update((name.lower(), repo.id) for name in (*repo.aliases, repo.asked, repo.name))
    # A present name outranks the former name of another repository.
    found.names.update((repo.name.lower(), repo.id) for repo in found.repos.values())
    first = next(store.comments(), None)
    if first is not None and urlsplit(first.url).netloc:
        found.web = "{0.scheme}://{0.netloc}".format(urlsplit(first.url))
    for repo in found.repos.values():
        comments, events = _Groups(store.comments(repo.id)), _Groups(store.events(repo.id))
        found.mentions[repo.id] = set()
        for done, issue in enumerate(store.issues(repo.id), start=1):
            _read_issue(found, repo, issue, comments.take(issue.number), events.take(issue.number))
            if done % 1_000 == 0:
                tell(repo.name, 1_000)
    return found


Row = TypeVar("Row", Comment, Event)


class _Groups(Generic[Row]):
    """The rows of one number after the other, as the numbers are asked for in ascending order."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows: Iterator[Row] = rows
        self._next: Row | None = next(rows, None)

    def take(self, number: int) -> list[Row]:
        """Return the rows of `number` and skip those of smaller numbers."""
        found: list[Row] = []
        while self._next is not None and self._next.number <= number:
            if self._next.number == number:
                found.append(self._next)
            self._next = next(self._rows, None)
        return found


def _read_issue(found: Scan, repo: Repo, issue: Issue, comments: list[Comment], events: list[Event]) -> None:
    marked = issue.state_reason == "duplicate" or any(is_duplicate_label(label) for label in issue.labels)
    here = (repo.id, issue.number)
    found.heads[here] = Head(issue.created_at, issue.labels, issue.is_pull, issue.gone, marked)
    found.comments += len(comments)
    mentions = found.mentions[repo.id]
    for text in (issue.title, issue.body, *(comment.body for comment in comments)):
        for number in _MENTION.findall(text):
            mentions.add((min(int(number), issue.number), max(int(number), issue.number)))
    for event in events:
        if event.target_number is not None and (event.target_repo or repo.name).lower() in _names(repo):
            pair = (event.target_number, issue.number)
            mentions.add((min(pair), max(pair)))
    if issue.is_pull:
        return
    unmarked = _replay(found, here, events, issue)
    remarks = [comment for comment in comments if comment.minimized not in _HIDDEN]
    if any(may_refer(comment.body) for comment in remarks):
        _read_comments(found, repo, issue, remarks, events, unmarked)


def _names(repo: Repo) -> set[str]:
    return {name.lower() for name in (repo.name, repo.asked, *repo.aliases)}


def _replay(found: Scan, here: Node, events: Iterable[Event], issue: Issue) -> dict[_Target, str]:
    """Note what GitHub's marks come to; returns when each target was unmarked for good."""
    repo = found.repos[here[0]]
    last: dict[_Target, Event] = {}
    for event in events:
        if event.kind in ("marked", "unmarked") and event.target_number is not None:
            last[_key(found, event.target_repo or repo.name, event.target_number)] = event
    unmarked: dict[_Target, str] = {}
    for key, event in last.items():
        name, url = event.target_repo or repo.name, found.url(here)
        if event.kind == "unmarked":
            unmarked[key] = event.created_at
            found.denied.append(Denied(here, name, key[1], url, event.created_at))
        withdrawn = "unmarked" if event.kind == "unmarked" else _reopened(issue, events, event.created_at)
        facts = Facts(state_reason=issue.state_reason == "duplicate", event=event.kind == "marked")
        found.statements.append(
            Statement(
                here, name, key[1], "this_is_dup_of", "event", "event", Rank.EVENT, 0.99, url,
                event.created_at, facts, withdrawn=withdrawn,
            )
        )  # fmt: skip
    return unmarked


def _read_comments(
    found: Scan,
    repo: Repo,
    issue: Issue,
    comments: list[Comment],
    events: list[Event],
    unmarked: dict[_Target, str],
) -> None:
    here = (repo.id, issue.number)
    host = urlsplit(found.web).netloc.lower()
    thread = read_thread(comments, repo.name, issue.number, hosts=frozenset({host}))
    for item in thread.links:
        link, comment = item.link, comments[item.comment]
        facts = gather_facts(link, comment, issue, events, repo=repo.name)
        if item.retracted_by is not None:
            withdrawn = "retracted"
        elif comment.created_at <= unmarked.get(_key(found, link.repo, link.number), ""):
            withdrawn = "unmarked"
        else:
            withdrawn = _reopened(issue, events, comment.created_at)
        found.statements.append(
            Statement(
                here, link.repo, link.number, link.direction, "comment", link.kind, rank(link, facts),
                confidence(link, facts), comment.url, comment.created_at, facts, link.span, withdrawn,
                item.disputed_by is not None,
            )
        )  # fmt: skip
    for denial in thread.denials:
        comment = comments[denial.comment]
        found.denied.append(
            Denied(here, denial.link.repo, denial.link.number, comment.url, comment.created_at)
        )


def _key(found: Scan, repo: str, number: int) -> _Target:
    return found.names.get(repo.lower()), number


def _reopened(issue: Issue, events: Iterable[Event], since: str) -> str:
    """`reopened` if the issue was opened again after `since` and stands open, else nothing."""
    if issue.state != "open":
        return ""
    changes = [event for event in events if event.kind in ("closed", "reopened")]
    if changes:
        reopened = changes[-1].kind == "reopened" and changes[-1].created_at >= since
    else:
        reopened = issue.state_reason == "reopened"
    return "reopened" if reopened else ""
