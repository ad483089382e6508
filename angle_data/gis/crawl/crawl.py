"""Crawls the listed repositories into the store; running it again asks only for what changed.

A repository that cannot be read is noted with its reason and the others go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.gis.crawl.archive import load_archives
from angle_data.gis.crawl.github import GitHubClient, Refused
from angle_data.gis.crawl.listings import REST, Crawler, read_listing, read_threads
from angle_data.gis.crawl.lookups import follow_references, read_set_aside, resolve
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
    the reason; `archive` is from `load_archives`.
    """

    store: Path
    repos: dict[str, str]
    rows: dict[str, int]
    requests: int = 0
    archive: dict[str, int] = field(default_factory=dict)
    set_aside: dict[str, str] = field(default_factory=dict)
    graphql: int = 0
    points: int = 0


def connect(config: GisConfig, *, sleep: Callable[[float], None]) -> tuple[GitHubClient, str]:
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
    """Raise an `InputError` if every status, by listed name, is an error."""
    if all(status.startswith("error:") for status in statuses.values()):
        name, status = next(iter(statuses.items()))
        said = f"none of {len(statuses)} repositories can be read; {name}: {status}; check the list, and "
        raise InputError(f"{said}--api-url (https://HOST/api/v3 for GitHub Enterprise)")


def crawl_repos(config: GisConfig, *, sleep: Callable[[float], None] = time.sleep) -> CrawlSummary:
    """Bring the store in `config.out` up to date and return what it holds.

    Raises:
        InputError: No repository can be read, or an option or the store cannot be used.
        CredentialsError: The token is not accepted.
        StoppedError: `max_requests` is reached or GitHub keeps failing; run again to go on.
    """
    names = config.names()
    if any(config.out.glob("dataset/data/*.parquet")) and not (config.out / STORE_NAME).exists():
        said = f"--out {config.out} holds a data set and no {STORE_NAME}"
        raise InputError(f"{said}; give another, or delete it")
    with hold(config.out), Store.open(config.out / STORE_NAME) as store:
        if config.archives:
            counts = load_archives(store, config.archives, names, config.start)
            return CrawlSummary(store.path, {}, store.counts(), archive=counts)
        client, signals = connect(config, sleep=sleep)
        listings, round_ = _LISTINGS[signals], Round(store, (signals, config.since, *names))
        with Progress("repositories", len(names)) as progress:
            crawler = Crawler(client, store, progress, config.start, signals == "both")
            for name in names:
                if f"status:{name}" not in round_.entries:
                    round_.note(f"status:{name}", _visit(crawler, round_, listings, name))
                crawler.tell(name, done=1)
            # After all listings, so that an issue that moved between listed repositories is found there.
            read = [repo for repo in store.repos() if f"step:{repo.id}:{listings[-1]}" in round_.entries]
            _look_up(crawler, read, signals)
        statuses = {name: round_.entries[f"status:{name}"] for name in names}
        round_.complete()
        check_readable(statuses)
        known = {repo.id: repo.name for repo in store.repos()}
        return CrawlSummary(
            store.path,
            statuses,
            store.counts(),
            requests=client.spent.total(),
            set_aside={f"{known[repo]}#{number}": why for repo, number, why in store.all_set_aside()},
            graphql=client.spent["graphql"],
            points=client.points,
        )


def _visit(crawler: Crawler, round_: Round, listings: Sequence[Listing], name: str) -> str:
    """Read what is listed under `name`, unless this round has done it, and return its status."""
    store = crawler.store
    try:
        repo = resolve(crawler, name)
        for listing in listings:
            if f"step:{repo.id}:{listing}" not in round_.entries:
                (read_listing if listing in REST else read_threads)(crawler, repo, listing)
                round_.note(f"step:{repo.id}:{listing}")
        if not store.count("issues", repo.id):
            raise Refused(200, "no issues" + (" since that day" if crawler.since else ""))
        store.set_meta(f"crawled:{repo.id}", datetime.now(UTC).date().isoformat())
    except Refused as error:
        status = f"error:{error}"
        log.warning("%s is skipped: %s", name, error)
        if known := store.named(name):
            store.save_repo(replace(known, status=status, etag=None))
        else:
            store.save_failure(name, status)
        return status
    return "ok"


def _look_up(crawler: Crawler, repos: Sequence[Repo], signals: str) -> None:
    """Ask for single issues: those set aside, and those that others refer to."""
    for repo in repos if signals != "comments" else ():
        try:
            read_set_aside(crawler, repo)
        except Refused as error:
            log.warning("%s: issues set aside were not looked up (%s)", repo.name, error)
    try:
        follow_references(crawler, repos, graphql=crawler.client.authenticated)
    except InputError:  # a server whose GraphQL is too old
        if signals != "comments":
            raise
        follow_references(crawler, repos, graphql=False)
