"""Forecasts what a crawl costs, from one request per repository: requests, points and hours.

Issues and pull requests share their numbers, so the newest number bounds how many there are. The number of
comments is estimated. What the store holds already is not counted again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from angle_data.gis.crawl.crawl import CrawlConfig, check_readable, connect
from angle_data.gis.crawl.github import GitHubClient, Refused
from angle_data.gis.crawl.listings import PER_PAGE
from angle_data.gis.crawl.queries import POINTS_PER_PAGE
from angle_data.gis.crawl.rows import LISTINGS
from angle_data.gis.crawl.selection import Signals, read_repos
from angle_data.gis.crawl.store import STORE_NAME, Store

COMMENTS_PER_NUMBER = 4.5
"""Comments for each number; large projects have 4 to 6 (estimate)."""

_ANONYMOUS_LIMIT, _TOKEN_LIMIT = 60, 5_000
_REST_S, _GRAPHQL_S = 0.6, 2.0  # usual time of a full page, one request after the other (estimate)

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
        InputError, CredentialsError, StoppedError: As in `crawl.crawl_repos`.
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
