"""The parts that a reply is split into, before anyone judges what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["structured", "marked", "line", "around", "open", "data", "beside"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply.

    `kind` says how sure we are that it is an offered sentence: `structured` (a closed JSON string), `marked`
    (a list item or a cell of a table), `line` (an unmarked line), `around` (a line beside a list or JSON),
    `open` (a JSON string that never closes, so certainly cut off), `data` (JSON that is the whole reply and
    holds no sentences), `beside` (what a reply holds beside its sentences: another list, a note, a list item
    of another kind).
    """

    text: str
    kind: Kind


def around(text: str) -> list[Piece]:
    """Return the lines of `text` that hold more than punctuation, as talk around the answer."""
    return [Piece(line, "around") for line in text.splitlines() if line.strip(" \t,.;")]
