"""What a service says about its limits in the x-ratelimit-* headers of its answers.

See https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers". Services differ in the span
that a limit is about, so what is left and when all of it is back count for more here than the limit itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PART = re.compile(r"([0-9]*\.?[0-9]+)(ms|us|µs|ns|d|h|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PER_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much of one kind is left, how many a second come back, and in how many seconds all are back."""

    remaining: float
    per_s: float
    reset_s: float


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as `1s`, `6m0s`, `20ms` or a plain number; None if it is none."""
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            return None
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return seconds if 0.0 <= seconds < float("inf") else None


def read_allowance(headers: Mapping[str, str], kind: str) -> Allowance | None:
    """Return the allowance of `kind` (`requests` or `tokens`), None unless all of it is stated.

    The limit is taken to be per minute; `reset_s` is infinite when unknown.
    """
    stated = headers.get(f"x-ratelimit-limit-{kind}")
    if stated is None:
        return None
    try:
        limit = float(stated)
        remaining = float(headers.get(f"x-ratelimit-remaining-{kind}", ""))
    except ValueError:
        return None
    if not (0.0 < limit < float("inf") and 0.0 <= remaining <= limit):
        return None
    reset_s = parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
    return Allowance(remaining, limit / _PER_MINUTE, math.inf if reset_s is None else reset_s)
