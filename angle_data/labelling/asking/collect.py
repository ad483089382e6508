"""The asking part of a session: pulls requests, journals replies, keeps to the limits, stops in good order.

It does not read the replies; the command judges them afterwards.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Container, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from angle_data.annotators.answers import answer_of
from angle_data.annotators.base import (
    NOT_RECORDED,
    REFUSED_KINDS,
    TEXT_KINDS,
    Annotator,
    ChatRequest,
    Failure,
    Reply,
)
from angle_data.annotators.transport import Secret, hidden, secrets_of, without_key
from angle_data.calling.interrupts import caught
from angle_data.console import Progress
from angle_data.labelling.asking.budget import Ledger, estimate, guess_tokens
from angle_data.labelling.asking.job import Job
from angle_data.labelling.asking.journal import Journal, Tokens, refusal_of
from angle_data.labelling.asking.useless import UselessInARow
from angle_data.text import counted, whole_characters

log = logging.getLogger("angle.labelling")

_ALIKE = 5
"""So many equal refusals, and nothing else, are more likely a fault of the service than of the requests."""
_TEN = 10
_LONG_PROMPT, _PART = 2_000, 0.4
"""A prompt guessed at more tokens than this was read in part, if the service counts less than that share."""
_READ_IN_PART = (
    "%s counts %s tokens in a prompt of about %s: it may read only part of long prompts; raise its context "
    "(Ollama: num_ctx), or leave out long texts"
)
_TRIED_FIRST = 4
"""Requests that go out under a limit before anything is known of how the service counts."""
_SILENT = "no answer for %.0f s: waiting for %s; it may be loading %s, slow, limiting requests, or away"
_NO_COUNTS = "%s does not say how many tokens its replies take; they are estimated, for limits and costs"


def survey(job: Job, journal: Journal, anew: set[str]) -> Iterator[tuple[ChatRequest, bool]]:
    """Yield the requests of a job, and whether each is to be asked; those that are count as claimed.

    That is what the journal neither holds nor has under way, and what it holds of no use, if the job wants
    that asked again: once, and then its key is in `anew`.
    """
    for request in job.requests(journal):
        if not job.is_sampled(request):
            continue
        is_open = journal.claim(request.key)
        if not is_open and job.retry_rejected and request.key not in anew:
            row = journal.row(request.key)
            if row is not None and job.is_rejected(request, row):
                anew.add(request.key)
                is_open = True
        yield request, is_open


class Collector:
    """One pass over the open requests of a job; each is checked against the journal as it is pulled.

    Afterwards:

    - `asked`: the number of replies and failures in this session; `journal.failures` holds the latter
    - `has_reply`: whether any request has a reply, from this session or an earlier one
    - `stopped`: whether the user ended the session
    - `limit_reached`: whether a limit ended it
    - `hopeless`: what it got, in words, where useless answers in a row ended it; else empty

    When nothing has come for `silent_s` seconds from the start, it says what it waits for.
    """

    def __init__(self, job: Job, journal: Journal, ledger: Ledger, silent_s: float = 30.0) -> None:
        self.asked, self._silent_s = 0, silent_s
        self.has_reply = self.stopped = self.limit_reached = False
        self.hopeless = ""
        # Recorded replies cost nothing.
        self._useless = UselessInARow(job, job.spec.max_useless if job.spec.engine != "recorded" else 0)
        self._failed: dict[str, ChatRequest] = {}  # without those that no recorded reply answers
        self._job, self._spec = job, job.spec
        self._journal = journal
        self._ledger = ledger
        self._progress = Progress(f"{job.command} {job.spec.model}", job.total)
        self._anew: set[str] = set()
        self._open = self._open_requests()
        self._next: ChatRequest | None = None
        self._pulled = 0  # given to the annotator
        self._in_flight: dict[str, tuple[ChatRequest, Tokens]] = {}
        self._warned_of_part = False  # of a prompt that was read in part
        self._warned = False  # of a reply that came without its tokens

    @cached_property
    def _secret(self) -> Secret:
        """What finds keys in replies; where nothing is asked, no key is needed."""
        return secrets_of(self._spec)[1]

    def has_more(self) -> bool:
        """Whether anything is left to ask; the requests up to the next open one are read for it."""
        if self._next is None:
            self._next = next(self._open, None)
        return self._next is not None

    def ask(self, annotator: Annotator) -> None:
        """Ask everything open and journal what comes; what ends the annotator is raised."""
        asyncio.run(self._ask(annotator))

    async def _ask(self, annotator: Annotator) -> None:
        who = f"engine {self._spec.engine}" if self._spec.loads else ", ".join(self._spec.addresses)
        loop, wait = asyncio.get_running_loop(), self._silent_s
        silence = loop.call_later(wait, log.info, _SILENT, wait, who, self._spec.checkpoint)
        with self._interruptible(annotator), self._progress as progress:
            try:
                # A limit is compared with guesses while requests are in flight. Once their replies are
                # counted there may be room again, so the annotator is asked for another round.
                pulled = -1
                while self._pulled > pulled and not (self.stopped or self.limit_reached) and self.has_more():
                    pulled = self._pulled
                    async with aclosing(annotator.stream(self._round(annotator))) as outcomes:
                        async for outcome in outcomes:
                            silence.cancel()
                            self._settle(outcome)
                            if self._journal.unwritten and not self.stopped:
                                log.warning("disk full: sending no more requests")
                                self._wind_down(annotator)
                            if self.hopeless and not self.stopped:
                                self._wind_down(annotator)
                            count = len(self._journal.failures)
                            note = f"{count} failed" if count else ""
                            progress.advance(note=note)
                    if self._job.asks_again and self._next is None:
                        again = survey(self._job, self._journal, self._anew)
                        self._open = (request for request, is_open in again if is_open)
            except asyncio.CancelledError:
                self.stopped = True
            finally:
                silence.cancel()

    def _wind_down(self, annotator: Annotator) -> int:
        """Ask nothing more, and return how many requests are under way."""
        self.stopped = True
        under_way = annotator.wind_down()
        return len(self._in_flight) if under_way is None else under_way

    @property
    def refused_alike(self) -> bool:
        """Whether this session got nothing but refusals, all equal, and more than a few."""
        failures = self._journal.failures.values()
        kinds = {failure.kind for failure in failures}
        alike = len({failure.message for failure in failures}) == len(kinds) == 1
        return alike and kinds <= REFUSED_KINDS - TEXT_KINDS and self.asked == len(failures) >= _ALIKE

    def set_aside(self, failed_before: Container[str]) -> list[Failure]:
        """Journal what was refused for good, so that it is neither a failure nor asked again, and return it.

        So it goes with texts that get no reply, if the replies are at least as many, and with what failed in
        the last session too (`failed_before`, keys), if that is one for ten replies at most: a service out of
        order fails with all. Nothing is kept unless some request has a reply, nor if all refusals are alike:
        the fault may then lie with the service.
        """
        if not self.has_reply or self.refused_alike:
            return []
        failures, replies = self._journal.failures, len(self._journal)
        kinds = {key: failures[key].kind for key in self._failed}
        taken = [key for key, kind in kinds.items() if kind in REFUSED_KINDS - {"no_reply"}]
        mute = [key for key, kind in kinds.items() if kind == "no_reply"]
        again = [key for key, kind in kinds.items() if kind not in REFUSED_KINDS and key in failed_before]
        taken += mute if len(mute) <= replies else []
        taken += again if len(again) <= max(1, replies // _TEN) else []
        aside = [failures.pop(key) for key in taken]
        for failure in aside:
            self._write(self._failed[failure.key], {"reply": "", "refused": _in_words(failure)})
        return aside

    def _round(self, annotator: Annotator) -> Iterator[ChatRequest]:
        """Yield open requests until one does not fit under the limits beside those in flight.

        What is paid for already is asked under any limit, so of a holder's requests none is passed over.
        Where there is a limit, a few requests go first: they tell how the service counts.
        """
        first = self._pulled
        self._ledger.hold(annotator.held)
        left = annotator.held.requests
        while not self.stopped and self.has_more():
            tries = self._pulled - first
            if self._ledger.is_limited and annotator.drains and not self.asked and tries >= _TRIED_FIRST:
                return
            request = self._next
            assert request is not None
            guess = guess_tokens(request, self._job.reply_chars(request))
            if annotator.holds(request.key):
                left -= 1
            elif not self._ledger.reserve(request, guess):
                if left > 0:
                    self._next = None  # for a later session; what is held comes after it
                    continue
                # If even the first request of a round does not fit, there is no room left.
                self.limit_reached = self._pulled == first
                return
            self._next = None
            # Without its messages: an annotator may pull all before it answers.
            self._in_flight[request.key] = (replace(request, messages=()), guess)
            self._pulled += 1
            yield request

    def _open_requests(self) -> Iterator[ChatRequest]:
        """Yield what is to be asked, and note what is answered."""
        for request, is_open in survey(self._job, self._journal, self._anew):
            if not self.has_reply and (row := self._journal.row(request.key)) is not None:
                self.has_reply = refusal_of(row) is None
            if is_open:
                yield request
            else:
                self._progress.skip(1)

    def _settle(self, outcome: Reply | Failure) -> None:
        request, guess = self._in_flight.pop(outcome.key)
        self.asked += 1
        self._ledger.settle(outcome.key, guess, outcome.usage if isinstance(outcome, Reply) else {})
        if isinstance(outcome, Failure):
            self._journal.fail(replace(outcome, said={}))
            if outcome.kind != NOT_RECORDED:
                self._failed[outcome.key] = request
            if outcome.said or outcome.usage:  # paid for: what it took and said is kept
                held = {"reply": "", **_whole(outcome.said), "failed": _in_words(outcome)}
                self._write(request, held | ({"usage": outcome.usage} if outcome.usage else {}))
            log.debug("%s, %s: %s: %s", request.source_id, request.task, outcome.kind, outcome.message)
            return
        self.has_reply = True
        row = {
            "reply": whole_characters(outcome.text),
            "finish_reason": outcome.finish_reason,
            "usage": self._usage(request, guess, outcome),
            "seconds": round(outcome.seconds, 3),
        }
        self._warn_of_part(guess, outcome)
        if outcome.raw:
            row["raw"] = _whole(outcome.raw)
        self._write(request, row)
        # Where everything has been asked, the usual verdict says it.
        if not self.hopeless and self._useless.add(request, row) and self.has_more():
            self.hopeless = str(self._useless)

    def _warn_of_part(self, guess: Tokens, reply: Reply) -> None:
        """Say at the first reply that a long prompt may have been read in part; `derive` judges each."""
        count = reply.usage.get("prompt_tokens")
        if (
            not self._warned_of_part
            and count
            and guess.prompt > _LONG_PROMPT
            and count < _PART * guess.prompt
        ):
            self._warned_of_part = True
            log.warning(_READ_IN_PART, self._spec.model, f"{count:,}", f"{guess.prompt:,.0f}")

    def _usage(self, request: ChatRequest, guess: Tokens, reply: Reply) -> dict[str, int]:
        """Return the tokens of a reply, marked as `estimated` where the service does not count them."""
        usage = reply.usage
        if self._spec.engine == "recorded" or {"prompt_tokens", "completion_tokens"} <= usage.keys():
            return usage
        if not self._warned:
            self._warned = True
            log.warning(_NO_COUNTS, self._spec.model)
        said = reply.text + (json.dumps(reply.raw, ensure_ascii=False) if reply.raw else "")
        estimated = {
            "prompt_tokens": math.ceil(guess.prompt),
            "completion_tokens": min(math.ceil(estimate(said)) + 1, request.sampling.max_tokens),
        }
        return {**estimated, **usage, "estimated": 1}

    def _write(self, request: ChatRequest, answer: dict[str, Any]) -> None:
        revision = {} if self._spec.revision is None else {"revision": self._spec.revision}
        row = {
            "key": request.key,
            "model": self._spec.model,
            "checkpoint": request.model,
            **revision,
            "parameters": request.sampling.to_dict(),
            "source_id": request.source_id,
            "source": request.source,
            **self._job.fields(request),
            **_masked(answer, self._secret),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._journal.append(row)

    @contextmanager
    def _interruptible(self, annotator: Annotator) -> Iterator[None]:
        """Let the first Ctrl-C, SIGTERM or SIGHUP end the sending and wait for replies, the second all.

        An annotator whose `drains` is False stops at the first: the next run fetches its batches.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupted() -> None:
            if task is not None and (self.stopped or not annotator.drains):
                self.stopped = True
                task.cancel()
            elif not self.stopped:
                replies = counted(self._wind_down(annotator), "reply", "replies")
                kept = "; everything so far is kept" if len(self._journal) else ""
                log.warning("stopping: waiting for %s in flight (Ctrl-C: stop)%s", replies, kept)

        with caught(lambda: loop.call_soon_threadsafe(interrupted)):
            yield


def _in_words(failure: Failure) -> str:
    return whole_characters(f"{failure.kind}: {failure.message}")


def _whole(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what a service said without halves of characters, which no file takes."""
    whole: dict[str, Any] = json.loads(whole_characters(json.dumps(fields, ensure_ascii=False)))
    return whole


def _masked(answer: dict[str, Any], secret: Secret) -> dict[str, Any]:
    """Return an answer as it may be written, without the key, should the service repeat it.

    Its strings were masked when they were read. In what they are joined to the key may stand anew; then that
    takes the place of the message.
    """
    answer = without_key(answer, secret)
    said = answer_of(answer).text if "raw" in answer else ""
    plain = hidden(said, secret)
    if plain == said:
        return answer
    return {name: value for name, value in answer.items() if name != "raw"} | {"reply": plain}
