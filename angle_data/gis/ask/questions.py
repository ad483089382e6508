"""Which comments an annotator is asked about, and what it is told of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from angle_data.gis.build.clean import Texts
from angle_data.gis.build.evidence import WORTHLESS, Node, Scan, scan_store
from angle_data.gis.build.links import judge_links, unordered
from angle_data.gis.build.scrub import scrub
from angle_data.gis.comments.doubts import doubt_of
from angle_data.gis.comments.markdown import own_words
from angle_data.gis.comments.reading import Reader
from angle_data.gis.comments.references import OTHER, find_references, hosts_of, may_refer
from angle_data.gis.crawl.rows import Comment
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store

MOST_NAMED = 25
"""Issues that a question lists: those of the comment, then those of its thread, in the order of reading."""

_LONGEST = 2_000  # characters of a comment; the middle of a longer one is left out
_LONGEST_TITLE = 200
_BLANKS = re.compile(r"[ \t]+")
_LINE_ENDS = re.compile(r"(?<!\s)\s*\n\s*")  # looked for where blanks begin only: else time is quadratic


@dataclass(frozen=True, slots=True)
class Question:
    """A comment and what is told of it.

    `url` and `body` are those of the comment, `title` that of its issue, empty if unknown. `named` are the
    issues that it may speak of (repository, number, title). `hosts` are those of the site.
    """

    repo: str
    number: int
    url: str
    body: str
    title: str
    named: tuple[tuple[str, int, str], ...]
    hosts: frozenset[str]

    @property
    def source(self) -> str:
        """What the question is about, in one text, for the journal."""
        return f"{self.repo}#{self.number}\n{self.text}"

    @property
    def text(self) -> str:
        """The comment as it is shown: its writer's own words, without secrets, and not too long."""
        words = own_words(self.body).replace(OTHER, "[code]")
        text = scrub(_LINE_ENDS.sub("\n", _BLANKS.sub(" ", words)).strip())
        half = _LONGEST // 2
        return text if len(text) <= _LONGEST else f"{text[:half]}\n[...]\n{text[-half:]}"

    @property
    def values(self) -> dict[str, str]:
        """What the placeholders of the prompt stand for."""
        listed = (self._line(*one) for one in self.named)
        issue = self._line(self.repo, self.number, self.title)
        return {"issue": issue, "named": "\n".join(listed), "comment": self.text}

    def _line(self, repo: str, number: int, title: str) -> str:
        name = f"#{number}" if repo.casefold() == self.repo.casefold() else f"{repo}#{number}"
        title = scrub(" ".join(title.split())[:_LONGEST_TITLE])
        return f"{name}: {title}" if title else name


def find_questions(
    store: Store, config: GisConfig, read: Reader, *, guesses: bool = False
) -> Iterator[Question]:
    """Yield a question for every doubtful comment that names an issue, or whose thread does, in order.

    Doubtful are statements of people that the build would leave tentative as unbacked, or with `guesses` as a
    guess, if no other one links the same two issues (an objection is not settled by reading); and
    in issues that duplicate none by now, comments that speak of a
    duplicate without a link (see `doubts.doubt_of`). Equal comments of an issue give one question.
    """
    scan = scan_store(store, selection=config.selection(), read=read)
    judged = judge_links(scan, Texts(store), cross_repo=config.cross_repo)
    accepted = [said for said in judged if said.status == "accepted"]
    linked = {unordered(said.duplicate, said.canonical) for said in accepted}
    settled = {said.duplicate for said in accepted}
    reasons = ("guess", "unbacked") if guesses else ("unbacked",)
    tentative = {
        said.url
        for said in judged
        if (said.status, said.facts.bot) == ("tentative", False)
        and said.reason in reasons
        and unordered(said.duplicate, said.canonical) not in linked
    }
    for node in sorted(scan.heads):
        if not (scan.heads[node].is_pull or scan.heads[node].gone):
            yield from _of_issue(store, scan, node, _Doubts(read, tentative, node in settled))


@dataclass(frozen=True, slots=True)
class _Doubts:
    """What makes the comments of an issue doubtful: the addresses of tentative ones, else their words.

    Of an issue that is `settled`, a duplicate of another one already, tentative ones alone are.
    """

    read: Reader
    tentative: set[str]
    settled: bool

    def has(self, comment: Comment, repo: str, hosts: frozenset[str]) -> bool:
        """Whether a comment is doubtful."""
        if comment.url in self.tentative or self.settled:
            return comment.url in self.tentative
        said = self.read(comment.body, repo, comment.number, author=comment.author, hosts=hosts)
        about = (comment.body, said, repo, comment.number)
        return doubt_of(*about, author=comment.author, hosts=hosts) not in (None, "guess")


def _of_issue(store: Store, scan: Scan, node: Node, doubts: _Doubts) -> Iterator[Question]:
    repo, number = scan.repos[node[0]].name, node[1]
    hosts = hosts_of(scan.web)
    thread = [one for one in store.comments(*node) if one.minimized not in WORTHLESS]
    doubtful = {one.body: one for one in reversed(thread) if doubts.has(one, repo, hosts)}
    for comment in reversed(doubtful.values()):
        (issue,) = store.issues(node[0], [number])
        named = issues_named((comment.body, issue.text, *(one.body for one in thread)), repo, number, hosts)
        if named:
            lines = tuple((*one, _title(store, scan, *one)) for one in named)
            yield Question(repo, number, comment.url, comment.body, issue.title, lines, hosts)


def issues_named(
    texts: Iterable[str], repo: str, number: int, hosts: frozenset[str]
) -> list[tuple[str, int]]:
    """Return the issues that the own words of texts name, each once, but for `number` in `repo` itself."""
    found = {(repo.casefold(), number): (repo, number)}
    for text in texts:
        for one in find_references(own_words(text), repo, hosts) if may_refer(text) else ():
            if one.number and len(found) <= MOST_NAMED:
                found.setdefault(one.target, (one.repo, one.number))
    return list(found.values())[1:]


def _title(store: Store, scan: Scan, repo: str, number: int) -> str:
    """Return the title of an issue, and whether it is a pull request; empty if the store has none."""
    repo_id = scan.names.get(repo.casefold())
    if repo_id is None:
        return ""
    for issue in store.issues(repo_id, [number]):
        return f"{issue.title} (pull request)" if issue.is_pull else issue.title
    return ""
