"""A small GitHub on a loopback socket: REST and GraphQL over a made-up world, with faults on demand.

For tests only. Pages, `Link` headers, `since`, ETags, redirections, budgets and errors follow GitHub's
descriptions; the shapes are in fake_github_payloads and fake_github_graphql, checked by test_protocol.
"""

import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import urlencode

import fake_github_payloads as payloads
from aiohttp import web
from fake_github_graphql import run_query
from fake_github_world import FakeRepo, World, all_comments
from fake_server import FakeServer


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    `kind`: status (an error in GitHub's form), html (an error page), reset, truncated (a body that stops
    early), garbage (a whole body that is no JSON), primary (the budget is used up), limited (GraphQL's
    limit inside a 200), timeout (GraphQL's time-out inside a 200), cut (lists inside GraphQL's pages
    emptied without an error), old (GraphQL of a server that lacks a field), errors (GraphQL's error of this
    `type` inside a 200, for the repository as a whole).
    """

    kind: str = "status"
    status: int = 502
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    type: str = ""


JSON = "application/json"
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


# Every passing fault by name; those of GraphQL strike its requests alone.
FAULTS = {
    "500": Fault("status", 500),
    "502": Fault("html", 502),
    "504": Fault("html", 504),
    "503 with a wait": Fault("status", 503, headers={"Retry-After": "20"}),
    "reset": Fault("reset"),
    "cut body": Fault("truncated"),
    "no JSON": Fault("garbage"),
    "primary limit 403": Fault("primary", 403),
    "primary limit 429": Fault("primary", 429),
    "secondary limit 403": Fault("status", 403, SECONDARY),
    "secondary limit 429": Fault("status", 429, SECONDARY),
    "secondary limit with a wait": Fault("status", 403, SECONDARY, {"Retry-After": "1"}),
    "GraphQL: limit": Fault("limited"),
    "GraphQL: time-out": Fault("timeout"),
    "GraphQL: cut lists": Fault("cut"),
    "GraphQL: error": Fault("errors", message="Unexpected nil"),
}


class FaultShares:
    """A schedule by shares of requests: of every hundred requests 10 fail by a fault of share 0.1.

    However few the requests are, a fault of share 1/n strikes within the first n of them that it can strike;
    the seed decides where. A request meets one fault; what else is due strikes the next. `fired` counts.
    """

    def __init__(self, seed: int, **shares: float) -> None:
        rng = random.Random(seed)
        self.shares = shares
        self._due = {name: rng.random() for name in shares}
        self.fired: Counter[str] = Counter()

    def __call__(self, seen: "Seen") -> Fault | None:
        able = [name for name in self.shares if self._can_strike(name, seen)]
        for name in able:
            self._due[name] += self.shares[name]
        name = max(able, key=lambda each: self._due[each], default="")
        if self._due.get(name, 0) < 1:
            return None
        self._due[name] -= 1
        self.fired[name] += 1
        return FAULTS[name]

    @staticmethod
    def _can_strike(name: str, seen: "Seen") -> bool:
        if name == "GraphQL: cut lists":  # in a page of issues
            return "first" in (seen.body or {}).get("variables", {})
        return seen.route == "graphql" or not name.startswith("GraphQL")


@dataclass(frozen=True)
class Seen:
    """One request; `route` is repository, issues, comments, issue or graphql."""

    route: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict | None = None


class FakeGitHub(FakeServer):
    """The server. `faults` are used one a request, then `schedule` is asked.

    With `token` set other tokens get 401; GraphQL always wants one. `limit` is the hourly budget of each
    API, `deep` how many items page numbers reach; `exclusive` leaves out the very second of `since`; `web` is
    the site of all pages. `before` is called with every request, to change the world while it is read.
    """

    def __init__(
        self, world: World, *, faults: Iterable[Fault | None] = (),
        schedule: Callable[[Seen], Fault | None] | None = None,
        before: Callable[[Seen], None] | None = None, token: str | None = None, prefix: str = "",
        limit: int = 5_000, deep: int = 10_000, skew_s: float = 0.0, exclusive: bool = False,
        web: str = payloads.WEB,
    ) -> None:  # fmt: skip
        self.world, self.seen, self.unchanged = world, [], 0
        self.faults, self.schedule, self._before = list(faults), schedule, before
        self._token, self._prefix, self._limit = token, prefix, limit
        self._deep, self._skew_s = deep, skew_s
        self._exclusive, self._web = exclusive, web
        self.used = {"core": 0, "graphql": 0}
        self._sorted: dict[tuple, tuple[int, list]] = {}

    @property
    def url(self) -> str:
        return self.origin + self._prefix

    def count(self, route: str) -> int:
        """How many requests of this route arrived."""
        return sum(seen.route == route for seen in self.seen)

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post(self._prefix.removesuffix("/v3") + "/graphql", self._on("graphql"))
        for base in ("/repos/{owner}/{name}", "/repositories/{id}"):
            base = self._prefix + base
            app.router.add_get(base, self._on("repository"))
            app.router.add_get(f"{base}/issues", self._on("issues"))
            app.router.add_get(f"{base}/issues/comments", self._on("comments"))
            app.router.add_get(f"{base}/issues/{{number:\\d+}}", self._on("issue"))

    def _on(self, route: str) -> Callable[[web.Request], object]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json() if route == "graphql" else None
            seen = Seen(route, request.path, dict(request.query), dict(request.headers), body)
            self.seen.append(seen)
            if self._before:
                self._before(seen)
            fault = self.faults.pop(0) if self.faults else self.schedule(seen) if self.schedule else None
            resource = "graphql" if route == "graphql" else "core"
            if fault and fault.kind != "cut":
                return await self._misbehave(fault, request, resource)
            return self._respond(seen, request, resource, cut=fault is not None)

        return handle

    def _respond(self, seen: Seen, request: web.Request, resource: str, *, cut: bool) -> web.Response:
        given = request.headers.get("Authorization")
        if self._token is not None and given is not None and given != f"token {self._token}":
            return self._error(401, "Bad credentials", resource)
        if seen.route == "graphql":
            if given is None:
                return self._error(401, "This endpoint requires you to be authenticated.", resource)
            return self._graphql(seen, cut=cut)
        if self.used["core"] >= self._limit:
            return self._error(403, "API rate limit exceeded for user ID 1.", resource)
        self.used["core"] += 1
        found = self._find(request)
        if found is None:
            return self._error(404, "Not Found", resource)
        repo, renamed = found
        if repo.refuse:
            messages = {404: "Not Found", 410: "Gone", 451: "Repository access blocked", 403: "Forbidden"}
            return self._error(repo.refuse, messages[repo.refuse], resource)
        if renamed:
            rest = request.path.removeprefix(self._prefix).split("/", 4)[4:]
            target = "/".join([f"{self.url}/repositories/{repo.id}", *rest])
            query = f"?{request.query_string}" if request.query_string else ""
            return self._error(301, "Moved Permanently", resource, {"Location": target + query})
        if seen.route != "repository" and not repo.has_issues:
            return self._error(410, "Issues has been disabled in this repository.", resource)
        answer = getattr(self, f"_{seen.route}")(repo, request)
        return answer if isinstance(answer, web.Response) else self._json(answer, request)

    def _find(self, request: web.Request) -> tuple[FakeRepo, bool] | None:
        if "id" in request.match_info:
            repo = self.world.repos.get(int(request.match_info["id"]))
            return (repo, False) if repo else None
        return self.world.named("{owner}/{name}".format(**request.match_info))

    def _repository(self, repo: FakeRepo, request: web.Request) -> dict:
        return payloads.repository(repo, self.url, self._web)

    def _issues(self, repo: FakeRepo, request: web.Request) -> web.Response:
        state = request.query.get("state", "open")
        items = self._ordered(repo, "issues", request)
        kept = items if state == "all" else [item for item in items if item.state == state]
        return self._page(kept, repo, request, lambda item: payloads.issue(item, repo, self.url, self._web))

    def _comments(self, repo: FakeRepo, request: web.Request) -> web.Response:
        def show(item: object) -> dict:
            is_pull = repo.issues[item.number].is_pull
            return payloads.comment(item, repo, self.url, self._web, on_pull=is_pull)

        return self._page(self._ordered(repo, "comments", request), repo, request, show)

    def _issue(self, repo: FakeRepo, request: web.Request) -> dict | web.Response:
        number = int(request.match_info["number"])
        if number in repo.moved:
            target, there = repo.moved[number]
            location = f"{self.url}/repositories/{target}/issues/{there}"
            return self._error(301, "Moved Permanently", "core", {"Location": location})
        if number in repo.hidden:
            return self._error(repo.hidden[number], "Not for you", "core")
        if number in repo.deleted:
            return self._error(410, "This issue was deleted", "core")
        if number not in repo.issues:
            return self._error(404, "Not Found", "core")
        item = repo.issues[number]
        closed_by = payloads.user(item.closed_by, self.url, self._web)
        return {**payloads.issue(item, repo, self.url, self._web), "closed_by": closed_by}

    def _ordered(self, repo: FakeRepo, what: str, request: web.Request) -> list:
        by = {"updated": "updated_at"}.get(request.query.get("sort", "created"), "created_at")
        version, items = self._sorted.get((repo.id, what, by), (-1, []))
        if version != self.world.version:
            source = repo.issues.values() if what == "issues" else all_comments(repo)
            items = sorted(source, key=lambda item: (getattr(item, by), item.id))
            self._sorted[repo.id, what, by] = self.world.version, items
        # Issues come newest first unless asked otherwise, comments oldest first.
        default = "desc" if what == "issues" else "asc"
        if request.query.get("direction", default) == "desc":
            items = items[::-1]
        since = request.query.get("since", "")
        if self._exclusive:
            return [item for item in items if item.updated_at > since]
        return [item for item in items if item.updated_at >= since]

    def _page(
        self, items: list, repo: FakeRepo, request: web.Request, show: Callable[[object], dict]
    ) -> web.Response:
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        size = min(size, 100)
        if (page - 1) * size >= self._deep:
            message = "Pagination with the page parameter is not supported for large datasets"
            return self._error(422, message, "core")
        last = max(1, -(-len(items) // size))
        links = {"next": page + 1, "last": last} if page < last else {}
        where = f"{self.url}/repositories/{repo.id}/issues{request.path.partition('/issues')[2]}"
        addresses = {rel: f"{where}?{urlencode({**request.query, 'page': n})}" for rel, n in links.items()}
        link = ", ".join(f'<{address}>; rel="{rel}"' for rel, address in addresses.items())
        rows = [show(item) for item in items[(page - 1) * size : page * size]]
        return self._json(rows, request, {"Link": link} if link else {})

    def _graphql(self, seen: Seen, *, cut: bool) -> web.Response:
        body = seen.body or {}
        if self.used["graphql"] >= self._limit:
            return self._data({"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]})
        reset = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._reset()))
        rate = {"limit": self._limit, "remaining": self._limit - self.used["graphql"], "resetAt": reset}
        answer, points = run_query(self.world, body["query"], body["variables"], rate, cut=cut, web=self._web)
        self.used["graphql"] += points
        return self._data(answer)

    def _data(self, answer: dict) -> web.Response:
        return web.json_response(answer, headers=self._headers("graphql"))

    def _json(
        self, data: object, request: web.Request, headers: dict[str, str] | None = None
    ) -> web.Response:
        text = json.dumps(data)
        etag = f'W/"{hashlib.sha256(text.encode()).hexdigest()}"'
        answer = {**self._headers("core"), "ETag": etag, **(headers or {})}
        if request.headers.get("If-None-Match") == etag:
            self.used["core"] -= 1
            self.unchanged += 1
            return web.Response(status=304, headers={**answer, **self._headers("core")})
        return web.Response(text=text, headers=answer, content_type=JSON, charset="utf-8")

    def _error(
        self, status: int, message: str, resource: str, headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.json_response(
            {"message": message, "documentation_url": "https://docs.github.com/rest"},
            status=status,
            headers={**self._headers(resource), **(headers or {})},
        )

    def _headers(self, resource: str, remaining: int | None = None) -> dict[str, str]:
        left = max(0, self._limit - self.used[resource]) if remaining is None else remaining
        return {
            "X-RateLimit-Limit": str(self._limit), "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Used": str(self._limit - left), "X-RateLimit-Reset": str(int(self._reset())),
            "X-RateLimit-Resource": resource, "Date": formatdate(time.time() + self._skew_s, usegmt=True),
        }  # fmt: skip

    def _reset(self) -> float:
        return time.time() + self._skew_s + 3_600

    async def _misbehave(self, fault: Fault, request: web.Request, resource: str) -> web.StreamResponse:
        if fault.kind in ("reset", "truncated"):
            response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": JSON})
            if fault.kind == "truncated":
                await response.prepare(request)
                await response.write(b'[{"id": 1, "body": "cut he')
            request.transport.abort()
            return response
        if fault.kind == "html":
            return web.Response(status=fault.status, text="<html>Unicorn!</html>", content_type="text/html")
        if fault.kind == "garbage":
            return web.Response(text='[{"id": 1, "bo', content_type=JSON)
        if fault.kind in ("primary", "limited"):
            headers = {**self._headers(resource, remaining=0), **fault.headers}
            message = {"message": "API rate limit exceeded for user ID 1."}
            inside = {"errors": [{"type": "RATE_LIMITED", **message}]}
            primary = fault.kind == "primary"
            status = fault.status if primary else 200
            return web.json_response(message if primary else inside, status=status, headers=headers)
        if fault.kind == "timeout":
            message = "Something went wrong while executing your query. This may be the result of a timeout."
            return self._data({"data": None, "errors": [{"message": message}]})
        if fault.kind == "errors":
            error = {"message": fault.message, "path": ["repository"]} | (
                {"type": fault.type} if fault.type else {}
            )
            return self._data({"data": {"rateLimit": {"cost": 1}, "repository": None}, "errors": [error]})
        if fault.kind == "old":
            message = "Field 'fullDatabaseId' doesn't exist on type 'Issue'"
            return self._data({"errors": [{"message": message, "extensions": {"code": "undefinedField"}}]})
        return self._error(fault.status, fault.message, resource, fault.headers)
