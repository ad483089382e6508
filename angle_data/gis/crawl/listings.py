"""Reads one repository into the store: three listings in the order of the last update, page by page.

Every page is written together with the cursor behind it. REST pages are not counted: after each page the
listing is asked again for what is younger than the page's last item (`since`), because an item that is
updated meanwhile moves to the end and would push another one over a page border unseen, and because paging
by number ends at about 10,000 items. Only where a whole page shares one time stamp is `rel="next"`
followed. GraphQL cursors hold their place by themselves.

Single issues are asked for where a listing does not give them: an original that moved, was deleted, is too
old or is a pull request, and an issue that was too heavy.

The GraphQL queries: `stateReason` without `enableDuplicate` never says DUPLICATE. `pageCount` is asked for
because a large page may come back with lists inside it cut short and no error (seen in
kubevirt/ci-health#168). Costs in points are GitHub's rule: connections asked for, divided by 100, rounded.
https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from angle_data.gis.comments.reading import read_comment
from angle_data.gis.crawl.github import GitHubClient, Refused, TooHeavy
from angle_data.gis.crawl.rows import (
    Comment,
    Cursor,
    Event,
    Issue,
    Listing,
    Repo,
    comment_from_rest,
    events_from_timeline,
    issue_from_node,
    issue_from_rest,
    tombstone,
)
from angle_data.gis.crawl.store import Store, hosts_of

PER_PAGE = 100
_GROW_AFTER = 3
_BREATH_S = 1.0
_TRIES_ALONE = 4
_CUT = "GitHub does not show all of its events"
_REST: dict[str, tuple[str, Callable[[Mapping[str, Any], int], Issue | Comment]]] = {
    "issues": ("issues?state=all&", issue_from_rest),
    "comments": ("issues/comments?", comment_from_rest),
}

_GONE = frozenset({404, 410, 451})
POINTS_PER_PAGE = 2
"""Points of one full page of `ISSUES_QUERY`: (1 + 100 labels + 100 timelines) / 100."""

NUMBERS_A_QUERY = 50
"""How many single numbers `numbers_query` asks for at once."""

_RATE = "rateLimit { cost limit remaining resetAt }"

_END = """__typename
  ... on Issue { number repository { databaseId nameWithOwner } }
  ... on PullRequest { number repository { databaseId nameWithOwner } }"""

_EVENTS = f"""
fragment Ref on IssueOrPullRequest {{
  {_END}
}}
fragment Events on IssueTimelineItemsConnection {{
  pageCount
  pageInfo {{ hasPreviousPage startCursor }}
  nodes {{
    __typename
    ... on MarkedAsDuplicateEvent {{
      id createdAt actor {{ __typename login }} canonical {{ ...Ref }} duplicate {{ ...Ref }}
    }}
    ... on UnmarkedAsDuplicateEvent {{
      id createdAt actor {{ __typename login }} canonical {{ ...Ref }} duplicate {{ ...Ref }}
    }}
    ... on ClosedEvent {{ id createdAt actor {{ __typename login }} }}
    ... on ReopenedEvent {{ id createdAt actor {{ __typename login }} }}
  }}
}}
"""

_ITEM_TYPES = "[MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT, CLOSED_EVENT, REOPENED_EVENT]"

_PARTS = f"""
fragment Parts on Issue {{
  id fullDatabaseId number title body author {{ __typename login }} authorAssociation
  state stateReason(enableDuplicate: true) createdAt closedAt updatedAt locked
  labels(first: 20) {{ nodes {{ name }} }}
  timelineItems(last: 10, itemTypes: {_ITEM_TYPES}) {{ ...Events }}
}}
{_EVENTS}"""

ISSUES_QUERY = f"""
query IssuesPage(
  $owner: String!, $name: String!, $first: Int!, $after: String, $filter: IssueFilters,
  $texts: Boolean!
) {{
  {_RATE}
  repository(owner: $owner, name: $name) {{
    databaseId
    issues(first: $first, after: $after, filterBy: $filter, orderBy: {{field: UPDATED_AT, direction: ASC}}) {{
      pageInfo {{ hasNextPage endCursor }}
      nodes {{
        number updatedAt
        ...Parts @include(if: $texts)
      }}
    }}
  }}
}}
{_PARTS}"""
"""A page of issues in the order of their last update; without `texts` only their numbers and times."""

TIMELINE_QUERY = f"""
query Timeline($id: ID!, $before: String) {{
  {_RATE}
  node(id: $id) {{
    ... on Issue {{
      timelineItems(last: 100, before: $before, itemTypes: {_ITEM_TYPES}) {{ ...Events }}
    }}
  }}
}}
{_EVENTS}"""
"""Earlier events of one issue, for the few with more of them than a page shows."""

log = logging.getLogger("angle")


@dataclass(frozen=True, slots=True)
class Crawler:
    """What reading a repository takes: who asks, where the rows go, which of them, and how it shows progress.

    `since` bounds the last update, as a UTC time stamp; None is open. `tell` gets the repository's name
    after every page.
    """

    client: GitHubClient
    store: Store
    since: str | None
    tell: Callable[[str], None]

    def cursor(self, repo: Repo, listing: Listing) -> Cursor:
        """Return where to go on; from the start where nothing was read, or `since` lies further back now."""
        cursor, since = self.store.cursor(repo.id, listing), self.since
        if cursor is None or (cursor.start is not None and (since is None or since < cursor.start)):
            return Cursor(repo.id, listing, None, done=False, start=since)
        return cursor

    def set_aside(self, repo: Repo, number: int, reason: str) -> None:
        """Leave an issue that GitHub cannot serve whole to `read_set_aside`."""
        log.warning("%s#%d is set aside, the next run asks again: %s", repo.name, number, reason)
        self.store.set_aside(repo.id, number, reason)


@dataclass(frozen=True, slots=True)
class _Place:
    """A cursor's content: the time to ask from, and the page to go on with from there.

    `next` is the address of REST's next page where time does not move on, `after` GraphQL's cursor, and
    `newest` the youngest time stamp that GraphQL gave.
    """

    since: str | None
    next: str | None = None
    after: str | None = None
    newest: str | None = None

    @classmethod
    def of(cls, cursor: Cursor) -> _Place:
        return cls(**json.loads(cursor.cursor)) if cursor.cursor else cls(cursor.start)

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    def behind(self, newest: str, next_page: str) -> _Place:
        """The place behind a page of REST whose youngest item is `newest`."""
        since = _second_before(newest)
        return _Place(since) if self.since is None or since > self.since else _Place(self.since, next_page)

    def restarted(self) -> _Place:
        """A place in GraphQL by time instead of by cursor."""
        return _Place(_second_before(self.newest) if self.newest else self.since, newest=self.newest)


def read_listing(crawler: Crawler, repo: Repo, listing: Literal["issues", "comments"]) -> None:
    """Read the texts, or the comments, of all issues and pull requests over REST."""
    path, parse = _REST[listing]
    cursor = crawler.cursor(repo, listing)
    place, etag = _Place.of(cursor), cursor.etag if cursor.done else None
    query = {"sort": "updated", "direction": "asc", "per_page": str(PER_PAGE)}
    while True:
        since = {"since": place.since} if place.since else {}
        # By id: names change, and a redirection would lose the parameters.
        address = place.next or f"/repositories/{repo.id}/{path}{urlencode({**query, **since})}"
        page = crawler.client.get(address, etag=etag)
        if page is None:
            return
        rows = [parse(raw, repo.id) for raw in page.data]
        # The tag may be used again only for the same address and if that page was the last.
        etag = page.etag if page.next_url is None and place.next is None else None
        done = page.next_url is None or not rows
        newest = max((row.updated_at for row in rows), default="")
        place = place.behind(newest, page.next_url) if page.next_url and rows else _Place(place.since)
        cursor = Cursor(repo.id, listing, str(place), done, cursor.start, etag)
        crawler.store.upsert_page(
            issues=[row for row in rows if isinstance(row, Issue)],
            comments=[row for row in rows if isinstance(row, Comment)],
            cursor=cursor,
        )
        crawler.tell(repo.name)
        if done:
            return


def read_events(crawler: Crawler, repo: Repo) -> None:
    """Read issues with their texts and the events that mark duplicates, over GraphQL.

    The size of a page is halved when the server cannot serve it in time, and grows back; an issue that it
    cannot serve even alone is set aside.
    """
    cursor = crawler.cursor(repo, "events")
    place, first, good, alone = _Place.of(cursor), PER_PAGE, 0, 0
    while True:
        try:
            connection = _ask_issues(crawler.client, repo, place, first)
        except TooHeavy as error:
            alone += first == 1
            first, good = max(1, first // 2), 0
            log.debug("%s: %s; %d issues a page from here", repo.name, error, first)
            crawler.client.pause(_BREATH_S, "a page was too heavy")
            if alone <= _TRIES_ALONE:
                continue
            # With all patience: while GitHub serves not even the number, the issue is not to blame.
            connection = _ask_issues(crawler.client, repo, place, 1, texts=False)
            for node in connection["nodes"]:
                crawler.set_aside(repo, node["number"], str(error))
        good, alone = good + 1, 0
        if good % _GROW_AFTER == 0:
            first = min(PER_PAGE, first * 2)
        nodes, info = connection["nodes"], connection["pageInfo"]
        more = bool(info["hasNextPage"])
        newest = max((node["updatedAt"] for node in nodes), default=place.newest)
        place = _Place(place.since, after=info["endCursor"], newest=newest)
        cursor = Cursor(repo.id, "events", str(place if more else place.restarted()), not more, cursor.start)
        issues, events, _ = rows_of(crawler, repo, [node for node in nodes if "id" in node])
        crawler.store.upsert_page(issues=issues, events=events, cursor=cursor)
        crawler.tell(repo.name)
        if not more:
            return


def _ask_issues(
    client: GitHubClient, repo: Repo, place: _Place, first: int, *, texts: bool = True
) -> dict[str, Any]:
    owner, name = repo.name.split("/")
    variables: dict[str, Any] = {"owner": owner, "name": name, "first": first, "texts": texts}
    if place.since:
        variables["filter"] = {"since": place.since}
    if place.after:
        variables["after"] = place.after
    repository = client.graphql(ISSUES_QUERY, variables, smaller=texts)["repository"]
    if repository is None:
        raise Refused(404, "not found by GraphQL")
    if repository["databaseId"] != repo.id:
        raise Refused(404, f"the name {repo.name} belongs to another repository now")
    nodes = [node for node in repository["issues"]["nodes"] or [] if node]
    if any(_is_cut(node["timelineItems"]) for node in nodes if texts):
        raise TooHeavy(_CUT)
    return {**repository["issues"], "nodes": nodes}


def _is_cut(timeline: Mapping[str, Any]) -> bool:
    """Whether it holds fewer items than it says; GitHub empties some of a large page without an error."""
    return len(timeline["nodes"] or []) < int(timeline["pageCount"])


def rows_of(
    crawler: Crawler, repo: Repo, nodes: Iterable[Mapping[str, Any]]
) -> tuple[list[Issue], list[Event], list[int]]:
    """Return the rows of GraphQL nodes, issues or pull requests, and the numbers of those now set aside.

    The earlier events of an issue that has many are asked for; where GitHub does not show them all, the issue
    is set aside.
    """
    issues: list[Issue] = []
    events: list[Event] = []
    heavy: list[int] = []
    for node in nodes:
        issues.append(issue_from_node(node, repo.id))
        timeline: Mapping[str, Any] | None = node.get("timelineItems")
        try:
            while timeline:
                events += events_from_timeline(timeline, repo.id, node["number"])
                if _is_cut(timeline):
                    raise TooHeavy(_CUT)
                timeline = _ask_earlier(crawler.client, node, timeline["pageInfo"])
        except TooHeavy as error:
            heavy.append(node["number"])
            crawler.set_aside(repo, node["number"], str(error))
    return issues, events, heavy


def _ask_earlier(
    client: GitHubClient, node: Mapping[str, Any], info: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the page of an issue's events before the one that `info` is of, None if there is none."""
    if not info["hasPreviousPage"]:
        return None
    variables = {"id": node["id"], "before": info["startCursor"]}
    found = client.graphql(TIMELINE_QUERY, variables, smaller=True)["node"]
    return found["timelineItems"] if found else None


# Single issues


def missing_numbers(store: Store, repo: Repo) -> list[int]:
    """Return the numbers of `repo` that marks or comments call originals and that have no row."""
    names = repo.names
    hosts = hosts_of(store.site())
    named = {
        event.target_number
        for event in store.events(repo.id)
        if event.kind in ("marked", "unmarked") and (event.target_repo or "").lower() in names
    }
    for comment in store.comments(repo.id):
        if "/pull/" not in comment.url:
            said = read_comment(comment.body, repo.name, comment.number, author=comment.author, hosts=hosts)
            found = (*said.links, *said.denials)
            named.update(link.number for link in found if link.repo.lower() in names)
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
            crawler.tell(repo.name)
            chunk = sorted(set(chunk) - {issue.number for issue in found})
        for number in chunk:
            _ask_alone(crawler, repo, number)
    crawler.store.set_meta(note, rows)


def read_set_aside(crawler: Crawler, repo: Repo) -> None:
    """Ask again for each issue that was set aside; of one that is still too heavy, store the text alone."""
    for _, number, _ in crawler.store.all_set_aside(repo.id):
        found, events, heavy = rows_of(crawler, repo, ask_numbers(crawler.client, repo, [number]))
        crawler.store.upsert_page(issues=found, events=events)
        if not found:
            _ask_alone(crawler, repo, number)
        elif not heavy:
            crawler.store.set_aside(repo.id, number, None)


def _ask_alone(crawler: Crawler, repo: Repo, number: int) -> None:
    """Store what one REST request says of an issue; nothing where GitHub refuses to show it."""
    try:
        crawler.store.upsert_page(issues=[ask_number(crawler.client, repo, number)])
    except Refused as error:
        log.debug("%s#%d cannot be looked up (%s)", repo.name, number, error)
    crawler.tell(repo.name)


def ask_numbers(client: GitHubClient, repo: Repo, numbers: list[int]) -> list[Mapping[str, Any]]:
    """Return the GraphQL nodes of the issues and pull requests of these numbers that `repo` still has.

    At most `NUMBERS_A_QUERY` numbers; needs a token. What GitHub cannot serve in time is asked for in
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


def _second_before(stamp: str) -> str:
    """One second less: items of that second come again, whether `since` includes its bound or not."""
    moment = datetime.fromisoformat(stamp.replace("Z", "+00:00")) - timedelta(seconds=1)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def numbers_query(count: int) -> str:
    """Return a query for `count` single numbers (variables `n0` ...), one point in all.

    Issues come as in `ISSUES_QUERY`; pull requests, which no listing of issues has, with their texts.
    """
    variables = ", ".join(f"$n{i}: Int!" for i in range(count))
    fields = "\n".join(f"    n{i}: issueOrPullRequest(number: $n{i}) {{ ...Found }}" for i in range(count))
    return f"""
query Numbers($owner: String!, $name: String!, {variables}) {{
  {_RATE}
  repository(owner: $owner, name: $name) {{
    databaseId
{fields}
  }}
}}
fragment Found on IssueOrPullRequest {{
  __typename
  ... on Issue {{ ...Parts }}
  ... on PullRequest {{
    id fullDatabaseId number title body author {{ __typename login }} authorAssociation
    prState: state createdAt closedAt updatedAt locked
  }}
}}
{_PARTS}"""
