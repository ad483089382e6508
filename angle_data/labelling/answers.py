"""What a run folder knows about a request: its journal rows, sample by sample, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from angle_data.annotators.base import ChatRequest, Failure, resample
from angle_data.labelling.journal import Journal


class Answers:
    """The replies of a journal, looked up by request; `failures` are those of this session, by key."""

    def __init__(self, journal: Journal, failures: Mapping[str, Failure], identity: str) -> None:
        self._journal, self._failures, self._identity = journal, failures, identity

    def each_row(self, request: ChatRequest) -> Iterator[dict[str, Any]]:
        """Yield the journal rows of a request, first sample first; none when it was not answered.

        A request has more than one when it was asked anew, see `resample`. Only what is taken is read.
        """
        sample, number = request, 0
        while (row := self._journal.row(sample.key)) is not None:
            yield row
            number += 1
            sample = resample(request, self._identity, number)

    def rows(self, request: ChatRequest) -> list[dict[str, Any]]:
        """Return all journal rows of a request, see `each_row`."""
        return list(self.each_row(request))

    def row(self, request: ChatRequest) -> dict[str, Any] | None:
        """Return the journal row of the first sample, None when it was not answered."""
        return self._journal.row(request.key)

    def answered_before(self, request: ChatRequest) -> bool:
        """Whether the journal held the first sample already when this session began."""
        return self._journal.held_before(request.key)

    def failure(self, request: ChatRequest) -> Failure | None:
        """Return why a request failed in this session, None when it did not, or was not asked.

        Of a request that was asked anew, this is the failure of the next sample.
        """
        if not self._failures:
            return None
        next_sample = resample(request, self._identity, len(self.rows(request)))
        return self._failures.get(next_sample.key)

    def anew(
        self, request: ChatRequest, rejected: Callable[[ChatRequest, list[dict[str, Any]]], bool]
    ) -> ChatRequest | None:
        """Return the next sample of an answered request whose replies are all of no use, else None."""
        rows = self.rows(request)
        if not rows or not rejected(request, rows):
            return None
        return resample(request, self._identity, len(rows))
