"""Answers from a file of recorded replies: for demos, tests, and replies made elsewhere. Sends nothing.

Rows are `text`, `polarity` and `reply` for `llm-label`, with `task` (`degrees`, or `graded`, its older name)
in place of `polarity` for degrees; `text1`, `text2` and `reply` for `llm-score`; for `gis --ask` `task`
`duplicate`, and as `text` `owner/name#number`, a line break, and the comment as its journal has it; and
`annotator` where a file holds several. Grades may also be rows of `text1` and `text2` (or `source` and
`text`) with `score` and `grader`. A `reply` is the text of a message, or the whole JSON of a service's
answer. A recorded grade is that of a pair in either order, and of texts that are equal when normalised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

from angle_data.annotators.answers import failure_of, reply_of
from angle_data.annotators.base import NOT_RECORDED, Annotator, ChatRequest, Failure, Reply, breathing
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import one_line
from angle_data.errors import InputError
from angle_data.http import CallError
from angle_data.jsonl import read_jsonl
from angle_data.records import read_score
from angle_data.text import normalise

_TASKS = {name: name for name in ("synonym", "antonym", "degrees", "query", "duplicate")}
_TASKS |= {"graded": "degrees"}

_Recorded = str | dict[str, Any]  # the content of a message, or the service's whole answer
_Replies = dict[tuple[str, str], _Recorded]  # (source, task) -> reply


class Recorded(Annotator):
    """Matches requests with recorded replies: by text and what was asked, or by the two texts of a pair."""

    def __init__(self, spec: AnnotatorSpec) -> None:
        assert spec.replies is not None, "the choice of the engine asks for it"
        self._replies = _load(spec.replies, spec.model)

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Yield one reply, or a failure of kind NOT_RECORDED, for every request in order."""
        async for request in breathing(requests):
            of_pair = request.task == "score"
            reply = self._replies.get((request.source, request.task))
            if reply is None and of_pair:
                reply = self._replies.get((_same_pair(request.source), request.task))
            asked = "grade for this pair" if of_pair else f"{request.task} reply for this text"
            missing = Failure(request.key, NOT_RECORDED, f"no recorded {asked}")
            yield missing if reply is None else _reply(request.key, reply)


def _reply(key: str, recorded: _Recorded) -> Reply | Failure:
    if isinstance(recorded, str):
        return Reply(key, recorded)
    try:
        return reply_of(key, recorded, 0.0)
    except CallError as error:
        return failure_of(key, error, one_line(error))


def _load(path: Path, name: str) -> _Replies:
    replies: _Replies = {}
    similar: _Replies = {}
    others: set[str] = set()
    for number, row in read_jsonl(path):
        where, is_grade = f"{path}:{number}", "score" in row
        fields = _fields(row, where)
        # As `llm-score` writes the source of a request about one pair.
        source = "\n".join(_string(row, field, where).strip() for field in fields)
        reply: _Recorded = str(read_score(row, where)) if is_grade else ""
        if not is_grade:
            whole = row.get("reply")
            reply = whole if isinstance(whole, dict) else _string(row, "reply", where)
        annotator = row.get("grader" if is_grade else "annotator", name)
        if annotator != name:
            others.add(str(annotator))
            continue
        given = row.get("polarity") or row.get("task")
        if (task := "score" if len(fields) > 1 else _TASKS.get(str(given))) is None:
            wanted = "polarity must be synonym or antonym, or task degrees, query or duplicate"
            raise InputError(f"{where}: {wanted}, got {given!r}")
        if replies.setdefault((source, task), reply) != reply:
            raise InputError(f"{where}: a second, different {task} reply for the same text or pair; keep one")
        if task == "score":
            similar.setdefault((_same_pair(source), task), reply)
    if not replies:
        whose = f" of {name!r}; annotators found: {', '.join(sorted(others))} (choose with --model)"
        raise InputError(f"{path} holds no replies{whose if others else '; give a file with at least one'}")
    return similar | replies


def _fields(row: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the names of the texts of a row: one, or two where it is about a pair."""
    known = [("text1", "text2"), ("source", "text")] if "score" in row else [("text1", "text2"), ("text",)]
    found = next((fields for fields in known if all(field in row for field in fields)), None)
    if found is None:
        raise InputError(
            f"{where}: llm-score needs text1 and text2 (a grade may have source and text), the other "
            f"commands text; fields found: {', '.join(row) or 'none'}"
        )
    return found


def _string(row: dict[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise InputError(f"{where}: field {field!r} must be a string, got {type(value).__name__}")
    return value


def _same_pair(source: str) -> str:
    """Return what two pairs share that differ in the order of their texts or before normalisation only."""
    return "\n".join(sorted(map(normalise, source.split("\n"))))
