"""Tells when an annotator gives nothing of use any more, before the rest is paid for.

Only replies count. Failures in a row have limits of their own, by engine.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from angle_data.annotators.answers import words_of
from angle_data.annotators.base import ChatRequest
from angle_data.annotators.transport import one_line
from angle_data.labelling.asking.job import Job

_EXAMPLE_CHARS = 120


class UselessInARow:
    """Counts the last replies of which nothing is of use, up to `most`; 0 counts none.

    Replies are read only when there are so many of them, newest first, up to one of use: that is about one
    reading for `most` replies of a good annotator.
    """

    def __init__(self, job: Job, most: int) -> None:
        self._job, self._most = job, most
        self._recent: deque[tuple[ChatRequest, dict[str, Any]]] = deque()
        self._reasons: list[str] = []  # of the last `most` replies, if all are useless

    def add(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Note a journal row; True when it makes too many in a row."""
        if not self._most:
            return False
        self._recent.append((request, row))
        if len(self._recent) < self._most:
            return False
        reasons: list[str] = []
        for place in reversed(range(self._most)):
            if (reason := self._job.why_useless(*self._recent[place])) is None:
                for _ in range(place + 1):
                    self._recent.popleft()
                return False
            reasons.append(reason)
        self._reasons = reasons[::-1]
        return True

    def __str__(self) -> str:
        """Say what was seen most, with an example."""
        ((reason, count),) = Counter(self._reasons).most_common(1)
        said = one_line(words_of(self._recent[self._reasons.index(reason)][1]))
        said = said if len(said) <= _EXAMPLE_CHARS else said[:_EXAMPLE_CHARS] + "…"
        return f"{self._most} replies in a row of which nothing is of use, {count} with {reason} ({said!r})"
