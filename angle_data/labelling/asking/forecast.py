"""What a session would ask and cost: `--dry-run`. Reads files only, sends nothing."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

from angle_data.annotators.models import price_of, said_of_service
from angle_data.errors import CredentialsError
from angle_data.labelling.asking.budget import guess_tokens, usd_of
from angle_data.labelling.asking.collect import survey
from angle_data.labelling.asking.job import Job
from angle_data.labelling.asking.journal import Tokens, read_journal
from angle_data.labelling.asking.runfile import read_run
from angle_data.labelling.asking.session import as_table, prepare
from angle_data.text import counted

log = logging.getLogger("angle.labelling")

# Reading rows back takes longer than all else; this many answered requests tell what the others take.
_SAMPLE = 2000


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a session would do: its requests, how many of them the journal answers, and what the rest takes.

    `shared` counts requests that equal another one that is asked: one reply serves them all. `counted_by`
    names the source of the token counts. `most_again` bounds the further requests about what the first leave
    open. `usd` is None when no price is known or the model is not `paid`.
    `spent_tokens` and `spent_usd` are what the journal took so far. `passed_over` counts the rows of the
    input that are not asked about, by reason. `where` says in words where texts go; nothing if nowhere.
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
    most_again: int
    passed_over: dict[str, int]
    where: str = ""

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
        about = ("model", "counted_by", "paid", "usd", "spent_usd", "most_again", "where")
        lines = [self.where] if self.where else []
        lines.append(as_table({name: count for name, count in self.counts.items() if name not in about}))
        if self.usd is not None:
            spent = f" ({self.spent_usd:.4f} USD spent so far)" if self.spent_usd else ""
            lines.append(f"about {self.usd:.4f} USD{spent}")
        elif self.paid:
            lines.append(f"cost unknown: no price is listed for {self.model}; give --price IN,OUT")
        if self.most_again:
            more = counted(self.most_again, "further request")
            lines.append(
                f"at most {more} where replies leave pairs without a grade, costing at most as much again"
            )
        return "\n".join([*lines, f"source of the token counts: {self.counted_by}"])


def plan_all(job: Job) -> SessionPlan:
    """Forecast what `ask_all` would do with this job; reads files only.

    Tokens are those that the service reported for this run folder so far, or else guessed from the length.
    Equal requests are asked and counted once. What the asking would refuse is refused, but a missing API key.

    Raises:
        InputError: The settings, the requests or the journal cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
    """
    spec, price = job.spec, price_of(job.spec)
    read_run(job)
    requests = to_ask = shared = known = 0
    guess = known_guess = known_tokens = Tokens()
    anew = set[str]()
    with read_journal(job.run, spec.model) as journal:
        for request, is_open in survey(job, journal, anew):
            requests += 1
            if is_open:
                to_ask += 1
                guess += guess_tokens(request, job.reply_chars(request))
            elif request.key in anew or request.key not in journal:
                shared += 1
            row = journal.row(request.key) if known < _SAMPLE else None
            usage = (row or {}).get("usage") or {}
            if usage.get("prompt_tokens") and "completion_tokens" in usage and not usage.get("estimated"):
                known += 1
                known_guess += guess_tokens(request, 0)
                known_tokens += Tokens(usage["prompt_tokens"], usage["completion_tokens"])
        spent = journal.spent
    try:
        prepare(spec, needed=to_ask > 0)
    except CredentialsError as error:
        log.warning("the run itself will end with: %s", error)
    prompt, completion = round(guess.prompt), round(guess.completion)
    if known:
        prompt = round(guess.prompt * known_tokens.prompt / known_guess.prompt)
        completion = round(to_ask * known_tokens.completion / known)
    return SessionPlan(
        model=spec.checkpoint,
        requests=requests,
        from_journal=requests - to_ask - shared,
        shared=shared,
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=usd_of(price, Tokens(prompt, completion)),
        counted_by="the service's own counts in the journal" if known else "an estimate by characters",
        spent_tokens=spent.total,
        spent_usd=usd_of(price, spent),
        paid=spec.paid,
        most_again=job.most_again,
        passed_over=job.passed_over,
        where=said_of_service(spec) if spec.paid else "",
    )
