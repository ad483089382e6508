"""The rows of the crawl store, and how GitHub's JSON becomes them.

Times are UTC in ISO 8601 with a `Z` (`2024-01-31T12:00:00Z`), so that they order as text. Logins are None
for deleted accounts. Both APIs give the same row for the same thing: a bot's login ends in `[bot]` and enums
are in lower case, as REST has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Json = Mapping[str, Any]

Listing = Literal["issues", "comments", "events", "threads"]
"""What is read of a repository, each with a cursor of its own: over REST issues and comments, over GraphQL
issues with their events, or with events and comments (`threads`)."""

LISTINGS: tuple[Listing, ...] = get_args(Listing)

EventKind = Literal["marked", "unmarked", "closed", "reopened"]

_KINDS: dict[str, EventKind] = {
    "MarkedAsDuplicateEvent": "marked",
    "UnmarkedAsDuplicateEvent": "unmarked",
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
}


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository, keyed by GitHub's numeric id, which survives renames and moves.

    `name` is the present `owner/name`, `asked` the name in the list, `aliases` every other name it is known
    by (sorted), as in old comments. `status` is `ok` or `error:...`; `etag` is that of its description.
    """

    id: int
    name: str
    asked: str
    aliases: tuple[str, ...] = ()
    status: str = "ok"
    etag: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """Every known name, in lower case."""
        return frozenset(name.lower() for name in (self.name, self.asked, *self.aliases))


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue or pull request (`is_pull`), or the tombstone of one (`gone`).

    Over GraphQL only those pull requests have rows that an issue names as its original; over REST all have,
    and their comments too. `state` is `open` or `closed`; `state_reason` `completed`, `reopened`,
    `not_planned`, `duplicate` or None. `gone` is None, `deleted` (also: turned into a discussion) or
    `transferred:owner/name#number`; a gone issue whose text was never seen has a negative id, empty texts and
    empty times. `author_association` is GitHub's enum (`OWNER`, `MEMBER`, ...), `""` if unknown.
    """

    id: int
    node_id: str
    repo_id: int
    number: int
    title: str = ""
    body: str = ""
    author: str | None = None
    author_association: str = ""
    state: str = "open"
    state_reason: str | None = None
    labels: tuple[str, ...] = ()
    is_pull: bool = False
    created_at: str = ""
    closed_at: str | None = None
    closed_by: str | None = None
    updated_at: str = ""
    locked: bool = False
    gone: str | None = None

    @property
    def text(self) -> str:
        """Title and body as one text, in which the issue may be called a duplicate."""
        return f"{self.title}\n\n{self.body}"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on issue or pull request `number`; `url` is its page (`/pull/` in it tells which of the two).

    `minimized` is the reason why the comment was hidden (`spam`, `duplicate` ...), None if it was not.
    """

    id: int
    repo_id: int
    number: int
    author: str | None
    author_association: str
    body: str
    created_at: str
    updated_at: str
    url: str
    minimized: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to issue `number`; `id` is GitHub's node id.

    `marked` and `unmarked`: `number` is the duplicate, `target_repo` (`owner/name`) and `target_number` the
    issue it duplicates. `closed` and `reopened` have no target.
    """

    id: str
    kind: EventKind
    repo_id: int
    number: int
    target_repo: str | None
    target_number: int | None
    actor: str | None
    created_at: str


RawRow = Issue | Comment | Event


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing stands: `cursor` leads to the next page, `done` says that the last page was read.

    `start` is the `--since` the listing began with (None: the beginning); `etag` is the last page's.
    """

    repo_id: int
    listing: Listing
    cursor: str
    done: bool
    start: str | None = None
    etag: str | None = None


def tombstone(repo_id: int, number: int, gone: str) -> Issue:
    """Return the row of an issue of which nothing is known but that it is `gone`; its id is negative."""
    return Issue(-((repo_id << 30) | number), "", repo_id, number, state="closed", gone=gone)


def login_of(user: Json | None) -> str | None:
    """Return the login of a REST user or GraphQL actor, None for a deleted account."""
    if not user or not user.get("login"):
        return None
    login = str(user["login"])
    return f"{login}[bot]" if user.get("__typename") == "Bot" and not login.endswith("[bot]") else login


def issue_from_rest(raw: Json, repo_id: int) -> Issue:
    """Return the row of an element of `GET /repos/.../issues`; old event dumps lack some fields."""
    names = ("id", "number", "state", "created_at", "closed_at", "updated_at")
    labels = [label if isinstance(label, str) else label.get("name") for label in raw["labels"]]
    return Issue(
        **{name: raw[name] for name in names},
        node_id=raw.get("node_id") or "",
        repo_id=repo_id,
        title=raw["title"] or "",
        body=raw.get("body") or "",
        author=login_of(raw["user"]),
        author_association=raw.get("author_association") or "",
        state_reason=raw.get("state_reason"),
        labels=tuple(sorted(str(label) for label in labels if label)),
        is_pull=bool(raw.get("pull_request")) or "/pull/" in raw["html_url"],
        closed_by=login_of(raw.get("closed_by")),
        locked=bool(raw.get("locked")),
    )


def comment_from_rest(raw: Json, repo_id: int) -> Comment:
    """Return the row of an element of `GET /repos/.../issues/comments`."""
    minimized = raw.get("minimized")
    return Comment(
        **{name: raw[name] for name in ("id", "created_at", "updated_at")},
        repo_id=repo_id,
        number=int(raw["issue_url"].rsplit("/", 1)[-1]),
        author=login_of(raw["user"]),
        author_association=raw.get("author_association") or "",
        body=raw.get("body") or "",
        url=raw["html_url"],
        minimized=(minimized.get("reason") or "unknown") if minimized else None,
    )


def comment_from_node(node: Json, repo_id: int, number: int) -> Comment:
    """Return the row of a comment of issue `number`, as `ISSUES_QUERY` gives it (see `queries`)."""
    hidden = {"reason": (node["minimizedReason"] or "").lower()} if node["isMinimized"] else None
    changed = {"id": int(node["id"]), "issue_url": str(number), "minimized": hidden}
    return comment_from_rest({**node, **changed}, repo_id)


def issue_from_node(node: Json, repo_id: int) -> Issue:
    """Return the row of an issue of `ISSUES_QUERY`, or of a pull request of `numbers_query` (see `queries`).

    The last closing of an issue tells who closed it. Pull requests come without labels, reason and events.
    """
    is_pull = "prState" in node
    is_open = node["prState" if is_pull else "state"] == "OPEN"
    timeline = _items(node.get("timelineItems"))
    closings = [item["actor"] for item in timeline if item["__typename"] == "ClosedEvent"]
    changed = {
        "id": int(node["id"]),
        "state": "open" if is_open else "closed",
        "state_reason": (node.get("state_reason") or "").lower() or None,
        "labels": _items(node.get("labels")),
        "pull_request": is_pull,
        "html_url": "",
        "closed_by": closings[-1] if closings and not is_open else None,
    }
    return issue_from_rest({**node, **changed}, repo_id)


def events_from_timeline(timeline: Json | None, repo_id: int, number: int) -> Iterator[Event]:
    """Yield the events among the items of the timeline of issue `number`.

    A mark stands in the timelines of both its ends; whichever end this is, the event is that of the
    duplicate. Marks with an end that is hidden or deleted lead nowhere and are left out.
    """
    for item in _items(timeline):
        kind = _KINDS[item["__typename"]]
        actor = login_of(item["actor"])
        created = item["createdAt"]
        if kind in ("closed", "reopened"):
            yield Event(item["id"], kind, repo_id, number, None, None, actor, created)
        elif (here := item["duplicate"]) and (target := item["canonical"]):
            owner, repo = here["repository"]["databaseId"], target["repository"]["nameWithOwner"]
            yield Event(item["id"], kind, owner, here["number"], repo, target["number"], actor, created)


def _items(connection: Json | None) -> list[Json]:
    """The nodes of a connection; single ones may be null where the token may not see them."""
    nodes = (connection or {}).get("nodes") or []
    return [node for node in nodes if node]
