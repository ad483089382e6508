"""What part of a crawl counts: which repositories, issues of which days, and words or marks.

The build leaves out what lies outside, so that a folder that holds more gives the same data set as one that
was crawled for it alone. Knows options, not rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from angle_data.errors import InputError

Strategy = Literal["events", "comments", "both"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which issues and statements count; checks itself.

    `repos` are names as they stand in the list (None: all that were crawled). `since` and `until` are days
    (`2024-01-31`, UTC, both included) on which an issue was opened. `strategy` is whether GitHub's marks
    (`events`), what people write (`comments`), or `both` say that issues are duplicates.
    """

    repos: tuple[str, ...] | None = None
    since: str | None = None
    until: str | None = None
    strategy: Strategy = "both"

    def __post_init__(self) -> None:
        if self.strategy not in ("events", "comments", "both"):
            raise InputError(f"--strategy must be events, comments or both, got {self.strategy!r}")
        for option, value in (("--since", self.since), ("--until", self.until)):
            _check_date(option, value)
        if self.since and self.until and self.until < self.since:
            raise InputError(f"--until {self.until} lies before --since {self.since}; swap them")

    def holds(self, created_at: str) -> bool:
        """Whether an issue opened at this time counts; one of which the time is unknown does."""
        day = created_at[:10]
        return not day or ((self.since or "") <= day and (self.until is None or day <= self.until))


def _check_date(option: str, value: str | None) -> None:
    if value is None:
        return
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        raise InputError(f"{option} {value!r} is no date; write it as 2024-01-31") from None
