"""What a command brings to a session: its requests, and how its files follow from the replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from angle_data.annotators.answers import answer_of
from angle_data.annotators.base import ChatRequest, Sampling, Task, request_key
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.labelling.asking.journal import Journal, limit_of, refusal_of
from angle_data.text import stable_hash


class Job(ABC):
    """What a command brings to a session.

    `command` is its name, `run` its run folder and `spec` who is asked. `total` is about the number of
    requests. `passed_over` counts the rows of the input that are not asked about, by reason. With
    `retry_rejected`, answered requests that `is_rejected` are asked anew. With a `last_rank`, only sources
    with hashes up to it are asked about, and the rest left to another session. With `asks_again`, `requests`
    is called again once all are settled, for what follows from the replies: `most_again` more at most.
    """

    command: str
    run: Path
    spec: AnnotatorSpec
    total: int
    passed_over: dict[str, int]
    retry_rejected: bool
    last_rank: int | None = None
    asks_again: bool = False
    most_again: int = 0

    @abstractmethod
    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield the requests: lazily, and for the same journal the same in the same order."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the command's own entries of run.json: whatever changes its files, and no secrets.

        Files are `Path`s. The next session reports what has changed.
        """

    @abstractmethod
    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write the command's files and return the counts; called once, also when the session ends early.

        Among the counts are `requests`, `replied`, `kept`, `rejected` (reason -> number), `failed` (kind ->
        number) and `unanswered`.
        """

    @abstractmethod
    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return further fields of a journal row, from a request without its messages."""

    @abstractmethod
    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply, for limits and forecasts before the first one is known."""

    @abstractmethod
    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether the journal row of a request is what `retry_rejected` asks anew."""

    @abstractmethod
    def why_useless(self, request: ChatRequest, row: dict[str, Any]) -> str | None:
        """Return the reason why nothing in the journal row of a request is of use; None if something is.

        The request may come without its messages.
        """

    def is_sampled(self, request: ChatRequest) -> bool:
        """Whether a request is asked in this session: all are, but for a pilot."""
        return self.last_rank is None or stable_hash(request.source) <= self.last_rank

    def request(
        self, journal: Journal, about: tuple[str, str], task: Task, content: str, sampling: Sampling
    ) -> ChatRequest:
        """Return the request with this content `about` a source (its id, its text), see `ChatRequest`.

        Where `max_tokens` alone has grown, a reply that was not cut is what would come again: the request has
        the key of that one, and is answered.
        """
        messages = ({"role": "user", "content": content},)
        key = request_key(self.spec.identity, messages, sampling)
        for limit in sorted(journal.limits, reverse=True) if key not in journal else ():
            if limit < sampling.max_tokens:
                earlier = request_key(self.spec.identity, messages, replace(sampling, max_tokens=limit))
                row = journal.row(earlier)
                if row is not None and not _was_cut(row, sampling.max_tokens):
                    key = earlier
                    break
        return ChatRequest(key, *about, task, messages, self.spec.checkpoint, sampling)

    def asked_for(self, counts: Mapping[str, Any]) -> int:
        """Return how much of what `kept` counts was asked for in the answered requests, from all counts."""
        return int(counts["kept"] + sum(counts["rejected"].values()))


def _was_cut(row: dict[str, Any], limit: int) -> bool:
    """Whether a reply ended at a limit below `limit`, by its finish reason, or else by its tokens."""
    if (asked := limit_of(row)) >= limit:
        return False
    answer = answer_of(row)
    used_up = answer.usage.get("completion_tokens", 0) >= asked
    return answer.finish == "cut" or (answer.finish == "unknown" and used_up)


@dataclass(slots=True)
class Tally:
    """Counts by name, failures by kind, and rejections by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def count(self, key: str, journal: Journal) -> str:
        """Count a request and what became of it: `replied`, `refused`, `unanswered` or `failed`."""
        self.counts["requests"] += 1
        row, failure = journal.row(key), journal.failures.get(key)
        if failure is not None:
            self.failed[failure.kind] += 1
            return "failed"
        state = "unanswered" if row is None else "replied" if refusal_of(row) is None else "refused"
        self.counts[state] += 1
        return state

    def table(self, *names: str) -> dict[str, Any]:
        """Return some of the counts in this order; `failed` and `rejected` are tables of their own."""
        split = {"failed": dict(sorted(self.failed.items())), "rejected": dict(sorted(self.rejected.items()))}
        return {name: split.get(name, self.counts[name]) for name in names}
