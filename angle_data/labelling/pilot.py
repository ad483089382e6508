"""What a run will take: `--dry-run` forecasts it from the files, `--pilot` from a sample of texts or pairs.

A pilot's sample is drawn by hash from all over the file, so a larger one holds the smaller. It is part of the
run: the command without --pilot asks only the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from angle_data.console import duration
from angle_data.jsonl import read_jsonl
from angle_data.labelling.asking.forecast import SessionPlan, plan_all
from angle_data.labelling.asking.job import Job
from angle_data.labelling.asking.session import SessionResult
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import LabelJob, label
from angle_data.labelling.score import ScoreJob, score
from angle_data.records import read_candidates
from angle_data.text import normalise, stable_hash

_SHOWN = 10  # sentences after a pilot
_MOSTLY = 0.5  # of the sentences that are kept; texts much alike have some answers in common


def plan_label(config: LabelConfig) -> SessionPlan:
    """Forecast what `label` would ask and cost; reads files only. Raises what `plan_all` does."""
    return plan_all(LabelJob(config))


@dataclass(frozen=True, slots=True)
class PilotResult:
    """What a pilot measured.

    `measured` has for each name what was taken or given so far and what all `items` (texts or pairs) will
    come to; None where it is not known, as the tokens of recorded replies. `useful` is the share of what was
    asked for that is of use, and `error` half of its interval of 95 %. `pairs` are some (polarity, degree or
    grade, source, sentence). `distinct` is how many different sentences were kept; None for grades.
    """

    session: SessionResult
    items: str
    measured: dict[str, tuple[float | None, float | None]]
    useful: float
    error: float
    pairs: list[tuple[str, str, str]]
    distinct: int | None = None

    @property
    def counts(self) -> dict[str, Any]:
        """Return the counts of the run folder, with the forecast under `pilot`."""
        table = {name: {"pilot": part, "all": whole} for name, (part, whole) in self.measured.items()}
        known = {"measured": table, "useful": self.useful, "error": self.error, "pairs": self.pairs}
        known |= {} if self.distinct is None else {"distinct": self.distinct}
        return {**self.session.counts, "pilot": known}

    def __str__(self) -> str:
        """Show it to people."""
        width = max(map(len, self.measured))
        lines = [f"{'':<{width}} {'pilot':>12} {'all ' + self.items:>12}"]
        for name, (part, whole) in self.measured.items():
            lines.append(f"{name:<{width}} {_shown(name, part):>12} {_shown(name, whole):>12}")
        lines.append(f"of use: {100 * self.useful:.0f} % (± {100 * self.error:.0f}) of what was asked for")
        kept = self.session.counts["kept"]
        if self.distinct is not None and self.distinct < _MOSTLY * kept:
            lines.append(
                f"but only {self.distinct:,} of the {kept:,} sentences are different: look at the prompt"
            )
        lines.append("")
        lines += [f"{polarity}: {source}\n      -> {text}" for polarity, source, text in self.pairs]
        lines.append("\nwithout --pilot (in a project: angle-data run) the rest is asked, and nothing twice")
        return "\n".join([*lines, f"{self.session.model} -> {self.session.run}"])


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if name == "time":
        return duration(value)
    return f"{value:,.4f}" if name == "USD" else f"{value:,.0f}"


def pilot(config: LabelConfig | ScoreConfig) -> PilotResult:
    """Ask about a sample, as `label` and `score` do, and forecast everything from the run folder."""
    labels = isinstance(config, LabelConfig)
    session = label(config) if isinstance(config, LabelConfig) else score(config)
    whole = replace(config, pilot=None)
    job: Job = LabelJob(whole) if isinstance(whole, LabelConfig) else ScoreJob(whole)
    plan = plan_all(job)
    counts = session.counts
    answered = max(counts["replied"] + counts["refused"], 1)
    first = counts["requests"] - counts["unanswered"] - counts.get("asked_again", 0)
    again = answered / max(first, 1) if job.asks_again else 1.0  # requests for each one that is forecast
    to_ask = round(plan.to_ask * again)
    measured: dict[str, tuple[float | None, float | None]] = {
        "requests": (answered, answered + to_ask),
        "tokens": (None, None),
        "USD": (None, None),
    }
    if plan.spent_tokens:  # recorded replies do not say what they took
        left = (plan.prompt_tokens + plan.completion_tokens) * again
        measured["tokens"] = plan.spent_tokens, plan.spent_tokens + left
        if plan.usd is not None and plan.spent_usd is not None:
            measured["USD"] = plan.spent_usd, plan.spent_usd + plan.usd * again
    if counts["asked"]:
        each = session.seconds / counts["asked"]
        measured["time"] = session.seconds, session.seconds + each * to_ask
    given = {"sentences kept" if labels else "grades kept": counts["kept"]}
    given |= {f"rejected: {reason}": count for reason, count in counts["rejected"].items()}
    grown = (answered + to_ask) / answered
    measured |= {name: (count, round(count * grown)) for name, count in given.items()}
    useful = counts["kept"] / max(job.asked_for(counts), 1)
    error = 1.96 * math.sqrt(max(useful * (1 - useful), 0.0) / answered)
    shown = _sentences if labels else _grades
    kept = shown(config.out) if counts["kept"] else ()
    pairs = sorted(kept, key=lambda pair: stable_hash("\n".join(pair)))[:_SHOWN]
    found = read_candidates(config.out) if labels and counts["kept"] else ()
    distinct = len({normalise(one.text) for one in found}) if labels else None
    return PilotResult(session, "texts" if labels else "pairs", measured, useful, error, pairs, distinct)


def _sentences(run: Path) -> Iterable[tuple[str, str, str]]:
    """Return candidates of a run, at most one of each source and polarity or degree."""
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    for one in read_candidates(run):
        kind = one.polarity or f"degree {one.degree}"
        found.setdefault((one.source_id, kind), (kind, one.source, one.text))
    return found.values()


def _grades(run: Path) -> Iterable[tuple[str, str, str]]:
    """Return the graded pairs of a run."""
    rows = (row for _, row in read_jsonl(run / "scores.jsonl"))
    return [(f"grade {row['score']:g}", row["text1"], row["text2"]) for row in rows]
