"""From the journal to `candidates.jsonl` and `rejected.jsonl`: pure in the requests and the journal.

Asks nobody and can be repeated at will; that is how a better parser reaches old replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.annotators.base import ChatRequest, Failure
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.journal import Journal
from angle_data.labelling.replies import parse_reply
from angle_data.records import Candidate, Rejection

__all__ = ["Derived", "derive"]


@dataclass(slots=True)
class Derived:
    """What came of the requests: `requests = replied + failed + unanswered`.

    `kept` and `rejected` count the parts of replies, `tokens` what the services reported for them.
    """

    requests: int = 0
    replied: int = 0
    unanswered: int = 0
    kept: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)


def derive(
    run: Path,
    requests: Iterable[ChatRequest],
    journal: Journal,
    *,
    model: str,
    failures: Mapping[str, Failure],
    size: int,
) -> Derived:
    """Write both files anew in the order of `requests` and return the counts.

    `failures` are the requests that failed in this run, by key; a request neither there nor in the journal
    was not asked yet.
    """
    counts = Derived()
    with replace_file(run / "candidates.jsonl") as kept, replace_file(run / "rejected.jsonl") as dropped:
        for request in requests:
            counts.requests += 1
            for record in _records(request, journal.row(request.key), failures, counts, model, size):
                stream = kept if isinstance(record, Candidate) else dropped
                stream.write(dumps(record.to_dict()) + "\n")
    return counts


def _records(
    request: ChatRequest,
    row: dict[str, Any] | None,
    failures: Mapping[str, Failure],
    counts: Derived,
    model: str,
    size: int,
) -> Iterator[Candidate | Rejection]:
    def reject(reason: str, text: str, raw: str) -> Rejection:
        return Rejection(
            request.source_id, request.source, request.polarity, text, model, request.key, reason, raw
        )

    if row is None:
        failure = failures.get(request.key)
        if failure is None:
            counts.unanswered += 1
        else:
            counts.failed[failure.kind] += 1
            yield reject("request_failed", "", f"{failure.kind}: {failure.message}")
        return
    counts.replied += 1
    counts.tokens.update(row.get("usage") or {})
    parsed = parse_reply(
        row["reply"], source=request.source, finish_reason=row.get("finish_reason"), size=size
    )
    counts.kept += len(parsed.sentences)
    for text in parsed.sentences:
        yield Candidate(request.source_id, request.source, request.polarity, text, model, request.key)
    for reason, text in parsed.rejected:
        counts.rejected[reason] += 1
        yield reject(reason, text, row["reply"])
