"""Crawl the listed repositories into the store; running it again asks only for what changed.

Composes the list, the client, the three listings and the store. A repository that cannot be read is noted
with its reason and the others go on. What the rows mean is the build's business.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.archive import ArchiveCounts, load_archives
from angle_data.gis.crawl.github import PUBLIC_API, Connection, GitHubClient
from angle_data.gis.crawl.limits import Refused, SchemaError
from angle_data.gis.crawl.listings import Source, read_comments, read_events, read_issues
from angle_data.gis.crawl.missing import follow_missing, read_set_aside
from angle_data.gis.crawl.repos import RepoList, read_repos
from angle_data.gis.crawl.rounds import Round
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.selection import Selection, Strategy
from angle_data.gis.crawl.site import check_server, note_server, note_site
from angle_data.gis.crawl.store import STORE_NAME, Store
from angle_data.locking import hold

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
    strategy: Strategy = "both"
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

    `repos` maps each listed name to `ok` or `error:...`; `unchanged` counts answers that cost nothing of
    the budget; `set_aside` maps `owner/name#number` of issues that GitHub could not serve
    whole to the reason.
    """

    store: Path
    repos: dict[str, str]
    bad_lines: tuple[str, ...]
    rows: dict[str, int]
    requests: int = 0
    unchanged: int = 0
    archive: ArchiveCounts | None = None
    set_aside: dict[str, str] = field(default_factory=dict)


def connection_of(config: CrawlConfig) -> Connection:
    """Return the connection that the options and the environment describe."""
    return Connection.from_environment(config.api_url, config.token_env, config.max_requests)


def strategy_for(config: CrawlConfig, *, authenticated: bool) -> Strategy:
    """Return the strategy that can be carried out; GraphQL, and with it events, needs a token.

    Raises:
        InputError: Events alone were asked for, without a token.
    """
    if authenticated or config.strategy == "comments":
        return config.strategy
    if config.strategy == "events":
        raise InputError(f"--strategy events needs a token; set {config.token_env} or give --token-env")
    return "comments"


def warn_anonymous(client: GitHubClient, config: CrawlConfig) -> None:
    """Say what a missing token costs."""
    if not client.authenticated:
        log.warning(
            "no token in %s: GitHub allows 60 requests an hour and no events; set one to go faster",
            config.token_env,
        )


def none_readable(statuses: Mapping[str, str], connection: Connection) -> InputError:
    """Return the error for a list of which nothing can be read; `statuses` are by listed name."""
    name, status = next(iter(statuses.items()))
    hint = connection.hint if ":404" in status else ""
    return InputError(f"none of {len(statuses)} repositories can be read; {name}: {status}{hint}")


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
    listed = read_repos(config.repos, config.api_url, tell=True) if config.repos else RepoList((), ())
    with hold(config.out), Store.open(config.out / STORE_NAME) as store:
        if config.archives:
            counts = load_archives(store, config.archives, listed.names, config.start)
            return _summary(config, store, listed, {}, None, counts)
        connection = connection_of(config)
        check_server(store, config.api_url)
        client = GitHubClient(connection, sleep=sleep, now=now)
        strategy = strategy_for(config, authenticated=client.authenticated)
        warn_anonymous(client, config)
        key = (strategy, config.since, *listed.names)
        statuses = _Crawl(config, store, client, strategy, Round(store, key)).run(listed.names)
        if all(status != "ok" for status in statuses.values()):
            raise none_readable(statuses, connection)
        return _summary(config, store, listed, statuses, client, None)


@dataclass
class _Crawl:
    """One run over the list; `strategy` turns to comments when the server's GraphQL is too old."""

    config: CrawlConfig
    store: Store
    client: GitHubClient
    strategy: Strategy
    round: Round
    items: int = 0

    def run(self, names: tuple[str, ...]) -> dict[str, str]:
        """Read every repository and return its status by listed name."""
        with Progress("repositories", len(names)) as progress:
            for name in names:
                if name not in self.round.statuses:
                    self.round.settle(name, self._visit(progress, name))
                progress.advance(1, self.client.status_line())
            # After all listings, so that an issue that moved between listed repositories is found there.
            heavy: defaultdict[int, list[int]] = defaultdict(list)
            for repo_id, number, _ in self.store.all_set_aside():
                heavy[repo_id].append(number)
            for repo in list(self.store.repos()):
                if self.round.has(repo.id, "read"):
                    source = self._source(progress, repo.name)
                    if self.strategy != "comments":
                        read_set_aside(source, repo, heavy[repo.id])
                    self._once(repo, "missing", partial(self._follow, source, repo))
        statuses = {name: self.round.statuses[name] for name in names}
        self.round.complete()
        return statuses

    def _visit(self, progress: Progress, name: str) -> str:
        """Read what is listed under `name` and return its status."""
        try:
            repo = self._resolve(name)
            self._once(repo, "read", partial(self._read, self._source(progress, repo.name), repo))
        except Refused as error:
            return self._failed(name, error)
        return "ok"

    def _once(self, repo: Repo, step: str, work: Callable[[], None]) -> None:
        """Do a step unless this round has done it."""
        if not self.round.has(repo.id, step):
            work()
            self.round.finish(repo.id, step)

    def _source(self, progress: Progress, name: str) -> Source:
        def tell(stream: str, count: int) -> None:
            self.items += count
            log.debug("%s: %d %s", name, count, stream)
            progress.advance(0, f"{name}: {self.items:,} items, {self.client.status_line()}")

        return Source(self.client, self.store, self.config.start, tell)

    def _resolve(self, name: str) -> Repo:
        """Find out the id and the present name; a known repository is asked for by its id."""
        known = self.store.named(name)
        etag = known.etag if known and known.status == "ok" else None
        page = self.client.get(f"/repositories/{known.id}" if known else f"/repos/{name}", etag=etag)
        if page is None and known:
            return known
        assert page is not None
        raw = page.data
        note_site(self.store, raw.get("html_url") or "")
        note_server(self.store, self.config.api_url)
        same = self.store.repo(raw["id"])
        repo = Repo(
            raw["id"], raw["full_name"], name, (name,) if name != raw["full_name"] else (), etag=page.etag
        )
        if repo.name.lower() != name.lower() and same is None:
            log.info("%s is called %s now", name, repo.name)
        self.store.save_repo(repo)
        if not raw.get("has_issues", True):
            raise Refused(410, "issues are disabled")
        return repo

    def _read(self, source: Source, repo: Repo) -> None:
        if self.strategy != "comments":
            references = self.strategy == "events"
            try:
                self._once(repo, "events", partial(read_events, source, repo, references=references))
            except SchemaError as error:
                log.warning(
                    "the server's GraphQL is too old (%s); going on with comments, without events", error
                )
                self.strategy = "comments"
        if self.strategy == "comments":
            self._once(repo, "issues", partial(read_issues, source, repo))
        if self.strategy != "events":
            self._once(repo, "comments", partial(read_comments, source, repo))
        if not self.store.count("issues", repo.id):
            raise Refused(200, "no issues" + (" since that day" if self.config.since else ""))

    def _follow(self, source: Source, repo: Repo) -> None:
        try:
            follow_missing(source, repo, graphql=self.strategy != "comments")
        except Refused as error:
            log.warning("%s: issues that moved were not looked up (%s)", repo.name, error)

    def _failed(self, name: str, error: Refused) -> str:
        status = f"error:{error.reason}" if error.status == 200 else f"error:{error}"
        log.warning("%s is skipped: %s", name, status.removeprefix("error:"))
        known = self.store.named(name)
        if known:
            self.store.save_repo(Repo(known.id, known.name, known.asked, known.aliases, status))
        else:
            self.store.save_failure(name, status)
        return status


def _summary(
    config: CrawlConfig,
    store: Store,
    listed: RepoList,
    statuses: dict[str, str],
    client: GitHubClient | None,
    archive: ArchiveCounts | None,
) -> CrawlSummary:
    names = {repo.id: repo.name for repo in store.repos()}
    return CrawlSummary(
        store=store.path,
        repos=statuses,
        bad_lines=tuple(f"{config.repos}:{line.number}: {line.text}" for line in listed.bad),
        rows=_rows(store),
        requests=client.requests if client else 0,
        unchanged=client.unchanged if client else 0,
        archive=archive,
        set_aside={f"{names[repo]}#{number}": reason for repo, number, reason in store.all_set_aside()},
    )


def _rows(store: Store) -> dict[str, int]:
    counts = {table: store.count(table) for table in ("repos", "issues", "comments", "events")}
    pulls = store.pulls()
    counts["issues"] -= pulls
    return {"repos": counts.pop("repos"), "issues": counts.pop("issues"), "pull_requests": pulls, **counts}
