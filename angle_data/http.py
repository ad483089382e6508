"""What can go wrong with a call over HTTP, whether to try it again, how long to wait before, and proxies.

After a 429 of an LLM server `annotators.limits` decides how long.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from angle_data.errors import InputError

_LONGEST_S = 60.0
# OpenAI's names: https://platform.openai.com/docs/guides/error-codes. The numbers are the GLM cloud's for an
# account that is inactive, unknown, locked, in arrears or locked for abuse, and for a plan that is over:
# https://docs.bigmodel.cn/cn/api/api-code
_NO_QUOTA = frozenset(
    {"insufficient_quota", "billing_not_active", "1110", "1111", "1112", "1113", "1121", "1309"}
)


class CallError(Exception):
    """A call failed.

    `status_code` and `headers` are those of an answer with an error status, `codes` its short names for the
    error, `param` the field that it names. `connected` is False when no connection came about;
    `timeout`: time ran out. `kind` is a short code for all of it, `usage` the tokens that it took all
    the same, `said` the words of a reply that came with it, as a row of a journal holds them.
    """

    kind: str
    status_code: int | None = None
    headers: Mapping[str, str] = {}
    codes: frozenset[str] = frozenset()
    param = ""
    connected, timeout = True, False
    usage: Mapping[str, int] = {}
    said: Mapping[str, Any] = {}


class BadAnswer(CallError):
    """The service answered with success, but not in the form that its API has."""

    kind = "bad_answer"


class NoReply(BadAnswer):
    """The service answered with success, but without a reply: none in it, or an answer that is cut off.

    A safety filter does the one, a text that a proxy or server chokes on the other: both are about the
    request, as far as one can tell, not about the service.
    """

    kind = "no_reply"

    def __init__(self, message: str, usage: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.usage = usage or {}


class NoAnswer(CallError):
    """There was no answer: no connection, it broke, or time ran out."""

    def __init__(self, message: str, *, connected: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.connected, self.timeout = connected, timeout
        self.kind = "timeout" if timeout else "connection"


class ServiceError(CallError):
    """The service answered with an error status."""

    def __init__(
        self, status: int, message: str, codes: frozenset[str], headers: Mapping[str, str], param: str = ""
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.codes = codes
        self.headers = headers
        self.param = param
        self.kind = f"http_{status}"


def is_retryable(error: CallError) -> bool:
    """Whether the same request may well succeed later.

    A 429 is final when it is about the account (`is_out_of_quota`), or says that this request is too large
    for the limit.
    """
    status = error.status_code
    if status == 429:
        return not is_out_of_quota(error) and "too large" not in str(error)
    return status in (None, 408, 409) or status >= 500


def is_out_of_quota(error: CallError) -> bool:
    """Whether a 429 says that the account is empty or closed, so that no patience helps."""
    return error.status_code == 429 and not _NO_QUOTA.isdisjoint(error.codes)


def is_away(error: CallError) -> bool:
    """Whether the server seems to be away: no connection, a broken one, or a gateway's 502, 503 or 504."""
    return error.status_code in (502, 503, 504) or (isinstance(error, NoAnswer) and not error.timeout)


_EPOCH = 1.5e9  # more seconds than anybody is told to wait: a moment since 2017, counted from 1970


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` (RFC 9110, 10.2.3) or OpenAI's `retry-after-ms` asks for.

    A moment is compared with the service's own clock, where it tells it.
    """
    given = headers.get("retry-after", "")
    now = _moment(headers.get("date", "")) or time.time()
    for text, divisor in ((headers.get("retry-after-ms", ""), 1000.0), (given, 1.0)):
        try:
            seconds = float(text) / divisor
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds - now if seconds > _EPOCH else seconds, 0.0)
    moment = _moment(given)
    return None if moment is None else max(moment - now, 0.0)


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text[:100]).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


LONG_WAIT_S = 20.0
"""Longer waits are said."""


def said_of_wait(who: str, why: object, seconds: float) -> str:
    """Say who is waited for, why, how long and until when."""
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + min(seconds, 1e8)))
    return f"{who} asks for patience ({why}): waiting {seconds:.0f} s, until {until}"


def retry_pause(error: CallError, attempt: int, first_s: float = 0.5) -> float:
    """Return the seconds to wait after attempt number `attempt` (from 1) failed with `error`.

    What the service asks for, else random up to `first_s`, doubled with every attempt and at most a minute.
    "Retry-After: 0" counts as nothing: it would be a busy loop against a service that is still overloaded.
    """
    most = min(first_s * 2.0 ** min(attempt - 1, 16), _LONGEST_S)
    return retry_after(error.headers) or random.uniform(0.0, most)


def proxy_for(url: str) -> tuple[str | None, str]:
    """Return the proxy that the environment names for `url`, and its variable, as requests and curl read it.

    NO_PROXY may name hosts, domains, ports and ranges of IPv4; ALL_PROXY serves where no other is named.
    aiohttp's `trust_env` looks it up for every request, in another thread: 345 to 410 µs of CPU a request in
    place of 131. It also reads ~/.netrc, and raises where an entry meets our Authorization header.
    """
    from urllib.request import getproxies, proxy_bypass

    if not getproxies():
        return None, ""  # as on most machines, where requests is not worth its 0.2 s
    from requests.utils import get_environ_proxies, select_proxy

    parts = urlsplit(url)
    proxies = get_environ_proxies(url)
    variable = f"{parts.scheme if parts.scheme in proxies else 'all'}_proxy".upper()
    # What requests does not know: an IP address with its port.
    proxy = None if proxy_bypass(parts.netloc) else select_proxy(url, proxies)
    if proxy is not None and "://" not in proxy:
        proxy = f"http://{proxy}"  # HOST:PORT, as curl takes it
    if proxy is not None and not is_http(proxy):  # aiohttp would speak HTTP to a SOCKS proxy too
        # The address is not shown: where it is malformed, no rule finds the password in it.
        raise InputError(
            f"the proxy in {variable} is not an address of the form http://HOST:PORT; correct it, or name "
            "the server's host in NO_PROXY"
        )
    return proxy, variable


def is_http(address: str) -> bool:
    """Whether this is an address of the form http://HOST:PORT, or https, with or without a path."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
