"""From the journal to `candidates.jsonl` and `rejected.jsonl`: pure in the requests and the journal.

Asks nobody and can be repeated at will; that is how a better parser reaches old replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.annotators.base import ChatRequest
from angle_data.jsonl import dumps, replace_file
from angle_data.labelling.answers import Answers
from angle_data.labelling.journal import refusal_of
from angle_data.labelling.replies.parse import ParsedReply, parse_reply
from angle_data.labelling.requests import polarity_of
from angle_data.records import Candidate, Rejection
from angle_data.text import whole_characters


@dataclass(slots=True)
class Derived:
    """What came of the requests: `requests = replied + refused + failed + unanswered`.

    `from_journal` of the replied ones were answered before this session. `kept` and `rejected` count the
    parts of replies; `without_sentence` the replied ones that gave none. `refused` are those that the service
    refuses for good. A request that was asked anew and failed counts as failed.
    """

    requests: int = 0
    from_journal: int = 0
    replied: int = 0
    unanswered: int = 0
    refused: int = 0
    without_sentence: int = 0
    kept: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        """Return the counts for run.json."""
        return {
            "requests": self.requests,
            "from_journal": self.from_journal,
            "replied": self.replied,
            "failed": dict(sorted(self.failed.items())),
            "unanswered": self.unanswered,
            "refused": self.refused,
            "without_sentence": self.without_sentence,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
        }


def derive(run: Path, requests: Iterable[ChatRequest], answers: Answers, *, model: str, size: int) -> Derived:
    """Write both files anew in the order of `requests` and return the counts.

    Of a request that was asked several times, the first reply with a sentence gives the candidates; what the
    replies before it held is listed as rejected.
    """
    counts = Derived()
    with replace_file(run / "candidates.jsonl") as kept, replace_file(run / "rejected.jsonl") as dropped:
        for request in requests:
            counts.requests += 1
            for record in _records(request, answers, counts, model, size):
                stream = kept if isinstance(record, Candidate) else dropped
                stream.write(_line(record))
    return counts


def gave_nothing(request: ChatRequest, rows: Iterable[dict[str, Any]], size: int) -> bool:
    """Whether none of a request's replies holds a sentence."""
    return not any(_parse(request, row, size).sentences for row in rows)


def _records(
    request: ChatRequest, answers: Answers, counts: Derived, model: str, size: int
) -> Iterator[Candidate | Rejection]:
    polarity = polarity_of(request)

    def reject(reason: str, text: str, key: str, raw: str) -> Rejection:
        return Rejection(request.source_id, request.source, polarity, text, model, key, reason, raw)

    answered = refused = False
    kept = 0
    for row in answers.each_row(request):
        if (why := refusal_of(row)) is not None:
            refused = True
            counts.rejected["refused_by_server"] += 1
            yield reject("refused_by_server", "", row["key"], why)
            continue
        answered = True
        parsed = _parse(request, row, size)
        for text in parsed.sentences:
            yield Candidate(request.source_id, request.source, polarity, text, model, row["key"])
        for reason, text in parsed.rejected:
            counts.rejected[reason] += 1
            yield reject(reason, text, row["key"], whole_characters(row["reply"]))
        kept = len(parsed.sentences)
        if kept:
            break
    counts.kept += kept
    failure = None if kept else answers.failure(request)
    if failure is not None:
        counts.failed[failure.kind] += 1
        message = whole_characters(failure.message)
        yield reject("request_failed", "", failure.key, f"{failure.kind}: {message}")
    elif not answered:
        counts.refused += refused
        counts.unanswered += not refused
    else:
        counts.replied += 1
        counts.from_journal += answers.answered_before(request)
        counts.without_sentence += not kept


def _line(record: Candidate | Rejection) -> str:
    """Return a record as a line of JSON; its fields are strings, so none needs the copy of `to_dict`."""
    return dumps({name: getattr(record, name) for name in record.__dataclass_fields__}) + "\n"


def _parse(request: ChatRequest, row: dict[str, Any], size: int) -> ParsedReply:
    return parse_reply(
        row["reply"],
        source=request.source,
        finish_reason=row.get("finish_reason"),
        size=size,
        polarity=polarity_of(request),
    )
