"""From GitHub's JSON to rows of the store: REST objects, GraphQL nodes, and nothing fetched on the way.

Both APIs give the same row for the same thing: a bot's login ends in `[bot]` and enums are in lower case,
as REST has them. Unknown fields are ignored; a field that is missing where GitHub always sends one raises
`KeyError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from angle_data.gis.crawl.rows import Comment, Event, EventKind, Issue

Json = Mapping[str, Any]

_KINDS: dict[str, EventKind] = {
    "MarkedAsDuplicateEvent": "marked",
    "UnmarkedAsDuplicateEvent": "unmarked",
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "CrossReferencedEvent": "cross_referenced",
}


def login_of(user: Json | None) -> str | None:
    """Return the login of a REST user or GraphQL actor, None for a deleted account."""
    if not user or not user.get("login"):
        return None
    login = str(user["login"])
    return f"{login}[bot]" if user.get("__typename") == "Bot" and not login.endswith("[bot]") else login


def number_of(address: str) -> int:
    """Return the number at the end of an issue's address."""
    return int(address.rstrip("/").rsplit("/", 1)[-1])


def issue_from_rest(raw: Json, repo_id: int) -> Issue:
    """Return the row of an element of `GET /repos/.../issues`, pull requests included.

    Lists may leave out `closed_by`; the timeline has it.
    """
    labels = [label if isinstance(label, str) else label.get("name") for label in raw["labels"]]
    return Issue(
        id=raw["id"],
        node_id=raw["node_id"],
        repo_id=repo_id,
        number=raw["number"],
        title=raw["title"] or "",
        body=raw.get("body") or "",
        author=login_of(raw["user"]),
        author_association=raw.get("author_association") or "",
        state=raw["state"],
        state_reason=raw.get("state_reason"),
        labels=tuple(sorted(str(label) for label in labels if label)),
        is_pull=bool(raw.get("pull_request")) or "/pull/" in raw["html_url"],
        created_at=raw["created_at"],
        closed_at=raw["closed_at"],
        closed_by=login_of(raw.get("closed_by")),
        updated_at=raw["updated_at"],
        locked=bool(raw["locked"]),
        comments=raw["comments"],
    )


def comment_from_rest(raw: Json, repo_id: int) -> Comment:
    """Return the row of an element of `GET /repos/.../issues/comments`."""
    minimized = raw.get("minimized")
    return Comment(
        id=raw["id"],
        repo_id=repo_id,
        number=number_of(raw["issue_url"]),
        author=login_of(raw["user"]),
        author_association=raw.get("author_association") or "",
        body=raw.get("body") or "",
        created_at=raw["created_at"],
        updated_at=raw["updated_at"],
        url=raw["html_url"],
        minimized=(minimized.get("reason") or "unknown") if minimized else None,
    )


def issue_from_node(node: Json, repo_id: int) -> Issue:
    """Return the row of an issue of `queries.ISSUES_QUERY`; its last closing tells who closed it."""
    closings = [item for item in _items(node["timelineItems"]) if item["__typename"] == "ClosedEvent"]
    closed = node["state"] == "CLOSED"
    return Issue(
        id=int(node["fullDatabaseId"]),
        node_id=node["id"],
        repo_id=repo_id,
        number=node["number"],
        title=node["title"] or "",
        body=node["body"] or "",
        author=login_of(node["author"]),
        author_association=node["authorAssociation"] or "",
        state=node["state"].lower(),
        state_reason=node["stateReason"].lower() if node["stateReason"] else None,
        labels=tuple(sorted(label["name"] for label in _items(node["labels"]))),
        is_pull=False,
        created_at=node["createdAt"],
        closed_at=node["closedAt"],
        closed_by=login_of(closings[-1]["actor"]) if closed and closings else None,
        updated_at=node["updatedAt"],
        locked=bool(node["locked"]),
    )


def pull_from_node(node: Json, repo_id: int) -> Issue:
    """Return the row of a pull request of `queries.numbers_query`; its labels are not asked for."""
    return Issue(
        id=int(node["fullDatabaseId"]),
        node_id=node["id"],
        repo_id=repo_id,
        number=node["number"],
        title=node["title"] or "",
        body=node["body"] or "",
        author=login_of(node["author"]),
        author_association=node["authorAssociation"] or "",
        state="open" if node["prState"] == "OPEN" else "closed",
        state_reason=None,
        labels=(),
        is_pull=True,
        created_at=node["createdAt"],
        closed_at=node["closedAt"],
        closed_by=None,
        updated_at=node["updatedAt"],
        locked=bool(node["locked"]),
    )


def events_from_timeline(timeline: Json | None, repo_id: int, number: int) -> Iterator[Event]:
    """Yield the events among the items of the timeline of issue `number`.

    A mark stands in the timelines of both its ends; whichever end this is, the event is that of the
    duplicate. Marks with an end that is hidden or deleted lead nowhere and are left out.
    """
    for item in _items(timeline):
        kind = _KINDS.get(item["__typename"])
        if kind is None:
            continue
        actor, created = login_of(item["actor"]), item["createdAt"]
        if kind in ("closed", "reopened"):
            yield Event(item["id"], kind, repo_id, number, None, None, actor, created)
            continue
        marks = kind in ("marked", "unmarked")
        here, target = (item["duplicate"], item["canonical"]) if marks else (None, item["source"])
        if not target or (marks and not here):
            continue
        owner = (here["repository"]["databaseId"], here["number"]) if here else (repo_id, number)
        repo, target_number = target["repository"]["nameWithOwner"], target["number"]
        yield Event(item["id"], kind, owner[0], owner[1], repo, target_number, actor, created)


def _items(connection: Json | None) -> list[Json]:
    """The nodes of a connection; single ones may be null where the token may not see them."""
    nodes = (connection or {}).get("nodes") or []
    return [node for node in nodes if node]
