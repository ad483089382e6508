"""What a phrase can say of two issues, and which of the two it calls the duplicate."""

from __future__ import annotations

from typing import Literal

Direction = Literal["this_is_dup_of", "other_is_dup_of_this"]

KINDS: dict[str, str] = {
    "duplicate": "a word for duplicate, in any of the languages known",
    "command": "a bot command such as `/duplicate of #N`",
    "favor": "closed in favor of another issue",
    "superseded": "superseded, replaced or subsumed by another issue",
    "covered": "covered by another issue",
    "merged": "folded, merged or consolidated into another issue",
    "same": "the same as, identical to another issue",
    "identity": '"This is #N"',
    "tracked": "tracked in another issue",
    "reported": "already reported, requested or known as another issue",
    "continued": "the reader is sent to another issue to go on",
    "similar": "said to look like or relate to another issue; always tentative",
}
"""Kind -> what the writer said. A suffix `:pull` says that the target was named as a pull request."""

WEAK_KINDS = frozenset(
    {"covered", "tracked", "reported", "continued", "same", "similar"}
)
"""Kinds that tie two issues without calling either a duplicate; too weak alone to merge clusters."""
