"""One connection to GitHub's REST and GraphQL APIs: budgets, waits, retries, pages as plain JSON.

Uses PyGithub's requester for addresses, authentication and transport, and none of its objects, which fetch
missing fields one request each. PyGithub's own retries and pauses are off: tenacity is the one retry layer.
Requests go one after the other, as GitHub asks. Sources of the rules:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
"""

from __future__ import annotations

import email.utils
import logging
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from angle_data.errors import AngleError, CredentialsError, InputError, StoppedError
from angle_data.gis.crawl.selection import PUBLIC_API
from angle_data.http import retry_after
from angle_data.jsonl import loads

if TYPE_CHECKING:
    from tenacity import RetryCallState

Resource = Literal["core", "graphql"]
"""GitHub's two budgets: REST requests and GraphQL points."""

_ATTEMPTS = 10
_FIRST_ATTEMPTS = 3
_DOUBTFUL_ATTEMPTS = 7
_TIMEOUT_S = 30
_WORTH_A_LINE_S = 5.0
# A token in its place has small letters, or is longer.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{,34}")

_ENTERPRISE = "check --api-url (GitHub Enterprise: https://HOST/api/v3)"
_SECONDARY_S = 60.0
_LONGEST_S = 300.0
_MARGIN_S = 1.0
_HOPS = 5

_HEAVY_TYPES = frozenset({"MAX_NODE_LIMIT_EXCEEDED", "RESOURCE_LIMITS_EXCEEDED", "TIMEOUT"})
_HEAVY_WORDS = ("something went wrong while executing your query", "timeout", "timed out", "resource limits")
_REDIRECTIONS = (302, 307, 308)  # PyGithub follows 301
_REFUSED_TYPES = frozenset({"NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_SCOPES"})

log = logging.getLogger("angle")


class Refused(AngleError):
    """GitHub refuses something that asking again would not change; `status` is the HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason if status == 200 else f"{status} {reason}")
        self.status = status


class Failing(StoppedError):
    """GraphQL keeps answering with an error that says nothing of waiting; another query may do."""


class TooHeavy(Exception):
    """GraphQL gave up on a query; one that asks for less may do."""


class Transient(Exception):
    """The same request may well succeed later.

    `wait_s` is what the server asks for, None if it did not say; `least_s` is where the growing waits begin;
    `heavy` says that the request may have been too large for the time the server has; `doubtful` that it may
    fail each time, so that it is given up after `_DOUBTFUL_ATTEMPTS`, about a minute.
    """

    def __init__(
        self,
        reason: str,
        wait_s: float | None = None,
        *,
        least_s: float = 1.0,
        heavy: bool = False,
        doubtful: bool = False,
    ) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        self.least_s = least_s
        self.heavy = heavy
        self.doubtful = doubtful


class Budget(NamedTuple):
    """The primary limit of `core` (requests) or `graphql` (points); `reset` is in epoch seconds."""

    limit: int
    remaining: int
    reset: float

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Budget | None:
        """Read the `x-ratelimit-*` headers; None where they are missing or no numbers."""
        with suppress(KeyError, ValueError):
            names = ("limit", "remaining", "reset")
            limit, remaining, reset = (float(headers[f"x-ratelimit-{name}"]) for name in names)
            return cls(int(limit), int(remaining), reset)
        return None


class Page(NamedTuple):
    """One REST answer: its JSON, and from its headers the next page, the ETag and the last page's number.

    `data` is None where the ETag that was asked with still holds.
    """

    data: Any
    next_url: str | None = None
    etag: str | None = None
    last_page: int | None = None


class GitHubClient:
    """Sends requests one by one, repeats those that fail for a while, and returns JSON.

    `token_env` is the variable that holds the token. `max_requests` counts every request sent, repeated ones
    included; None means no limit of ours. `spent` counts what was sent of each kind, without the 301
    redirections, which PyGithub follows; `points` what GraphQL charged; `withheld` why the last GraphQL
    answer lacks parts that the token may not see. `sleep` is replaceable for tests. An `InputError` where an
    option or the token cannot be used; what may be a secret is not shown.
    """

    def __init__(
        self,
        api_url: str = PUBLIC_API,
        token_env: str = "GITHUB_TOKEN",
        max_requests: int | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from github import Auth, Github

        self.api_url = api_url
        self.token_env = token_env
        self.max_requests = max_requests
        self._sleep = sleep
        if token_env not in os.environ and not _VARIABLE.fullmatch(token_env):
            raise InputError("--token-env takes the name of a variable, not the token itself")
        token = os.environ.get(token_env, "").strip()
        if not re.fullmatch("[!-~]*", token):
            said = f"the token in {token_env} contains a space, a line break or a non-ASCII character"
            raise InputError(f"{said}, which no GitHub token does; set it again")
        parts = urlsplit(api_url)
        site = parts.hostname in {None, "github.com", "www.github.com"}
        if "@" in api_url or parts.scheme not in {"http", "https"} or site:
            said = f"--api-url must be the address of an API, such as {PUBLIC_API} or https://HOST/api/v3"
            raise InputError(f"{said}, without a user name")
        if self.max_requests is not None and self.max_requests < 1:
            raise InputError(f"--max-requests must be at least 1, got {self.max_requests}")
        self.authenticated = bool(token)

        def without_token(text: str) -> str:  # some servers repeat it in their errors
            return text.replace(token, "[token]") if token else text

        self._without_token = without_token  # the token itself is no field of what may be shown
        github = Github(
            auth=Auth.Token(token) if token else None,
            base_url=api_url.rstrip("/"),
            timeout=_TIMEOUT_S,
            user_agent="angle-toolkit",
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        # PyGithub writes its redirections to stderr by a handler of its own.
        logging.getLogger("github").setLevel(logging.WARNING)
        self._requester = github.requester
        self.spent: Counter[Resource] = Counter()
        self.points = self._answers = 0
        self.withheld = ""
        self.budgets: dict[Resource, Budget] = {}
        self._skew_s = 0.0

    def get(self, path: str, *, etag: str | None = None) -> Page:
        """Return the answer to GET `path`, or the full address of a next page.

        Raises:
            Refused: The answer is an error that stays one (403, 404, 410, 422, 451 ...).
            CredentialsError, StoppedError: As of `crawl_repos`.
        """
        from requests.utils import parse_header_links

        headers = {"Accept": "application/vnd.github+json"} | ({"If-None-Match": etag} if etag else {})
        answer, data = self._repeat(lambda: self._send("core", "GET", path, headers, None))
        links = {link.get("rel"): link["url"] for link in parse_header_links(answer.get("link", ""))}
        last = re.search(r"[?&]page=(\d+)", links.get("last", ""))
        return Page(data, links.get("next"), answer.get("etag"), int(last[1]) if last else None)

    def graphql(self, query: str, variables: Mapping[str, Any], *, smaller: bool = False) -> dict[str, Any]:
        """Return the `data` of a GraphQL query, which may lack single nodes that the token may not see.

        With `smaller`, time-outs and bad gateways raise `TooHeavy` at once, for the caller to ask for less.
        """
        body = {"query": query, "variables": dict(variables)}

        def ask() -> dict[str, Any]:
            try:
                headers, answer = self._send("graphql", "POST", self._requester.graphql_url, {}, body)
                known = isinstance(answer, dict) and not answer.keys().isdisjoint(("data", "errors"))
                if not known or not isinstance(answer.get("data"), dict | None):
                    raise self.unlike()
                check_graphql(answer, headers, self._server_now())
            except Transient as error:
                if smaller and error.heavy and error.wait_s is None:
                    raise TooHeavy(str(error)) from error
                raise
            self.points += (answer["data"].get("rateLimit") or {}).get("cost", 0)
            errors = [error for error in answer.get("errors") or () if isinstance(error, dict)]
            withheld = [str(error.get("message", "")) for error in errors if error.get("type") == "FORBIDDEN"]
            self.withheld = withheld[0][:200] if withheld else ""
            return dict(answer["data"])

        return dict(self._repeat(ask))

    def unlike(self) -> InputError:
        """Return the error of an answer that GitHub would not give."""
        return InputError(f"{self.api_url} does not answer like GitHub's API; {_ENTERPRISE}")

    def _tell(self, seconds: float, reason: object) -> None:
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
        level = logging.INFO if seconds >= _WORTH_A_LINE_S else logging.DEBUG
        log.log(level, "waiting %.0f s, until %s: %s", seconds, until, reason)

    def pause(self, seconds: float, reason: str) -> None:
        """Wait, with a line in the log when it is long."""
        self._tell(seconds, reason)
        self._sleep(seconds)

    def status_line(self) -> str:
        """Return what is left of the budgets and when they are full again, for progress lines."""
        parts = [f"{self.spent.total():,} requests"]
        for name, budget in self.budgets.items():
            reset = time.strftime("%H:%M", time.localtime(budget.reset - self._skew_s))
            parts.append(f"{name} {budget.remaining:,}/{budget.limit:,} until {reset}")
        return ", ".join(parts)

    def _repeat(self, call: Callable[[], Any]) -> Any:
        from tenacity import Retrying, retry_if_exception_type

        doubtful = 0

        def is_enough(state: RetryCallState) -> bool:
            nonlocal doubtful
            error = state.outcome and state.outcome.exception()
            doubtful += isinstance(error, Transient) and error.doubtful
            most = _ATTEMPTS if self._answers else _FIRST_ATTEMPTS
            return state.attempt_number >= most or doubtful >= _DOUBTFUL_ATTEMPTS

        try:
            return Retrying(
                retry=retry_if_exception_type(Transient),
                wait=_wait,
                stop=is_enough,
                sleep=self._sleep,
                before_sleep=lambda state: self._tell(
                    state.upcoming_sleep, state.outcome and state.outcome.exception()
                ),
                reraise=True,
            )(call)
        except Transient as error:
            if self._answers:
                said = f"GitHub keeps failing ({error}); everything so far is kept"
                kind = Failing if doubtful >= _DOUBTFUL_ATTEMPTS else StoppedError
                raise kind(f"{said}; run the same command again later") from None
            said = f"cannot reach {self.api_url} ({error}); {_ENTERPRISE} and the network"
            raise InputError(said) from None

    def _send(
        self, resource: Resource, verb: str, path: str, headers: dict[str, str], body: dict[str, Any] | None
    ) -> tuple[dict[str, str], Any]:
        from requests.exceptions import ReadTimeout, RequestException

        self._spend(resource)
        try:
            status, answer, text = self._requester.requestJson(verb, path, headers=dict(headers), input=body)
            for _ in range(_HOPS):
                if status not in _REDIRECTIONS or "location" not in answer:
                    break
                there = self._on_this_server(answer["location"])
                self._spend(resource)
                status, answer, text = self._requester.requestJson(
                    verb, there, headers=dict(headers), input=body
                )
        except RequestException as error:
            # The names of transport errors say enough; their texts are long and hold addresses.
            raise Transient(type(error).__name__, heavy=isinstance(error, ReadTimeout)) from error
        except RuntimeError as error:
            raise Refused(301, f"redirected to another server ({error})") from None
        data: Any = None
        with suppress(ValueError):
            data = loads(self._without_token(text))
        self._answers += data is not None or status >= 300  # a web page is no answer
        with suppress(KeyError, TypeError, ValueError):
            self._skew_s = email.utils.parsedate_to_datetime(answer["date"]).timestamp() - time.time()
        if budget := Budget.from_headers(answer):
            self.budgets[resource] = budget
        if status == 304:
            return answer, None
        message = str(data.get("message", "")) if isinstance(data, dict) else ""
        if status == 401:
            said = f"wants a valid token (401); set {self.token_env} to one, or give --token-env"
            raise CredentialsError(f"{self.api_url} {said}")
        if status == 501 and data is None:  # a server that knows no such request will not learn it
            raise self.unlike()
        check_status(status, answer, message, self._server_now())
        if data is None:
            raise Transient("an answer that is no JSON")
        return answer, data

    def _on_this_server(self, location: str) -> str:
        """Return the path of a redirection; a `RuntimeError`, as of PyGithub, if it leads elsewhere."""
        here, there = urlsplit(self.api_url), urlsplit(location)
        if there.netloc and (there.scheme, there.netloc) != (here.scheme, here.netloc):
            raise RuntimeError(f"from {here.netloc} to {there.netloc}")
        return f"{there.path}?{there.query}" if there.query else there.path

    def _spend(self, resource: Resource) -> None:
        limit = self.max_requests
        if limit is not None and self.spent.total() >= limit:
            said = f"--max-requests {limit} reached; everything so far is kept"
            raise StoppedError(f"{said}; run the same command to continue")
        budget = self.budgets.get(resource)
        now = self._server_now()
        if budget is not None and budget.remaining <= 0 and now < budget.reset:
            self.pause(budget.reset - now + _MARGIN_S, f"no requests left of the {resource} limit")
        self.spent[resource] += 1

    def _server_now(self) -> float:
        return time.time() + self._skew_s


def check_status(status: int, headers: Mapping[str, str], message: str, now: float) -> None:
    """Raise what an HTTP answer stands for, `Transient` or `Refused`, unless it is a success."""
    if status < 300 or status == 304:
        return
    limit = _limit(headers, now)
    if status == 429 or (status == 403 and (limit.wait_s is not None or "rate limit" in message.lower())):
        raise limit
    if status >= 500:
        raise Transient(f"HTTP {status}", retry_after(headers), heavy=True)
    raise Refused(status, message.splitlines()[0][:200] if message else "no reason given")


def check_graphql(answer: Mapping[str, Any], headers: Mapping[str, str], now: float) -> None:
    """Raise what a GraphQL answer of HTTP 200 stands for; errors about single nodes leave the rest usable."""
    errors: list[dict[str, Any]] = [error for error in answer.get("errors") or () if isinstance(error, dict)]
    types = {str(error.get("type", "")) for error in errors}
    text = "; ".join(str(error.get("message", "")) for error in errors)
    words = text.lower()
    if "RATE_LIMITED" in types or "rate limit" in words:
        raise _limit(headers, now)
    if types & _HEAVY_TYPES or any(word in words for word in _HEAVY_WORDS):
        raise Transient(f"GraphQL: {text[:200]}", heavy=True, doubtful=True)
    data = answer.get("data")
    if isinstance(data, dict) and any(value is not None for key, value in data.items() if key != "rateLimit"):
        return
    if types & _REFUSED_TYPES:
        raise Refused(404 if "NOT_FOUND" in types else 403, text[:200])
    if any("code" in (error.get("extensions") or {}) for error in errors):
        said = f"the server's GraphQL is too old ({text[:200]})"
        raise InputError(f"{said}; use --strategy comments")
    raise Transient(f"GraphQL error: {text[:200] or 'no data'}", doubtful=True)


def _limit(headers: Mapping[str, str], now: float) -> Transient:
    """The wait by GitHub's rules: `Retry-After`, then the end of a used-up budget, then a minute and more."""
    told, budget = retry_after(headers), Budget.from_headers(headers)
    if told is None and budget is not None and budget.remaining <= 0:
        told = max(budget.reset - now, 0.0) + _MARGIN_S
    return Transient("rate limit", told, least_s=_SECONDARY_S)


def _wait(state: RetryCallState) -> float:
    """Return the seconds that the server asks for, else growing ones with jitter, 1 to 300."""
    error = state.outcome and state.outcome.exception()
    assert isinstance(error, Transient)
    if error.wait_s is not None:
        # "Retry-After: 0" would be a busy loop against a service that is still overloaded.
        return max(error.wait_s, _MARGIN_S)
    return min(error.least_s * 2.0 ** (state.attempt_number - 1), _LONGEST_S) + random.random()
