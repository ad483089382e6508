"""One connection to GitHub's REST and GraphQL APIs: budgets, retries, pages as plain JSON.

Uses PyGithub's requester for addresses, authentication and transport, and nothing of its objects: those fetch
missing fields one request each. PyGithub's own retries and pauses are off, so that there is one retry layer
(tenacity). Requests go one after the other, as GitHub asks. Knows nothing of what is stored.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from angle_data.errors import AngleError, CredentialsError, InputError, StoppedError
from angle_data.gis.crawl.limits import (
    Budget,
    Refused,
    TooHeavy,
    Transient,
    clock_skew,
    judge_graphql,
    judge_status,
    pause_before,
    wait_as_told,
)

if TYPE_CHECKING:
    from tenacity import RetryCallState

PUBLIC_API = "https://api.github.com"

_ATTEMPTS, _FIRST_ATTEMPTS = 10, 3
_TIMEOUT_S = 30
_WORTH_A_LINE_S = 5.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# GitHub's tokens could pass for the name of a variable; those of other kinds are told by their length.
_LIKE_A_TOKEN = re.compile(r"gh[pousr]_\w*|github_pat_\w*|\w{36,}")
_MOVED = frozenset({302, 307, 308})
_NEXT = re.compile(r'<([^>]*)>\s*;[^,<]*rel="?next\b')
_LAST = re.compile(r'<([^>]*)>\s*;[^,<]*rel="?last\b')

log = logging.getLogger("angle")

Resource = Literal["core", "graphql"]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where and as whom to ask: the REST address, the variable that holds the token, and the token itself.

    `max_requests` counts every request sent, repeated ones included; None means no limit of ours.
    """

    api_url: str = PUBLIC_API
    token_env: str = "GITHUB_TOKEN"
    token: str | None = None
    max_requests: int | None = None

    @classmethod
    def from_environment(cls, api_url: str, token_env: str, max_requests: int | None) -> Self:
        """Return the connection that options describe, with the token that the variable holds.

        Raises:
            InputError: An option or the token cannot be used; what may be a secret is not shown.
        """
        unset = token_env not in os.environ
        if not _VARIABLE.fullmatch(token_env) or (unset and _LIKE_A_TOKEN.fullmatch(token_env)):
            raise InputError("--token-env takes the name of a variable, not the token itself")
        return cls(api_url, token_env, os.environ.get(token_env, "").strip() or None, max_requests)

    def __post_init__(self) -> None:
        if "@" in self.api_url:
            raise InputError(
                "--api-url holds a user name or password; give the address alone, and a token by --token-env"
            )
        if self.token is not None and not re.fullmatch("[!-~]+", self.token):
            raise InputError(
                f"the token in {self.token_env} holds a space, a line break or a letter beyond ASCII, which "
                "none has; set it again"
            )
        parts = urlsplit(self.api_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InputError(
                f"--api-url {self.api_url!r} is no address; give one such as https://host.example/api/v3"
            )
        if parts.hostname in {"github.com", "www.github.com"}:
            raise InputError(f"--api-url {self.api_url} is the web site; the API is {PUBLIC_API}")
        if self.max_requests is not None and self.max_requests < 1:
            raise InputError(f"--max-requests must be at least 1, got {self.max_requests}")

    @property
    def hint(self) -> str:
        """What may be wrong with the address where a server finds nothing; empty for GitHub's own."""
        if self.api_url.rstrip("/") == PUBLIC_API or "/api/v3" in self.api_url:
            return ""
        return "; the API of GitHub Enterprise is at https://HOST/api/v3, check --api-url"

    def __repr__(self) -> str:
        return f"Connection(api_url={self.api_url!r}, token={'given' if self.token else 'none'})"


@dataclass(frozen=True, slots=True)
class Page:
    """One REST answer: its JSON, and from its headers the next page, the ETag and the last page's number."""

    data: Any
    next_url: str | None = None
    etag: str | None = None
    last_page: int | None = None


class GitHubClient:
    """Sends requests one by one and comes back with JSON, however often that takes.

    `requests` counts what was sent and `unchanged` the answers 304, which cost nothing of the primary limit.
    `sleep` and `now` (epoch seconds) are replaceable for tests.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        from github import Auth, Github
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

        self._connection, self._sleep, self._now = connection, sleep, now
        self._asks: Resource = "core"
        # PyGithub follows redirections by itself; counted is what goes over its connection.
        Requester.injectConnectionClasses(
            _counted(HTTPRequestsConnectionClass, self._spend),
            _counted(HTTPSRequestsConnectionClass, self._spend),
        )
        try:
            github = Github(
                auth=Auth.Token(connection.token) if connection.token else None,
                base_url=connection.api_url.rstrip("/"),
                timeout=_TIMEOUT_S,
                user_agent="angle-toolkit",
                per_page=100,
                retry=None,
                seconds_between_requests=None,
                seconds_between_writes=None,
            )
        finally:
            Requester.resetConnectionClasses()
        # PyGithub writes its redirections to stderr by a handler of its own.
        logging.getLogger("github").setLevel(logging.WARNING)
        self._requester = github.requester
        self.requests = self.unchanged = self._answers = 0
        self.budgets: dict[Resource, Budget] = {}
        self._skew_s = 0.0

    @property
    def authenticated(self) -> bool:
        """Whether a token is sent; without one GitHub allows 60 requests an hour and no GraphQL."""
        return self._connection.token is not None

    def get(self, path: str, *, etag: str | None = None) -> Page | None:
        """Return the answer to GET `path` (or the full address of a next page), None if `etag` still holds.

        Raises:
            Refused: The answer is an error that stays one (403, 404, 410, 422, 451 ...).
            CredentialsError: The token is not accepted.
            StoppedError: `max_requests` is reached, or the server keeps failing.
        """
        headers = {"Accept": "application/vnd.github+json"} | ({"If-None-Match": etag} if etag else {})
        status, answer, text = self._repeat(lambda: self._send("core", "GET", path, headers, None))
        if status == 304:
            self.unchanged += 1
            return None
        following, last = _NEXT.search(answer.get("link", "")), _LAST.search(answer.get("link", ""))
        number = re.search(r"[?&]page=(\d+)", last.group(1)) if last else None
        return Page(
            text,
            following.group(1) if following else None,
            answer.get("etag"),
            int(number[1]) if number else None,
        )

    def graphql(self, query: str, variables: Mapping[str, Any], *, smaller: bool = False) -> dict[str, Any]:
        """Return the `data` of a GraphQL query, which may lack single nodes that the token may not see.

        With `smaller`, time-outs and bad gateways raise `TooHeavy` at once, for the caller to ask for less.

        Raises:
            TooHeavy: See above. Others as in `get`, and those of `limits.judge_graphql`.
        """
        body = {"query": query, "variables": dict(variables)}

        def ask() -> dict[str, Any]:
            try:
                _, headers, answer = self._send("graphql", "POST", self._requester.graphql_url, {}, body)
                problem = judge_graphql(answer, headers, self._server_now())
                if problem is not None:
                    raise problem
            except TooHeavy as error:
                if smaller:
                    raise
                raise Transient(f"GraphQL: {error}") from error
            except Transient as error:
                if smaller and error.heavy and error.wait_s is None:
                    raise TooHeavy(str(error)) from error
                raise
            return dict(answer["data"])

        return dict(self._repeat(ask))

    def pause(self, seconds: float, reason: str) -> None:
        """Wait, with a line in the log when it is long."""
        if seconds >= _WORTH_A_LINE_S:
            until = time.strftime("%H:%M:%S", time.localtime(self._now() + seconds))
            log.info("waiting %.0f s, until %s: %s", seconds, until, reason)
        self._sleep(seconds)

    def status_line(self) -> str:
        """Return what is left of the budgets and when they are full again, for progress lines."""
        parts = [f"{self.requests:,} requests"]
        for name, budget in self.budgets.items():
            reset = time.strftime("%H:%M", time.localtime(budget.reset - self._skew_s))
            parts.append(f"{name} {budget.remaining:,}/{budget.limit:,} until {reset}")
        return ", ".join(parts)

    def _repeat(self, call: Callable[[], Any]) -> Any:
        from tenacity import Retrying, retry_if_exception_type

        try:
            return Retrying(
                retry=retry_if_exception_type(Transient),
                wait=wait_as_told(),
                stop=self._gives_up,
                sleep=self._sleep,
                before_sleep=_log_retry,
                reraise=True,
            )(call)
        except Transient as error:
            if not self._answers:
                raise InputError(
                    f"cannot reach {self._connection.api_url} ({error}); check --api-url and the network"
                ) from None
            raise StoppedError(
                f"GitHub keeps failing ({error}); all so far is kept, run again later"
            ) from None

    def _gives_up(self, state: RetryCallState) -> bool:
        return state.attempt_number >= (_ATTEMPTS if self._answers else _FIRST_ATTEMPTS)

    def _send(
        self,
        resource: Resource,
        verb: str,
        path: str,
        headers: dict[str, str],
        body: dict[str, Any] | None,
        hops: int = 3,
    ) -> tuple[int, dict[str, str], Any]:
        from requests.exceptions import InvalidURL, ReadTimeout, RequestException

        self._asks = resource
        try:
            status, answer, text = self._requester.requestJson(verb, path, headers=dict(headers), input=body)
        except InvalidURL as error:
            raise InputError(f"--api-url {self._connection.api_url} cannot be used: {error}") from None
        except RequestException as error:
            # The names of transport errors say enough; their texts are long and hold addresses.
            raise Transient(type(error).__name__, heavy=isinstance(error, ReadTimeout)) from error
        except RuntimeError as error:
            raise Refused(301, f"redirected to another server ({error})") from None
        self._answers += 1
        self._note(resource, answer)
        if status == 304:
            return status, answer, None
        if status in _MOVED and hops and _same_host(answer.get("location", ""), self._connection.api_url):
            # PyGithub follows 301 by itself, and no other redirection.
            return self._send(resource, verb, answer["location"], headers, body, hops - 1)
        data = _json(text)
        message = str(data.get("message", "")) if isinstance(data, dict) else ""
        if status == 401:
            raise self._rejected()
        problem = judge_status(status, answer, message, self._server_now())
        if problem is not None:
            raise problem
        if data is None:
            raise Transient("an answer that is no JSON")
        return status, answer, data

    def _spend(self) -> None:
        resource = self._asks
        limit = self._connection.max_requests
        if limit is not None and self.requests >= limit:
            raise StoppedError(
                f"--max-requests {limit} reached; all so far is kept, run the same command to go on"
            )
        seconds = pause_before(self.budgets.get(resource), self._server_now())
        if seconds > 0:
            self.pause(seconds, f"{self.budgets[resource].remaining} requests left of the {resource} limit")
        self.requests += 1

    def _note(self, resource: Resource, headers: Mapping[str, str]) -> None:
        skew = clock_skew(headers, self._now())
        self._skew_s = self._skew_s if skew is None else skew
        budget = Budget.from_headers(headers)
        if budget is not None:
            self.budgets[resource] = budget

    def _server_now(self) -> float:
        return self._now() + self._skew_s

    def _rejected(self) -> AngleError:
        name = self._connection.token_env
        if self.authenticated:
            return CredentialsError(f"GitHub rejected the token in {name} (401); set {name} to a valid one")
        return CredentialsError(
            f"{self._connection.api_url} wants a token (401); set {name} or give --token-env"
        )


def _counted(connection: type[Any], spend: Callable[[], None]) -> type[Any]:
    """A kind of PyGithub connection that calls `spend` before each request that it sends."""

    class Counted(connection):  # type: ignore[misc]  # chosen at run time
        def request(self, *arguments: Any, **options: Any) -> Any:
            spend()
            return super().request(*arguments, **options)

    return Counted


def _same_host(address: str, api_url: str) -> bool:
    return bool(address) and urlsplit(address).hostname in {None, urlsplit(api_url).hostname}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    seconds = state.next_action.sleep if state.next_action else 0.0
    level = logging.INFO if seconds >= _WORTH_A_LINE_S else logging.DEBUG
    log.log(level, "waiting %.0f s before the next try (%s)", seconds, error)
