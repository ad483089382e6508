"""Forecasts what a crawl costs, from one request per repository: requests, points and hours.

Issues and pull requests share their numbers, so the newest number bounds how many there are. The number of
comments is estimated from what the store holds, or from large projects.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from angle_data.gis.crawl.crawl import CrawlConfig, check_readable, connect
from angle_data.gis.crawl.github import GitHubClient, Refused
from angle_data.gis.crawl.listings import PER_PAGE
from angle_data.gis.crawl.queries import POINTS_PER_PAGE
from angle_data.gis.crawl.rows import LISTINGS
from angle_data.gis.crawl.selection import Signals, read_repos
from angle_data.gis.crawl.store import STORE_NAME, Store

COMMENTS_PER_NUMBER = 4.5
"""Comments for each number where nothing better is known; large projects have 4 to 6 (estimate)."""

_ANONYMOUS_LIMIT, _TOKEN_LIMIT = 60, 5_000
_REST_S, _GRAPHQL_S = 0.6, 2.0  # usual time of a full page, one request after the other (estimate)
_ENOUGH_COMMENTS = 1_000

log = logging.getLogger("angle")


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
    """The whole list. `limit` is the hourly budget of REST requests, `spent` what the forecast cost."""

    repos: tuple[RepoForecast, ...]
    strategy: Signals
    limit: int
    spent: int
    comments_per_number: float

    @property
    def rest(self) -> int:
        """REST requests."""
        return sum(repo.rest for repo in self.repos)

    @property
    def graphql(self) -> int:
        """GraphQL queries."""
        return sum(repo.graphql for repo in self.repos)

    @property
    def points(self) -> int:
        """Points of the GraphQL budget."""
        return self.graphql * (POINTS_PER_PAGE + (self.strategy == "events"))

    @property
    def hours(self) -> float:
        """Time with one token: the longest of the two budgets and of the answers' own time."""
        answering = (self.rest * _REST_S + self.graphql * _GRAPHQL_S) / 3600
        # The first hour's budget can be spent at once.
        rest = max(0, math.ceil(self.rest / self.limit) - 1) if self.limit else 0
        points = max(0, math.ceil(self.points / max(self.limit, _TOKEN_LIMIT)) - 1)
        return max(answering, rest, points)

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
            f"comments are estimated at {self.comments_per_number:.1f} per number; "
            f"this forecast took {self.spent} requests"
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of a repository; `read` numbers need not be read again."""

    newest: int = 0
    read: int = 0
    comments: int = 0
    comments_done: bool = False


def forecast(
    config: CrawlConfig,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> Forecast:
    """Ask for the newest issue of every listed repository and return what crawling them will take.

    What the store in `config.out` holds already is not counted again. With `since`, only what was updated
    from then on is counted. Nothing is written.

    Raises:
        InputError, CredentialsError, StoppedError: As in `crawl.crawl_repos`.
    """
    listed = read_repos(config.repos, config.api_url, tell=True)
    client, strategy = connect(config, sleep=sleep, now=now)
    stored = _stored(config)
    done = [size for size in stored.values() if size.comments_done]
    known, numbers = sum(size.comments for size in done), sum(size.newest for size in done)
    ratio = known / numbers if known >= _ENOUGH_COMMENTS and numbers else COMMENTS_PER_NUMBER
    rows: list[RepoForecast] = []
    seen: dict[str, str] = {}
    for name in listed.names:
        try:
            here = stored.get(name.lower(), _Stored())
            found, today = _forecast(client, name, strategy, ratio, here, config.start)
        except Refused as error:
            log.warning("%s is skipped: %s", name, error)
            rows.append(RepoForecast(name, status=f"error:{error}"))
            continue
        first = seen.setdefault(today.lower(), name)
        rows.append(found if first == name else RepoForecast(name, status=f"the same as {first}"))
    check_readable({row.name: row.status for row in rows}, client.connection)
    budget = client.budgets.get("core")
    limit = budget.limit if budget else (_TOKEN_LIMIT if client.authenticated else _ANONYMOUS_LIMIT)
    return Forecast(tuple(rows), strategy, limit, client.requests, ratio)


def _forecast(
    client: GitHubClient, name: str, strategy: Signals, ratio: float, stored: _Stored, since: str | None
) -> tuple[RepoForecast, str]:
    """The forecast of one repository, and what it is called today."""
    # The first of the list is the newest even where a redirection drops the parameters.
    bound = f"&since={since}" if since else ""
    page = client.get(f"/repos/{name}/issues?state=all&sort=created&direction=desc&per_page=1{bound}")
    assert page is not None
    numbers = max((raw["number"] for raw in page.data), default=0)
    if since:
        # Pages of one item: as many as there are items since then.
        numbers = min(numbers, page.last_page or len(page.data))
    comments = max(round(numbers * ratio), stored.comments)
    issue_pages = 1 + max(0, numbers - stored.read) // PER_PAGE
    comment_pages = 1 + (0 if stored.comments_done else max(0, comments - stored.comments) // PER_PAGE)
    # One request is for its name and id.
    rest = 1 + issue_pages * (strategy == "comments") + comment_pages * (strategy != "events")
    today = "/".join(page.data[0]["repository_url"].rsplit("/", 2)[1:]) if page.data else name
    return RepoForecast(name, numbers, comments, rest, issue_pages if strategy != "comments" else 0), today


def _stored(config: CrawlConfig) -> dict[str, _Stored]:
    """What the store has of each repository, by each of its names."""
    path = config.out / STORE_NAME
    if not path.is_file():
        return {}
    with Store.open(path, read_only=True) as store:
        found: dict[str, _Stored] = {}
        for repo in store.repos():
            cursors = (store.cursor(repo.id, listing) for listing in LISTINGS)
            issues, comments, events = (cursor is not None and cursor.done for cursor in cursors)
            newest = store.newest_number(repo.id)
            read = newest if issues or events else store.count("issues", repo.id)
            size = _Stored(newest, read, store.count("comments", repo.id), comments)
            found |= dict.fromkeys(repo.names, size)
        return found
