"""The ledger: everything that was asked for, and what became of it.

`read_ledger` takes it from the store; card, report, terminal and exit code are pure functions of it. Every
listed repository has a line, and so has every issue that GitHub did not show, or not whole.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from angle_data.errors import AngleError, InputError, StoppedError
from angle_data.gis.crawl.rows import Repo
from angle_data.gis.crawl.store import Store
from angle_data.text import counted

DUMP_NOTE = "archive:"
"""What the notes of event dumps begin with in the store."""

_GAPS_SHOWN = 5
# 2024-01-31-7.json.gz: the hour from 7:00 UTC
_HOUR = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d?)\.json")

_TOKEN_FIX = "give the token read access to Issues and Metadata of these repositories, and run again"
OUTCOMES = {
    "read": "read to the end",
    "unfinished": "not read to the end yet",
    "archive": "read from event dumps",
    "empty": "it has no issues",
    "not_asked": "not crawled",
    "not_in_dumps": "the event dumps have nothing of it",
    "not_found": "GitHub does not know it, or the token may not see it",
    "gone": "deleted",
    "issues_disabled": "its issues are disabled",
    "blocked": "GitHub blocks it, for legal reasons or against its terms",
    "no_permission": f"the token lacks a permission: {_TOKEN_FIX}",
    "sso": "its organisation wants single sign-on (SAML): authorise the token for it on GitHub, run again",
    "forbidden": "GitHub refuses it to this token",
    "moved": "what has the name now is another repository, or on another server",
    "rate_limited": "GitHub's limit did not end in time: run the same command later",
    "failing": "GitHub kept failing: run the same command later",
    "refused": "GitHub refused it",
}
"""What can become of a repository, with what it means; an issue is `refused`, or `unfinished` if in part."""

LEFT_OUT = frozenset({"not_found", "gone", "blocked", "issues_disabled"})
"""Outcomes after which nothing of a repository counts, whatever was read before."""

_READ = ("read", "unfinished", "archive")
FOR_THE_USER = ("no_permission", "sso", "forbidden")
"""Outcomes that the user can change."""

FOR_LATER = ("rate_limited", "failing")
"""Outcomes that may be others later."""

# How GitHub puts it; the first that fits.
_OUTCOME_OF = (
    ("sso", re.compile(r"(?i)^403 .*\bSAML\b")),
    ("no_permission", re.compile(r"(?i)^403 .*(not accessible by|granted the required scopes)")),
    ("blocked", re.compile(r"(?i)^451|^403 .*\baccess blocked\b")),
    ("forbidden", re.compile(r"^403")),
    ("issues_disabled", re.compile(r"(?i)^410 .*\bdisabled\b")),
    ("moved", re.compile(r"another (repository|server)")),
    ("not_found", re.compile(r"^404")),
    ("gone", re.compile(r"^410")),
    ("empty", re.compile(r"^no issues")),
    ("rate_limited", re.compile(r"(?i)^stopped: .*rate limit")),
    ("failing", re.compile(r"(?i)keeps failing")),
    ("unfinished", re.compile(r"^stopped: ")),
)


def outcome_of(status: str) -> str:
    """Return what a status of the store (`ok`, `error:...`) means, one of `OUTCOMES`."""
    if not status.startswith("error:"):
        return "read"
    said = status.removeprefix("error:")
    return next((outcome for outcome, words in _OUTCOME_OF if words.search(said)), "refused")


@dataclass(frozen=True, slots=True)
class Listed:
    """One listed repository, and what became of it.

    `asked` is its name in the list, `name` the present one, `outcome` one of `OUTCOMES`, `id` GitHub's number
    if it is known, and `said` what GitHub answered, if it refused. `read` says how far it was read (see
    `Store.standing`), empty if never; `used` whether the data set may hold its issues. `hidden` issues were
    listed and not shown to the token.
    """

    asked: str
    name: str
    outcome: str
    id: int | None = None
    said: str = ""
    read: str = ""
    used: bool = False
    issues: int = 0
    comments: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class CrawlLedger:
    """All lines: repositories in the order of the list, issues (`owner/name#number` to the reason), dumps."""

    repositories: tuple[Listed, ...] = ()
    issues: Mapping[str, str] = field(default_factory=dict)
    dumps: Mapping[str, Any] = field(default_factory=dict)

    def left_out(self) -> dict[str, str]:
        """Return the repositories of which the data set has nothing, with what GitHub said."""
        found = {one.name: one.said or OUTCOMES[one.outcome] for one in self.repositories if not one.used}
        return dict(sorted(found.items()))

    def outdated(self) -> dict[str, str]:
        """Return the repositories that were read once and are refused now, with what GitHub said."""
        return {one.name: one.said for one in self.repositories if one.used and one.said}

    def report(self) -> dict[str, Any]:
        """Return all lines for `report.json`, and how many repositories came to which outcome."""
        outcomes = Counter(one.outcome for one in self.repositories)
        return {
            "outcomes": {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
            "repositories": [asdict(one) for one in self.repositories],
            "issues": dict(self.issues),
            "dumps": dict(self.dumps),
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what the terminal shows: everything but what went well."""
        rows = [("left out", f"{name}: {said}") for name, said in self.left_out().items()]
        rows += [("refused now", f"{name}: {said}") for name, said in self.outdated().items()]
        hidden = ((one.name, one.hidden) for one in self.repositories if one.hidden)
        rows += [("hidden", f"{name}: {counted(count, 'issue')}") for name, count in hidden]
        rows += [("set aside", f"{issue}: {said}") for issue, said in self.issues.items()]
        return [*rows, *dump_rows(self.dumps)]

    def problem(self) -> AngleError | None:
        """Return what a crawl ends with although its data set is built, None if all was read as can be.

        Exit code 1 where the user can do something about it, 75 where the same command may do later.
        """
        for outcomes, kind in ((FOR_THE_USER, InputError), (FOR_LATER, StoppedError)):
            found = [one for one in self.repositories if one.outcome in outcomes]
            if found:
                names = ", ".join(one.asked for one in found[:3]) + (" ..." if len(found) > 3 else "")
                told = counted(len(self.repositories), "repository", "repositories")
                said = f"{len(found)} of {told} could not be read ({names}): {found[0].said}"
                return kind(f"{said}; {OUTCOMES[found[0].outcome]}")
        return None


def read_ledger(store: Store, listed: Sequence[str] | None = None) -> CrawlLedger:
    """Return the ledger of a store, of the `listed` repositories or of all that are in it."""
    failures = store.failures()
    known: dict[str, Repo | None] = {repo.name: store.named(repo.name) for repo in store.repos()}
    known |= dict.fromkeys(failures)
    if listed is not None:
        known = {name: store.named(name) for name in listed}
    dumps = dump_record(store)
    unknown = "not_in_dumps" if dumps and store.meta("server") is None else "not_asked"
    lines: list[Listed] = []
    for name, repo in known.items():
        if repo is not None:
            lines.append(_line(store, name, repo))
        elif name in failures:
            said = failures[name].removeprefix("error:")
            lines.append(Listed(name, name, outcome_of(failures[name]), said=said))
        else:
            lines.append(Listed(name, name, unknown))
    names = {repo.id: repo.name for repo in known.values() if repo}
    lines += _namesakes(store, known)
    aside = [*store.all_set_aside(), *store.refusals()]
    issues = {f"{names[repo]}#{number}": said for repo, number, said in aside if repo in names}
    return CrawlLedger(tuple(lines), issues, dumps)


def _line(store: Store, asked: str, repo: Repo) -> Listed:
    outcome = outcome_of(repo.status)
    read = store.standing(repo)
    if outcome == "read" and not read.startswith("complete"):
        outcome = read
    counts = {table: store.count(table, repo.id) for table in ("issues", "comments")}
    used = outcome not in LEFT_OUT and (outcome in _READ or bool(counts["issues"]))
    said = repo.status.removeprefix("error:") if repo.status != "ok" else ""
    hidden = int(store.meta(f"hidden:{repo.id}") or 0)
    return Listed(asked, repo.name, outcome, repo.id, said, read, used, **counts, hidden=hidden)


def _namesakes(store: Store, known: Mapping[str, Repo | None]) -> list[Listed]:
    """Return the repositories that once had a name of the list that another one has now; they are left out.

    Names are used again. What a thread of one names would lead to the issues of the other.
    """
    holders = {name.lower(): repo for name, repo in known.items() if repo}
    lines: list[Listed] = []
    for repo in store.repos():
        taken = sorted(repo.names & holders.keys())
        if taken and all(repo.id != holder.id for holder in holders.values()):
            now = holders[taken[0]].id
            said = f"{taken[0]} is the name of another repository now (id {now}; this one has id {repo.id})"
            line = _line(store, taken[0], repo)
            lines.append(replace(line, outcome="moved", said=said, used=False))
    return lines


def dump_record(store: Store) -> dict[str, Any]:
    """Return which event dumps a store was read from; empty if none.

    How many `files` and `lines` of each kind, `damaged` files with the reason, and the `hours` (see
    `hours_of`). A damaged file that was read whole later does not count.
    """
    notes = [json.loads(value) for _, value in store.metas(DUMP_NOTE) if value.startswith("{")]
    whole = {name for note in notes if not note["damage"] for name in note["names"]}
    notes = [note for note in notes if not note["damage"] or not whole.issuperset(note["names"])]
    if not notes:
        return {}
    lines = Counter[str]()
    for note in notes:
        lines.update(note["lines"])
    names = [name for note in notes for name in note["names"]]
    damaged = {name: note["damage"] for note in notes if note["damage"] for name in note["names"]}
    return {
        "files": len(names),
        "lines": dict(sorted(lines.items())),
        "damaged": dict(sorted(damaged.items())),
        "hours": hours_of(names),
    }


def dump_rows(dumps: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the terminal and the card show of a `dump_record`."""
    if not dumps:
        return []
    rows = [("event dumps", f"{dumps['files']:,}")]
    rows += [(f"lines, {kind.replace('_', ' ')}", f"{count:,}") for kind, count in dumps["lines"].items()]
    rows += [("damaged", f"{name}: {why}") for name, why in dumps["damaged"].items()]
    if missing := dumps["hours"].get("missing"):
        rows.append(("hours missing", f"{missing:,}: {shown_gaps(dumps['hours'])}"))
    return rows


def shown_gaps(hours: Mapping[str, Any]) -> str:
    """Return the first missing hours of `hours_of`, in one line."""
    gaps = hours.get("gaps", [])
    return ", ".join(gaps[:_GAPS_SHOWN]) + (" ..." if len(gaps) > _GAPS_SHOWN else "")


def hours_of(names: Collection[str]) -> dict[str, int | str | list[str]]:
    """Return which hours files are of, by their names: `first`, `last`, how many are `present` and `missing`.

    `gaps` are the missing ones, such as `2024-01-31-7` or, for several in a row, `2024-01-31-7 to
    2024-02-01-2`. Empty if no name tells an hour.
    """
    present = sorted({hour for name in names if (hour := _hour(name))})
    if not present:
        return {}
    gaps: list[str] = []
    missing = 0
    for one, next_one in pairwise(present):
        between = int((next_one - one) / timedelta(hours=1)) - 1
        if between:
            ends = dict.fromkeys((_named(one + timedelta(hours=1)), _named(next_one - timedelta(hours=1))))
            gaps.append(" to ".join(ends))
            missing += between
    first, last = _named(present[0]), _named(present[-1])
    return {"first": first, "last": last, "present": len(present), "missing": missing, "gaps": gaps}


def _hour(name: str) -> datetime | None:
    found = _HOUR.search(name)
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]:0>2}:00") if found else None
    except ValueError:  # such as hour 31
        return None


def _named(hour: datetime) -> str:
    """The name that GH Archive gives to an hour."""
    return f"{hour:%Y-%m-%d}-{hour.hour}"
