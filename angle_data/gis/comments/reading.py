"""The duplicate links that a comment states, and which of them stand at the end of a thread.

Whether an issue exists and who may mark it is decided in the build, which also replays events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from angle_data.gis.comments.corrections import MAY_TAKE_BACK, regrets, takes_back
from angle_data.gis.comments.grammar import MarkerLink, find_hits
from angle_data.gis.comments.markdown import own_words
from angle_data.gis.comments.references import PUBLIC_HOSTS, find_references, mark_references, may_refer
from angle_data.gis.comments.sentences import split_sentences
from angle_data.gis.comments.vocabulary import WEAK_KINDS


@dataclass(frozen=True, slots=True)
class Reading:
    """What one comment says; `denials` have the certainty `explicit`.

    `others` are statements about third issues ("#5 is a duplicate of #6"), by the issue that is duplicated:
    they say nothing about the commented issue, and no link follows from them.
    `retracts`: the writer withdraws earlier markers ("sorry, not a dup after all"). `denies`: somebody says
    that the issue is no duplicate at all, without naming one.
    """

    links: tuple[MarkerLink, ...] = ()
    denials: tuple[MarkerLink, ...] = ()
    others: tuple[MarkerLink, ...] = ()
    retracts: bool = False
    denies: bool = False


_STATED = ("explicit", "tentative")

LONGEST = 65_536
"""What GitHub allows in a comment, in characters; the rest of a longer text is not read."""


def read_comment(
    body: str, repo: str, number: int, *, author: str | None = None, hosts: frozenset[str] = PUBLIC_HOSTS
) -> Reading:
    """Read one comment of issue `number` in `repo` (`owner/name`).

    `author` matters only for bots (logins that end in `[bot]`), whose lists of possible duplicates
    decide nothing. `hosts` are those whose addresses count. A reference to the issue itself is no link.
    """
    if not may_state(body):
        return Reading()
    body = body[:LONGEST]
    refers = may_refer(body)
    text = own_words(body)
    references = find_references(text, repo, hosts) if refers else []
    sentences = split_sentences(mark_references(text, references, repo, number), references)
    hits = find_hits(sentences, bot=is_program(author))
    backs = [sentence for sentence in sentences if takes_back(sentence)]
    regret = max((sentence.places[0] for sentence in backs if regrets(sentence)), default=-1)
    denials = _unique(replace(hit, certainty="explicit") for hit in hits if hit.certainty == "denied")
    denied = {denial.target for denial in denials}
    links = _unique(hit for hit in hits if hit.certainty in _STATED and hit.span[1] > regret)
    return Reading(
        links=tuple(link for link in links if link.target not in denied),
        denials=denials,
        others=_unique(hit for hit in hits if hit.certainty == "others"),
        retracts=regret >= 0,
        denies=not all(map(regrets, backs)),
    )


def may_state(body: str) -> bool:
    """Whether a comment can state anything at all: a quick look that never misses one."""
    body = body[:LONGEST]
    return may_refer(body) or MAY_TAKE_BACK.search(body) is not None


def is_program(login: str | None) -> bool:
    """Whether a login is that of a program."""
    return login is not None and login.endswith("[bot]")


def _unique(links: Iterable[MarkerLink]) -> tuple[MarkerLink, ...]:
    """One link per target: the surest, then the strongest kind, then the first; ordered by place."""
    best: dict[tuple[str, int], tuple[tuple[bool, bool], MarkerLink]] = {}
    for link in links:
        strength = link.certainty == "explicit", link.family not in WEAK_KINDS
        if link.target not in best or strength > best[link.target][0]:
            best[link.target] = strength, link
    return tuple(sorted((link for _, link in best.values()), key=lambda link: link.span))


WRITE_ROLES = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Values of GitHub's `author_association` that come with the right to mark and close issues."""


Reader = Callable[..., Reading]
"""What reads a comment: takes the arguments of `read_comment`."""

Remark = tuple[str | None, str, str]
"""A comment: its writer (None for a deleted account), GitHub's `author_association` (or ""), its text."""


@dataclass(frozen=True, slots=True)
class ThreadLink:
    """A link and the position of its comment in the thread.

    `retracted_by` is the position of the comment that took it back: by the same writer, or by someone with
    a write role. `disputed`: anybody else objected; the link still stands.
    """

    link: MarkerLink
    comment: int
    retracted_by: int | None = None
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """Every link ever stated, retracted ones included, and every denial of one, in the order of the comments.

    `taking_back` are the positions of comments that take earlier markers back without naming any.
    """

    links: list[ThreadLink] = field(default_factory=list)
    denials: list[ThreadLink] = field(default_factory=list)
    taking_back: set[int] = field(default_factory=set)

    @property
    def standing(self) -> list[ThreadLink]:
        """The links that nobody entitled to do so took back."""
        return [link for link in self.links if link.retracted_by is None]


def read_thread(
    comments: Iterable[Remark],
    repo: str,
    number: int,
    *,
    hosts: frozenset[str] = PUBLIC_HOSTS,
    read: Reader = read_comment,
) -> Thread:
    """Read the comments of issue `number` in `repo`, oldest first; later ones correct earlier ones.

    `read` reads one of them: `read_comment`, or `Readings.read`, which keeps what it read.

    "Not a duplicate of #A" cancels links to #A, "sorry, not a dup after all" or "this is a separate issue"
    all earlier ones. A target that is marked again later is linked again.
    """
    thread = Thread()
    authors: list[str | None] = []
    for position, (author, association, body) in enumerate(comments):
        authors.append(author)
        reading = read(body, repo, number, author=author, hosts=hosts)
        if reading.retracts or reading.denies:
            thread.taking_back.add(position)
        denied = {denial.target for denial in reading.denials}
        all_of_them = reading.retracts or (reading.denies and not denied)
        for index, old in enumerate(thread.links):
            if old.retracted_by is None and (all_of_them or old.link.target in denied):
                own = author is not None and author == authors[old.comment]
                entitled = own or association in WRITE_ROLES
                change = {"retracted_by": position} if entitled else {"disputed": True}
                thread.links[index] = replace(old, **change)
        thread.links.extend(ThreadLink(link, position) for link in reading.links)
        thread.denials.extend(ThreadLink(link, position) for link in reading.denials)
    return thread
