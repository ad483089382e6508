"""One session of asking: every open request of a run folder is asked once, and its files are written.

A command brings a `Job`: its requests, and how its files follow from the replies. The session brings the
journal, the limits, the interrupt and run.json. `ask_all` asks; `plan_all` says what it would ask and cost.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from angle_data.annotators.base import Annotator, ChatRequest, Failure, Sampling, Task, request_key
from angle_data.annotators.choice import load_annotator
from angle_data.annotators.models import is_reasoning, price_of
from angle_data.annotators.recorded import NOT_RECORDED
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AngleError, AnnotatorError, CredentialsError, MissingExtraError, StoppedError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.asking.budget import Ledger, guess_tokens, usd_of
from angle_data.labelling.asking.collect import Collector, survey
from angle_data.labelling.asking.journal import Journal, Tokens, open_journal, read_journal, refusal_of
from angle_data.labelling.asking.runfile import begin_run, read_run, warn_of_changes, write_run
from angle_data.text import counted

log = logging.getLogger("angle.labelling")

# Reading rows back takes longer than all else; this many answered requests tell what the others take.
_SAMPLE = 2000


class Job(ABC):
    """What a command brings to a session.

    `command` is its name, `run` its run folder and `spec` who is asked. `total` is about the number of
    requests. `passed_over` counts the rows of the input that are not asked about, by reason. With
    `retry_rejected`, answered requests that `is_rejected` are asked anew. With a `last_rank`, only sources
    with hashes up to it are asked about, and the rest left to another session. With `asks_again`, `requests`
    is called again once all are settled, for what follows from the replies.
    """

    command: str
    run: Path
    spec: AnnotatorSpec
    total: int
    passed_over: dict[str, int]
    retry_rejected: bool
    last_rank: int | None = None
    asks_again: bool = False

    @abstractmethod
    def requests(self, journal: Journal) -> Iterator[ChatRequest]:
        """Yield the requests: lazily, and for the same journal the same in the same order."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the command's own entries of run.json: whatever changes its files, and no secrets.

        Files are `Path`s. The next session reports what has changed.
        """

    @abstractmethod
    def derive(self, journal: Journal) -> dict[str, Any]:
        """Write the command's files and return the counts; called once, also when the session ends early.

        Among the counts are `requests`, `replied`, `kept`, `rejected` (reason -> number), `failed` (kind ->
        number) and `unanswered`.
        """

    @abstractmethod
    def fields(self, request: ChatRequest) -> dict[str, Any]:
        """Return further fields of a journal row, from a request without its messages."""

    @abstractmethod
    def reply_chars(self, request: ChatRequest) -> float:
        """Guess the length of a reply, for limits and forecasts before the first one is known."""

    @abstractmethod
    def is_rejected(self, request: ChatRequest, row: dict[str, Any]) -> bool:
        """Whether the journal row of a request is of no use."""

    def request(
        self, source_id: str, source: str, task: Task, content: str, sampling: Sampling
    ) -> ChatRequest:
        """Return the request with this content, see `ChatRequest`."""
        messages = ({"role": "user", "content": content},)
        key = request_key(self.spec.identity, messages, sampling)
        return ChatRequest(key, source_id, source, task, messages, self.spec.checkpoint, sampling)

    def asked_for(self, counts: Mapping[str, Any]) -> int:
        """Return how much of what `kept` counts was asked for in the answered requests, from all counts."""
        return int(counts["kept"] + sum(counts["rejected"].values()))


@dataclass(slots=True)
class Tally:
    """Counts by name, failures by kind, and rejections by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def count(self, key: str, journal: Journal) -> str:
        """Count a request and what became of it: `replied`, `refused`, `unanswered` or `failed`."""
        self.counts["requests"] += 1
        row, failure = journal.row(key), journal.failures.get(key)
        if failure is not None:
            self.failed[failure.kind] += 1
            return "failed"
        state = "unanswered" if row is None else "replied" if refusal_of(row) is None else "refused"
        self.counts[state] += 1
        return state

    def table(self, *names: str) -> dict[str, Any]:
        """Return some of the counts in this order; `failed` and `rejected` are tables of their own."""
        split = {"failed": dict(sorted(self.failed.items())), "rejected": dict(sorted(self.rejected.items()))}
        return {name: split.get(name, self.counts[name]) for name in names}


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What a finished session did; `counts` is the section of the same name in run.json.

    `seconds` is the time of the asking.
    """

    run: Path
    model: str
    counts: dict[str, Any]
    seconds: float = 0.0

    def __str__(self) -> str:
        """Show it to people, without needless zeros."""
        counts = dict(self.counts)
        failed, rejected, degrees = counts.pop("failed"), counts.pop("rejected"), counts.pop("degrees", {})
        always = ("requests", "asked", "kept")
        shown = {name: count for name, count in counts.items() if count or name in always}
        shown |= {f"failed: {kind}": count for kind, count in failed.items()}
        shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
        lines = [as_table(shown)] + [
            f"degree {name}: {row['kept']:,} kept, word overlap {row['overlap']:.2f}"
            for name, row in degrees.items()
            if name.isdecimal() and row["kept"]
        ]
        if (share := degrees.get("higher_shares_more")) is not None:
            lines.append(f"a 5 or 4 shares more words than a 3 or 2: {share:.0%} (50% tells nothing)")
        return "\n".join([*lines, f"{self.model} -> {self.run}"])


def as_table(rows: Mapping[str, int]) -> str:
    """Return counts under each other, for people."""
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())


def prepare(spec: AnnotatorSpec, *, needed: bool) -> Annotator | None:
    """Return the annotator; one that is not `needed` may lack its key or package, and is None then."""
    try:
        return load_annotator(spec)
    except (CredentialsError, MissingExtraError):
        if needed:
            raise
        return None


def ask_all(job: Job) -> SessionResult:
    """Ask what the journal does not answer, derive the files, write run.json, and say how it ended.

    Raises:
        InputError: The settings, the requests or the journal cannot be used.
        AnnotatorError: The annotator cannot go on, every request failed, or no reply is of any use; replies
            so far are kept.
        StoppedError: A limit was reached, or some requests failed that may be answered later; the same
            command goes on. Requests that the service refuses for good do not count as failed.
        KeyboardInterrupt: The user stopped the session; replies so far are kept.
    """
    spec, price = job.spec, price_of(job.spec)
    earlier = read_run(job)
    # Before a new folder is made: what cannot start leaves nothing behind.
    begun = (job.run / "journal.jsonl").is_file()
    annotator = prepare(spec, needed=not begun)
    with open_journal(job.run, spec.model) as journal:
        ledger = Ledger(journal, price, spec.max_usd, spec.max_tokens_total)
        collector = Collector(job, journal, ledger)
        # With nothing to ask, the files can be derived anew without an API key or the engine's package.
        if collector.has_more() and annotator is None:
            annotator = load_annotator(spec)
        warn_of_changes(job, earlier)
        for why, number in job.passed_over.items():
            if number:
                log.info("%d %s rows skipped", number, why)
        about = "about " * (spec.shard is not None or job.asks_again)
        count = f"{about}{counted(job.total, 'request')}"
        said = "%s (%s): %s, %s replies in the journal"
        log.info(said, spec.model, spec.checkpoint, count, f"{len(journal):,}")
        started = time.monotonic()
        error: BaseException | None = None
        if annotator is not None and collector.has_more():
            begin_run(job, earlier)
            try:
                collector.ask(annotator)
            except (AngleError, KeyboardInterrupt) as stopped:
                error = stopped
            if journal.unwritten:
                raise journal.rescued()
            if collector.stopped or isinstance(error, KeyboardInterrupt):
                kept = "all is kept, the same command goes on" if len(journal) else "no reply has come yet"
                error = error if isinstance(error, AngleError) else KeyboardInterrupt(kept)
        seconds = time.monotonic() - started
        before = _failed_before(job.run) if error is None and journal.failures else frozenset()
        if not isinstance(error, AnnotatorError) and (refused := collector.set_aside(before)):
            said = "%s set aside as refused or failing again and again, most with %s (see rejected.jsonl; "
            said += "--retry-rejected asks again)"
            log.warning(said, counted(len(refused), "request"), _commonest(refused))
        counts = {**job.derive(journal), "asked": collector.asked}
        error = error or _verdict(job, counts, collector, journal, ledger)
        finished = error is None and not counts["unanswered"]
        error = _judge_yield(counts, job, error)
        stopped_by = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error) if error else None
        write_run(job, earlier, ledger, counts, finished=finished, stopped_by=stopped_by)
    if error is not None:
        raise error
    return SessionResult(job.run, spec.model, counts, seconds)


def _verdict(
    job: Job, counts: Mapping[str, Any], collector: Collector, journal: Journal, ledger: Ledger
) -> AngleError | None:
    """Return the error that an uninterrupted session ends with, None when all is done."""
    failures = journal.failures.values()
    left, failed, worst = counts["unanswered"], len(failures), _commonest(failures)
    missing = sum(failure.kind == NOT_RECORDED for failure in failures)
    again = "run the same command again to"
    if collector.limit_reached:
        return StoppedError(
            f"stopped at {ledger}; {left} of {counts['requests']} requests are left; raise the limit and "
            f"{again} go on"
        )
    if failed and failed == collector.asked and (collector.refused_alike or not collector.has_reply):
        recorded = "; check that the file of --replies holds what is asked for" * bool(missing)
        return AnnotatorError(f"every request failed ({failed}), most with {worst}{recorded}")
    if missing:
        log.warning("%s without a recorded reply", counted(missing, "request"))
    if failed > missing:
        most, them = ("", "it") if failed == 1 else ("most ", "them")
        return StoppedError(
            f"{counted(failed, 'request')} failed, {most}with {worst}; {again} ask {them} again"
        )
    if left and job.last_rank is None:
        return StoppedError(f"{counted(left, 'request')} not answered; {again} go on")
    return None


def _judge_yield(counts: Mapping[str, Any], job: Job, error: BaseException | None) -> BaseException | None:
    """Return `error`, or that of a run that has replies but none of use; warn where few are of use."""
    answered, wanted = counts["replied"] + counts.get("refused", 0), job.asked_for(counts)
    if not answered or (counts["kept"] and 100 * counts["kept"] >= job.spec.min_yield * wanted):
        return error
    reasons = Counter(counts["rejected"]).most_common(3)
    most = ", ".join(f"{name} {count:,}" for name, count in reasons)
    advice = "choose another model or prompt" + ", or ask anew with --retry-rejected" * bool(most)
    if most.startswith("truncated"):
        thinks = ", for its reasoning counts, or give --param reasoning_effort=low"
        advice = f"raise --max-tokens (now {job.spec.max_tokens}){thinks * is_reasoning(job.spec.checkpoint)}"
    elif most.startswith(NOT_RECORDED):
        advice = "add the others to the file of --replies"
    then = f"most: {most}); see rejected.jsonl, then {advice}" if most else f"the rest is missing); {advice}"
    if not counts["kept"]:
        said = f"no reply is of use ({counted(answered, 'reply', 'replies')}, {then}"
        return error or AnnotatorError(said)
    share, of = 100 * counts["kept"] / wanted, f"{counts['kept']:,} of {wanted:,}"
    log.warning("only %.0f %% of what was asked for is of use (%s; %s", share, of, then)
    return error


def _failed_before(run: Path) -> frozenset[str]:
    """Return the keys of the requests that failed in the last session, by the rejected.jsonl it left."""
    path = run / "rejected.jsonl"
    if not path.is_file():
        return frozenset()
    return frozenset(row["key"] for _, row in read_jsonl(path) if row.get("reason") == "request_failed")


def _commonest(failures: Iterable[Failure]) -> str:
    counts = Counter(f"{failure.kind}: {failure.message}" for failure in failures)
    return counts.most_common(1)[0][0] if counts else "no message"


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
    passed_over: dict[str, int]

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
        about = ("model", "counted_by", "paid", "usd", "spent_usd")
        lines = [as_table({name: count for name, count in self.counts.items() if name not in about})]
        if self.usd is not None:
            spent = f" ({self.spent_usd:.4f} USD spent so far)" if self.spent_usd else ""
            lines.append(f"about {self.usd:.4f} USD{spent}")
        elif self.paid:
            lines.append(f"cost unknown: no price is listed for {self.model}; give --price IN,OUT")
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
        passed_over=job.passed_over,
    )
