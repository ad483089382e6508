"""Crawls the listed repositories into the store; running it again asks only for what changed.

A repository that cannot be read is noted with its reason and the others go on.

The forecast asks how many issues there are, of fifty repositories at once with a token; without one it takes
two requests per repository. A crawl counts on the way what the forecast would have said of it, so that the
two can be compared at its end.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.archive import load_archives
from angle_data.gis.crawl.github import Connection, GitHubClient, Refused
from angle_data.gis.crawl.listings import Crawler, queries_for, read_listing, read_threads
from angle_data.gis.crawl.lookups import ask_names, follow_references, read_set_aside
from angle_data.gis.crawl.queries import NAMES_A_QUERY, PER_PAGE, POINTS_PER_PAGE
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import STORE_NAME, Round, Store
from angle_data.locking import hold

_ANONYMOUS_LIMIT, _TOKEN_LIMIT = 60, 5_000
_REST_S, _GRAPHQL_S = 0.6, 3.0  # usual time of a full page, one request after the other (estimate)

log = logging.getLogger("angle")


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
    config: GisConfig, *, sleep: Callable[[float], None], now: Callable[[], float]
) -> tuple[GitHubClient, str]:
    """Return the client that the options describe, and the signals that it can read.

    Without a token these are comments alone, with a warning: GraphQL, and with it events, needs one. An
    `InputError` where an option cannot be used, or events alone were asked for without a token.
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
    """Raise an `InputError` if every status, by listed name, is an error."""
    if statuses and all(status.startswith("error:") for status in statuses.values()):
        name, status = next(iter(statuses.items()))
        raise InputError(
            f"none of {len(statuses)} repositories can be read; {name}: {status}; check the list, and "
            "--api-url (https://HOST/api/v3 for GitHub Enterprise)"
        )


def crawl_repos(
    config: GisConfig, *, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.time
) -> CrawlSummary:
    """Bring the store in `config.out` up to date and return what it holds.

    Raises:
        InputError: No repository can be read, the list, the address or the store cannot be used, or `out`
            holds a data set of another command.
        CredentialsError: The token is not accepted.
        StoppedError: `max_requests` is reached or GitHub keeps failing; run again to go on.
    """
    names = config.names()
    if any(config.out.glob("dataset/data/*.parquet")) and not (config.out / STORE_NAME).exists():
        raise InputError(
            f"--out {config.out} holds a data set and no {STORE_NAME}; give another, or delete it"
        )
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

    config: GisConfig
    store: Store
    client: GitHubClient
    signals: str
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


def forecast(
    config: GisConfig, *, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Ask how many issues every listed repository has and return what a first crawl of them will take.

    With `since`, only what was updated from then on is counted. Nothing is written. The result is ready for
    JSON: `repos`, each with `name`, `issues`, over REST `comments`, the requests `rest` and `graphql`, and
    `status`; the sums `rest`, `graphql` and its `points`; `hours` with one token; `limit`, the hourly budget
    of REST requests; `spent`, what the forecast cost.

    Raises:
        InputError, CredentialsError, StoppedError: As in `crawl_repos`.
    """
    names = config.names()
    client, signals = connect(config, sleep=sleep, now=now)
    count = _count_over_rest if signals == "comments" else _count_over_graphql
    nothing = {"issues": 0, "comments": 0, "rest": 0, "graphql": 0.0, "status": "ok"}
    found = count(client, names, config.start, comments=signals == "both")
    repos: list[dict[str, Any]] = [nothing | row for row in found]
    for row in repos:
        if row["status"] != "ok":
            log.warning("%s is skipped: %s", row["name"], row["status"].removeprefix("error:"))
    check_readable({row["name"]: row["status"] for row in repos})
    budget = client.budgets.get("core")
    limit = budget.limit if budget else (_TOKEN_LIMIT if client.authenticated else _ANONYMOUS_LIMIT)
    rest, graphql = (math.ceil(sum(row[api] for row in repos)) for api in ("rest", "graphql"))
    points = graphql * POINTS_PER_PAGE[signals == "both"]
    # The longest of the two budgets, of which the first hour's can be spent at once, and of the answers.
    hours = max(
        (rest * _REST_S + graphql * _GRAPHQL_S) / 3600,
        math.ceil(rest / limit) - 1,
        math.ceil(points / max(limit, _TOKEN_LIMIT)) - 1,
    )
    sums = {"rest": rest, "graphql": graphql, "points": points, "hours": hours}
    return {"repos": repos, **sums, "limit": limit, "spent": client.requests}


def forecast_table(found: Mapping[str, Any]) -> str:
    """Return a forecast as text, one repository a line and the sums."""
    width = max([len(repo["name"]) for repo in found["repos"]] + [len("repository")])
    lines = [f"{'repository':<{width}} {'issues':>9} {'comments':>9} {'REST':>8} {'GraphQL':>8}"]
    for repo in found["repos"]:
        cells = "{issues:>9,} {comments:>9,} {rest:>8,} {graphql:>8,.0f}".format(**repo)
        lines.append(f"{repo['name']:<{width}} {cells if repo['status'] == 'ok' else repo['status']}")
    both = found["rest"] + found["graphql"]
    sums = "{rest:,} REST and {graphql:,} GraphQL ({points:,} points), {hours:.1f} hours at {limit:,}"
    lines.append(f"about {both:,} requests: {sums.format(**found)} requests an hour")
    lines.append(f"this forecast took {found['spent']} requests")
    return "\n".join(lines)


_Rows = Iterator[dict[str, Any]]


def _count_over_graphql(
    client: GitHubClient, names: Sequence[str], since: str | None, *, comments: bool
) -> _Rows:
    """One query for many repositories."""
    ids: set[int] = set()  # a repository listed under two names is read once
    for first in range(0, len(names), NAMES_A_QUERY):
        chunk = names[first : first + NAMES_A_QUERY]
        for name, raw in zip(chunk, ask_names(client, chunk, since), strict=True):
            if raw is None or not raw["hasIssuesEnabled"]:
                yield {"name": name, "status": "error:not found, or its issues are disabled"}
            elif raw["databaseId"] in ids:
                yield {"name": name, "rest": 1}
            else:
                ids.add(raw["databaseId"])
                count = raw["issues"]["totalCount"]
                queries = queries_for(count, comments=comments)
                yield {"name": name, "issues": count, "rest": 1, "graphql": queries}


def _count_over_rest(
    client: GitHubClient, names: Sequence[str], since: str | None, *, comments: bool
) -> _Rows:
    """Two requests for every repository: the pages of one item, or of more where a redirection drops that."""
    bound = f"&since={since}" if since else ""
    for name in names:
        row: dict[str, Any] = {"name": name, "rest": 1}
        try:
            for listing, path in (("issues", "issues?state=all&"), ("comments", "issues/comments?")):
                page = client.get(f"/repos/{name}/{path}per_page=1{bound}")
                assert page is not None
                row[listing] = (page.last_page or 1) * len(page.data)
                row["rest"] += max(1, math.ceil(row[listing] / PER_PAGE))
        except Refused as error:
            row = {"name": name, "status": f"error:{error}"}
        yield row
