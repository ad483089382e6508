"""The Batch API of OpenAI as an annotator: submit, leave, come back, fetch; half the price, within a day.

The first run of a command submits its requests and stops (exit code 75); the same command later fetches what
is done. With `--engine-option wait_s=SECONDS` a run waits for its batches that long. What happens to
requests:

- in a batch that is being worked on: not submitted again, whatever else is asked
- a row with an answer: a `Reply`, matched by the request's key, never by the order of rows
- a row with an error, a row of an expired or cancelled batch without a result, a row that is missing: a
  `Failure`; the next run of the command asks it again, in a new batch
- a batch refused for the account's limit on enqueued tokens: submitted again when one of the run's others has
  finished, or in halves when there are no others; from then on each batch waits until the one before is
  accepted
- a batch refused for another reason: ends the run with what the service says; its requests are asked again
- a reply to a request that the command no longer asks: kept in RUN/batch until it is asked

Memory holds the keys of requests; what is sent and what comes back goes through files.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Failure, Held, Reply
from angle_data.annotators.batch_queue import Limits
from angle_data.annotators.batch_service import BatchService
from angle_data.annotators.batch_session import BatchSession
from angle_data.annotators.batch_state import BatchState
from angle_data.errors import InputError, StoppedError

_BREATHE_EVERY = 64
_POLL_GROWTH, _LONGEST_POLL_S = 1.5, 120.0


class OpenAIBatch:
    """An annotator that works through batches; its state lies in `spec.run`.

    The engine option `wait_s` is how many seconds a run waits for batches; 0, the default, submits and
    fetches only.

    Raises:
        InputError: There is no run directory, or an engine option is unknown or no number of seconds.
        CredentialsError: The variable that should hold the API key is not set.
    """

    drains = False
    """An interrupt has nothing to wait for: the service works on without us, and the next run fetches."""

    def __init__(self, spec: AnnotatorSpec, limits: Limits | None = None) -> None:
        if spec.run is None:
            raise InputError("--engine batch needs a run directory (--out) to remember its batches in")
        self._run, self._limits = spec.run, limits or Limits()
        self._wait_s, self._dialect = _wait_s(spec), spec.dialect
        self._service = BatchService(spec)
        self._session: BatchSession | None = None

    @property
    def held(self) -> Held:
        """What earlier runs have left with the service."""
        return self._session.held if self._session else Held()

    def holds(self, key: str) -> bool:
        """Whether a request is in a batch of an earlier run."""
        return self._session is not None and self._session.holds(key)

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Submit what no batch holds yet, and yield the outcomes of the batches that are done.

        Pulls all requests before the first reply; their keys differ from each other.

        Raises:
            StoppedError: Batches are being worked on; the same command fetches them later.
            AnnotatorError: The service refused a batch, or going on is pointless.
            InputError: The state in the run directory is damaged.
        """
        async with self._service as service:
            state = BatchState(self._run)
            session = BatchSession(
                state, service, self._limits, dialect=self._dialect, waits=self._wait_s > 0
            )
            try:
                await session.recover()
                await session.look()
                session.hold()
                self._session = session
                for number, request in enumerate(requests):
                    if number % _BREATHE_EVERY == 0:
                        await asyncio.sleep(0)  # an interrupt needs a moment to get through
                    if failure := session.take(request):
                        yield failure
                    await session.submit()
                session.end_of_requests()
                async with aclosing(self._work(session)) as outcomes:
                    async for outcome in outcomes:
                        yield outcome
            finally:
                session.close()

    async def _work(self, session: BatchSession) -> AsyncGenerator[Reply | Failure, None]:
        """Fetch what is done, submit what has room, pause, look again: until all is done or time is up."""
        started, pause = time.monotonic(), self._limits.poll_s
        while True:
            for part in session.done():
                await session.download(part)
                for number, outcome in enumerate(session.outcomes(part)):
                    if number % _BREATHE_EVERY == 0:
                        await asyncio.sleep(0)
                    yield outcome
            session.raise_refusal()
            if await session.submit():
                pause = self._limits.poll_s
            if session.is_finished:
                return
            left = max(started + self._wait_s, session.patience_until) - time.monotonic()
            if left <= 0 or session.is_stuck:
                raise StoppedError(session.standing())
            await asyncio.sleep(min(pause, left))
            pause = max(pause, min(pause * _POLL_GROWTH, _LONGEST_POLL_S))
            await session.look()


def _wait_s(spec: AnnotatorSpec) -> float:
    """Return the only engine option there is."""
    if unknown := sorted(spec.engine_options.keys() - {"wait_s"}):
        raise InputError(f"--engine batch knows no option {unknown[0]!r}; it has: wait_s")
    given = spec.engine_options.get("wait_s", 0.0)
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds >= 0:
        raise InputError(f"--engine-option wait_s must be a number of seconds, 0 or more, got {given!r}")
    return seconds
