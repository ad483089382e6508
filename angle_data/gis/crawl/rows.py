"""The records of the crawl store: what GitHub said of repositories, issues, comments and events.

Data only. Times are UTC in ISO 8601 with a `Z` (`2024-01-31T12:00:00Z`), so that they order as text. Logins
are None for deleted accounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stream = Literal["issues", "comments", "events"]
"""What is read of a repository, one after the other: each has a cursor of its own."""

EventKind = Literal["marked", "unmarked", "closed", "reopened", "cross_referenced"]

_NUMBER_BITS = 30


def tombstone_id(repo_id: int, number: int) -> int:
    """Return the negative id of an issue of which only the number is known (deleted or transferred)."""
    return -((repo_id << _NUMBER_BITS) | number)


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository, keyed by GitHub's numeric id, which survives renames and moves.

    `name` is the present `owner/name`, `asked` the name in the list, `aliases` every other name it is known
    by (sorted); links in old comments use them. `status` is `ok` or `error:...`; `etag` is that of its
    description.
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

    Over GraphQL (strategies `events` and `both`) only those pull requests have rows that a comment on an
    issue names as its original; over REST all have.

    `state` is `open` or `closed`; `state_reason` `completed`, `reopened`, `not_planned`, `duplicate` or
    None. `gone` is None, `deleted` (also: turned into a discussion) or `transferred:owner/name#number`; a
    gone issue whose text was never seen has a negative id, empty texts and empty times. `comments` is None
    where the source does not count them. `author_association` is GitHub's enum (`OWNER`, `MEMBER`, ...),
    `""` if unknown.
    """

    id: int
    node_id: str
    repo_id: int
    number: int
    title: str
    body: str
    author: str | None
    author_association: str
    state: str
    state_reason: str | None
    labels: tuple[str, ...]
    is_pull: bool
    created_at: str
    closed_at: str | None
    closed_by: str | None
    updated_at: str
    locked: bool
    gone: str | None = None
    comments: int | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on issue or pull request `number`; `url` is its page (`/pull/` in it tells which of the two).

    `minimized` is the reason why it was hidden (`spam`, `outdated`, `duplicate` ...), None if it was not.
    It speaks of the comment, not of the issue.
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
    issue it duplicates. `cross_referenced`: the target is the issue or pull request that mentions this one.
    `closed` and `reopened` have no target.
    """

    id: str
    kind: EventKind
    repo_id: int
    number: int
    target_repo: str | None
    target_number: int | None
    actor: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a stream stands: `cursor` leads to the next page, `done` says that the last page was read.

    `start` is the `--since` the stream began with (None: the beginning); `etag` is that of the last page
    read.
    """

    repo_id: int
    stream: Stream
    cursor: str | None
    done: bool
    start: str | None = None
    etag: str | None = None
