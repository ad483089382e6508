"""One line of an event dump: which repository it is of, and its rows for the store, or why it has none.

`IssuesEvent` and `IssueCommentEvent` count; each carries the issue as it was then. Where a dump reports a
deletion, the text goes. Nothing that a line holds may end the reading of its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from angle_data.gis.crawl.rows import (
    Comment,
    Event,
    Issue,
    RawRow,
    comment_from_rest,
    issue_from_rest,
    login_of,
)
from angle_data.jsonl import loads

LINES = {
    "used": "an event that counts",
    "other_type": "an event of another type",
    "other_repository": "of a repository that is not listed",
    "before_since": "before --since",
    "other_site": "of another site than the events before",
    "blank": "nothing",
    "too_long": "longer than any event about an issue can be",
    "not_json": "no JSON",
    "too_deep": "JSON that is nested too deep, or has a number with thousands of digits",
    "not_an_event": "JSON, but no event, or an event before 2015, whose shape is another",
    "missing_field": "an event that lacks what a row needs",
    "bad_value": "an event with a value that cannot be true, such as a list as a title",
}
"""The kinds of lines, with their meaning; each line is of one kind."""

DAMAGED_LINES = ("too_long", "not_json", "too_deep", "not_an_event", "missing_field", "bad_value")
"""The kinds of which a dump should hold no lines."""

_TYPES = ("IssuesEvent", "IssueCommentEvent")
_TYPE_NAMES = tuple(f'"{name}"'.encode() for name in _TYPES)
# The first of an event; a pull request has repositories within it, with other fields or plain names.
_REPO = re.compile(
    rb'"repo"\s*:\s*\{\s*"id"\s*:\s*(\d{1,18})\s*,\s*"name"\s*:\s*"([\w.-]{1,100}/[\w.-]{1,100})"'
)
_NAME = re.compile(r"(?a)[\w.-]{1,100}/[\w.-]{1,100}")
_PAGE = re.compile(r"https?://[^/\s]+/[^/\s]+/[^/\s]+/(?:issues|pull)/\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_LARGEST = {"number": 2**30}


class Unusable(Exception):
    """Why a line gives no rows: `kind` is one of `LINES`."""

    def __init__(self, kind: str, reason: str = "") -> None:
        super().__init__(reason or LINES[kind])
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Archived:
    """What an event says: the repository, by its id and the name that it had then, a page of it, and rows."""

    repo_id: int
    name: str
    page: str
    rows: list[RawRow]


def repo_in(line: bytes) -> tuple[int, str] | None:
    """Return id and name, in lower case, of an event's repository; None if a quick look finds none."""
    found = _REPO.search(line)
    return (int(found[1]), found[2].decode("ascii").lower()) if found else None


def is_other(line: bytes) -> bool:
    """Whether a line is whole and surely of none of our types; decoding it would cost most of all."""
    whole = line.startswith(b"{") and line.rstrip().endswith(b"}") and b'"type"' in line
    return whole and not any(name in line for name in _TYPE_NAMES)


def decode_event(line: bytes) -> Mapping[str, Any]:
    """Return an event of one of our types, whose repository and time can be trusted; else `Unusable`."""
    try:
        event = loads(line.decode(errors="replace"))
    except json.JSONDecodeError as error:
        raise Unusable("not_json", str(error)) from None
    except ValueError as error:
        raise Unusable("too_deep", str(error)) from None
    if not isinstance(event, dict) or "type" not in event:
        raise Unusable("not_an_event")
    if event["type"] not in _TYPES:
        raise Unusable("other_type")
    repo = event.get("repo")
    if not isinstance(repo, dict) or not isinstance(event.get("payload"), dict):
        raise Unusable("not_an_event")
    named = isinstance(repo.get("name"), str) and _NAME.fullmatch(repo["name"])
    if not named or not _is_number(repo.get("id")):
        raise Unusable("bad_value", "repo has no id and name that can be true")
    if not isinstance(event.get("created_at"), str) or not _TIME.fullmatch(event["created_at"]):
        raise Unusable("bad_value", "created_at is no time")
    return event


def rows_of_event(event: Mapping[str, Any]) -> Archived:
    """Return what an event of `decode_event` says, each value checked; else `Unusable`."""
    try:
        found = _rows(event)
        for row in found.rows:
            _check(row)
        if not _PAGE.match(found.page):
            raise ValueError("html_url is no page of an issue")
    except KeyError as error:
        raise Unusable("missing_field", f"without {error}") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(event["payload"].get("issue"), int):
            raise Unusable("not_an_event") from None  # before 2015 the number alone
        raise Unusable("bad_value", str(error)[:200]) from None
    return found


def _rows(event: Mapping[str, Any]) -> Archived:
    payload, created = event["payload"], event["created_at"]
    repo_id = event["repo"]["id"]
    action = payload["action"]
    issue = issue_from_rest(payload["issue"], repo_id)
    rows = list[RawRow]()
    if event["type"] == "IssueCommentEvent":
        comment = comment_from_rest(payload["comment"], repo_id)
        if action == "deleted":
            # An empty row that outlives the text, in any order of the files.
            comment = replace(comment, body="", author=None, updated_at=created)
        rows.append(comment)
    elif action in ("closed", "reopened"):
        actor = login_of(event["actor"])
        issue = replace(issue, closed_by=actor) if action == "closed" else issue
        key = f"archive:{event['id']}"
        rows.append(Event(key, action, repo_id, issue.number, None, None, actor, created))
    elif action == "deleted":
        issue = replace(issue, title="", body="", gone="deleted", updated_at=created)
    return Archived(repo_id, event["repo"]["name"], payload["issue"]["html_url"], [issue, *rows])


def _is_number(value: object) -> bool:
    """Whether it is an id: SQLite holds 64 bits, one of them for the sign."""
    return type(value) is int and 0 < value < 2**63


# Whether a value is right for a field, by the field's type.
_RIGHT: dict[str, Callable[[Any], bool]] = {
    "int": _is_number,
    "int | None": lambda value: value is None or _is_number(value),
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: isinstance(value, str | None),
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": lambda value: all(isinstance(one, str) for one in value),
    "EventKind": lambda value: isinstance(value, str),
}
_FIELDS = {
    record: [(field.name, _RIGHT[str(field.type)]) for field in fields(record)]
    for record in (Issue, Comment, Event)
}


def _check(row: RawRow) -> None:
    """Raise a `ValueError` that names a field whose value the store could not hold, or would mislead."""
    for name, right in _FIELDS[type(row)]:
        value = getattr(row, name)
        if not right(value) or (name in _LARGEST and value >= _LARGEST[name]):
            raise ValueError(f"{name} is {_shown(value)}")
        if name.endswith("_at") and value is not None and not _TIME.fullmatch(value):
            raise ValueError(f"{name} is {_shown(value)}, no time")
    if isinstance(row, Issue) and row.state not in ("open", "closed"):
        raise ValueError(f"state is {_shown(row.state)}")


def _shown(value: object) -> str:
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]
