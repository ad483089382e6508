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

_RETRYABLE = frozenset({408, 409, 429})
_AWAY = frozenset({502, 503, 504})
_SHORTEST_S, _LONGEST_S = 0.5, 60.0
# OpenAI's names: https://platform.openai.com/docs/guides/error-codes. The numbers are the GLM cloud's for an
# account that is inactive, unknown, locked, in arrears or locked for abuse, and for a plan that is over:
# https://docs.bigmodel.cn/cn/api/api-code
_NO_QUOTA = frozenset(
    {"insufficient_quota", "billing_not_active", "1110", "1111", "1112", "1113", "1121", "1309"}
)


class BadAnswer(Exception):
    """The service answered with success and something that is no chat completion."""


class NoAnswer(Exception):
    """There was no answer: time ran out (`timeout`), or there was no connection (not `connected`)."""

    def __init__(self, message: str, *, connected: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.connected, self.timeout = connected, timeout


class ServiceError(Exception):
    """The service answered with an error status; `codes` are its short names for the error, if it has any."""

    def __init__(
        self, status_code: int, message: str, codes: frozenset[str], headers: Mapping[str, str]
    ) -> None:
        super().__init__(message)
        self.status_code, self.codes, self.headers = status_code, codes, headers


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failed call, None when there was no answer."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def is_retryable(error: BaseException) -> bool:
    """Whether the same request may well succeed later: no connection, timeout, 408, 409, 429 or 5xx.

    A 429 that is about the account (`is_out_of_quota`), or says that this request is too large for the limit,
    is none.
    """
    openai = sys.modules.get("openai")  # where it was never imported, none of its exceptions was raised
    if isinstance(error, NoAnswer | BadAnswer) or (
        openai is not None and isinstance(error, openai.APIConnectionError)
    ):
        return True
    status = status_of(error)
    if status == 429:
        return not is_out_of_quota(error) and "too large" not in str(error)
    return status is not None and (status in _RETRYABLE or status >= 500)


def is_out_of_quota(error: BaseException) -> bool:
    """Whether a 429 says that the account is empty or closed, so that no patience helps."""
    if status_of(error) != 429:
        return False
    codes = getattr(error, "codes", None)
    if codes is None:  # an exception of the openai client
        codes = {str(getattr(error, name, None)) for name in ("code", "type")}
    return not _NO_QUOTA.isdisjoint(codes)


def is_away(error: BaseException) -> bool:
    """Whether the server seems to be away: no connection, a broken one, or a gateway's 502, 503 or 504."""
    if isinstance(error, NoAnswer):
        return not error.timeout
    return status_of(error) in _AWAY


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
