"""What both command-line programs share: exit codes, error lines, logging and progress, on stderr."""

from __future__ import annotations

import errno
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

from angle_data.errors import AngleError, StoppedError

if TYPE_CHECKING:
    import typer

EXIT_INTERRUPTED = 130
_LOG_EVERY_S = 10.0

log = logging.getLogger("angle")


def configure_logging(*, quiet: bool = False, verbose: bool = False) -> None:
    """Send the toolkit's log lines to stderr: warnings only when `quiet`, debugging when `verbose`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
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


def make_app(program: str, about: str) -> typer.Typer:
    """Return a program that has no commands yet, but for `--version`; `about` opens its help."""
    import typer

    app = typer.Typer(
        name=program, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )

    @app.callback(help=about, invoke_without_command=True)
    def _(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
        if version:
            from importlib.metadata import version as version_of

            typer.echo(f"angle-toolkit {version_of('angle-toolkit')}")
            raise typer.Exit

    return app


def run_app(app: Callable[[], Any], program: str) -> None:
    """Run a typer app and turn the errors a user can fix into one line and the documented exit code.

    A SIGTERM, as containers and batch systems send it, and the SIGHUP of a closed terminal are taken like a
    Ctrl-C. A KeyboardInterrupt may carry what is to be said beside "interrupted".
    """

    def end(line: str, code: int) -> NoReturn:
        with suppress(OSError):  # the terminal may be gone
            print(f"{program}: {line}", file=sys.stderr)  # noqa: T201 - errors go here
        sys.exit(code)

    try:
        with _as_interrupt("SIGTERM"), _as_interrupt("SIGHUP"):
            app()
    except AngleError as error:
        # A limit that was reached is no error.
        end(f"{'' if isinstance(error, StoppedError) else 'error: '}{error}", error.exit_code)
    except SystemExit as stop:
        # Typer makes exits of its own of a Ctrl-C, without a word, and of a reader of our stdout (such as
        # `head`) that went away, which is no error.
        if stop.code == EXIT_INTERRUPTED:
            end(_interrupted(stop), EXIT_INTERRUPTED)
        if isinstance(stop.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except KeyboardInterrupt as stop:
        end(_interrupted(stop), EXIT_INTERRUPTED)
    except OSError as error:
        # A read-only folder, a full disk, a missing right: the user's to mend. Errors of connections and
        # the like carry no file name and are defects here.
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        place = f"{error.filename}: " if error.filename is not None else ""
        end(f"error: {place}{error.strerror}; choose another place, or make room", AngleError.exit_code)


def _interrupted(stop: BaseException | None) -> str:
    """Return what to say of an interrupt: what it carries, for a command knows best what it has kept."""
    while stop is not None:
        if isinstance(stop, KeyboardInterrupt) and str(stop):
            return f"interrupted; {stop}"
        stop = stop.__context__
    return "interrupted; run the same command again to go on"


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Let an interrupt inside the block say that there is nothing to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing is kept; the same command starts anew") from None


@contextmanager
def _as_interrupt(name: str) -> Iterator[None]:
    """Let a signal raise KeyboardInterrupt inside the block, unless it is ignored or caught already."""
    number = getattr(signal, name, None)  # Windows has no SIGHUP
    in_main = threading.current_thread() is threading.main_thread()
    if number is None or not in_main or signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return
    signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)


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
        self._label, self._total, self._done, self._skipped = label, total, 0, 0
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
