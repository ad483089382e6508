"""GitHub's limits: what is left of the budget, what an answer means, how long to wait for the next try.

Pure decisions over statuses, headers and error bodies; sends nothing and never sleeps.
Sources: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api and
https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
"""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from angle_data.errors import AngleError
from angle_data.http import retry_after

if TYPE_CHECKING:
    from tenacity import RetryCallState

_SECONDARY_S = 60.0
_LONGEST_S = 300.0
_SHORT_SHARE = 0.1
_MARGIN_S = 1.0

_HEAVY_TYPES = frozenset({"MAX_NODE_LIMIT_EXCEEDED", "RESOURCE_LIMITS_EXCEEDED", "TIMEOUT"})
_HEAVY_WORDS = ("something went wrong while executing your query", "timeout", "timed out", "resource limits")
_REFUSED_TYPES = frozenset({"NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_SCOPES"})


class Refused(AngleError):
    """GitHub refuses something that asking again would not change; `status` is the HTTP status.

    Of one repository it is noted and the crawl goes on with the others.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.reason = status, reason


class SchemaError(AngleError):
    """The server's GraphQL lacks a field or argument that the crawl asks for (an old Enterprise version)."""


class LostCursorError(Exception):
    """GraphQL does not accept a page cursor any more; the listing starts again from its last time stamp."""


class TooHeavy(Exception):
    """GraphQL gave up on a page; a smaller one may do."""


class Transient(Exception):
    """The same request may well succeed later.

    `wait_s` is what the server asks for, None if it did not say; `least_s` is where the growing waits begin;
    `heavy` says that the request may have been too large for the time the server has.
    """

    def __init__(
        self, reason: str, wait_s: float | None = None, *, least_s: float = 0.0, heavy: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait_s, self.least_s, self.heavy = wait_s, least_s, heavy


@dataclass(frozen=True, slots=True)
class Budget:
    """The primary limit of `core` (requests) or `graphql` (points); `reset` is in epoch seconds."""

    limit: int
    remaining: int
    reset: float

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Budget | None:
        """Read the `x-ratelimit-*` headers, None where they are missing or no numbers."""
        try:
            limit, remaining, reset = (
                float(headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "reset")
            )
        except (KeyError, ValueError):
            return None
        return cls(int(limit), int(remaining), reset)


def pause_before(budget: Budget | None, now: float) -> float:
    """Return the seconds to wait before the next request: none while more than a tenth of the budget is left.

    Then the rest is spread evenly over the time to the reset; with nothing left, the wait lasts until then.
    """
    if budget is None or budget.limit <= 0 or now >= budget.reset:
        return 0.0
    left = budget.reset - now
    if budget.remaining <= 0:
        return left + _MARGIN_S
    return left / budget.remaining if budget.remaining < budget.limit * _SHORT_SHARE else 0.0


def clock_skew(headers: Mapping[str, str], now: float) -> float | None:
    """Return the server's clock minus ours in seconds, by its `Date` header; None if there is none."""
    try:
        return email.utils.parsedate_to_datetime(headers["date"]).timestamp() - now
    except (KeyError, TypeError, ValueError):
        return None


def judge_status(status: int, headers: Mapping[str, str], message: str, now: float) -> Exception | None:
    """Return the exception that an HTTP answer stands for, None for a success.

    The order of the rules is GitHub's: `Retry-After`, then a used-up budget, then a minute and more.
    """
    if status < 300 or status == 304:
        return None
    words = message.lower()
    if status == 429 or (status == 403 and _speaks_of_limits(headers, words)):
        return _limited(headers, now)
    if status == 408 or status >= 500:
        return Transient(f"HTTP {status}", retry_after(headers), heavy=True)
    return Refused(status, message.splitlines()[0][:200] if message else "no reason given")


def judge_graphql(answer: Mapping[str, Any], headers: Mapping[str, str], now: float) -> Exception | None:
    """Return the exception that a GraphQL answer of HTTP 200 stands for, None where its data can be used.

    Errors about single nodes (a private target, say) leave the rest of the data usable.
    """
    errors: list[dict[str, Any]] = [error for error in answer.get("errors") or () if isinstance(error, dict)]
    types = {str(error.get("type", "")) for error in errors}
    text = "; ".join(str(error.get("message", "")) for error in errors)
    words = text.lower()
    if "RATE_LIMITED" in types or "rate limit" in words:
        return _limited(headers, now)
    if types & _HEAVY_TYPES or any(word in words for word in _HEAVY_WORDS):
        return TooHeavy(text)
    if "INVALID_CURSOR_ARGUMENTS" in types:
        return LostCursorError(text)
    data = answer.get("data")
    if isinstance(data, dict) and any(value is not None for key, value in data.items() if key != "rateLimit"):
        return None
    if types & _REFUSED_TYPES:
        return Refused(404 if "NOT_FOUND" in types else 403, text[:200])
    if any("code" in (error.get("extensions") or {}) for error in errors):
        return SchemaError(text[:200])
    return Transient(f"GraphQL error: {text[:200] or 'no data'}")


def wait_as_told() -> Callable[[RetryCallState], float]:
    """Return a tenacity wait: what the server asks for, else exponential with jitter, 1 to 300 seconds."""
    from tenacity import wait_exponential, wait_random

    exponential = wait_exponential(multiplier=1.0, max=_LONGEST_S)
    jitter = wait_random(0.0, 1.0)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Transient) and error.wait_s is not None:
            # "Retry-After: 0" would be a busy loop against a service that is still overloaded.
            return max(error.wait_s, _MARGIN_S)
        least = error.least_s if isinstance(error, Transient) else 0.0
        grown = least * 2 ** (state.attempt_number - 1) if least else float(exponential(state))
        return float(min(grown, max(_LONGEST_S, least)) + jitter(state))

    return wait


def _speaks_of_limits(headers: Mapping[str, str], words: str) -> bool:
    budget = Budget.from_headers(headers)
    return (
        "retry-after" in headers
        or (budget is not None and budget.remaining <= 0)
        or any(word in words for word in ("rate limit", "abuse detection"))
    )


def _limited(headers: Mapping[str, str], now: float) -> Transient:
    told = retry_after(headers)
    if told is not None:
        return Transient("rate limit, the server says when to go on", told)
    budget = Budget.from_headers(headers)
    if budget is not None and budget.remaining <= 0:
        return Transient("rate limit used up", max(budget.reset - now, 0.0) + _MARGIN_S)
    return Transient("secondary rate limit", least_s=_SECONDARY_S)
