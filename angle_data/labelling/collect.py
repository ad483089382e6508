"""The asking part of a labelling run: pulls requests, journals replies, and stops in good order.

Derives nothing; what the replies are worth is `derive`'s business.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from angle_data.annotators import AnnotatorSpec
from angle_data.annotators.base import Annotator, ChatRequest, Failure, Reply
from angle_data.console import Progress
from angle_data.labelling.journal import Journal
from angle_data.labelling.prompts import PromptSet
from angle_data.labelling.requests import LabelConfig, build_requests

__all__ = ["Collector"]

log = logging.getLogger("angle.labelling")


class Collector:
    """One pass over the open requests.

    Afterwards `failures` holds what failed by key, `asked` how many outcomes there were, and `stopped`
    whether the user ended it.
    """

    def __init__(
        self, config: LabelConfig, spec: AnnotatorSpec, prompts: PromptSet, journal: Journal
    ) -> None:
        self.failures: dict[str, Failure] = {}
        self.asked = 0
        self.stopped = False
        self._config, self._spec, self._prompts, self._journal = config, spec, prompts, journal
        self._in_flight: dict[str, ChatRequest] = {}

    async def collect(self, annotator: Annotator, to_ask: int) -> None:
        """Ask everything that is not in the journal, about `to_ask` requests, and journal what comes.

        Raises:
            AnnotatorError: The annotator cannot go on.
        """
        self._catch_interrupt()
        with Progress(f"llm-label {self._spec.name}", to_ask) as progress:
            try:
                async with aclosing(annotator.stream(self._to_ask())) as outcomes:
                    async for outcome in outcomes:
                        self._settle(outcome)
                        failed = len(self.failures)
                        progress.advance(note=f"{failed} failed" if failed else "")
            except asyncio.CancelledError:
                self.stopped = True

    def _to_ask(self) -> Iterator[ChatRequest]:
        for request in build_requests(self._config, self._spec.checkpoint, self._prompts):
            if self.stopped:
                return
            if self._journal.claim(request.key):
                self._in_flight[request.key] = request
                yield request

    def _settle(self, outcome: Reply | Failure) -> None:
        request = self._in_flight.pop(outcome.key)
        self.asked += 1
        if isinstance(outcome, Failure):
            self.failures[outcome.key] = outcome
            log.debug("%s, %s: %s: %s", request.source_id, request.polarity, outcome.kind, outcome.message)
            return
        self._journal.append(
            {
                "key": request.key,
                "model": self._spec.name,
                "checkpoint": request.model,
                "prompt_sha256": self._prompts.of(request.polarity).sha256,
                "parameters": request.sampling.to_dict(),
                "source_id": request.source_id,
                "source": request.source,
                "polarity": request.polarity,
                "reply": outcome.text,
                "finish_reason": outcome.finish_reason,
                "usage": outcome.usage,
                "seconds": round(outcome.seconds, 3),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )

    def _catch_interrupt(self) -> None:
        """Let the first Ctrl-C end the sending and wait for replies in flight, the second stop at once."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupted() -> None:
            if self.stopped and task is not None:
                task.cancel()
            elif not self.stopped:
                self.stopped = True
                log.warning(
                    "stopping: everything so far is kept; waiting for %d replies in flight (Ctrl-C: stop)",
                    len(self._in_flight),
                )

        # Signals can be caught in the main thread of a Unix process only; elsewhere Python's default stands.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, interrupted)
