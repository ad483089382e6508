"""What no listing gives: where the numbers and names lead that people refer to, and heavy issues.

An original may have moved, be deleted, too old or a pull request, and its repository may be called by a
former name. Every number and name is asked for once, in bulk where there is GraphQL. What GitHub answers is
trusted only if it has the repository and the number that were asked for.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from angle_data.gis.crawl.github import GitHubClient, Refused, TooHeavy
from angle_data.gis.crawl.listings import Crawler, rows_of
from angle_data.gis.crawl.queries import NAMES_A_QUERY, NUMBERS_A_QUERY, names_query, numbers_query
from angle_data.gis.crawl.rows import LISTINGS, Issue, Repo, issue_from_rest, tombstone
from angle_data.gis.crawl.store import Store

GONE = frozenset({404, 410, 451})
"""The statuses of what is deleted or blocked."""

GraphNode = Mapping[str, Any]
_Named = tuple[str, GraphNode | None]

log = logging.getLogger("angle")


def unfollowed(store: Store, repos: Iterable[Repo]) -> list[Repo]:
    """Return the repositories of which something was read since `follow_references` was last through."""
    return [repo for repo in repos if store.meta(f"followed:{repo.id}") != _state(store, repo.id)]


def follow_references(
    crawler: Crawler, repos: Sequence[Repo], named: Iterable[tuple[str, int]], *, graphql: bool
) -> None:
    """Store every issue of `repos` without a row that is `named` (repository, number), or its tombstone.

    Former names of known repositories become their aliases. Nothing is stored of an issue that GitHub refuses
    to show.
    """
    store = crawler.store
    referred: defaultdict[str, set[int]] = defaultdict(set)
    for name, number in named:
        referred[name.lower()].add(number)
    states = {repo.id: _state(store, repo.id) for repo in repos}  # before anything more is stored
    _learn_names(crawler, referred, graphql=graphql)
    for repo in [store.repo(repo.id) or repo for repo in repos]:  # with the names just learnt
        try:
            newest = store.newest_number(repo.id)
            numbers = {n for name in repo.names for n in referred.get(name, ()) if 0 < n <= newest}
            look_up(crawler, repo, numbers, graphql=graphql)
        except Refused as error:
            log.warning("%s: could not look up moved issues (%s)", repo.name, error)
            states.clear()
    for repo_id, state in states.items():
        store.set_meta(f"followed:{repo_id}", state)


def _state(store: Store, repo_id: int) -> str:
    """What changes whenever something of a repository was read."""
    places = (store.cursor(repo_id, listing) for listing in LISTINGS)
    counts = (store.count("comments", repo_id), store.count("events", repo_id))
    return " ".join(map(str, (*(place and place.cursor for place in places), *counts)))


def _learn_names(crawler: Crawler, names: Iterable[str], *, graphql: bool) -> None:
    """Ask once for every name that is not known, and add it to the repository of the store that had it."""
    store = crawler.store
    unknown = [name for name in sorted(names) if store.named(name) is None]
    new = [name for name in unknown if store.meta(f"name:{name}") is None]
    ask = ask_names if graphql else _ask_each
    for name, raw in ask(crawler.client, new):
        store.set_meta(f"name:{name}", str(raw["databaseId"]) if raw else "")
    for name in unknown:
        noted = store.meta(f"name:{name}")
        repo = store.repo(int(noted)) if noted else None
        if repo is not None:
            log.info("%s was called %s before", repo.name, name)
            store.save_repo(replace(repo, aliases=(*repo.aliases, name)))


def resolve_repo(crawler: Crawler, name: str) -> Repo:
    """Store the id and the present name of a repository; a known one is asked for by its id."""
    client, store = crawler.client, crawler.store
    known = store.named(name)
    etag = known.etag if known and known.status == "ok" else None
    page = client.get(f"/repositories/{known.id}" if known else f"/repos/{name}", etag=etag)
    raw = page.data
    if known and raw is None:
        return known
    try:
        repo = Repo(raw["id"], raw["full_name"], name, etag=page.etag)
        site = raw["html_url"]
        has_issues = raw["has_issues"]
    except (KeyError, TypeError):
        raise client.unlike() from None
    store.note_site(site)
    store.set_meta("server", client.api_url)
    if repo.name.lower() != name.lower() and store.repo(repo.id) is None:
        log.info("%s is called %s now", name, repo.name)
    store.save_repo(repo)
    if not has_issues:
        raise Refused(410, "issues are disabled")
    return repo


def ask_names(client: GitHubClient, names: Sequence[str], since: str | None = None) -> Iterator[_Named]:
    """Yield each name with the node of the repository that has, or had, it, and counts its issues `since`."""
    for first in range(0, len(names), NAMES_A_QUERY):
        chunk = names[first : first + NAMES_A_QUERY]
        try:
            found = client.graphql(names_query(chunk), {"filter": {"since": since} if since else None})
        except Refused:
            found = {}
        yield from ((name, found.get(f"r{i}")) for i, name in enumerate(chunk))


def _ask_each(client: GitHubClient, names: Iterable[str]) -> Iterator[_Named]:
    """`ask_names` over REST."""
    for name in names:
        try:
            yield name, {"databaseId": client.get(f"/repos/{name}").data["id"]}
        except Refused:
            yield name, None


def look_up(crawler: Crawler, repo: Repo, named: set[int], *, graphql: bool) -> None:
    """Store the issues of these numbers that have no row, or their tombstones."""
    store = crawler.store
    numbers = sorted(named - {issue.number for issue in store.issues(repo.id, named)})
    for first in range(0, len(numbers), NUMBERS_A_QUERY):
        chunk = numbers[first : first + NUMBERS_A_QUERY]
        found = {}
        if graphql:
            found = _read_numbers(crawler, repo, chunk)
            crawler.tell(repo.name)
        for number in sorted(set(chunk) - found.keys()):
            _ask_alone(crawler, repo, number)


def read_set_aside(crawler: Crawler, repo: Repo) -> None:
    """Ask again for each issue that was set aside; of one that is still too heavy, store the text alone."""
    for number in [number for repo_id, number, _ in crawler.store.all_set_aside() if repo_id == repo.id]:
        found = _read_numbers(crawler, repo, [number])
        if not found:
            _ask_alone(crawler, repo, number)
        elif found[number]:
            crawler.store.set_aside(repo.id, number, None)


def _read_numbers(crawler: Crawler, repo: Repo, numbers: list[int]) -> dict[int, bool]:
    """Store what `repo` has of at most `NUMBERS_A_QUERY` numbers, and tombstones of what is elsewhere now.

    What GitHub cannot serve in time is asked for in halves; a single issue too heavy is left out. Returns
    whether each was stored whole, or without earlier events or comments.
    """
    owner, name = repo.name.split("/")
    variables = {"owner": owner, "name": name, "comments": crawler.comments}
    try:
        found = crawler.client.graphql(numbers_query(numbers), variables, smaller=True)["repository"]
    except TooHeavy:
        half = len(numbers) // 2
        if not half:
            return {}
        return _read_numbers(crawler, repo, numbers[:half]) | _read_numbers(crawler, repo, numbers[half:])
    nodes: list[GraphNode] = []
    moved: list[Issue] = []
    for number in numbers if found and found["databaseId"] == repo.id else ():
        if node := found[f"n{number}"]:
            home, there = node["repository"], node["number"]
            if (home["databaseId"], there) == (repo.id, number):
                nodes.append(node)
            else:
                moved.append(tombstone(repo.id, number, f"transferred:{home['nameWithOwner']}#{there}"))
    rows, whole = rows_of(crawler, repo, nodes)
    crawler.store.save([*rows, *moved])
    return whole | {issue.number: True for issue in moved}


def _ask_alone(crawler: Crawler, repo: Repo, number: int) -> None:
    """Store what one REST request says of an issue, or the tombstone of one that moved or was deleted."""
    try:
        raw = crawler.client.get(f"/repositories/{repo.id}/issues/{number}").data
        name = "/".join(raw["repository_url"].rsplit("/", 2)[1:])
        if raw["number"] == number and name.lower() in repo.names:
            issue = issue_from_rest(raw, repo.id)
        else:  # where it is now, the listing of that repository has it, if it is wanted at all
            issue = tombstone(repo.id, number, f"transferred:{name}#{raw['number']}")
    except Refused as error:
        log.debug("%s#%d cannot be looked up (%s)", repo.name, number, error)
        if error.status not in GONE:
            crawler.store.note_refusal(repo.id, number, str(error))
            return
        issue = tombstone(repo.id, number, "deleted")
    crawler.store.save([issue])
    crawler.tell(repo.name)
