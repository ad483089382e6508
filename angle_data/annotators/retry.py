"""What can go wrong with a call, when it is tried again, and how long to wait before; used with tenacity.

Knows HTTP, the exceptions of the server annotator and those of the openai client (without importing it), not
what a run does about them in the end.
"""

from __future__ import annotations

import email.utils
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenacity import RetryCallState

__all__ = [
    "BadAnswer",
    "NoAnswer",
    "ServiceError",
    "is_retryable",
    "lacks_connection",
    "retry_after",
    "status_of",
    "wait_as_told",
]

_RETRYABLE = frozenset({408, 409, 429})
_SHORTEST_S, _LONGEST_S = 0.5, 60.0


class BadAnswer(Exception):
    """The service answered with success and something that is no chat completion."""


class NoAnswer(Exception):
    """There was no answer: time ran out (`timeout`), or there was no connection (not `connected`)."""

    def __init__(self, message: str, *, connected: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.connected, self.timeout = connected, timeout


class ServiceError(Exception):
    """The service answered with an error status; `code` is its short name for the error, if it has one."""

    def __init__(self, status_code: int, message: str, code: str | None, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status_code, self.code, self.headers = status_code, code, headers


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failed call, None when there was no answer."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def is_retryable(error: BaseException) -> bool:
    """Whether the same request may well succeed later: no connection, timeout, 408, 409, 429 or 5xx.

    A 429 that says the account has no quota left, or that this request is too large for the limit, is none.
    """
    openai = sys.modules.get("openai")  # where it was never imported, none of its exceptions was raised
    if isinstance(error, NoAnswer | BadAnswer) or (
        openai is not None and isinstance(error, openai.APIConnectionError)
    ):
        return True
    status = status_of(error)
    if status == 429:
        return getattr(error, "code", None) != "insufficient_quota" and "too large" not in str(error)
    return status is not None and (status in _RETRYABLE or status >= 500)


def lacks_connection(error: BaseException) -> bool:
    """Whether the call failed for want of a connection, rather than waiting in vain on one.

    The openai client reports both as timeouts under some transports; the chain of causes tells them apart.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NoAnswer):
            return not cause.timeout
        if isinstance(cause, ConnectionError) or type(cause).__name__.startswith(
            ("Connect", "ClientConnect")
        ):
            return True
        cause = cause.__cause__
    return False


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `retry-after-ms` or `Retry-After` (seconds or date) asks for, if they do.

    See RFC 9110, section 10.2.3; the header in milliseconds is OpenAI's.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(date.timestamp() - time.time(), 0.0)


def wait_as_told() -> Callable[[RetryCallState], float]:
    """Return a tenacity wait: what the service asks for, else random exponential from 0.5 to 60 seconds."""
    from tenacity import wait_random_exponential

    exponential = wait_random_exponential(multiplier=_SHORTEST_S, max=_LONGEST_S)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        response: Any = getattr(error, "response", error)
        headers: Mapping[str, str] | None = getattr(response, "headers", None)
        told = retry_after(headers) if headers is not None else None
        # "Retry-After: 0" would be a busy loop against a service that is still overloaded.
        return told if told else float(exponential(state))

    return wait
