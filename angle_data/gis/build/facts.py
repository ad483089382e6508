"""What is known around a statement of duplication, and the rank that is made of it.

Also what no single comment gives: a guess that somebody confirms, and a bare number beside a label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from angle_data.gis.build.answers import ASKED
from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.markdown import own_words
from angle_data.gis.comments.reading import WRITE_ROLES, Remark, Thread, is_program
from angle_data.gis.comments.references import find_references
from angle_data.gis.crawl.rows import Comment, Event, Issue

CLOSED_WITHIN_S = 600  # before or after the comment, a close by its writer corroborates it

_LABEL = re.compile(r"(?<![a-z])(?:dup|dupe|duplicated?|duplicates)(?![a-z])", re.IGNORECASE)
_NEGATIVE_LABEL = re.compile(r"\b(?:not|non|no|possible|potential|maybe|candidate)\b", re.IGNORECASE)

_GUESSES = frozenset({"duplicate", "same", "identity"})  # families that can be guessed and then confirmed

# Finds: "Yes, it is. Closing." "Correct, same thing."
_YES = re.compile(
    r"\W*(?:(?:oh|ah|ok|okay|hm+|sorry|thanks|thank you|my bad)\W+)*(?:(?:yes|yep|yeah|yup|"
    r"indeed|confirmed|sí|oui|ja|sim|да)\b|(?:correct|right|exactly|absolutely|definitely|it (?:is|does)|"
    r"(?:seems|looks) (?:so|like it)|(?:you'?re|you are|that'?s|that is) (?:right|correct)|是的|对)"
    r"(?:,? (?:it'?s |exactly )?(?:the )?same(?: thing| issue| bug| problem)?)?[ )\"']*"
    r"(?:$|[.!\n]))",
    re.IGNORECASE,
)
# Finds: "but it is a different problem"
_TURNS = re.compile(
    r"\b(?:but|however|although|though|except|different|differs?|not|no|un\w+|separate|saw|\w+n't)\b",
    re.IGNORECASE,
)
_AT = re.compile(r"@[\w-]+")
# Finds: "Thanks! See"
_LIGHT = re.compile(
    r"(?:\b(?:see|also|cf|thanks?|thank|you|hi|hello|hey|closing|closed?|as|per|via|tracked|tracking|in|at|here|"
    r"issue|issues|original|please|follow|it|this|there|instead|for|the|report(?:ing)?|dup\w*|of|and|is|with|"
    r"to|by|re|ref|same)\b|[\W_])*+",
    re.IGNORECASE,
)


class Rank(IntEnum):
    """What backs a statement, best first; the build accepts all but the last two."""

    EVENT = 1  # somebody with write access marked the two as duplicates
    WRITE_ROLE = 2  # an owner, member or collaborator states it outright
    CORROBORATED = 3  # anybody does, and the issue was also closed, labelled or resolved as a duplicate
    CONFIRMED = 4  # a guess to which the author or a write role said yes, or on which its writer acted
    ADMITTED = 5  # the author of the duplicate does
    ANSWERED = 6  # an annotator that was asked (`gis --ask`) says that the comment states it
    STATED = 7  # anybody does, and nothing backs it
    TENTATIVE = 8  # a guess or a question


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known around a statement, uninterpreted.

    `association` is GitHub's `author_association` of the comment ("" if unknown). `admitted`: the author of
    the duplicate wrote it. `closed_by_writer`: the writer of the comment closed the duplicate within
    `CLOSED_WITHIN_S`. `labelled`: the duplicate carries a label for duplicates. `state_reason`: it was
    closed with that reason. `event`: GitHub's mark with this very target stands. `elsewhere`: a mark, or
    somebody with write access, names another original and not this one, so label and reason speak of that
    one. `bot`: the writer is a program. `confirmed`: somebody entitled to it said yes to this guess.
    """

    association: str = ""
    admitted: bool = False
    closed_by_writer: bool = False
    labelled: bool = False
    state_reason: bool = False
    event: bool = False
    elsewhere: bool = False
    bot: bool = False
    confirmed: bool = False

    @property
    def resolved(self) -> bool:
        """Whether label or reason call the issue a duplicate, and nobody names another original."""
        return (self.labelled or self.state_reason) and not self.elsewhere


def is_duplicate_label(name: str) -> bool:
    """Whether a label calls the issue a duplicate: `duplicate`, `Resolution-Duplicate` and the like."""
    return _LABEL.search(name) is not None and _NEGATIVE_LABEL.search(name.replace("-", " ")) is None


def rank(link: MarkerLink, facts: Facts) -> Rank:
    """Return what backs a link; an event outranks the wording, even a tentative one."""
    if facts.event:
        return Rank.EVENT
    if link.certainty == "tentative":
        acted = facts.closed_by_writer and link.family in _GUESSES
        settled = (facts.resolved or acted) and (facts.bot or facts.association in WRITE_ROLES)
        return Rank.CONFIRMED if facts.confirmed or settled else Rank.TENTATIVE
    if facts.association in WRITE_ROLES:
        return Rank.WRITE_ROLE
    if facts.resolved or facts.closed_by_writer:
        return Rank.CORROBORATED
    if facts.admitted:
        return Rank.ADMITTED
    return Rank.ANSWERED if link.family == ASKED else Rank.STATED


def closed_by_writer(comment: Comment, issue: Issue, events: Iterable[Event]) -> bool:
    """Whether the writer of a comment closed the issue within `CLOSED_WITHIN_S` of it."""
    if comment.author is None:
        return False
    times = [event.created_at for event in events if event.kind == "closed" and event.actor == comment.author]
    if issue.closed_by == comment.author and issue.closed_at:
        times.append(issue.closed_at)
    written = datetime.fromisoformat(comment.created_at)
    apart = (abs((datetime.fromisoformat(time) - written).total_seconds()) for time in times)
    return any(seconds <= CLOSED_WITHIN_S for seconds in apart)


def confirmed_guesses(thread: Thread, remarks: Sequence[Remark], author: str | None) -> set[int]:
    """Return the positions of the links in `thread.links` that are guesses and were confirmed.

    The first who answers, other than who guessed and no program, must be the `author` of the issue or have a
    write role, and say yes to the only guess of that comment, with nothing against it.
    """
    against = thread.taking_back | {denial.comment for denial in thread.denials}
    guesses = Counter(item.comment for item in thread.links)
    found: set[int] = set()
    for index, item in enumerate(thread.links):
        link = item.link
        guesser = remarks[item.comment][0]
        if link.certainty == "explicit" or link.family not in _GUESSES or guesses[item.comment] > 1:
            continue
        later = enumerate(remarks[item.comment + 1 :], start=item.comment + 1)
        others = (n for n, (login, *_) in later if login != guesser and not is_program(login))
        answer = next(others, None)
        if answer is None or answer in against:
            continue
        login, role, body = remarks[answer]
        entitled = role in WRITE_ROLES or (login is not None and login == author)
        text = own_words(body)
        if entitled and _YES.match(text) and not _TURNS.search(text):
            found.add(index)
    return found


def bare_reference(
    comments: Iterable[Comment], repo: str, number: int, hosts: frozenset[str]
) -> tuple[str, int, Comment] | None:
    """Return (repository, number, comment) of the issue that comments name, saying no more, if it is one."""
    found: dict[tuple[str, int], tuple[str, int, Comment]] = {}
    for comment in comments:
        text = own_words(comment.body)
        references = find_references(text, repo, hosts)
        rest, last = "", 0
        for one in references:
            rest, last = f"{rest} {text[last : one.start]}", one.end
        if not _LIGHT.fullmatch(_AT.sub("", f"{rest} {text[last:]}")):
            continue
        for one in references:
            if one.number and one.target != (repo.casefold(), number):
                found.setdefault(one.target, (one.repo, one.number, comment))
    return next(iter(found.values())) if len(found) == 1 else None
