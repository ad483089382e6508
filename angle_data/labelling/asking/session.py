"""One session of asking: every open request of a run folder is asked once, and its files are written.

A command brings a `Job` (see `job`). The session brings the journal, the limits, the interrupt and run.json.
`ask_all` asks.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.annotators.base import NOT_RECORDED, Annotator, Failure
from angle_data.annotators.choice import load_annotator
from angle_data.annotators.models import is_reasoning, price_of
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import AngleError, AnnotatorError, CredentialsError, MissingExtraError, StoppedError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.asking.budget import Ledger, Spending
from angle_data.labelling.asking.collect import Collector
from angle_data.labelling.asking.job import Job
from angle_data.labelling.asking.journal import Journal, open_journal
from angle_data.labelling.asking.runfile import begin_run, read_run, warn_of_changes, write_run
from angle_data.text import counted

log = logging.getLogger("angle.labelling")


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What a finished session did.

    `counts` is the section of the same name in run.json, with the `tokens` and `usd` that are `spent`: what
    the run folder took in all its sessions. `seconds` is the time of the asking.
    """

    run: Path
    model: str
    counts: dict[str, Any]
    spent: Spending
    seconds: float = 0.0

    def __str__(self) -> str:
        """Show it to people, without needless zeros."""
        counts = {name: count for name, count in self.counts.items() if name not in ("tokens", "usd")}
        failed, rejected = counts.pop("failed"), counts.pop("rejected")
        degrees = counts.pop("degrees", {})
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
        if self.spent.tokens.total:  # recorded replies do not say what they took
            lines.append(f"spent in all: {self.spent}")
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
                error = error if isinstance(error, AngleError) else _stopped(collector, journal, ledger)
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
    spent = ledger.spending(paid=spec.paid)
    return SessionResult(job.run, spec.model, counts | spent.counts(), spent, seconds)


def _stopped(collector: Collector, journal: Journal, ledger: Ledger) -> BaseException:
    """Return the error of a session that the user or useless replies have ended."""
    if not collector.hopeless:
        return KeyboardInterrupt(
            "all is kept, the same command goes on" if len(journal) else "no reply has come yet"
        )
    return StoppedError(
        f"stopped after {collector.hopeless}; {ledger.spent_so_far()} in all, what was kept stays; choose "
        "another model or prompt, or give --max-useless 0 with the same command to go on all the same"
    )


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
    see = f"see {job.run / 'rejected.jsonl'}, then {advice}"
    then = f"most: {most}); {see}" if most else f"the rest is missing); {advice}"
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
