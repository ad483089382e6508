"""The `--dry-run` of the commands: what a session would ask and cost. Sends nothing."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field
from typing import Any

from angle_data.annotators.models import price_of
from angle_data.errors import CredentialsError
from angle_data.labelling.asking.budget import NO_TOKENS, guess_tokens, prompt_tokens
from angle_data.labelling.asking.journal import Journal, Tokens, read_journal
from angle_data.labelling.asking.runfile import RunFile
from angle_data.labelling.asking.session import Job, as_table, prepare

log = logging.getLogger("angle.labelling")

# Reading rows back takes longer than all else; this many answered requests tell what the others take.
_SAMPLE = 2000


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a session would do: its requests, how many of them the journal answers, and what the rest takes.

    `shared` counts requests that equal another one that is asked: one reply serves them all. `counted_by`
    names the source of the token counts. `usd` is None when no price is known or the model is not `paid`.
    `spent_tokens` and `spent_usd` are what the journal took so far. `passed_over` counts the rows of the
    input that are not asked about, by reason.
    """

    model: str
    requests: int
    from_journal: int
    shared: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    counted_by: str
    spent_tokens: float
    spent_usd: float | None
    paid: bool
    passed_over: dict[str, int] = field(default_factory=dict)

    @property
    def to_ask(self) -> int:
        """Return how many requests are left."""
        return self.requests - self.from_journal - self.shared

    @property
    def counts(self) -> dict[str, Any]:
        """Return all of it as one table."""
        counts: dict[str, Any] = {**asdict(self), "to_ask": self.to_ask}
        counts.update(counts.pop("passed_over"))
        return counts

    def __str__(self) -> str:
        """Show it to people."""
        about = {"model", "counted_by", "paid", "usd", "spent_usd"}
        lines = [as_table({name: count for name, count in self.counts.items() if name not in about})]
        if self.usd is not None:
            spent = f" ({self.spent_usd:.4f} USD spent so far)" if self.spent_usd else ""
            lines.append(f"about {self.usd:.4f} USD{spent}")
        elif self.paid:
            lines.append(f"cost unknown: no price is listed for {self.model}; give --price IN,OUT")
        return "\n".join([*lines, f"source of the token counts: {self.counted_by}"])


@dataclass(slots=True)
class _Survey:
    """One reading of the requests: what is open, and what some answered ones took beside what was guessed."""

    requests: int = 0
    shared: int = 0
    open: int = 0
    guessed: Tokens = NO_TOKENS
    known: int = 0
    known_guess: float = 0.0
    known_tokens: Tokens = NO_TOKENS


def plan_all(job: Job) -> SessionPlan:
    """Forecast what `ask_all` would do with this job; reads files only.

    Tokens are those that the service reported for this run folder so far, or else guessed from the length.
    Equal requests are asked once, and counted once. What the asking would refuse is refused here, but for a
    missing API key.

    Raises:
        InputError: The settings, the requests or the journal cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
    """
    spec = job.spec
    price = price_of(spec)
    RunFile(job).check()
    with read_journal(job.run, spec.name) as journal:
        found = _read(job, journal)
        spent = journal.spent
    try:
        prepare(spec, needed=found.open > 0)
    except CredentialsError as error:
        log.warning("the run itself will end with: %s", error)
    prompt, completion = round(found.guessed.prompt), round(found.guessed.completion)
    source = "an estimate by characters"
    if found.known:
        source = "the service's own counts in the journal"
        prompt = round(found.guessed.prompt * found.known_tokens.prompt / found.known_guess)
        completion = round(found.open * found.known_tokens.completion / found.known)
    return SessionPlan(
        model=spec.checkpoint,
        requests=found.requests,
        from_journal=found.requests - found.open - found.shared,
        shared=found.shared,
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=None if price is None else price.of(prompt, completion),
        counted_by=source,
        spent_tokens=spent.total,
        spent_usd=None if price is None else price.of(spent.prompt, spent.completion),
        paid=spec.paid,
        passed_over=dict(job.passed_over),
    )


def _read(job: Job, journal: Journal) -> _Survey:
    found, rejected = _Survey(), set[str]()
    for request in filter(job.asks, job.requests(journal)):
        found.requests += 1
        if not journal.claim(request.key):
            row = journal.row(request.key) if job.retry_rejected or found.known < _SAMPLE else None
            usage = (row or {}).get("usage") or {}
            if usage.get("prompt_tokens") and "completion_tokens" in usage and not usage.get("estimated"):
                found.known += 1
                found.known_guess += prompt_tokens(request)
                found.known_tokens += Tokens(usage["prompt_tokens"], usage["completion_tokens"])
            anew = row is not None and job.retry_rejected and job.is_rejected(request, row)
            if not anew or request.key in rejected:
                found.shared += anew or request.key not in journal
                continue
            rejected.add(request.key)
        found.open += 1
        found.guessed += guess_tokens(request, job.reply_chars(request))
    return found
