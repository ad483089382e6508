"""Asks any OpenAI-compatible chat endpoint: OpenAI itself, `vllm serve`, the GLM cloud.

A pool of workers pulls from one iterator, so memory stays flat and no reply waits for another. The retries
here are the only ones:

- no connection, timeout, 408, 409, 5xx, no chat completion: six attempts, then a `Failure`; four where the
  reply is missing or cut off
- a server that is away (no connection after an answer; 502, 503, 504): its requests go to the other
  addresses, or everything waits for up to three minutes, since it may be starting; then `StoppedError`
- 429: everybody pauses, and it is tried again; `StoppedError` if nothing else comes for ten minutes
- 400, 422 or 5xx that names a field that can be left out or asked for in a laxer way (`Form`): once more, so,
  for good
- another refusal of the request, a text that is too long or that a filter stops: a `Failure`
- 401, 403, 3xx, 404, no quota, or no connection at all in three attempts: the end of the run; so are, with
  `StoppedError`, 402 and a wait of more than ten minutes that the service asks for

Failures in a row end the run, too: of the server twenty, after the first reply with `StoppedError`; of the
requests five equal ones before it, twenty equal ones after it, or a hundred; of texts a hundred.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from angle_data.annotators.answers import failure_of, reply_of, wrong_with_text
from angle_data.annotators.base import (
    TEXT_KINDS,
    Annotator,
    ChatRequest,
    Failure,
    Reply,
    check_options,
    take_seconds,
)
from angle_data.annotators.endpoints import Endpoint, Endpoints, Patience, Place
from angle_data.annotators.limits import Limiter
from angle_data.annotators.models import said_of_service
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import (
    CHECK_ADDRESS,
    Form,
    Transport,
    asks_to_wait,
    credentials_error,
    one_line,
    out_of_money,
    request_body,
)
from angle_data.errors import AnnotatorError, StoppedError
from angle_data.http import (
    LONG_WAIT_S,
    BadAnswer,
    CallError,
    NoAnswer,
    NoReply,
    is_away,
    is_out_of_quota,
    is_retryable,
    retry_after,
    retry_pause,
    said_of_wait,
)

log = logging.getLogger("angle.annotators")

_TIMEOUT_S = 120.0
_ATTEMPTS = 6
_ATTEMPTS_UNREACHED = 3
_ATTEMPTS_NO_REPLY = 4
_EQUAL_REFUSALS = 5
_FAILURES_IN_A_ROW = 20
_REFUSALS_IN_A_ROW = 100  # a server that answers may well refuse a stretch of long texts


class OpenAIServer(Annotator):
    """An annotator behind OpenAI-compatible servers, with `spec.concurrency` requests in flight."""

    def __init__(self, spec: AnnotatorSpec, patience: Patience | None = None) -> None:
        self._spec, self._names = spec, ", ".join(spec.addresses)
        options = dict(spec.engine_options)
        self._transport = Transport(spec, take_seconds(options, "timeout_s", _TIMEOUT_S))
        check_options("server", options, "timeout_s")
        self._pauses = patience or Patience()
        self._stop = asyncio.Event()
        self._endpoints = Endpoints((), self._pauses)
        self._said = self._replied = self._timed_out = False
        self._limited_until = math.inf  # a 429 after that ends the run; infinite since the last reply
        self._failed_in_a_row = 0
        self._usage: Any = None  # of the last answer, as it came
        self._refusal = ""  # the last one, and how often it came in a row
        self._refusals = 0

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer the requests as replies come in; the module's docstring says what ends the stream, and how.

        Replies in flight are awaited and yielded first.
        """
        self._stop = asyncio.Event()
        spec = self._spec
        if not self._said:  # a run may ask in several waves
            log.info(said_of_service(spec))
            self._said = True
        addresses = [
            Endpoint(
                address,
                Limiter(spec.concurrency, spec.requests_per_minute, spec.tokens_per_minute),
                Form.of(spec),
            )
            for address in spec.addresses
        ]
        self._endpoints = Endpoints(addresses, self._pauses)
        outcomes: asyncio.Queue[Reply | Failure | Exception | None] = asyncio.Queue(spec.concurrency)
        source = iter(requests)
        async with self._transport:
            workers = [asyncio.create_task(self._work(source, outcomes)) for _ in range(spec.concurrency)]
            try:
                working, fatal = len(workers), None
                while working:
                    outcome = await outcomes.get()
                    if isinstance(outcome, Reply | Failure):
                        yield outcome
                        continue
                    working -= 1
                    fatal = fatal or outcome
                if fatal is not None:
                    raise fatal
            finally:
                self._endpoints.end(retries=True)
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    def found(self) -> dict[str, Any]:
        """Return what the last answer has shown, see `Annotator.found`."""
        form = self._endpoints.all[0].form
        return {**form.to_dict(), "limits": self._transport.told_limits(), "usage": self._usage}

    def wind_down(self) -> int:
        """Leave what waits for its turn or for another attempt: perhaps an hour, as the server asked."""
        self._stop.set()
        self._endpoints.end(retries=True)
        return sum(endpoint.limiter.in_flight for endpoint in self._endpoints.all)

    async def _work(
        self, source: Iterator[ChatRequest], outcomes: asyncio.Queue[Reply | Failure | Exception | None]
    ) -> None:
        """Answer requests until there are none; what is put last is None, or the error that ends the run."""
        try:
            # A place comes first: a request that is pulled goes out at once, so few are pulled in vain.
            while (place := await self._endpoints.place()) is not None:
                try:
                    request = next(source, None)
                except BaseException:
                    self._endpoints.dropped(place)
                    raise
                if request is None:
                    self._endpoints.end(retries=False)
                    self._endpoints.dropped(place)
                    break
                if (outcome := await self._ask(request, place)) is not None:
                    await outcomes.put(outcome)
            await outcomes.put(None)
        except Exception as error:  # noqa: BLE001 - also a bad line of the texts: handed on, not judged
            self.wind_down()
            await outcomes.put(error)

    async def _ask(self, request: ChatRequest, place: Place) -> Reply | Failure | None:
        """Send a request until there is a reply, or a failure that no further attempt would mend.

        What is not the request's own fault uses up none of its attempts. None when the run ends while the
        request waits for another attempt; an `AngleError` ends the run.
        """
        used, tokens = 0, Counter[str]()  # attempts; what they took without a reply
        for number in itertools.count(1):
            endpoint, form = place.endpoint, place.endpoint.form
            try:
                reply = await self._send(request, place, form)
            except CallError as error:
                pause = 0.0
                tokens.update(error.usage)
                if not self._lowered(request, endpoint, form, error):
                    asks_patience = error.status_code == 429
                    elsewhere = isinstance(error, NoAnswer) and self._endpoints.others_work(endpoint)
                    # What never got through to a server that is away says nothing about the request.
                    through = error.connected and self._endpoints.worked
                    unsent = is_away(error) and not through and endpoint.is_down
                    used += not (asks_patience or elsewhere or unsent)
                    most = _ATTEMPTS if endpoint.reached else _ATTEMPTS_UNREACHED
                    most = _ATTEMPTS_NO_REPLY if isinstance(error, NoReply) else most
                    if not is_retryable(error) or wrong_with_text(error) or used >= most:
                        return replace(self._failure(request, error, endpoint.name), usage=dict(tokens))
                    # The limits of the address already make everybody wait; another one is worth a try now.
                    if not (asks_patience or elsewhere or endpoint.is_down):
                        pause = retry_pause(error, number, self._pauses.retry_s)
                        if pause >= LONG_WAIT_S:
                            log.info(said_of_wait(endpoint.name, one_line(error), pause))
            else:
                self._replied = True
                self._failed_in_a_row = 0
                self._refusals = 0
                self._limited_until = math.inf
                return replace(reply, usage=dict(tokens + Counter(reply.usage))) if tokens else reply
            with suppress(TimeoutError):
                if pause > 0.0 and await asyncio.wait_for(self._stop.wait(), pause):
                    return None
            if (again := await self._endpoints.place(retrying=True)) is None:
                return None
            place = again
        raise AssertionError  # the loop above ends by returning

    async def _send(self, request: ChatRequest, place: Place, form: Form) -> Reply:
        """Make one attempt, and let limits and address know how it went."""
        endpoint, started = place.endpoint, time.monotonic()
        try:
            body = request_body(request, self._spec.dialect, form)
            answer = await self._transport.post(endpoint.url, body)
            self._usage = answer.get("usage") if isinstance(answer, dict) else None
            reply = reply_of(request.key, answer, time.monotonic() - started)
        except CallError as error:
            self._judge(place, error)
            raise
        except BaseException:
            self._endpoints.dropped(place)
            raise
        endpoint.answered()
        self._endpoints.settled(place, reply.usage.get("total_tokens"))
        return reply

    def _judge(self, place: Place, error: CallError) -> None:
        """Tell an address what a failure says about it; give the place back; raise if all are long away."""
        endpoint = place.endpoint
        message = one_line(error)
        status = error.status_code
        told_s = retry_after(error.headers)
        lost = False
        too_long = asks_to_wait(endpoint.name, error)
        if too_long and not self._endpoints.others_work(endpoint):
            self._endpoints.dropped(place)
            raise StoppedError(one_line(too_long)) from error
        if (status is not None and status < 500) or isinstance(error, NoReply):
            endpoint.answered()
        else:
            endpoint.reached = endpoint.reached or status is not None
            # A gateway is there before its server is.
            known_to_work = is_away(error) and (self._endpoints.worked or status is not None)
            if endpoint.is_down or self._endpoints.others_work(endpoint) or known_to_work:
                lost = self._endpoints.failed(endpoint, message, connected=error.connected, told_s=told_s)
        # Not before the address knows: a place that is given back goes to the next request at once.
        if status == 429:
            self._endpoints.refused(place, told_s, message)
            self._bear_limits(told_s or 0.0, message)
        elif status is not None:
            self._endpoints.settled(place)
        else:
            self._endpoints.dropped(place)
        if error.timeout and not self._timed_out:
            self._timed_out = True
            log.warning("%s: %s", endpoint.name, message)
        if lost:
            raise StoppedError(
                f"no answer from {self._names} for {self._pauses.total_s / 60:.0f} minutes ({message}); "
                "run the same command again when the server is back"
            ) from error

    def _bear_limits(self, told_s: float, message: str) -> None:
        """Take note of a 429; a `StoppedError` where there has been nothing else for too long."""
        now = time.monotonic()
        if now > self._limited_until:
            minutes = f"{self._pauses.limited_s / 60:.0f} minutes"
            raise StoppedError(
                f"{self._names} refused everything for {minutes} ({message}); "
                "run the same command again when its limits allow"
            )
        least = now + told_s
        begun = math.isfinite(self._limited_until)
        self._limited_until = max(self._limited_until, least) if begun else least + self._pauses.limited_s

    def _lowered(self, request: ChatRequest, endpoint: Endpoint, form: Form, error: CallError) -> bool:
        """Ask this address in a laxer form from now on, if it refused a request because of `form`."""
        if error.status_code not in (400, 422, 500, 501):
            return False
        if (laxer := form.relaxed(error, request.sampling)) == form:
            return False
        if endpoint.form == form:
            endpoint.form = laxer
            log.warning("%s: %s; asking for %s now", endpoint.name, one_line(error), laxer)
        return True

    def _failure(self, request: ChatRequest, error: CallError, address: str) -> Failure:
        """Return the failure of one request, or raise what ends the run."""
        status, message = error.status_code, one_line(error)
        if status in (401, 403):
            raise credentials_error(self._spec, address, status, message)
        if status == 404:
            raise AnnotatorError(
                f"{address} has no model {request.model!r}, or its address lacks /v1: {message}"
            )
        if said := out_of_money(address, error):
            raise StoppedError(one_line(said))
        if is_out_of_quota(error):
            raise AnnotatorError(f"{address}: the account has no quota left: {message}")
        if error.kind == "connection" and not self._endpoints.reached:
            raise AnnotatorError(f"cannot reach {self._names} ({message}); {CHECK_ADDRESS}")
        is_redirect = status is not None and 300 <= status < 400
        if is_redirect or (isinstance(error, BadAnswer) and not self._endpoints.reached):
            raise AnnotatorError(f"{address}: {message}")
        kind = wrong_with_text(error) or error.kind
        self._count(address, kind, message, refused=not is_retryable(error))
        return failure_of(request.key, error, message, kind)

    def _count(self, address: str, kind: str, message: str, *, refused: bool) -> None:
        """Count a failed request; raises what ends the run when there are too many in a row."""
        most = _FAILURES_IN_A_ROW
        if kind in TEXT_KINDS:
            most, refused = _REFUSALS_IN_A_ROW, False
        elif refused:
            self._refusals = self._refusals + 1 if message == self._refusal else 1
            self._refusal = message
            if self._refusals >= (_FAILURES_IN_A_ROW if self._replied else _EQUAL_REFUSALS):
                raise AnnotatorError(f"{address} rejects every request: {message}")
            most = _REFUSALS_IN_A_ROW if self._replied else most
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= most:
            said = f"{address}: {most} requests in a row failed, the last one with: {message}"
            if refused or not self._replied:
                raise AnnotatorError(said if refused else f"{said}; mend the server, then run this again")
            raise StoppedError(f"{said}; run the same command again to go on")
