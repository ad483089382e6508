"""The options of `gis`, and what part of GitHub counts: repositories, issues of which days, marks or words.

The build leaves out what lies outside a `Selection`, so that a folder that holds more gives the same data set
as one that was crawled for it alone.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from angle_data.calling.options import check_values, option, paths_option
from angle_data.errors import InputError
from angle_data.jsonl import read_lines
from angle_data.splits import check_ratios, parse_ratios

PUBLIC_API = "https://api.github.com"
"""The REST address of GitHub itself."""

API_HELP = "REST API URL; for GitHub Enterprise: https://HOST/api/v3."
TOKEN_HELP = "Environment variable with the token."
LIMIT_HELP = "Stop after this many requests; rerun the same command to resume."
SPLIT_BY = ("cluster", "time", "repo")

# https://github.com/owner/name[.git][/issues/…], or the bare owner/name.
_REPO = re.compile(
    r"(?ia)(?:https?://(?:[^@/]*@)?(?:www\.)?(?P<host>[^/:]+)(?::\d+)?/)?"
    r"(?P<name>[a-z0-9](?:[a-z0-9_-]*[a-z0-9_])?/[a-z0-9._-]{1,100}?)(?:\.git)?"
    r"(?P<below>/[^?#]*)?(?:[?#].*)?"
)
_SECRET = re.compile(r"//[^@/\s]*@")
_HOSTS = frozenset({"github.com"})

log = logging.getLogger("angle")


def site_of_api(api_url: str) -> str:
    """Return the site of the pages that belong to the address of an API: without `api.` and path."""
    parts = urlsplit(api_url.lower())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"--api-url {api_url} is no address; for GitHub Enterprise: https://HOST/api/v3")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].removeprefix('api.')}"


def parse_repo(text: str, hosts: frozenset[str] = _HOSTS) -> str | None:
    """Return `owner/name` of a name or of an address on one of `hosts`, None if it is neither."""
    found = _REPO.fullmatch(text)
    if found is None or found["name"].endswith(("/.", "/..", "/.git")):
        return None
    if found["host"] is None:
        return None if (found["below"] or "").strip("/") else found["name"]
    return found["name"] if found["host"].lower() in hosts else None


def read_repos(path: Path, api_url: str = "") -> tuple[str, ...]:
    """Return the names in a list, once each in any case; a `#` after nothing or a space opens a comment.

    An address must lie on github.com or on the host of `api_url`. Lines that name no repository are left
    out with a warning; an `InputError` if all are.
    """
    host = (urlsplit(api_url).hostname or "").lower()
    hosts = _HOSTS | {host, host.removeprefix("api.")}
    names: dict[str, str] = {}
    bad: list[str] = []
    for number, line in read_lines(path):
        text = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        name = parse_repo(text, hosts)
        if name is not None:
            names.setdefault(name.lower(), name)
        elif text:
            bad.append(f"{path}:{number}: {_SECRET.sub('//***@', text)!r} is not a repository")
    if not names:
        said = bad[0] if bad else f"{path} lists no repository"
        raise InputError(f"{said}; write one owner/name or GitHub URL per line")
    for said in bad:
        log.warning("%s; skipped", said)
    return tuple(names.values())


@dataclass(frozen=True, slots=True)
class Selection:
    """Which issues and statements count; checks itself.

    `repos` are names as they stand in the list (None: all that were crawled). `since` and `until` are days
    (`2024-01-31`, UTC, both included) on which an issue was opened.
    """

    repos: tuple[str, ...] | None = None
    since: str | None = None
    until: str | None = None
    strategy: str = "both"

    def __post_init__(self) -> None:
        if self.strategy not in ("events", "comments", "both"):
            raise InputError(f"--strategy must be events, comments or both, got {self.strategy!r}")
        for flag, value in (("--since", self.since), ("--until", self.until)):
            with suppress(ValueError):
                if value is None or date.fromisoformat(value).isoformat() == value:
                    continue
            raise InputError(f"{flag} {value!r} is not a date; write it as 2024-01-31")
        if self.since and self.until and self.until < self.since:
            raise InputError(f"--until {self.until} is before --since {self.since}; swap them")

    def holds(self, created_at: str) -> bool:
        """Whether an issue opened at this time counts; one of which the time is unknown does."""
        day = created_at[:10]
        return not day or ((self.since or "") <= day and (self.until is None or day <= self.until))


@dataclass(frozen=True)
class GisConfig:
    """All options of `gis`, those of the crawl first; the help of each field says what it means.

    Checks itself. An issue opened since a day was updated since then, which is what the crawl goes by.
    """

    out: Path = option(  # noqa: RUF009
        "Output folder for crawl.sqlite, dataset/, audit/ and report.json.", shown="runs/ and the list's name"
    )
    repos: Path | None = option(  # noqa: RUF009
        "File of repositories, one owner/name or GitHub URL per line.", None
    )
    strategy: str = option(
        "events: marks made with GitHub's own button. comments: what people write. both.", "both"
    )
    api_url: str = option(API_HELP, PUBLIC_API)
    token_env: str = option(TOKEN_HELP, "GITHUB_TOKEN")
    since: str | None = option(
        "Use only issues opened on or after this day, such as 2024-01-31; the crawl skips issues not updated "
        "since.",
        None,
    )
    until: str | None = option(
        "Use only issues opened on or before this day, whenever they were marked.", None
    )
    max_requests: int | None = option(LIMIT_HELP, None)
    archives: tuple[Path, ...] = paths_option(
        "Event dump (GH Archive, .json or .json.gz), or a folder of them, to read instead of the API. "
        "Repeatable.",
        (),
        flag="archive",
        metavar="PATH",
    )
    dry_run: bool = option("Say about how many requests a crawl takes, and stop.", False)
    no_crawl: bool = option("Build from an earlier crawl.", False)
    seed: int = option("Random seed for negatives, splits and order.", 0)
    negatives: float = option("Negative pairs per positive pair.", 1.0)
    split_by: str = option(
        "cluster, repo or time; with time, pairs that cross a split boundary are left out.", "cluster"
    )
    ratios: tuple[float, ...] = option(
        "Shares of train, validation and test.",
        (0.86, 0.07, 0.07),
        read=parse_ratios,
    )
    max_pairs_per_cluster: int = option("Maximum positive pairs per cluster.", 10, ge=1)
    cross_repo: bool = option("Allow duplicates across two repositories.", False)
    ids_only: bool = option("Leave out the texts; gis rehydrate fetches them again.", False)
    tokenizer: str | None = option(
        "Tokenizer for length statistics: tokenizer.json, its folder, a hub name, or estimate.",
        None,
        shown="bert-base-uncased with the train extra, else an estimate",
    )

    def __post_init__(self) -> None:
        if self.dry_run and self.archives:
            raise InputError("--dry-run estimates requests and --archive sends none; give only one of them")
        Selection(None, self.since, self.until, self.strategy)
        if self.split_by not in SPLIT_BY:
            raise InputError(f"--split-by must be one of {', '.join(SPLIT_BY)}, got {self.split_by!r}")
        if not 0 <= self.negatives <= 100:
            raise InputError(f"--negatives must be between 0 and 100, got {self.negatives:g}")
        check_values(self)
        check_ratios(self.ratios)

    @property
    def start(self) -> str | None:
        """`since` as a time stamp."""
        return f"{self.since}T00:00:00Z" if self.since else None

    @cached_property
    def listed(self) -> tuple[str, ...] | None:
        """The repositories in the list, None without one; read once, since the list may be a pipe."""
        return None if self.repos is None else read_repos(self.repos, self.api_url)

    def names(self) -> tuple[str, ...]:
        """Return the listed repositories to crawl; an `InputError` without a list and an archive."""
        if self.repos is None and not self.archives:
            raise InputError("give --repos, a list of repositories (or --archive, event dumps)")
        return self.listed or ()

    def selection(self) -> Selection:
        """Return what of the store counts."""
        return Selection(self.listed, self.since, self.until, self.strategy)
