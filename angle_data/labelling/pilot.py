"""`llm-label --pilot N`: asks about a sample of the texts and forecasts the whole file from what it measured.

The sample is drawn by hash from all over the file, so a larger one holds the smaller. It is part of the run:
same journal, same requests, and the command without --pilot asks only the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from angle_data.console import duration
from angle_data.labelling.asking.forecast import plan_all
from angle_data.labelling.asking.session import SessionResult
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import LabelJob, label
from angle_data.records import read_candidates
from angle_data.text import stable_hash

_SHOWN = 10
_UNKNOWN: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True, slots=True)
class PilotResult:
    """What a pilot measured.

    `measured` has for each name what was taken or given so far and what all texts will come to; None where it
    is not known, as the tokens of recorded replies. `useful` is the share of what was asked for that is of
    use, and `error` half of its interval of 95 %. `pairs` are some (polarity or degree, source, sentence).
    """

    session: SessionResult
    measured: dict[str, tuple[float | None, float | None]]
    useful: float
    error: float
    pairs: list[tuple[str, str, str]]

    @property
    def counts(self) -> dict[str, Any]:
        """Return the counts of the run folder, with the forecast under `pilot`."""
        table = {name: {"pilot": part, "all": whole} for name, (part, whole) in self.measured.items()}
        known = {"measured": table, "useful": self.useful, "error": self.error, "pairs": self.pairs}
        return {**self.session.counts, "pilot": known}

    def __str__(self) -> str:
        """Show it to people."""
        width = max(map(len, self.measured))
        lines = [f"{'':<{width}} {'pilot':>12} {'all texts':>12}"]
        for name, values in self.measured.items():
            shown = (_shown(name, value) for value in values)
            lines.append(f"{name:<{width}} {' '.join(f'{value:>12}' for value in shown)}")
        lines.append(f"of use: {100 * self.useful:.0f} % (± {100 * self.error:.0f}) of what was asked for\n")
        lines += [f"{polarity}: {source}\n      -> {text}" for polarity, source, text in self.pairs]
        lines.append("\nthe same command without --pilot asks the rest, and nothing twice")
        return "\n".join([*lines, f"{self.session.model} -> {self.session.run}"])


def pilot(config: LabelConfig) -> PilotResult:
    """Ask about `config.pilot` texts, as `label` does, and forecast all of them from the run folder.

    Raises:
        AngleError, KeyboardInterrupt: As of `label`.
    """
    session = label(config)
    job = LabelJob(replace(config, pilot=None))
    plan = plan_all(job)
    counts = session.counts
    answered = max(counts["replied"] + counts["refused"], 1)
    grown = (answered + plan.to_ask) / answered
    tokens = usd = _UNKNOWN
    if plan.spent_tokens:  # recorded replies do not say what they took
        tokens = plan.spent_tokens, plan.spent_tokens + plan.prompt_tokens + plan.completion_tokens
        if plan.usd is not None and plan.spent_usd is not None:
            usd = plan.spent_usd, plan.spent_usd + plan.usd
    each = session.seconds / counts["asked"] if counts["asked"] else None
    given = {"sentences kept": counts["kept"]}
    given |= {f"rejected: {reason}": count for reason, count in counts["rejected"].items()}
    useful = counts["kept"] / max(job.asked_for(counts), 1)
    return PilotResult(
        session,
        {
            "requests": (answered, answered + plan.to_ask),
            "tokens": tokens,
            "USD": usd,
            **({} if each is None else {"time": (session.seconds, session.seconds + each * plan.to_ask)}),
            **{name: (count, round(count * grown)) for name, count in given.items()},
        },
        useful,
        1.96 * math.sqrt(max(useful * (1 - useful), 0.0) / answered),
        _pairs(config.out),
    )


def _pairs(run: Path) -> list[tuple[str, str, str]]:
    """Return some candidates, drawn by hash, with at most one of each source and polarity or degree."""
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    for one in read_candidates(run):
        kind = one.polarity or f"degree {one.degree}"
        found.setdefault((one.source_id, kind), (kind, one.source, one.text))
    return sorted(found.values(), key=lambda pair: stable_hash("\n".join(pair)))[:_SHOWN]


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if name == "time":
        return duration(value)
    return f"{value:,.4f}" if name == "USD" else f"{value:,.0f}"
