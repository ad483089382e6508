"""Single issues: those that are named as an original and were not listed, and those that were set aside.

An original may be missing from the listings because it moved, was deleted, is too old, or is a pull request.
It is asked for once, fifty in a query where GraphQL is at hand; what is not found there by one request each,
which says where an issue went. The answer is stored as a row or as a tombstone. A word that often goes with
duplicates and a number are enough to ask; what a comment means is decided in `comments`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from angle_data.gis.comments.references import find_references, may_refer
from angle_data.gis.crawl.github import GitHubClient, Refused, TooHeavy
from angle_data.gis.crawl.listings import Crawler, rows_of
from angle_data.gis.crawl.queries import NUMBERS_A_QUERY, numbers_query
from angle_data.gis.crawl.rows import Issue, Repo, issue_from_rest, tombstone
from angle_data.gis.crawl.store import Store, hosts_of

log = logging.getLogger("angle")

_GONE = frozenset({404, 410, 451})
_HINT = re.compile(
    r"\bdup|\bdedup|\bfavou?r of|\btracked|\btracking|\bsame (?:as|issue|problem|bug)|\bsupersed"
    r"|\breported (?:in|as|by)\b|\bcovered by\b|\b(?:merged|folded|consolidated) (?:in)?to\b|\breplaced by\b"
    r"|doublon|duplikat|дубл|重复|重複|중복",
    re.IGNORECASE,
)


def missing_numbers(store: Store, repo: Repo) -> list[int]:
    """Return the numbers of `repo` that marks or likely comments point to and that have no row."""
    names = repo.names
    hosts = hosts_of(store.site())
    named = {
        event.target_number
        for event in store.events(repo.id)
        if event.kind in ("marked", "unmarked") and (event.target_repo or "").lower() in names
    }
    for comment in store.comments(repo.id):
        if "/pull/" not in comment.url and _HINT.search(comment.body) and may_refer(comment.body):
            found = find_references(comment.body, repo.name, hosts)
            named.update(reference.number for reference in found if reference.repo.lower() in names)
    known = {issue.number for issue in store.issues(repo.id, (n for n in named if n))}
    newest = store.newest_number(repo.id)
    return sorted(n for n in named - known if n is not None and 0 < n <= newest)


def follow_missing(crawler: Crawler, repo: Repo, *, graphql: bool) -> None:
    """Ask once for every missing issue of `repo` and store it or its tombstone; in bulk with `graphql`.

    Nothing is stored of an issue that GitHub refuses to show.
    """
    rows = f"{crawler.store.count('comments', repo.id)} {crawler.store.count('events', repo.id)}"
    note = f"followed:{repo.id}"
    if crawler.store.meta(note) == rows:
        return
    numbers = missing_numbers(crawler.store, repo)
    while numbers:
        chunk, numbers = numbers[:NUMBERS_A_QUERY], numbers[NUMBERS_A_QUERY:]
        if graphql:
            found, events, _ = rows_of(crawler, repo, ask_numbers(crawler.client, repo, chunk))
            crawler.store.upsert_page(issues=found, events=events)
            crawler.tell(repo.name, "missing", len(found))
            chunk = sorted(set(chunk) - {issue.number for issue in found})
        for number in chunk:
            _ask_alone(crawler, repo, number)
    crawler.store.set_meta(note, rows)


def read_set_aside(crawler: Crawler, repo: Repo) -> None:
    """Ask again for each issue that was set aside; of one that is still too heavy, store the text alone."""
    for _, number, _ in crawler.store.all_set_aside(repo.id):
        found, events, cut = rows_of(crawler, repo, ask_numbers(crawler.client, repo, [number]))
        crawler.store.upsert_page(issues=found, events=events)
        if not found:
            _ask_alone(crawler, repo, number)
        elif not cut:
            crawler.store.set_aside(repo.id, number, None)


def _ask_alone(crawler: Crawler, repo: Repo, number: int) -> None:
    """Store what one REST request says of an issue; nothing where GitHub refuses to show it."""
    try:
        crawler.store.upsert_page(issues=[ask_number(crawler.client, repo, number)])
    except Refused as error:
        log.debug("%s#%d cannot be looked up (%s)", repo.name, number, error)
    crawler.tell(repo.name, "missing", 1)


def ask_numbers(client: GitHubClient, repo: Repo, numbers: list[int]) -> list[Mapping[str, Any]]:
    """Return the GraphQL nodes of the issues and pull requests of these numbers that `repo` still has.

    At most `queries.NUMBERS_A_QUERY` numbers; needs a token. What GitHub cannot serve in time is asked for in
    halves, and a single issue that is still too heavy is left out.
    """
    owner, name = repo.name.split("/")
    variables = {"owner": owner, "name": name, **{f"n{i}": number for i, number in enumerate(numbers)}}
    try:
        found = client.graphql(numbers_query(len(numbers)), variables, smaller=True)["repository"]
    except TooHeavy:
        half = len(numbers) // 2
        halves = (numbers[:half], numbers[half:]) if half else ()
        return [node for part in halves for node in ask_numbers(client, repo, part)]
    if not found or found["databaseId"] != repo.id:
        return []
    return [node for i in range(len(numbers)) if (node := found[f"n{i}"])]


def ask_number(client: GitHubClient, repo: Repo, number: int, *, gone: frozenset[int] = _GONE) -> Issue:
    """Return an issue by one REST request, or a tombstone where it moved or was deleted.

    `gone` are the statuses that mean that it was deleted.

    Raises:
        Refused: GitHub does not answer for another reason.
    """
    try:
        page = client.get(f"/repositories/{repo.id}/issues/{number}")
    except Refused as error:
        if error.status not in gone:
            raise
        return tombstone(repo.id, number, "deleted")
    assert page is not None
    raw = page.data
    name = "/".join(raw["repository_url"].rsplit("/", 2)[1:])
    if raw["number"] == number and name.lower() in repo.names:
        return issue_from_rest(raw, repo.id)
    # Where it is now, the listing of that repository has it, if that repository is wanted at all.
    return tombstone(repo.id, number, f"transferred:{name}#{raw['number']}")
