"""The steps of a crawl of the listed repositories into the store; a crawl again asks only for what changed.

A repository that cannot be read is noted with its reason and the others go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from angle_data.console import Progress
from angle_data.errors import InputError, StoppedError
from angle_data.gis.crawl.github import Failing, GitHubClient, Refused
from angle_data.gis.crawl.ledger import FOR_LATER, FOR_THE_USER, OUTCOMES, outcome_of
from angle_data.gis.crawl.listings import REST, Crawler, read_listing, read_threads
from angle_data.gis.crawl.lookups import follow_references, read_set_aside, resolve_repo, unfollowed
from angle_data.gis.crawl.rows import Listing, Repo
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import STORE_NAME, Round, Store
from angle_data.locking import hold

_LISTINGS: dict[str, tuple[Listing, ...]] = {
    "events": ("events",),
    "comments": ("issues", "comments"),
    "both": ("threads",),
}

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """What a crawl left behind: rows in the store, what it cost, and what could not be read.

    `requests` were sent, `graphql` of them queries, which took `points`. `repos` maps each listed name to
    `ok` or `error:...`, `set_aside` the `owner/name#number` of an issue that GitHub could not serve whole to
    the reason; `archive` has the counts of `read_archives`.
    """

    store: Path
    repos: dict[str, str]
    rows: dict[str, int]
    requests: int = 0
    archive: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, str] = field(default_factory=dict)
    graphql: int = 0
    points: int = 0


def connect_github(config: GisConfig, *, sleep: Callable[[float], None]) -> tuple[GitHubClient, str]:
    """Return the client that the options describe, and the signals that it can read.

    Without a token these are comments alone, with a warning: GraphQL, and with it events, needs one.
    """
    client = GitHubClient(config.api_url, config.token_env, config.max_requests, sleep=sleep)
    if client.authenticated:
        return client, config.strategy
    if config.strategy == "events":
        raise InputError(f"--strategy events needs a token; set {config.token_env} or give --token-env")
    said = "no token in %s: GitHub allows 60 requests an hour and no events; set one to go faster"
    log.warning(said, config.token_env)
    return client, "comments"


def check_readable(statuses: Mapping[str, str]) -> None:
    """Raise an error if every status, by listed name, is one: a `StoppedError` if it may pass by itself."""
    if all(status.startswith("error:") for status in statuses.values()):
        name, status = next(iter(statuses.items()))
        said = f"none of {len(statuses)} repositories can be read; {name}: {status}"
        outcome = outcome_of(status)
        if outcome in FOR_LATER:
            raise StoppedError(f"{said}; {OUTCOMES[outcome]}")
        if outcome in FOR_THE_USER:
            raise InputError(f"{said}; {OUTCOMES[outcome]}")
        raise InputError(f"{said}; check the list, and --api-url (https://HOST/api/v3 for GitHub Enterprise)")


@dataclass
class Crawl:
    """A crawl under way, from `open_crawl`: its steps, in the order in which they are to be called."""

    crawler: Crawler
    signals: str
    names: tuple[str, ...]
    round_: Round

    @property
    def store(self) -> Store:
        """The store that the crawl fills."""
        return self.crawler.store

    @property
    def read(self) -> list[Repo]:
        """The repositories that this round has read to the end."""
        last = _LISTINGS[self.signals][-1]
        return [repo for repo in self.store.repos() if f"step:{repo.id}:{last}" in self.round_.entries]

    def read_listings(self) -> None:
        """Read what changed in every listed repository, and ask again for issues that were set aside."""
        failing = False
        for name in self.names:
            if f"status:{name}" not in self.round_.entries:
                try:
                    self.round_.note(f"status:{name}", self._visit(name))
                    failing = False
                except StoppedError as error:
                    status = self._note(name, f"stopped: {error}".partition(";")[0])
                    # One repository that keeps failing may be to blame itself; two in a row are GitHub.
                    if failing or not isinstance(error, Failing):
                        raise
                    log.warning("%s is skipped: %s", name, error)
                    self.round_.note(f"status:{name}", status)
                    failing = True
            self.crawler.tell(name, done=1)
        for repo in self.read if self.signals != "comments" else ():
            try:
                read_set_aside(self.crawler, repo)
            except Refused as error:
                log.warning("%s: could not retry the issues that failed before (%s)", repo.name, error)

    def unfollowed(self) -> list[Repo]:
        """Return the repositories of which it is to be read which issues they name, for `look_up`."""
        return unfollowed(self.store, self.read)

    def look_up(self, named: Collection[tuple[str, int]]) -> None:
        """Look up the issues named that no listing gave.

        After all listings, so that an issue that moved between listed repositories is found there.
        """
        try:
            follow_references(self.crawler, self.read, named, graphql=self.crawler.client.authenticated)
        except InputError:  # a server whose GraphQL is too old
            if self.signals != "comments":
                raise
            follow_references(self.crawler, self.read, named, graphql=False)

    def finish(self) -> CrawlSummary:
        """End the round and return what there is; an `InputError` if nothing could be read."""
        statuses = {name: self.round_.entries[f"status:{name}"] for name in self.names}
        self.round_.complete()
        check_readable(statuses)
        known = {repo.id: repo.name for repo in self.store.repos()}
        return CrawlSummary(
            self.store.path,
            statuses,
            self.store.counts(),
            requests=self.crawler.client.spent.total(),
            set_aside={f"{known[repo]}#{number}": why for repo, number, why in self.store.all_set_aside()},
            graphql=self.crawler.client.spent["graphql"],
            points=self.crawler.client.points,
        )

    def _visit(self, name: str) -> str:
        """Read what is listed under `name`, unless this round has done it, and return its status."""
        try:
            repo = resolve_repo(self.crawler, name)
            for listing in _LISTINGS[self.signals]:
                if f"step:{repo.id}:{listing}" not in self.round_.entries:
                    (read_listing if listing in REST else read_threads)(self.crawler, repo, listing)
                    self.round_.note(f"step:{repo.id}:{listing}")
            if not self.store.count("issues", repo.id):
                raise Refused(200, "no issues" + (" since that day" if self.crawler.since else ""))
            self.store.set_meta(f"crawled:{repo.id}", datetime.now(UTC).date().isoformat())
        except Refused as error:
            log.warning("%s is skipped: %s", name, error)
            return self._note(name, str(error))
        return "ok"

    def _note(self, name: str, said: str) -> str:
        """Note why what is listed under `name` could not be read; return its status."""
        status = f"error:{said}"
        if known := self.store.named(name):
            self.store.save_repo(replace(known, status=status, etag=None))
        else:
            self.store.save_failure(name, status)
        return status


@contextmanager
def open_store(config: GisConfig) -> Iterator[Store]:
    """Open the store of `config.out` to write to it; an `InputError` if the folder is of another command."""
    if not (config.out / STORE_NAME).exists():
        if any(config.out.glob("dataset/data/*.parquet")):
            said = f"--out {config.out} holds a data set and no {STORE_NAME}"
            raise InputError(f"{said}; give another, or delete it")
        if (config.out / "run.json").exists():
            raise InputError(f"--out {config.out} holds a labelling run; give another directory")
    with hold(config.out), Store.open(config.out / STORE_NAME) as store:
        yield store


@contextmanager
def open_crawl(config: GisConfig, *, sleep: Callable[[float], None] = time.sleep) -> Iterator[Crawl]:
    """Connect to GitHub, open the store, and go on with the round under way or begin one."""
    names = config.names()
    with open_store(config) as store:
        client, signals = connect_github(config, sleep=sleep)
        round_ = Round(store, (signals, config.since, *names))
        with Progress("repositories", len(names)) as progress:
            crawler = Crawler(client, store, progress, config.start, signals == "both")
            yield Crawl(crawler, signals, names, round_)
