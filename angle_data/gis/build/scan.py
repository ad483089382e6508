"""Reads the store once, thread by thread, and collects what is said of duplicates; nothing is judged here.

Issues, comments and events of a repository are streamed side by side in the order of their numbers. What is
kept grows with the number of issues and of statements found, not with the number or length of comments.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from angle_data.gis.build.evidence import Facts, Rank, confidence, gather_facts, is_duplicate_label, rank
from angle_data.gis.build.texts import Node
from angle_data.gis.comments.vocabulary import Direction
from angle_data.gis.comments.references import may_refer
from angle_data.gis.comments.reading import WRITE_ROLES, Thread, read_thread
from angle_data.gis.crawl.rows import Comment, Event, Issue, Repo
from angle_data.gis.crawl.selection import Selection
from angle_data.gis.crawl.store import PUBLIC_WEB, Store, hosts_of

_MENTION = re.compile(r"(?:[#＃]|\bgh-|/issues/)([1-9]\d{0,8})\b", re.IGNORECASE)
_HIDDEN = frozenset({"spam", "abuse"})
_TOLD_AFTER = 1_000
_GONE = ("error:404", "error:410", "error:451")

_Target = tuple[int | str, int]
"""Repository id, or the name in lower case of one that was not crawled, and number."""


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
    repository the pairs of numbers where a thread of one names the other, packed (see `pack`) and in order;
    `web` is the address of the site. `left_out` maps the names of repositories that could not be read to the
    reason; `outside` are issues that the selection leaves out.
    """

    repos: dict[int, Repo] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    heads: dict[Node, Head] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    denied: list[Denied] = field(default_factory=list)
    mentions: dict[int, array[int]] = field(default_factory=dict)
    comments: int = 0
    web: str = PUBLIC_WEB
    left_out: dict[str, str] = field(default_factory=dict)
    outside: set[Node] = field(default_factory=set)

    def url(self, node: Node) -> str:
        """Return the page of an issue."""
        return f"{self.web}/{self.repos[node[0]].name}/issues/{node[1]}"

    def mentioned(self, one: Node, other: Node) -> bool:
        """Whether the thread of one of two issues of a repository names the other."""
        pair, known = pack(one[1], other[1]), self.mentions.get(one[0], ())
        place = bisect_left(known, pair)
        return one[0] == other[0] and place < len(known) and known[place] == pair


def pack(one: int, other: int) -> int:
    """Return two issue numbers, in whatever order, as one number."""
    return min(one, other) << 32 | max(one, other)


def scan_store(
    store: Store,
    tell: Callable[[str, int], None] = lambda name, count: None,
    *,
    selection: Selection | None = None,
) -> Scan:
    """Read what `selection` takes of the store, all of it by default.

    `tell` gets the name of a repository and how many more issues of it are done, or passed over. A
    repository that GitHub no longer shows (404, 410, 451) is left out, whatever the store holds of it.
    """
    selection = selection or Selection()
    found = Scan()
    for repo in _chosen(found, store, selection):
        found.repos[repo.id] = repo
        found.names.update((name, repo.id) for name in repo.names)
    # A present name outranks the former name of another repository.
    found.names.update((repo.name.lower(), repo.id) for repo in found.repos.values())
    for repo in store.repos():
        if repo.id not in found.repos:
            tell(repo.name, store.count("issues", repo.id))
    found.web = store.site()
    for repo in found.repos.values():
        comments, events = _Groups(store.comments(repo.id)), _Groups(store.events(repo.id))
        found.mentions[repo.id] = array("Q")
        done = 0
        for done, issue in enumerate(store.issues(repo.id), start=1):
            said, happened = comments.take(issue.number), events.take(issue.number)
            # A gone issue may still lead to where it went.
            if issue.gone is None and not selection.holds(issue.created_at):
                found.outside.add((repo.id, issue.number))
            else:
                _read_issue(found, repo, issue, said, happened, selection)
            if done % _TOLD_AFTER == 0:
                tell(repo.name, _TOLD_AFTER)
        found.mentions[repo.id] = array("Q", sorted(set(found.mentions[repo.id])))
        tell(repo.name, done % _TOLD_AFTER)
    return found


def _chosen(found: Scan, store: Store, selection: Selection) -> list[Repo]:
    """Return the repositories that count, by id, and note in `found.left_out` why others do not."""
    failures = store.failures()
    chosen: dict[int, Repo] = {repo.id: repo for repo in store.repos()}
    if selection.repos is None:
        found.left_out |= failures
    else:
        listed = {name: store.named(name) for name in selection.repos}
        chosen = {repo.id: repo for repo in listed.values() if repo is not None}
        missing = [name for name, repo in listed.items() if repo is None]
        found.left_out |= {name: failures.get(name, "error:not crawled") for name in missing}
    found.left_out |= {repo.name: repo.status for repo in chosen.values() if repo.status.startswith(_GONE)}
    found.left_out = {name: why.removeprefix("error:") for name, why in sorted(found.left_out.items())}
    return [repo for _, repo in sorted(chosen.items()) if repo.name not in found.left_out]


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


def _read_issue(
    found: Scan,
    repo: Repo,
    issue: Issue,
    comments: list[Comment],
    events: list[Event],
    selection: Selection,
) -> None:
    marked = issue.state_reason == "duplicate" or any(is_duplicate_label(label) for label in issue.labels)
    here = (repo.id, issue.number)
    found.heads[here] = Head(issue.created_at, issue.labels, issue.is_pull, issue.gone, marked)
    found.comments += len(comments)
    texts = (issue.title, issue.body, *(comment.body for comment in comments))
    named = {int(number) for text in texts for number in _MENTION.findall(text)}
    for event in events:
        if event.target_number is not None and (event.target_repo or repo.name).lower() in repo.names:
            named.add(event.target_number)
    found.mentions[repo.id].extend(pack(number, issue.number) for number in sorted(named))
    if issue.is_pull:
        return
    unmarked = _replay(found, here, events, issue) if selection.strategy != "comments" else {}
    remarks = [comment for comment in comments if comment.minimized not in _HIDDEN]
    if selection.strategy != "events" and any(may_refer(comment.body) for comment in remarks):
        _read_comments(found, repo, issue, remarks, events, unmarked)


def _replay(found: Scan, here: Node, events: Iterable[Event], issue: Issue) -> dict[_Target, str]:
    """Note what GitHub's marks come to; returns when each target was unmarked for good."""
    repo, events = found.repos[here[0]], list(events)
    unmarked: dict[_Target, str] = {}
    for key, event in _last_marks(found, repo, events).items():
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


def _last_marks(found: Scan, repo: Repo, events: Iterable[Event]) -> dict[_Target, Event]:
    """The last mark or unmark with each target."""
    return {
        _key(found, event.target_repo or repo.name, event.target_number): event
        for event in events
        if event.kind in ("marked", "unmarked") and event.target_number is not None
    }


def _originals(
    found: Scan, repo: Repo, thread: Thread, comments: list[Comment], events: list[Event]
) -> set[_Target]:
    """The originals that standing marks or people with write access name outright."""
    marks = _last_marks(found, repo, events).items()
    said = {
        _key(found, item.link.repo, item.link.number)
        for item in thread.standing
        if item.link.certainty == "explicit"
        and item.link.direction == "this_is_dup_of"
        and comments[item.comment].author_association in WRITE_ROLES
    }
    return said | {key for key, event in marks if event.kind == "marked"}


def _read_comments(
    found: Scan,
    repo: Repo,
    issue: Issue,
    comments: list[Comment],
    events: list[Event],
    unmarked: dict[_Target, str],
) -> None:
    here = (repo.id, issue.number)
    thread = read_thread(comments, repo.name, issue.number, hosts=hosts_of(found.web))
    originals = _originals(found, repo, thread, comments, events)
    for item in thread.links:
        link, comment = item.link, comments[item.comment]
        elsewhere = bool(originals) and _key(found, link.repo, link.number) not in originals
        facts = gather_facts(link, comment, issue, events, repo=repo.name, elsewhere=elsewhere)
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
    return found.names.get(repo.lower(), repo.lower()), number


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
