"""Reads one repository into the store in the order of the last update, page by page.

Over GraphQL one listing gives issues with their events and comments; over REST issues and comments are two.
Every page is written together with the cursor behind it. REST pages are not counted: after each page the
listing is asked again for what is younger than the page's last item (`since`), because an item that is
updated meanwhile moves to the end and would push another one over a page border unseen, and because paging
by number ends at about 10,000 items. Only where a whole page shares one time stamp is `rel="next"`
followed. GraphQL cursors hold their place by themselves.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from angle_data.console import Progress
from angle_data.gis.crawl.github import GitHubClient, Refused, TooHeavy
from angle_data.gis.crawl.queries import EARLIER_QUERY, ISSUES_QUERY, PER_PAGE
from angle_data.gis.crawl.rows import (
    Comment,
    Cursor,
    Issue,
    Listing,
    RawRow,
    Repo,
    comment_from_node,
    comment_from_rest,
    events_from_timeline,
    issue_from_node,
    issue_from_rest,
)
from angle_data.gis.crawl.store import Store

_GROW_AFTER = 3
_BREATH_S = 1.0
_TRIES_ALONE = 4
_CUT = "GitHub does not show all of its events or comments"
REST: dict[str, tuple[str, Callable[[Mapping[str, Any], int], Issue | Comment]]] = {
    "issues": ("issues?state=all&", issue_from_rest),
    "comments": ("issues/comments?", comment_from_rest),
}
"""What is listed over REST: its path below a repository, and what makes rows of it."""

log = logging.getLogger("angle")


@dataclass(slots=True)
class Crawler:
    """What reading a repository takes: who asks, where the rows go, which of them, and how it shows progress.

    `since` bounds the last update, as a UTC time stamp; None is open. `comments`: whether GraphQL's issues
    come with their comments.
    """

    client: GitHubClient
    store: Store
    progress: Progress
    since: str | None = None
    comments: bool = False

    def tell(self, name: str, done: int = 0) -> None:
        """Show that a repository is being read, or how many more are done."""
        self.progress.advance(done, f"{name}, {self.client.status_line()}")

    def begin(self, repo: Repo, listing: Listing) -> tuple[Cursor, Position]:
        """Return where to go on; from the start where nothing was read, or `since` lies further back now."""
        cursor = self.store.cursor(repo.id, listing)
        since = self.since
        if cursor is None or (cursor.start is not None and (since is None or since < cursor.start)):
            cursor = Cursor(repo.id, listing, str(Position(since)), done=False, start=since)
        place = json.loads(cursor.cursor)
        place.pop("left", None)  # stores of version 2.0 have it
        return cursor, Position(**place)

    def set_aside(self, repo: Repo, number: int, reason: str) -> None:
        """Leave an issue that GitHub cannot serve whole to `lookups.read_set_aside`."""
        said = "%s#%d could not be fetched, the next run will try again: %s"
        log.warning(said, repo.name, number, reason)
        self.store.set_aside(repo.id, number, reason)


@dataclass(frozen=True, slots=True)
class Position:
    """A cursor's content: the time to ask from, and the page to go on with from there.

    `next` is the address of REST's next page where time does not move on, `after` GraphQL's cursor, and
    `newest` the youngest time stamp that GraphQL gave.
    """

    since: str | None
    next: str | None = None
    after: str | None = None
    newest: str | None = None

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def read_listing(crawler: Crawler, repo: Repo, listing: Listing) -> None:
    """Read the texts, or the comments, of all issues and pull requests over REST."""
    path, parse = REST[listing]
    cursor, place = crawler.begin(repo, listing)
    etag = cursor.etag if cursor.done else None
    done = False
    query = {"sort": "updated", "direction": "asc", "per_page": str(PER_PAGE)}
    while not done:
        since = {"since": place.since} if place.since else {}
        # By id: names change, and a redirection would lose the parameters.
        address = place.next or f"/repositories/{repo.id}/{path}{urlencode({**query, **since})}"
        page = crawler.client.get(address, etag=etag)
        if page.data is None:
            return
        rows = [parse(raw, repo.id) for raw in page.data]
        # The tag may be used again only for the same address and if that page was the last.
        etag = page.etag if page.next_url is None and place.next is None else None
        done = page.next_url is None or not rows
        place = Position(place.since)
        if not done:
            later = _second_before(max(row.updated_at for row in rows))
            moves = place.since is None or later > place.since
            place = Position(later) if moves else Position(place.since, page.next_url)
        cursor = Cursor(repo.id, listing, str(place), done, cursor.start, etag)
        crawler.store.save([*rows, cursor])
        crawler.tell(repo.name)


def read_threads(crawler: Crawler, repo: Repo, listing: Listing) -> None:
    """Read issues with their texts, events and comments over GraphQL.

    A page that GitHub cannot serve in time is halved and grows back; an issue too heavy alone is set aside.
    """
    cursor, place = crawler.begin(repo, listing)
    first = PER_PAGE
    good = 0
    alone = 0
    hidden = int(crawler.store.meta(f"hidden:{repo.id}") or 0) if place.after else 0
    more = True
    while more:
        try:
            connection = _ask_issues(crawler, repo, place, first)
        except TooHeavy as error:
            alone += first == 1
            first = max(1, first // 2)
            good = 0
            log.debug("%s: %s; %d issues a page from here", repo.name, error, first)
            crawler.client.pause(_BREATH_S, "a page was too heavy")
            if alone <= _TRIES_ALONE:
                continue
            # With all patience: while GitHub serves not even the number, the issue is not to blame.
            connection = _ask_issues(crawler, repo, place, 1, texts=False)
            for node in connection["nodes"]:
                crawler.set_aside(repo, node["number"], str(error))
        good += 1
        alone = 0
        if good % _GROW_AFTER == 0:
            first = min(PER_PAGE, first * 2)
        nodes, info = connection["nodes"], connection["pageInfo"]
        more = bool(info["hasNextPage"])
        newest = max((node["updated_at"] for node in nodes), default=place.newest)
        if more:
            place = Position(place.since, None, info["endCursor"], newest)
        else:  # the next time by time, not by cursor
            place = Position(_second_before(newest) if newest else place.since, newest=newest)
        cursor = Cursor(repo.id, listing, str(place), not more, cursor.start)
        rows, _ = rows_of(crawler, repo, [node for node in nodes if "id" in node])
        hidden += connection["hidden"]
        if hidden:
            crawler.store.set_meta(f"hidden:{repo.id}", str(hidden))
        crawler.store.save([*rows, cursor])
        crawler.tell(repo.name)


def _ask_issues(
    crawler: Crawler, repo: Repo, place: Position, first: int, *, texts: bool = True
) -> dict[str, Any]:
    owner, name = repo.name.split("/")
    variables: dict[str, Any] = {"owner": owner, "name": name, "first": first, "after": place.after}
    variables |= {"texts": texts, "comments": crawler.comments}
    variables |= {"filter": {"since": place.since}} if place.since else {}  # a null may mean another thing
    repository = crawler.client.graphql(ISSUES_QUERY, variables, smaller=texts)["repository"]
    if repository is None:
        raise Refused(404, "not found by GraphQL")
    if repository["databaseId"] != repo.id:
        raise Refused(404, f"the name {repo.name} belongs to another repository now")
    connection = repository["issues"] or {"nodes": [None]}
    shown = connection["nodes"] or []
    nodes = [node for node in shown if node]
    if shown and not nodes:
        raise Refused(403, crawler.client.withheld or "the token may see none of its issues")
    if any(_is_cut(node["timelineItems"]) for node in nodes if texts):
        raise TooHeavy(_CUT)
    return {**connection, "nodes": nodes, "hidden": len(shown) - len(nodes)}


def _is_cut(connection: Mapping[str, Any]) -> bool:
    """Whether it holds fewer items than it says; GitHub empties some of a large page without an error."""
    said = connection.get("pageCount", min(connection.get("totalCount", 0), PER_PAGE))
    return len(connection["nodes"] or []) < int(said)


def rows_of(
    crawler: Crawler, repo: Repo, nodes: Iterable[Mapping[str, Any]]
) -> tuple[list[RawRow], dict[int, bool]]:
    """Return the rows of GraphQL nodes, issues or pull requests of `repo`, and which numbers are whole.

    Where an issue has more events and comments, these are asked for; if GitHub lacks some, it is set aside.
    """
    rows: list[RawRow] = []
    whole: dict[int, bool] = {}
    for node in nodes:
        number = node["number"]
        rows.append(issue_from_node(node, repo.id))
        try:
            for timeline in _lists(crawler.client, node, "timelineItems"):
                rows += events_from_timeline(timeline, repo.id, number)
                if _is_cut(timeline):
                    raise TooHeavy(_CUT)
            for comments in _lists(crawler.client, node, "comments"):
                rows += (comment_from_node(said, repo.id, number) for said in comments["nodes"] if said)
            whole[number] = True
        except TooHeavy as error:
            whole[number] = False
            crawler.set_aside(repo, number, str(error))
    return rows, whole


def _lists(
    client: GitHubClient, node: Mapping[str, Any], name: Literal["timelineItems", "comments"]
) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of one of the lists of an issue, the last one first.

    A first page that lacks comments is asked for once more and then believed: GitHub counts hidden ones.
    """
    found: Mapping[str, Any] | None = node.get(name)
    if found and name == "comments" and _is_cut(found):
        found = _ask_earlier(client, node, name, None)
        if found and _is_cut(found) and not found["nodes"]:
            raise TooHeavy(_CUT)
    while found:
        yield found
        info = found["pageInfo"]
        found = _ask_earlier(client, node, name, info["startCursor"]) if info["hasPreviousPage"] else None


def _ask_earlier(
    client: GitHubClient, node: Mapping[str, Any], name: str, before: str | None
) -> Mapping[str, Any] | None:
    variables = {"id": node["node_id"], "before": before, "comments": name == "comments"}
    found = client.graphql(EARLIER_QUERY, variables, smaller=True)["node"]
    return found[name] if found else None


def _second_before(stamp: str) -> str:
    """One second less: items of that second come again, whether `since` includes its bound or not."""
    return (datetime.fromisoformat(stamp) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
