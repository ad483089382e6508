"""Crawls the listed repositories into the store; running it again asks only for what changed.

A repository that cannot be read is noted with its reason and the others go on.

The forecast takes one request per repository. Issues and pull requests share their numbers, so the newest
number bounds how many there are. The number of comments is estimated. What the store holds already is not
counted again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.archive import load_archives
from angle_data.gis.crawl.github import PUBLIC_API, Connection, GitHubClient, Refused
from angle_data.gis.crawl.listings import (
    PER_PAGE,
    POINTS_PER_PAGE,
    Crawler,
    follow_missing,
    read_events,
    read_listing,
    read_set_aside,
)
from angle_data.gis.crawl.rows import LISTINGS, Repo
from angle_data.gis.crawl.selection import Selection, Signals, read_repos
from angle_data.gis.crawl.store import STORE_NAME, Round, Store
from angle_data.locking import hold

COMMENTS_PER_NUMBER = 4.5
"""Comments for each number; large projects have 4 to 6 (estimate)."""

_ANONYMOUS_LIMIT, _TOKEN_LIMIT = 60, 5_000
_REST_S, _GRAPHQL_S = 0.6, 2.0  # usual time of a full page, one request after the other (estimate)

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
    """What a crawl left behind: rows in the store, requests sent, and what could not be read.

    `repos` maps each listed name to `ok` or `error:...`, `set_aside` the `owner/name#number` of an issue that
    GitHub could not serve whole to the reason; `archive` counts the lines of dumps (see `load_archives`).
    """

    store: Path
    repos: dict[str, str]
    rows: dict[str, int]
    requests: int = 0
    archive: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, str] = field(default_factory=dict)


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
        store.check_server(config.api_url)
        round_ = Round(store, (signals, config.since, *names))
        statuses = _Crawl(config, store, client, signals, round_).run(names)
        check_readable(statuses)
        known = {repo.id: repo.name for repo in store.repos()}
        return CrawlSummary(
            store.path,
            statuses,
            store.counts(),
            requests=client.requests,
            set_aside={f"{known[repo]}#{number}": why for repo, number, why in store.all_set_aside()},
        )


@dataclass
class _Crawl:
    """One run over the list."""

    config: CrawlConfig
    store: Store
    client: GitHubClient
    signals: Signals
    round: Round

    def run(self, names: tuple[str, ...]) -> dict[str, str]:
        """Read every repository and return its status by listed name."""
        done = self.round.entries
        with Progress("repositories", len(names)) as progress:

            def tell(name: str) -> None:
                progress.advance(0, f"{name}, {self.client.status_line()}")

            crawler = Crawler(self.client, self.store, self.config.start, tell)
            for name in names:
                if f"status:{name}" not in done:
                    self.round.note(f"status:{name}", self._visit(crawler, name))
                progress.advance(1, self.client.status_line())
            # After all listings, so that an issue that moved between listed repositories is found there.
            for repo in list(self.store.repos()):
                if f"step:{repo.id}:read" in done:
                    self._read_single_issues(crawler, repo)
        statuses = {name: done[f"status:{name}"] for name in names}
        self.round.complete()
        return statuses

    def _visit(self, crawler: Crawler, name: str) -> str:
        """Read what is listed under `name` and return its status."""
        try:
            repo = self._resolve(name)
            self._once(repo, "read", partial(self._read, crawler, repo))
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
            self._once(repo, "events", partial(read_events, crawler, repo))
        if self.signals == "comments":
            self._once(repo, "issues", partial(read_listing, crawler, repo, "issues"))
        if self.signals != "events":
            self._once(repo, "comments", partial(read_listing, crawler, repo, "comments"))
        if not self.store.count("issues", repo.id):
            raise Refused(200, "no issues" + (" since that day" if self.config.since else ""))

    def _read_single_issues(self, crawler: Crawler, repo: Repo) -> None:
        graphql = self.signals != "comments"
        try:
            if graphql:
                read_set_aside(crawler, repo)
            self._once(repo, "missing", partial(follow_missing, crawler, repo, graphql=graphql))
        except Refused as error:
            log.warning("%s: issues that moved were not looked up (%s)", repo.name, error)


# What it will cost


@dataclass(frozen=True, slots=True)
class RepoForecast:
    """One repository: its newest number, the comments expected, and the requests still to be sent."""

    name: str
    numbers: int = 0
    comments: int = 0
    rest: int = 0
    graphql: int = 0
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
        lines = [f"{'repository':<{width}} {'numbers':>9} {'comments':>11} {'REST':>8} {'GraphQL':>8}"]
        for repo in self.repos:
            cells = f"{repo.numbers:>9,} {f'~{repo.comments:,}':>11} {repo.rest:>8,} {repo.graphql:>8,}"
            lines.append(f"{repo.name:<{width}} {cells if repo.status == 'ok' else repo.status}")
        lines.append(
            f"about {self.rest:,} REST requests and at most {self.graphql:,} GraphQL queries "
            f"({self.points:,} points), {self.hours:.1f} hours at {self.limit:,} requests an hour"
        )
        lines.append(
            f"comments are estimated at {COMMENTS_PER_NUMBER} per number; "
            f"this forecast took {self.spent} requests"
        )
        return "\n".join(lines)


def forecast(
    config: CrawlConfig,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> Forecast:
    """Ask for the newest issue of every listed repository and return what crawling them will take.

    With `since`, only what was updated from then on is counted. Nothing is written.

    Raises:
        InputError, CredentialsError, StoppedError: As in `crawl_repos`.
    """
    names = read_repos(config.repos, config.api_url, tell=True)
    client, strategy = connect(config, sleep=sleep, now=now)
    path = config.out / STORE_NAME
    rows: list[RepoForecast] = []
    with Store.open(path, read_only=True) if path.is_file() else nullcontext() as store:
        for name in names:
            try:
                rows.append(_forecast(client, name, strategy, store, config.start))
            except Refused as error:
                log.warning("%s is skipped: %s", name, error)
                rows.append(RepoForecast(name, status=f"error:{error}"))
    check_readable({row.name: row.status for row in rows})
    budget = client.budgets.get("core")
    limit = budget.limit if budget else (_TOKEN_LIMIT if client.authenticated else _ANONYMOUS_LIMIT)
    rest, graphql = sum(row.rest for row in rows), sum(row.graphql for row in rows)
    points = graphql * POINTS_PER_PAGE
    # The longest of the two budgets, of which the first hour's can be spent at once, and of the answers.
    hours = max(
        (rest * _REST_S + graphql * _GRAPHQL_S) / 3600,
        math.ceil(rest / limit) - 1,
        math.ceil(points / max(limit, _TOKEN_LIMIT)) - 1,
    )
    return Forecast(tuple(rows), rest, graphql, points, hours, limit, client.requests)


def _forecast(
    client: GitHubClient, name: str, strategy: Signals, store: Store | None, since: str | None
) -> RepoForecast:
    """The forecast of one repository."""
    # The first of the list is the newest even where a redirection drops the parameters.
    bound = f"&since={since}" if since else ""
    page = client.get(f"/repos/{name}/issues?state=all&sort=created&direction=desc&per_page=1{bound}")
    assert page is not None
    numbers = max((raw["number"] for raw in page.data), default=0)
    if since:
        # Pages of one item: as many as there are items since then.
        numbers = min(numbers, page.last_page or len(page.data))
    comments = round(numbers * COMMENTS_PER_NUMBER)
    known, done = store.named(name) if store else None, False
    read = said = 0
    if store and known:
        cursors = (store.cursor(known.id, listing) for listing in LISTINGS)
        issues, done, events = (cursor is not None and cursor.done for cursor in cursors)
        read = store.newest_number(known.id) if issues or events else store.count("issues", known.id)
        said = store.count("comments", known.id)
    issue_pages = 1 + max(0, numbers - read) // PER_PAGE
    comment_pages = 1 + (0 if done else max(0, comments - said) // PER_PAGE)
    # One request is for its name and id.
    rest = 1 + issue_pages * (strategy == "comments") + comment_pages * (strategy != "events")
    return RepoForecast(name, numbers, comments, rest, issue_pages if strategy != "comments" else 0)
