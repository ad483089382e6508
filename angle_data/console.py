"""Logging and progress on stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from angle_data.text import printable

_LOG_EVERY_S = 10.0

log = logging.getLogger("angle")


class _Plain(logging.Formatter):
    """Names of files and models, and the words of servers, write no escape sequences to the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def configure_logging(*, quiet: bool = False, verbose: bool = False) -> None:
    """Send the toolkit's log lines to stderr: warnings only when `quiet`, debugging when `verbose`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("%(message)s"))
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    # Where it is installed peft imports it, and this module warns of what would make it faster on a CPU.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)


@contextmanager
def at_level(level: int, *names: str) -> Iterator[None]:
    """Let the loggers of these names pass on nothing below a level inside the block."""
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, before in levels.items():
            logger.setLevel(before)


def duration(seconds: float) -> str:
    """Return a time in the two units that matter, such as `8 h 40 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Progress:
    """A progress bar on a terminal, a log line every ten seconds elsewhere, nothing when quiet.

    Use as a context manager and call `advance` for every finished item, of `total` (None: not known).
    """

    def __init__(self, label: str, total: int | None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._skipped = 0
        self._started = self._last_log = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and log.isEnabledFor(logging.INFO):
            from rich import progress as rich_progress
            from rich.console import Console

            self._bar = rich_progress.Progress(
                rich_progress.TextColumn("{task.description}"),
                rich_progress.BarColumn(bar_width=20),
                rich_progress.MofNCompleteColumn(),
                rich_progress.TimeRemainingColumn(),
                rich_progress.TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(self._label, total=self._total, completed=self._done, note="")
            self._bar.start()
        return self

    def skip(self, count: int) -> None:
        """Count `count` more items as finished before; they do not count for the speed."""
        self._done += count
        self._skipped += count
        if self._bar is not None:
            self._bar.update(self._task, advance=count)

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count `count` more items as finished and show `note` (such as failures so far) beside them."""
        self._done += count
        if self._bar is not None:
            self._bar.update(self._task, advance=count, note=note)
        elif time.monotonic() - self._last_log >= _LOG_EVERY_S:
            self._last_log = time.monotonic()
            rate = (self._done - self._skipped) / (self._last_log - self._started)
            of = "" if self._total is None else f"/{self._total}"
            left = ""
            if self._total is not None and rate > 0:
                left = f", {duration((self._total - self._done) / rate)} left"
            log.info("%s: %d%s (%.1f/s%s) %s", self._label, self._done, of, rate, left, note)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            with suppress(OSError):  # the terminal may be gone
                self._bar.stop()
