"""What a crawl will take, before it begins.

A request for each repository and for each hundred issues; with `--strategy both`, one more for each
repository, to look up issues that comments name.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator

from angle_data.gis.crawl.crawl import check_readable, connect_github
from angle_data.gis.crawl.github import GitHubClient, Refused
from angle_data.gis.crawl.listings import REST
from angle_data.gis.crawl.lookups import ask_names
from angle_data.gis.crawl.queries import PER_PAGE
from angle_data.gis.crawl.selection import GisConfig

log = logging.getLogger("angle")

_Count = tuple[str, int | str]  # the name of a repository, and how many items it has or an `error:...`


def forecast(config: GisConfig, *, sleep: Callable[[float], None] = time.sleep) -> dict[str, int]:
    """Ask how many issues the listed repositories have, and return about how many requests a crawl takes.

    Without a token comments are counted too, for they are listed apart. Returns how many `repositories` can
    be read, their `items`, the `requests`, and how many requests this took (`spent`). Nothing is written.
    """
    client, signals = connect_github(config, sleep=sleep)
    counts = dict((_count_over_rest if signals == "comments" else _count_over_graphql)(client, config))
    statuses = {name: count if isinstance(count, str) else "ok" for name, count in counts.items()}
    for name, status in statuses.items():
        if status != "ok":
            log.warning("%s is skipped: %s", name, status.removeprefix("error:"))
    check_readable(statuses)
    items = [count for count in counts.values() if isinstance(count, int)]
    looked_up = int(signals == "both")
    requests = sum(1 + looked_up + max(1, math.ceil(count / PER_PAGE)) for count in items)
    spent = client.spent.total()
    return {"repositories": len(items), "items": sum(items), "requests": requests, "spent": spent}


def _count_over_graphql(client: GitHubClient, config: GisConfig) -> Iterator[_Count]:
    """One query for many repositories."""
    for name, raw in ask_names(client, config.names(), config.start):
        is_there = raw is not None and raw["hasIssuesEnabled"]
        count = raw["issues"]["totalCount"] if raw is not None and is_there else None
        yield name, "error:not found, or its issues are disabled" if count is None else count


def _count_over_rest(client: GitHubClient, config: GisConfig) -> Iterator[_Count]:
    """Two requests for each repository: the number of pages of one item is the number of items."""
    bound = f"&since={config.start}" if config.start else ""
    for name in config.names():
        found = 0
        try:
            for path, _ in REST.values():
                page = client.get(f"/repos/{name}/{path}per_page=1{bound}")
                if not isinstance(page.data, list):
                    raise client.unlike()
                found += (page.last_page or 1) * len(page.data)
            yield name, found
        except Refused as error:
            yield name, f"error:{error}"
