"""Brings a store up to date: lists what changed, reads what was said there, looks up the issues it names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from angle_data.gis.comments.readings import Readings
from angle_data.gis.comments.references import hosts_of
from angle_data.gis.crawl.crawl import CrawlSummary, open_crawl
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.selection import GisConfig
from angle_data.gis.crawl.store import Store


def crawl_repos(config: GisConfig, *, sleep: Callable[[float], None] = time.sleep) -> CrawlSummary:
    """Bring the store in `config.out` up to date and return what it holds.

    Raises:
        InputError: No repository can be read, or an option or the store cannot be used.
        CredentialsError: The token is not accepted.
        StoppedError: `max_requests` is reached or GitHub keeps failing; run again to go on.
    """
    with open_crawl(config, sleep=sleep) as crawl:
        crawl.read_listings()
        named: set[tuple[str, int]] = set()
        with Readings(config.out) as readings:
            for repo in crawl.unfollowed():
                named.update(named_in(crawl.store, repo, readings))
        crawl.look_up(named)
        return crawl.finish()


def named_in(store: Store, repo: Repo, readings: Readings) -> Iterator[tuple[str, int]]:
    """Yield repository and number of every issue that a repository's marks, comments or issues name."""
    hosts = hosts_of(store.site())
    for event in store.events(repo.id):
        if event.target_repo and event.target_number:
            yield event.target_repo, event.target_number
    texts = [(c.number, c.author, c.body) for c in store.comments(repo.id) if "/pull/" not in c.url]
    texts += [(i.number, i.author, i.text) for i in store.issues(repo.id) if not i.is_pull]
    for number, author, text in texts:
        said = readings.read(text, repo.name, number, author=author, hosts=hosts)
        for link in (*said.links, *said.denials):
            yield link.repo, link.number
