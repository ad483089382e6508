"""Reads the store once, thread by thread, and collects who calls which issues duplicates, and what backs it.

Nothing is judged here. Memory grows with the number of issues and statements, not with that of comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from angle_data.gis.build.answers import Answers, CommentAnswer
from angle_data.gis.build.facts import (
    Facts,
    Rank,
    bare_reference,
    closed_by_writer,
    confirmed_guesses,
    is_duplicate_label,
    rank,
)
from angle_data.gis.build.forms import FormLines
from angle_data.gis.comments.reading import WRITE_ROLES, Reader, is_program, read_comment, read_thread
from angle_data.gis.comments.references import hosts_of, may_refer
from angle_data.gis.comments.vocabulary import WEAK_KINDS, Direction
from angle_data.gis.crawl.ledger import CrawlLedger, read_ledger
from angle_data.gis.crawl.rows import Comment, Event, Issue, Repo
from angle_data.gis.crawl.selection import Selection
from angle_data.gis.crawl.store import PUBLIC_WEB, Store

Node = tuple[int, int]
"""An issue: (repository id, number)."""

_MENTION = re.compile(r"(?:[#＃]|\bgh-|/issues/)([1-9]\d{0,8})\b", re.IGNORECASE)
WORTHLESS = frozenset({"spam", "abuse"})
"""Reasons for which a comment is minimised that say that it tells nothing."""

Status = Literal["accepted", "tentative", "rejected"]

_Target = tuple[int | str, int]
"""Repository id, or the name in lower case of one that was not crawled, and number."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the build needs to know of an issue beside its text; `marked`: label or state say duplicate."""

    created_at: str
    labels: tuple[str, ...]
    is_pull: bool
    gone: str | None
    marked: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A comment, an issue's own text (`source` `body`) or GitHub's mark that calls two issues duplicates.

    It stands in the thread `here` and names `target_repo`#`target_number`. `withdrawn` is why it no longer
    counts (`retracted`, `unmarked`, `reopened`, `completed`, `annotator_denied`), empty if it does;
    `disputed`: somebody without the right to take it back objected. `url` is where to read it, `span` where
    in the comment.

    `links.judge_links` fills in `status`; `reason`, empty for accepted ones; and `ends`: the duplicate and
    the issue it duplicates, empty where one of them leads nowhere.
    """

    here: Node
    target_repo: str
    target_number: int
    direction: Direction
    source: Literal["comment", "body", "event"]
    kind: str
    rank: Rank
    url: str
    created_at: str
    facts: Facts
    span: tuple[int, int] | None = None
    withdrawn: str = ""
    disputed: bool = False
    answer: CommentAnswer | None = None
    status: Status | Literal["unjudged"] = "unjudged"
    reason: str = ""
    ends: tuple[Node, ...] = ()

    @property
    def weak(self) -> bool:
        """Whether the words tie two issues without calling either a duplicate."""
        return self.kind.partition(":")[0] in WEAK_KINDS

    @property
    def duplicate(self) -> Node:
        """The first of `ends`."""
        return self.ends[0]

    @property
    def canonical(self) -> Node:
        """The second of `ends`."""
        return self.ends[1]

    @property
    def evidence(self) -> str:
        """What backs it, such as `event`, `comment:duplicate:write_role`, `comment:asked:answered`."""
        return "event" if self.source == "event" else f"{self.source}:{self.kind}:{self.rank.name.lower()}"

    def to_dict(self, scan: Scan) -> dict[str, Any]:
        """Return all that is known, ready for JSON; logins are left out."""
        duplicate, canonical = map(scan.url, self.ends) if self.ends else (None, None)
        found = {**asdict(self), "here": scan.url(self.here), "rank": self.rank.name.lower()}
        del found["ends"], found["answer"]
        asked = {"asked": self.answer.evidence()} if self.answer is not None else {}
        return {**found, **asked, "duplicate": duplicate, "canonical": canonical}


@dataclass
class Scan:
    """Everything found in a store.

    `names` maps every known name of a repository, in lower case, to its id. `denied` says of two issues that
    they are no duplicates; of kind `outlived`, because the other one is fixed and this one still happens,
    which may be the same all the same. `mentions` holds for each repository the pairs of numbers where a
    thread of one names the other, packed (see `pack`).
    `web` is the address of the site. `ledger` has every listed repository, and what became of it;
    `outside` are issues that the selection leaves out. `forms` are the lines of each repository's
    issue forms (see `FormLines.found`). `answers` are what an annotator said of comments.
    """

    repos: dict[int, Repo] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    heads: dict[Node, Head] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    denied: list[Statement] = field(default_factory=list)
    mentions: dict[int, set[int]] = field(default_factory=dict)
    comments: int = 0
    web: str = PUBLIC_WEB
    ledger: CrawlLedger = field(default_factory=CrawlLedger)
    outside: set[Node] = field(default_factory=set)
    forms: dict[int, dict[str, int]] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)

    def url(self, node: Node) -> str:
        """Return the page of an issue."""
        return f"{self.web}/{self.repos[node[0]].name}/issues/{node[1]}"

    def mentioned(self, one: Node, other: Node) -> bool:
        """Whether the thread of one of two issues of a repository names the other."""
        return one[0] == other[0] and pack(one[1], other[1]) in self.mentions.get(one[0], ())


def pack(one: int, other: int) -> int:
    """Return two issue numbers, in whatever order, as one number."""
    return min(one, other) << 32 | max(one, other)


def scan_store(
    store: Store,
    tell: Callable[[str], None] = lambda name: None,
    *,
    selection: Selection | None = None,
    read: Reader = read_comment,
    answers: Answers | None = None,
) -> Scan:
    """Read what `selection` takes of the store; `tell` gets the name of the repository after each issue.

    A repository that GitHub no longer shows (404, 410, 451) is left out, whatever the store holds of it.
    `read` reads a comment; `answers` are what an annotator said of some.
    """
    selection = selection or Selection()
    found = Scan(web=store.site(), answers=answers or Answers())
    read = found.answers.reader(read)
    for repo in _chosen(found, store, selection):
        found.repos[repo.id] = repo
        found.names.update((name, repo.id) for name in repo.names)
    # A present name outranks the former name of another repository.
    found.names.update((repo.name.lower(), repo.id) for repo in found.repos.values())
    for repo in found.repos.values():
        found.mentions[repo.id] = set()
        forms = FormLines()
        for issue in store.issues(repo.id):
            # A gone issue may still lead to where it went.
            if issue.gone is None and not selection.holds(issue.created_at):
                found.outside.add((repo.id, issue.number))
            else:
                _read_thread(found, store, repo, issue, selection.strategy, read)
                if not (issue.is_pull or issue.gone):
                    forms.add(issue.body)
            tell(repo.name)
        found.forms[repo.id] = forms.found()
    return found


def _chosen(found: Scan, store: Store, selection: Selection) -> list[Repo]:
    """Return the repositories that count, by id, and note in `found.ledger` what became of each."""
    found.ledger = read_ledger(store, selection.repos)
    used = {one.id for one in found.ledger.repositories if one.used}
    return [repo for repo in store.repos() if repo.id in used]


@dataclass(frozen=True, slots=True)
class _Thread:
    """An issue and what happened there, in the order of time.

    `marks` has the last mark or unmark with each target, `facts` what label and reason say.
    """

    here: Node
    repo: Repo
    issue: Issue
    comments: list[Comment]
    events: list[Event]
    marks: dict[_Target, Event]
    facts: Facts


def _read_thread(found: Scan, store: Store, repo: Repo, issue: Issue, strategy: str, read: Reader) -> None:
    here = (repo.id, issue.number)
    comments = list(store.comments(repo.id, issue.number))
    events = list(store.events(repo.id, issue.number))
    marks = dict[_Target, Event]()
    named = {int(number) for text in (issue.title, issue.body) for number in _MENTION.findall(text)}
    named.update(int(number) for comment in comments for number in _MENTION.findall(comment.body))
    for event in events:
        if event.target_number is not None:
            target = event.target_repo or repo.name
            if target.lower() in repo.names:
                named.add(event.target_number)
            if event.kind in ("marked", "unmarked"):
                marks[_key(found, target, event.target_number)] = event
    found.mentions[repo.id].update(pack(number, issue.number) for number in named)
    labelled = any(map(is_duplicate_label, issue.labels))
    facts = Facts(labelled=labelled, state_reason=issue.state_reason == "duplicate")
    found.heads[here] = Head(issue.created_at, issue.labels, issue.is_pull, issue.gone, facts.resolved)
    found.comments += len(comments)
    if issue.is_pull:
        return
    thread = _Thread(here, repo, issue, comments, events, marks, facts)
    said, denied = _read_comments(found, thread, strategy, read) if strategy != "events" else ([], [])
    marked = _read_marks(found, thread, denied) if strategy != "comments" else []
    found.statements += [*marked, *said]
    found.denied += [*(mark for mark in marked if mark.withdrawn == "unmarked"), *denied]


def _read_marks(found: Scan, thread: _Thread, denied: Iterable[Statement]) -> list[Statement]:
    """Return what became of GitHub's marks; a write role that denied one afterwards took it back."""
    marks = list[Statement]()
    url = found.url(thread.here)
    denials = {
        _key(found, one.target_repo, one.target_number): one.created_at
        for one in denied
        if one.facts.association in WRITE_ROLES
    }
    for key, event in thread.marks.items():
        standing = event.kind == "marked"
        withdrawn = _reopened(thread, event.created_at) if standing else "unmarked"
        if not withdrawn and event.created_at < denials.get(key, ""):
            withdrawn = "retracted"
        facts = replace(thread.facts, labelled=False, event=standing)
        marks.append(
            Statement(
                thread.here, event.target_repo or thread.repo.name, key[1], "this_is_dup_of", "event",
                "event", Rank.EVENT, url, event.created_at, facts, withdrawn=withdrawn,
            )
        )  # fmt: skip
    return marks


def _read_comments(
    found: Scan, thread: _Thread, strategy: str, read: Reader
) -> tuple[list[Statement], list[Statement]]:
    """Return what the issue and its comments state, and what the comments deny."""
    issue = thread.issue
    name = thread.repo.name
    hosts = hosts_of(found.web)
    # Its own text is the first comment.
    opening = Comment(
        0, issue.repo_id, issue.number, issue.author, issue.author_association, issue.text,
        issue.created_at, issue.updated_at, found.url(thread.here),
    )  # fmt: skip
    comments = [opening, *(comment for comment in thread.comments if comment.minimized not in WORTHLESS)]
    if not any(may_refer(comment.body) for comment in comments):
        return [], []
    remarks = [(comment.author, comment.author_association, comment.body) for comment in comments]
    said = read_thread(remarks, name, issue.number, hosts=hosts, read=read)
    standing = [(_key(found, item.link.repo, item.link.number), item) for item in said.standing]
    # The originals that standing marks or people with write access name outright.
    marked = {key for key, event in thread.marks.items() if event.kind == "marked"}
    originals = marked | {
        key
        for key, item in standing
        if item.link.certainty == "explicit"
        and item.link.direction == "this_is_dup_of"
        and comments[item.comment].author_association in WRITE_ROLES
    }
    # An unmark cancels what was written before it.
    unmarks = [(key, event) for key, event in thread.marks.items() if event.kind == "unmarked"]
    unmarked = {key: event.created_at for key, event in unmarks if strategy == "both"}
    yes = confirmed_guesses(said, remarks, issue.author)
    statements: list[Statement] = []
    for index, item in enumerate(said.links):
        link, comment = item.link, comments[item.comment]
        # People compare, ask and quote much in an issue's own text.
        outright = link.certainty == "explicit" and link.family == "duplicate"
        if not item.comment and not (outright and not is_program(comment.author)):
            continue
        key = _key(found, link.repo, link.number)
        # Of several guesses none is backed by a label.
        elsewhere = (
            key not in originals if originals else link.certainty != "explicit" and len(dict(standing)) > 1
        )
        facts = Facts(association=comment.author_association, bot=is_program(comment.author))
        if link.direction == "this_is_dup_of":  # or else what is known of this issue backs nothing
            facts = replace(
                thread.facts,
                association=facts.association,
                bot=facts.bot,
                admitted=not item.comment or comment.author == issue.author is not None,
                closed_by_writer=closed_by_writer(comment, issue, thread.events),
                event=key in marked,
                elsewhere=elsewhere,
                confirmed=index in yes,
            )
        ranked, answer = rank(link, facts), found.answers.of(name, issue.number, comment.body)
        unsettled = ranked >= Rank.STATED and item.comment > 0
        if answer is not None and unsettled and answer.denies(link.target):
            withdrawn = "annotator_denied"
        elif item.retracted_by is not None:
            withdrawn = "retracted"
        elif comment.created_at <= unmarked.get(key, ""):
            withdrawn = "unmarked"
        else:
            withdrawn = _reopened(thread, comment.created_at)
        statements.append(
            Statement(
                thread.here, link.repo, link.number, link.direction, "comment" if item.comment else "body",
                link.kind, ranked, comment.url, comment.created_at, facts, link.span, withdrawn,
                item.disputed, answer,
            )
        )  # fmt: skip
    if not originals and not said.links:
        statements += _read_bare_reference(found, thread, comments[1:])
    # What reporters expect of their own reports is no evidence.
    denials = ((item.link, comments[item.comment]) for item in said.denials if item.comment)
    denied = [
        Statement(
            thread.here, link.repo, link.number, link.direction, "comment", link.family, Rank.STATED,
            comment.url, comment.created_at, Facts(association=comment.author_association),
        )
        for link, comment in denials
    ]  # fmt: skip
    return statements, denied


def _read_bare_reference(found: Scan, thread: _Thread, comments: Iterable[Comment]) -> list[Statement]:
    """Return the one number that people entitled to it leave on an issue that is labelled a duplicate."""
    issue = thread.issue
    if not thread.facts.resolved or issue.state == "open":
        return []
    people = (issue.closed_by, issue.author)
    entitled = [one for one in comments if one.author_association in WRITE_ROLES or one.author in people]
    named = bare_reference(entitled, thread.repo.name, issue.number, hosts_of(found.web))
    if named is None:
        return []
    repo, number, comment = named
    facts = replace(thread.facts, association=comment.author_association)
    return [
        Statement(
            thread.here, repo, number, "this_is_dup_of", "comment", "label", Rank.CORROBORATED,
            comment.url, comment.created_at, facts, withdrawn=_reopened(thread, comment.created_at),
        )
    ]  # fmt: skip


def _key(found: Scan, repo: str, number: int) -> _Target:
    return found.names.get(repo.lower(), repo.lower()), number


def _reopened(thread: _Thread, since: str) -> str:
    """Why a statement made at `since` fell when the issue was opened again (see `links.REASONS`), or ""."""
    issue = thread.issue
    changes = [event for event in thread.events if event.kind in ("closed", "reopened")]
    reopened = any(event.kind == "reopened" and event.created_at >= since for event in changes)
    if issue.state == "open":
        last = changes[-1].kind == "reopened" and reopened if changes else issue.state_reason == "reopened"
        return "reopened" if last else ""
    solved = reopened and issue.state_reason == "completed" and not thread.facts.labelled
    return "completed" if solved else ""
