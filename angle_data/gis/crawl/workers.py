"""Work on several cores, with the results in the order of the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from angle_data.errors import AngleError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Of a process of `in_processes`: what makes its function, and the function, which may fail to be made.
_made: tuple[Callable[..., Callable[[Any], Any]], tuple[Any, ...]]
_function: Callable[[Any], Any] | None = None


def in_order(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], *, ahead: int
) -> Iterator[Result]:
    """Yield what `function` makes of each item; at most `ahead` results wait, so that memory stays flat.

    Raises:
        AngleError: A process of the pool was killed.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise AngleError(
            "a process that did part of the work ended: it was killed, perhaps for want of memory, or could "
            "not start; try --workers 1"
        ) from None


def in_processes(
    count: int,
    make: Callable[..., Callable[[Item], Result]],
    arguments: tuple[Any, ...],
    items: Iterable[Item],
) -> Iterator[Result]:
    """Yield what becomes of each item, like `in_order`, in so many fresh processes.

    Each process calls `make(*arguments)` once, for the function that its items go to. The processes end with
    this one, and a Ctrl-C, which reaches them all, is this one's to take.

    Raises:
        AngleError: As of `in_order`.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy locks whose threads it lacks
    with ProcessPoolExecutor(count, context, _start, (make, *arguments)) as pool:
        with _interrupts_wait():
            for _ in range(count):
                pool.submit(int)  # begins a process
        yield from in_order(pool, _call, items, ahead=count)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Take a Ctrl-C only after this; processes that are begun inside take none, not even as they start."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(make: Callable[..., Callable[[Any], Any]], *arguments: Any) -> None:
    global _made
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _made = make, arguments


def _call(item: Any) -> Any:
    global _function
    if _function is None:
        make, arguments = _made
        _function = make(*arguments)
    return _function(item)


def _end_with_parent() -> None:
    """End this process when the one that began it is gone: of a kill -9 nobody else would tell it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
