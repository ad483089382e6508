"""What an annotator that was asked about doubtful comments (`gis --ask`) says of them, and what follows.

An answer takes the place of what the grammar guessed; who may state a duplicate, and what takes a statement
back, is decided as for every other one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from angle_data.gis.comments.grammar import MarkerLink
from angle_data.gis.comments.reading import Reader, Reading
from angle_data.gis.comments.vocabulary import Direction
from angle_data.text import content_id

ASKED = "asked"
"""The kind of the links that an annotator confirms."""

Target = tuple[str, int]
"""An issue by its name: repository in lower case, number."""


@dataclass(frozen=True, slots=True)
class CommentAnswer:
    """The usable answer about one comment.

    `confirmed` are the links that it states: repository as named, number, direction. `unsure` are issues of
    which it leaves open what the comment says. `partial`: some of the reply was refused, so that its silence
    about an issue is no denial. `model` was asked, `key` is that of the journal row, `reply` its text.
    """

    confirmed: tuple[tuple[str, int, Direction], ...]
    unsure: tuple[Target, ...]
    partial: bool
    model: str
    key: str
    reply: str

    def denies(self, target: Target) -> bool:
        """Whether the comment states, by the answer, nothing about this issue."""
        confirmed = {(repo.casefold(), number) for repo, number, _ in self.confirmed}
        return not self.partial and target not in confirmed and target not in self.unsure

    def evidence(self) -> dict[str, str]:
        """Return what the audit shows of it."""
        return {"model": self.model, "key": self.key, "reply": self.reply}


class Answers:
    """The answers of one annotator by comment; `model` is empty where none was asked.

    `guesses`: it was asked about guesses, too.

    A comment is known by its issue and its text, so that equal ones of an issue share an answer.
    """

    def __init__(self, model: str = "", *, guesses: bool = False) -> None:
        self.model, self.guesses = model, guesses
        self._found: dict[tuple[str, int, str], CommentAnswer] = {}

    def add(self, repo: str, number: int, body: str, answer: CommentAnswer) -> None:
        """Note the answer about a comment of issue `number` in `repo`."""
        self._found[_comment(repo, number, body)] = answer

    def of(self, repo: str, number: int, body: str) -> CommentAnswer | None:
        """Return the answer about a comment, None if there is none."""
        return self._found.get(_comment(repo, number, body)) if self._found else None

    def reader(self, read: Reader) -> Reader:
        """Return what reads a comment as `read` does, with the links that its answer confirms."""

        def with_answer(body: str, repo: str, number: int, **more: object) -> Reading:
            said = read(body, repo, number, **more)
            answer = self.of(repo, number, body)
            return said if answer is None else _amended(said, answer, len(body))

        return with_answer if self._found else read

    def counts(self) -> dict[str, int]:
        """Return how many comments were answered, and how many of these confirm, deny or leave open."""
        found = Counter(
            "confirm" if answer.confirmed else "leave_open" if answer.unsure or answer.partial else "deny"
            for answer in self._found.values()
        )
        names = ("confirm", "deny", "leave_open")
        return {"comments": len(self._found), **{name: found[name] for name in names}}


def _comment(repo: str, number: int, body: str) -> tuple[str, int, str]:
    return repo.casefold(), number, content_id(body)


def _amended(said: Reading, answer: CommentAnswer, length: int) -> Reading:
    """Put the confirmed links in the place of what was read of the same issues."""
    known = {link.target: link for link in said.links}
    for repo, number, direction in answer.confirmed:
        new = MarkerLink(repo, number, direction, "explicit", ASKED, (0, length))
        old = known.get(new.target, new)
        known[new.target] = replace(new, repo=old.repo, span=old.span)
    links = tuple(sorted(known.values(), key=lambda link: link.span))
    return replace(said, links=links)
