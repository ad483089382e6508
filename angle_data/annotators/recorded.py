"""Answers from a file of recorded replies: for demos, tests, and replies made elsewhere. Sends nothing.

Rows: `text`, `polarity`, `reply` and, where a file holds several annotators, `annotator`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Failure, Reply
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.records import check_polarity

NOT_RECORDED = "not_recorded"
"""The kind of the failure of a request without a recorded reply."""

_BREATHE_EVERY = 64


class Recorded:
    """Matches requests with recorded replies by text and polarity."""

    def __init__(self, spec: AnnotatorSpec) -> None:
        if spec.replies is None:
            raise InputError("--engine recorded needs --replies FILE with the recorded replies")
        self._replies = _load(spec.replies, spec.name)

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Yield one reply, or a failure of kind NOT_RECORDED, for every request in order."""
        for number, request in enumerate(requests):
            if number % _BREATHE_EVERY == 0:
                await asyncio.sleep(0)  # nothing here waits, and an interrupt needs a moment to get through
            reply = self._replies.get((request.source, request.task))
            if reply is None:
                yield Failure(request.key, NOT_RECORDED, f"no recorded {request.task} reply for this text")
            else:
                yield Reply(request.key, reply)


def _load(path: Path, name: str) -> dict[tuple[str, str], str]:
    replies: dict[tuple[str, str], str] = {}
    others: set[str] = set()
    for number, row in read_jsonl(path):
        where = f"{path}:{number}"
        text, reply = _string(row, "text", where).strip(), _string(row, "reply", where)
        annotator = row.get("annotator", name)
        if annotator != name:
            others.add(str(annotator))
            continue
        key = (text, check_polarity(row.get("polarity"), where))
        if replies.setdefault(key, reply) != reply:
            raise InputError(f"{where}: a second, different {key[1]} reply for the same text; keep one")
    if not replies and others:
        found = ", ".join(sorted(others))
        raise InputError(
            f"{path} holds no replies of {name!r}; annotators found: {found} (choose with --model)"
        )
    if not replies:
        raise InputError(f"{path} holds no replies; give a file with at least one")
    return replies


def _string(row: dict[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise InputError(f"{where}: field {field!r} must be a string, got {type(value).__name__}")
    return value
