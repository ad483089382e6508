"""How far a duplicate link is to be trusted: the raw facts around it, and a rank made of them.

The facts are kept beside every link so that anyone can filter by other rules. Pure: the caller fetches the
issue and its events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from angle_data.gis.comments.reading import MarkerLink
from angle_data.gis.comments.vocabulary import WEAK_KINDS
from angle_data.gis.crawl.rows import Comment, Event, Issue
from angle_data.gis.comments.reading import WRITE_ROLES

CLOSED_WITHIN_S = 600
"""A close by the marker's writer this many seconds before or after the comment corroborates it."""

_LABEL = re.compile(r"(?<![a-z])(?:dup|dupe|duplicated?|duplicates)(?![a-z])", re.IGNORECASE)
_NEGATIVE_LABEL = re.compile(r"\b(?:not|non|no|possible|potential|maybe|candidate)\b", re.IGNORECASE)


class Rank(IntEnum):
    """How a link is backed, best first; the default build keeps all but the last two."""

    EVENT = 1
    """GitHub recorded that someone with write access marked the two as duplicates."""
    WRITE_ROLE = 2
    """Stated outright by an owner, member or collaborator."""
    CORROBORATED = 3
    """Stated outright by someone else, and closed, labelled or resolved as a duplicate at that."""
    ADMITTED = 4
    """Stated outright by the author of the duplicate."""
    STATED = 5
    """Stated outright, with nothing to back it."""
    TENTATIVE = 6
    """A guess or a question."""


CONFIDENCE: dict[Rank, float] = {
    Rank.EVENT: 0.99,
    Rank.WRITE_ROLE: 0.97,
    Rank.CORROBORATED: 0.95,
    Rank.ADMITTED: 0.9,
    Rank.STATED: 0.75,
    Rank.TENTATIVE: 0.3,
}
"""Rank -> confidence in [0, 1]. These order links; they are set by judgement, not measured."""

_WEAK_FACTOR = 0.9


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known around a link, uninterpreted.

    `association` is GitHub's `author_association` of the comment ("" if unknown). `admitted`: the author of
    the duplicate wrote it. `closed_by_writer`: the writer of the comment closed the duplicate within
    `CLOSED_WITHIN_S`. `labelled`: the duplicate carries a label for duplicates. `state_reason`: it was
    closed with that reason. `event`: GitHub's mark with this very target stands. `elsewhere`: a mark, or
    somebody with write access, names another original and not this one, so that label and reason speak of
    that. `bot`: the writer is a program, whose closing backs nothing.
    """

    association: str = ""
    admitted: bool = False
    closed_by_writer: bool = False
    labelled: bool = False
    state_reason: bool = False
    event: bool = False
    elsewhere: bool = False
    bot: bool = False

    @property
    def corroborated(self) -> bool:
        """Whether anything besides the comment says so."""
        told = (self.labelled or self.state_reason) and not self.elsewhere
        return self.event or told or (self.closed_by_writer and not self.bot)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in declaration order, ready for JSON."""
        return asdict(self)


def is_duplicate_label(name: str) -> bool:
    """Whether a label calls the issue a duplicate: `duplicate`, `Resolution-Duplicate` and the like."""
    return _LABEL.search(name) is not None and _NEGATIVE_LABEL.search(name.replace("-", " ")) is None


def gather_facts(
    link: MarkerLink,
    comment: Comment,
    issue: Issue,
    events: Iterable[Event],
    *,
    repo: str,
    elsewhere: bool = False,
) -> Facts:
    """Collect the facts around a link found in `comment` on `issue`.

    `repo` is the `owner/name` of the issue. `events` are those of the same issue in the order of time.
    `elsewhere` is as in `Facts`; only the whole thread tells. Where the other issue is the duplicate, what is
    known of this one backs nothing: only the association is filled in, and whether a program wrote it.
    """
    bot = comment.author is not None and comment.author.endswith("[bot]")
    if link.direction == "other_is_dup_of_this":
        return Facts(association=comment.author_association, bot=bot)
    events = list(events)
    return Facts(
        association=comment.author_association,
        admitted=comment.author is not None and comment.author == issue.author,
        closed_by_writer=_closed_by_writer(comment, issue, events),
        labelled=any(is_duplicate_label(label) for label in issue.labels),
        state_reason=issue.state_reason == "duplicate",
        event=_marked(link, events, repo),
        elsewhere=elsewhere,
        bot=bot,
    )


def rank(link: MarkerLink, facts: Facts) -> Rank:
    """Return how a link is backed; an event outranks the wording, even a tentative one."""
    if facts.event:
        return Rank.EVENT
    if link.certainty == "tentative":
        return Rank.TENTATIVE
    if facts.association in WRITE_ROLES:
        return Rank.WRITE_ROLE
    if facts.corroborated:
        return Rank.CORROBORATED
    return Rank.ADMITTED if facts.admitted else Rank.STATED


def confidence(link: MarkerLink, facts: Facts) -> float:
    """Return a confidence in [0, 1] by rank; a tenth less for kinds that do not speak of duplicates."""
    found = rank(link, facts)
    weak = link.family in WEAK_KINDS and found is not Rank.EVENT
    return round(CONFIDENCE[found] * (_WEAK_FACTOR if weak else 1.0), 3)


def _closed_by_writer(comment: Comment, issue: Issue, events: list[Event]) -> bool:
    if comment.author is None:
        return False
    times = [event.created_at for event in events if event.kind == "closed" and event.actor == comment.author]
    if issue.closed_by == comment.author and issue.closed_at:
        times.append(issue.closed_at)
    return any(_seconds_between(time, comment.created_at) <= CLOSED_WITHIN_S for time in times)


def _seconds_between(one: str, other: str) -> float:
    if not one or not other:
        return float("inf")
    return abs((datetime.fromisoformat(one) - datetime.fromisoformat(other)).total_seconds())


def _marked(link: MarkerLink, events: list[Event], repo: str) -> bool:
    """Whether the last mark or unmark with this target is a mark."""
    standing = False
    for event in events:
        target = ((event.target_repo or repo).casefold(), event.target_number)
        if event.kind in ("marked", "unmarked") and target == link.target:
            standing = event.kind == "marked"
    return standing
