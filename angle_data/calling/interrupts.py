"""Ctrl-C, SIGTERM and SIGHUP: what each of them does is the same for every command.

Containers and batch systems send a SIGTERM, a closed terminal a SIGHUP; both are taken like a Ctrl-C. One
that is ignored outside, as under nohup, stays ignored. Work that keeps something catches the first (`caught`)
and ends in good order; other work gets a KeyboardInterrupt. After a block the handlers from outside are back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

EXIT_INTERRUPTED = 130
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_passed_on: ContextVar[list[Callable[[], object]] | None] = ContextVar("passed_on", default=None)


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Let a SIGTERM and a SIGHUP raise KeyboardInterrupt inside the block, unless they are caught already."""
    default = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    with _handled(default, signal.default_int_handler):
        yield


@contextmanager
def caught(handle: Callable[[], object], *, once: bool = False) -> Iterator[None]:
    """Call `handle` at each of the signals inside the block, instead of what they do outside it.

    With `once` that is for the first alone; from then on they do what they do outside. Signals reach the main
    thread only: in the thread of a notebook's function, what `passed_on` gave there passes a Ctrl-C on.
    """
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.getsignal(number) for number in wanted}

    def on_signal(signum: int, frame: object) -> None:
        if once:
            _install(handlers)
        handle()

    stops = _passed_on.get()
    if stops is not None:
        stops.append(handle)
    try:
        with _handled(wanted, on_signal):
            yield
    finally:
        if stops is not None:
            stops.remove(handle)


@contextmanager
def passed_on() -> Iterator[Callable[[], None]]:
    """Yield what passes a Ctrl-C on to whatever catches it in a copy of the context inside the block."""
    stops: list[Callable[[], object]] = []

    def pass_on() -> None:
        for stop in [*stops]:
            stop()

    before = _passed_on.set(stops)
    try:
        yield pass_on
    finally:
        _passed_on.reset(before)


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Let an interrupt inside the block say that there is nothing to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing is kept; the same command starts anew") from None


def said_of(stop: BaseException | None) -> str:
    """Return what to say of an interrupt: what it carries, for a command knows best what it has kept."""
    while stop is not None:
        if isinstance(stop, KeyboardInterrupt) and str(stop):
            return f"interrupted; {stop}"
        stop = stop.__context__
    return "interrupted; run the same command again to go on"


@contextmanager
def _handled(numbers: Sequence[signal.Signals], handler: Callable[..., object]) -> Iterator[None]:
    """Give signals a handler inside the block; nowhere but in the main thread can that be done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        _install(dict.fromkeys(numbers, handler))
        yield
    finally:
        _install(before)


def _install(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        # None stands for a handler that was not set from Python, and cannot be set again.
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
