"""Crawls the listed repositories into the store; running it again asks only for what changed.

A repository that cannot be read is noted with its reason and the others go on.

The forecast asks how many issues there are, of fifty repositories at once with a token; without one it takes
two requests per repository. What the store holds already is not counted again. A crawl counts on the way what
the forecast would have said of it, so that the two can be compared at its end.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.archive import load_archives
from angle_data.gis.crawl.github import PUBLIC_API, Connection, GitHubClient, Refused
from angle_data.gis.crawl.listings import Crawler, Place, queries_for, read_listing, read_threads
from angle_data.gis.crawl.lookups import ask_names, follow_references, read_set_aside
from angle_data.gis.crawl.queries import NAMES_A_QUERY, PER_PAGE, POINTS_PER_PAGE
from angle_data.gis.crawl.rows import Listing, Repo
from angle_data.gis.crawl.selection import Selection, Signals, read_repos
from angle_data.gis.crawl.store import STORE_NAME, Round, Store
from angle_data.locking import hold

_ANONYMOUS_LIMIT, _TOKEN_LIMIT = 60, 5_000
_REST_S, _GRAPHQL_S = 0.6, 3.0  # usual time of a full page, one request after the other (estimate)

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class CrawlConfig:
    """What to crawl and how; checks itself.

    `repos` is a list of repositories, `out` the folder of the store. `strategy` says what is read beside
    the issues: `events` (GraphQL marks), `comments`, or `both`. `since` is the first day (`2024-01-31`) on
    which an item was updated; an issue opened on that day or later was. `archives` are event dumps to read
    instead of the API. The token itself is read from the environment variable `token_env` and never kept.
    """

    repos: Path | None
    out: Path
    strategy: Signals = "both"
    api_url: str = PUBLIC_API
    token_env: str = "GITHUB_TOKEN"
    since: str | None = None
    max_requests: int | None = None
    archives: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        Selection(since=self.since, strategy=self.strategy)
        if self.repos is None and not self.archives:
            raise InputError("give --repos, a list of repositories (or --archive, event dumps)")

    @property
    def start(self) -> str | None:
        """`since` as a time stamp."""
        return f"{self.since}T00:00:00Z" if self.since else None


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """What a crawl left behind: rows in the store, what it cost, and what could not be read.

    `requests` were sent, `graphql` of them queries, which took `points`; `forecast` is how many `forecast`
    would have expected. `repos` maps each listed name to `ok` or `error:...`, `set_aside` the
    `owner/name#number` of an issue that GitHub could not serve whole to the reason; `archive` counts the
    lines of dumps (see `load_archives`).
    """

    store: Path
    repos: dict[str, str]
    rows: dict[str, int]
    requests: int = 0
    archive: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, str] = field(default_factory=dict)
    forecast: int = 0
    graphql: int = 0
    points: int = 0


def connect(
    config: CrawlConfig, *, sleep: Callable[[float], None], now: Callable[[], float]
) -> tuple[GitHubClient, Signals]:
    """Return the client that the options describe, and the signals that it can read.

    Without a token these are comments alone, with a warning: GraphQL, and with it events, needs one.

    Raises:
        InputError: An option cannot be used, or events alone were asked for without a token.
    """
    connection = Connection.from_environment(config.api_url, config.token_env, config.max_requests)
    client = GitHubClient(connection, sleep=sleep, now=now)
    if client.authenticated:
        return client, config.strategy
    if config.strategy == "events":
        raise InputError(f"--strategy events needs a token; set {config.token_env} or give --token-env")
    log.warning(
        "no token in %s: GitHub allows 60 requests an hour and no events; set one to go faster",
        config.token_env,
    )
    return client, "comments"


def check_readable(statuses: Mapping[str, str]) -> None:
    """Check that not every status, by listed name, is an error.

    Raises:
        InputError: Nothing of the list can be read.
    """
    if statuses and all(status.startswith("error:") for status in statuses.values()):
        name, status = next(iter(statuses.items()))
        raise InputError(
            f"none of {len(statuses)} repositories can be read; {name}: {status}; check the list, and "
            "--api-url (https://HOST/api/v3 for GitHub Enterprise)"
        )


def crawl_repos(
    config: CrawlConfig,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> CrawlSummary:
    """Bring the store in `config.out` up to date and return what it holds.

    Raises:
        InputError: No repository can be read, or the list, the address or the store cannot be used.
        CredentialsError: The token is not accepted.
        StoppedError: `max_requests` is reached or GitHub keeps failing; run again to go on.
    """
    names = read_repos(config.repos, config.api_url, tell=True)
    with hold(config.out), Store.open(config.out / STORE_NAME) as store:
        if config.archives:
            counts = load_archives(store, config.archives, names, config.start)
            return CrawlSummary(store.path, {}, store.counts(), archive=counts)
        client, signals = connect(config, sleep=sleep, now=now)
        round_ = Round(store, (signals, config.since, *names))
        day = datetime.fromtimestamp(now(), UTC).date().isoformat()
        crawl = _Crawl(config, store, client, signals, round_, day)
        statuses = crawl.run(names)
        check_readable(statuses)
        known = {repo.id: repo.name for repo in store.repos()}
        return CrawlSummary(
            store.path,
            statuses,
            store.counts(),
            requests=client.requests,
            set_aside={f"{known[repo]}#{number}": why for repo, number, why in store.all_set_aside()},
            forecast=math.ceil(crawl.expected),
            graphql=client.spent["graphql"],
            points=client.points,
        )


@dataclass
class _Crawl:
    """One run over the list."""

    config: CrawlConfig
    store: Store
    client: GitHubClient
    signals: Signals
    round: Round
    day: str
    expected: float = 0.0

    def run(self, names: tuple[str, ...]) -> dict[str, str]:
        """Read every repository and return its status by listed name."""
        done = self.round.entries
        with Progress("repositories", len(names)) as progress:

            def tell(name: str) -> None:
                progress.advance(0, f"{name}, {self.client.status_line()}")

            comments = self.signals == "both"
            crawler = Crawler(self.client, self.store, self.config.start, comments, tell)
            for name in names:
                if f"status:{name}" not in done:
                    self.round.note(f"status:{name}", self._visit(crawler, name))
                progress.advance(1, self.client.status_line())
            # After all listings, so that an issue that moved between listed repositories is found there.
            read = [repo for repo in self.store.repos() if f"step:{repo.id}:read" in done]
            for repo in read if self.signals != "comments" else ():
                try:
                    read_set_aside(crawler, repo)
                except Refused as error:
                    log.warning("%s: issues set aside were not looked up (%s)", repo.name, error)
            try:
                follow_references(crawler, read, graphql=self.client.authenticated)
            except InputError:  # a server whose GraphQL is too old
                if self.signals != "comments":
                    raise
                follow_references(crawler, read, graphql=False)
        self.expected = crawler.expected
        statuses = {name: done[f"status:{name}"] for name in names}
        self.round.complete()
        return statuses

    def _visit(self, crawler: Crawler, name: str) -> str:
        """Read what is listed under `name` and return its status."""
        crawler.expected += 1
        try:
            repo = self._resolve(name)
            self._once(repo, "read", partial(self._read, crawler, repo))
            self.store.set_meta(f"crawled:{repo.id}", self.day)
        except Refused as error:
            status = f"error:{error.reason}" if error.status == 200 else f"error:{error}"
            log.warning("%s is skipped: %s", name, status.removeprefix("error:"))
            if known := self.store.named(name):
                self.store.save_repo(replace(known, status=status, etag=None))
            else:
                self.store.save_failure(name, status)
            return status
        return "ok"

    def _once(self, repo: Repo, step: str, work: Callable[[], None]) -> None:
        """Do a step unless this round has done it."""
        if f"step:{repo.id}:{step}" not in self.round.entries:
            work()
            self.round.note(f"step:{repo.id}:{step}")

    def _resolve(self, name: str) -> Repo:
        """Find out the id and the present name; a known repository is asked for by its id."""
        known = self.store.named(name)
        etag = known.etag if known and known.status == "ok" else None
        page = self.client.get(f"/repositories/{known.id}" if known else f"/repos/{name}", etag=etag)
        if page is None and known:
            return known
        assert page is not None
        raw = page.data
        self.store.note_site(raw.get("html_url") or "", self.config.api_url)
        repo = Repo(raw["id"], raw["full_name"], name, (name,), etag=page.etag)
        if repo.name.lower() != name.lower() and self.store.repo(repo.id) is None:
            log.info("%s is called %s now", name, repo.name)
        self.store.save_repo(repo)
        if not raw.get("has_issues", True):
            raise Refused(410, "issues are disabled")
        return repo

    def _read(self, crawler: Crawler, repo: Repo) -> None:
        if self.signals != "comments":
            self._once(repo, "threads", partial(read_threads, crawler, repo))
        else:
            self._once(repo, "issues", partial(read_listing, crawler, repo, "issues"))
            self._once(repo, "comments", partial(read_listing, crawler, repo, "comments"))
        if not self.store.count("issues", repo.id):
            raise Refused(200, "no issues" + (" since that day" if self.config.since else ""))


# What it will cost


@dataclass(frozen=True, slots=True)
class RepoForecast:
    """One repository: its issues and, over REST, comments that are new, and the requests still to be sent."""

    name: str
    issues: int = 0
    comments: int = 0
    rest: int = 0
    graphql: float = 0.0
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The whole list: REST requests, GraphQL queries and their points, and hours with one token.

    `limit` is the hourly budget of REST requests, `spent` what the forecast cost.
    """

    repos: tuple[RepoForecast, ...]
    rest: int
    graphql: int
    points: int
    hours: float
    limit: int
    spent: int

    def table(self) -> str:
        """Return the forecast as text, one repository a line and the sums."""
        width = max([len(repo.name) for repo in self.repos] + [len("repository")])
        lines = [f"{'repository':<{width}} {'issues':>9} {'comments':>9} {'REST':>8} {'GraphQL':>8}"]
        for repo in self.repos:
            cells = f"{repo.issues:>9,} {repo.comments or '':>9} {repo.rest:>8,} {repo.graphql:>8,.0f}"
            lines.append(f"{repo.name:<{width}} {cells if repo.status == 'ok' else repo.status}")
        lines.append(
            f"about {self.rest + self.graphql:,} requests: {self.rest:,} REST and {self.graphql:,} GraphQL "
            f"({self.points:,} points), {self.hours:.1f} hours at {self.limit:,} requests an hour"
        )
        lines.append(f"this forecast took {self.spent} requests")
        return "\n".join(lines)


def forecast(
    config: CrawlConfig,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> Forecast:
    """Ask how many issues of every listed repository are new and return what crawling them will take.

    With `since`, only what was updated from then on is counted. Nothing is written.

    Raises:
        InputError, CredentialsError, StoppedError: As in `crawl_repos`.
    """
    names = read_repos(config.repos, config.api_url, tell=True)
    client, signals = connect(config, sleep=sleep, now=now)
    path = config.out / STORE_NAME
    with Store.open(path, read_only=True) if path.is_file() else nullcontext() as store:
        plan = _Forecaster(client, store, config.start, signals)
        rows = plan.over_rest(names) if signals == "comments" else plan.over_graphql(names)
    check_readable({row.name: row.status for row in rows})
    budget = client.budgets.get("core")
    limit = budget.limit if budget else (_TOKEN_LIMIT if client.authenticated else _ANONYMOUS_LIMIT)
    rest, graphql = sum(row.rest for row in rows), math.ceil(sum(row.graphql for row in rows))
    points = graphql * POINTS_PER_PAGE[signals == "both"]
    # The longest of the two budgets, of which the first hour's can be spent at once, and of the answers.
    hours = max(
        (rest * _REST_S + graphql * _GRAPHQL_S) / 3600,
        math.ceil(rest / limit) - 1,
        math.ceil(points / max(limit, _TOKEN_LIMIT)) - 1,
    )
    return Forecast(tuple(rows), rest, graphql, points, hours, limit, client.requests)


@dataclass(frozen=True, slots=True)
class _Forecaster:
    """Forecasts repositories one by one, from where `store` stands."""

    client: GitHubClient
    store: Store | None
    start: str | None
    signals: Signals

    def over_graphql(self, names: Sequence[str]) -> list[RepoForecast]:
        """One query for many repositories."""
        found: list[RepoForecast] = []
        ids: set[int] = set()  # a repository listed under two names is read once
        for first in range(0, len(names), NAMES_A_QUERY):
            chunk = names[first : first + NAMES_A_QUERY]
            bounds = [self._since(name, "threads" if self.signals == "both" else "events") for name in chunk]
            for name, raw in zip(chunk, ask_names(self.client, chunk, bounds), strict=True):
                if raw is not None and raw["hasIssuesEnabled"]:
                    count = 0 if raw["databaseId"] in ids else raw["issues"]["totalCount"]
                    queries = queries_for(count, comments=self.signals == "both")
                    queries *= raw["databaseId"] not in ids
                    found.append(RepoForecast(name, count, rest=1, graphql=queries))
                    ids.add(raw["databaseId"])
                else:
                    found.append(_unreadable(name, "not found, or its issues are disabled"))
        return found

    def over_rest(self, names: Iterable[str]) -> list[RepoForecast]:
        """Two requests for every repository, for its issues and its comments."""
        found: list[RepoForecast] = []
        for name in names:
            try:
                issues = self._count(name, "issues", "issues?state=all&")
                comments = self._count(name, "comments", "issues/comments?")
            except Refused as error:
                found.append(_unreadable(name, str(error)))
                continue
            pages = sum(max(1, math.ceil(count / PER_PAGE)) for count in (issues, comments))
            found.append(RepoForecast(name, issues, comments, rest=1 + pages))
        return found

    def _count(self, name: str, listing: Listing, path: str) -> int:
        """How many items are new: the pages of one item, or of more where a redirection drops parameters."""
        since = self._since(name, listing)
        bound = f"&since={since}" if since else ""
        page = self.client.get(f"/repos/{name}/{path}per_page=1{bound}")
        assert page is not None
        return (page.last_page or 1) * len(page.data)

    def _since(self, name: str, listing: Listing) -> str | None:
        """The time from which a listing will be asked for."""
        known = self.store.named(name) if self.store else None
        cursor = self.store.cursor(known.id, listing) if self.store and known else None
        return Place.of(cursor).restarted().since if cursor else self.start


def _unreadable(name: str, reason: str) -> RepoForecast:
    log.warning("%s is skipped: %s", name, reason)
    return RepoForecast(name, status=f"error:{reason}")
