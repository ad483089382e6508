"""Follows the comments of one thread: who marked the issue as a duplicate of what, and who took it back.

Works on comments in the order in which they were written; the build replays events (unmarking, reopening).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from angle_data.gis.comments.reading import MarkerLink, read_comment
from angle_data.gis.comments.references import PUBLIC_HOSTS

WRITE_ROLES = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Values of GitHub's `author_association` that come with the right to mark and close issues."""


class Remark(Protocol):
    """What is needed of a comment; `author` is None for a deleted account."""

    @property
    def author(self) -> str | None:
        """The login of who wrote it."""

    @property
    def author_association(self) -> str:
        """GitHub's `author_association`, empty if unknown."""

    @property
    def body(self) -> str:
        """The text."""


@dataclass(frozen=True, slots=True)
class ThreadLink:
    """A link and the position of its comment in the thread.

    `retracted_by` is the position of the comment that took it back: by the same writer, or by someone with
    a write role. `disputed_by` is that of the first objection of anybody else; the link still stands.
    """

    link: MarkerLink
    comment: int
    retracted_by: int | None = None
    disputed_by: int | None = None


@dataclass(frozen=True, slots=True)
class Denial:
    """Somebody says at position `comment` that the issue and the target of `link` are no duplicates."""

    link: MarkerLink
    comment: int


@dataclass(frozen=True, slots=True)
class Thread:
    """Every link ever stated, retracted ones included, and every denial, in the order of the comments.

    `taking_back` are the positions of comments that take earlier markers back without naming any.
    """

    links: list[ThreadLink] = field(default_factory=list)
    denials: list[Denial] = field(default_factory=list)
    taking_back: set[int] = field(default_factory=set)

    @property
    def standing(self) -> list[ThreadLink]:
        """The links that nobody entitled to do so took back."""
        return [link for link in self.links if link.retracted_by is None]


def read_thread(
    comments: Iterable[Remark], repo: str, number: int, *, hosts: frozenset[str] = PUBLIC_HOSTS
) -> Thread:
    """Read the comments of issue `number` in `repo`, oldest first; later ones correct earlier ones.

    "Not a duplicate of #A" cancels links to #A, "sorry, not a dup after all" or "this is a separate issue"
    all earlier ones. A target that is marked again later is linked again.
    """
    thread = Thread()
    authors: list[str | None] = []
    for position, comment in enumerate(comments):
        authors.append(comment.author)
        reading = read_comment(comment.body, repo, number, author=comment.author, hosts=hosts)
        if reading.retracts or reading.denies:
            thread.taking_back.add(position)
        denied = {denial.target for denial in reading.denials}
        all_of_them = reading.retracts or (reading.denies and not denied)
        for index, old in enumerate(thread.links):
            if old.retracted_by is None and (all_of_them or old.link.target in denied):
                own = comment.author is not None and comment.author == authors[old.comment]
                entitled = own or comment.author_association in WRITE_ROLES
                thread.links[index] = _objected(old, position, entitled=entitled)
        thread.links.extend(ThreadLink(link, position) for link in reading.links)
        thread.denials.extend(Denial(link, position) for link in reading.denials)
    return thread


def _objected(link: ThreadLink, position: int, *, entitled: bool) -> ThreadLink:
    if entitled:
        return replace(link, retracted_by=position)
    return link if link.disputed_by is not None else replace(link, disputed_by=position)
