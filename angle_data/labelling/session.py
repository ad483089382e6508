"""One session of asking: every open request of a run folder is asked once, and what came of it is written.

Shared by the commands that ask a language model. A command brings its requests and a function that derives
its files from the replies; the session brings the journal, the limits, the interrupt and run.json::

    def requests() -> Iterator[ChatRequest]:
        ...  # the same requests, in the same order, on every call

    def derive(answers: Answers) -> dict[str, Any]:
        ...  # writes the command's files, returns the counts

    result = ask_all(requests, engine, run, command="llm-score", settings={...}, derive=derive)

Knows nothing about prompts, texts or parsing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angle_data.annotators import AnnotatorSpec, load_annotator
from angle_data.annotators.base import ChatRequest, Failure
from angle_data.annotators.batch_state import open_requests
from angle_data.annotators.recorded import NOT_RECORDED
from angle_data.annotators.unused_options import unused_options
from angle_data.errors import AngleError, AnnotatorError, StoppedError
from angle_data.labelling.answers import Answers
from angle_data.labelling.collect import Collector, Rejected
from angle_data.labelling.engine import EngineConfig, model_identity
from angle_data.labelling.journal import open_journal
from angle_data.labelling.ledger import Ledger
from angle_data.labelling.runfile import RunFile
from angle_data.labelling.tokens import guess_tokens
from angle_data.text import counted

log = logging.getLogger("angle.labelling")

Requests = Callable[[], Iterator[ChatRequest]]


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What a finished session did; `counts` is the section of the same name in run.json."""

    run: Path
    model: str
    counts: dict[str, Any]


def ask_all(
    requests: Requests,
    engine: EngineConfig,
    run: Path,
    *,
    command: str,
    settings: Mapping[str, Any],
    derive: Callable[[Answers], dict[str, Any]],
    fields: Callable[[ChatRequest], dict[str, Any]] = lambda request: {"task": request.task},
    reply_chars: Callable[[ChatRequest], float] = lambda request: len(request.source),
    rejected: Rejected | None = None,
    total: int | None = None,
    advice: str = "choose another model or prompt",
) -> SessionResult:
    """Ask what the journal of `run` does not answer, derive, write run.json, and say how it ended.

    `requests` is called several times and must yield the same each time; it is read lazily. Their keys come
    from `angle_data.annotators.base.KeyMaker(model_identity(spec), sampling)`, with `spec =
    engine.spec(run)`. `settings` are the command's own entries of run.json: whatever changes the result,
    files as `Path`, no secrets; a change since the last run is reported. `derive` is called once, also when
    the session ends early, and returns at least the counts `requests`, `replied`, `kept`, `rejected` (reason
    -> number), `failed` (kind -> number) and `unanswered`. `fields` gives further fields of a journal row.
    `reply_chars` guesses the length of a reply, for limits before the first reply. `rejected` says of a
    request and its journal rows whether to ask it anew, with the next sample (see `resample`); None never
    does. `total` is the number of requests, if known, for the progress display; with a shard, about as many.
    `advice` is what to do about a run without a useful reply.

    Raises:
        InputError: The settings, the requests or the journal cannot be used.
        AnnotatorError: The annotator cannot go on, every request failed, or no reply is of any use; replies
            so far are kept.
        StoppedError: A limit was reached, or some requests failed that may be answered later; the same
            command goes on. What the service refuses for good while it answers others is no reason.
        KeyboardInterrupt: The user stopped the session; replies so far are kept.
    """
    spec = engine.spec(run)
    if in_vain := unused_options(spec, engine):
        log.warning(in_vain)
    price = engine.price(spec)
    runfile = RunFile(run, command, spec)
    runfile.check()
    started = time.monotonic()
    with open_journal(run, spec.name) as journal:
        runfile.warn_of_changes(settings, engine)
        about = "" if engine.shard is None else "about "  # a hash decides whose a text is
        count = "requests as they come" if total is None else f"{about}{counted(total, 'request')}"
        log.info(
            "%s (%s): %s, %s replies in the journal", spec.name, spec.checkpoint, count, f"{len(journal):,}"
        )
        ledger = Ledger(journal.spent, price, engine.max_usd, engine.max_tokens_total)
        collector = Collector(
            requests,
            journal,
            ledger,
            spec,
            label=f"{command} {spec.name}",
            fields=fields,
            guess=lambda request: guess_tokens(request, reply_chars(request)),
            rejected=rejected,
        )
        error = _ask(collector, spec, total, begin=lambda: runfile.begin(settings, engine))
        if not isinstance(error, AnnotatorError):
            _say_refused(collector.keep_refusals())
        answers = Answers(journal, collector.failures, model_identity(spec))
        counts = derive(answers)
        counts = {**counts, "asked": collector.asked}
        # What was never recorded cannot be asked for again.
        failed = {failure.kind for failure in collector.failures.values()} - {NOT_RECORDED}
        finished = error is None and not counts["unanswered"] and not failed
        error = error or _verdict(counts, collector, ledger) or _worthless(counts, engine, advice)
        runfile.write(
            settings,
            engine,
            counts,
            ledger,
            finished=finished,
            seconds=time.monotonic() - started,
            stopped_by=None if error is None else str(error) or "interrupted",
        )
    if error is not None:
        raise error
    if spec.engine == "batch" and (rows := open_requests(run)):
        log.warning(
            "%s of other settings or texts %s still with the batch service; the command that sent them "
            "fetches them",
            counted(rows, "request"),
            "is" if rows == 1 else "are",
        )
    return SessionResult(run, spec.name, counts)


def _ask(
    collector: Collector, spec: AnnotatorSpec, total: int | None, begin: Callable[[], None]
) -> BaseException | None:
    """Ask until nothing is open or something ends it; return what did. Before the first, call `begin`."""
    # With nothing to ask, results can be derived anew without a key and without the replies' file.
    if not collector.has_more():
        return None
    annotator = load_annotator(spec)
    begin()
    try:
        asyncio.run(collector.collect(annotator, total))
    except (AngleError, KeyboardInterrupt) as stopped:
        return stopped
    return KeyboardInterrupt() if collector.stopped else None


def _say_refused(refused: list[Failure]) -> None:
    """Say in one line what this session found that the service refuses for good."""
    if refused:
        are = "was" if len(refused) == 1 else "were"
        log.warning(
            "%s %s refused for good, most with %s; see refused_by_server in rejected.jsonl "
            "(--retry-rejected asks again)",
            counted(len(refused), "request"),
            are,
            _commonest(refused),
        )


def _verdict(counts: Mapping[str, Any], collector: Collector, ledger: Ledger) -> AngleError | None:
    """Return the error that a session ends with which nothing else has ended."""
    left, failed = counts["unanswered"], len(collector.failures)
    missing = sum(failure.kind == NOT_RECORDED for failure in collector.failures.values())
    if collector.limit_reached:
        return StoppedError(
            f"stopped at {ledger.limit_text()}: spent {ledger.spent_text()}; {left} of {counts['requests']} "
            "requests are left; raise the limit and run the same command again to go on"
        )
    worst = _commonest(collector.failures.values())
    if failed and failed == collector.asked and not collector.has_reply:
        return AnnotatorError(f"every request failed ({failed}), most with {worst}")
    if collector.refused_alike:
        return AnnotatorError(
            f"every request that was left is refused alike ({failed}), with {worst}; earlier replies are kept"
        )
    if missing:
        log.warning("%s without a recorded reply", counted(missing, "request"))
    if failed > missing:
        most, them = ("", "it") if failed == 1 else ("most ", "them")
        return StoppedError(
            f"{counted(failed, 'request')} failed, {most}with {worst}; run the same command again to ask "
            f"{them} again"
        )
    if left:
        were = "was" if left == 1 else "were"
        return StoppedError(
            f"{counted(left, 'request')} {were} not answered; run the same command again to go on"
        )
    return None


def _worthless(counts: Mapping[str, Any], engine: EngineConfig, advice: str) -> AnnotatorError | None:
    """Return the error of a run that has replies and nothing else."""
    answered = counts["replied"] + counts.get("refused", 0)
    if counts["kept"] or not answered:
        return None
    rejected = counts["rejected"]
    most = max(rejected, key=lambda name: rejected[name]) if rejected else ""
    if most == "truncated":
        advice = f"raise --max-tokens (now {engine.max_tokens})"
    replies = "1 reply" if answered == 1 else f"{answered:,} replies"
    return AnnotatorError(
        f"no reply is of use ({replies}{most and f', most: {most}'}); see rejected.jsonl, then {advice}"
    )


def _commonest(failures: Iterable[Failure]) -> str:
    counts: dict[str, int] = {}
    for failure in failures:
        text = f"{failure.kind}: {failure.message}"
        counts[text] = counts.get(text, 0) + 1
    return max(counts, key=lambda text: counts[text]) if counts else "no message"
