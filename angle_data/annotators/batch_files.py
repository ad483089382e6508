"""The files of the Batch API: requests into input files within its limits, result rows into outcomes.

Format: https://developers.openai.com/api/docs/guides/batch. Rows are told apart by `custom_id`, which is the
request's key; their order means nothing. Knows no network and no state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from angle_data.annotators.base import Failure, Reply
from angle_data.annotators.chat import read_reply
from angle_data.http import BadAnswer

MAX_ROWS = 50_000
"""Requests in one input file; https://developers.openai.com/api/docs/guides/batch#rate-limits."""
MAX_BYTES = 200_000_000
"""Bytes in one input file, 200 MB; same source."""
ENDPOINT: Final = "/v1/chat/completions"
"""What every row and batch of ours asks for."""

_MESSAGE_CHARS = 300
_BYTES_PER_TOKEN = 4
_TEMPLATE_TOKENS = 8


def request_line(key: str, body: dict[str, Any]) -> bytes:
    """Return one row of an input file, with its line end; `body` is that of a chat completion."""
    row = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def body_tokens(body: dict[str, Any]) -> tuple[int, int]:
    """Return the tokens that a request takes: a guess for its prompt by length, and its reply's bound."""
    prompt = sum(
        len(message["content"].encode()) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS
        for message in body["messages"]
    )
    return prompt, body["max_tokens"]


@dataclass(slots=True)
class RequestFile:
    """An input file that is being written, with its keys beside it; what it holds so far, see `Part`."""

    path: Path
    keys: Path
    _stream: IO[bytes]
    _keys_stream: IO[bytes]
    rows: int = 0
    size: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Begin an empty file in `folder`, which holds one at a time."""
        path, keys = folder / "next.jsonl.tmp", folder / "next.keys.tmp"
        return cls(path, keys, path.open("wb"), keys.open("wb"))

    def fits(self, line: bytes, max_rows: int, max_bytes: int) -> bool:
        """Whether one more row keeps the file within both limits."""
        return self.rows < max_rows and self.size + len(line) <= max_bytes

    def add(self, key: str, line: bytes, body: dict[str, Any]) -> None:
        """Append a row; `body` is that of its request."""
        self._stream.write(line)
        self._keys_stream.write(f"{key}\n".encode())
        self.rows += 1
        self.size += len(line)
        prompt_tokens, completion_tokens = body_tokens(body)
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens

    def close(self) -> None:
        """Finish both files on disk."""
        self._stream.close()
        self._keys_stream.close()


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result file, one in memory at a time.

    Raises:
        ValueError: A line is no JSON object with a `custom_id`; the file was cut short or is something else.
    """
    with path.open("rb") as stream:
        for line in stream:
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
                raise ValueError("a row of a result file has no custom_id")
            yield row


def row_outcome(row: dict[str, Any], seconds: float) -> Reply | Failure:
    """Return what a result row says about its request; `seconds` is how long its batch took.

    A row carries the response to the request (of any HTTP status), or an error of the batch itself such as
    `batch_expired`.
    """
    key, response, error = row["custom_id"], row.get("response"), row.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        return Failure(key, str(code or "no_response"), _said(error))
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return Failure(key, f"http_{status}", _said(body.get("error") if isinstance(body, dict) else body))
    try:
        return read_reply(key, body, seconds)
    except BadAnswer as error:
        return Failure(key, "bad_answer", str(error))


def _said(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(message or "no message").split())[:_MESSAGE_CHARS]
