"""A command as a function: options by name, and an event loop that may run already, as in a notebook."""

from __future__ import annotations

import contextvars
import difflib
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from angle_data.calling.interrupts import passed_on

Value = TypeVar("Value")


def check_names(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise a `TypeError` if a function has not all options given; it names those that are near."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{function}() has no option {name!r}; {hint}")


def beside_loop(function: Callable[[], Value]) -> Value:
    """Return what a function returns that runs an event loop of its own, although one may run already.

    Where one runs, as in a notebook, the function is called in another thread, and this one waits. A Ctrl-C
    (the notebook's stop button) is passed on to what `interrupts.caught` has called in that thread; what the
    function makes of it is raised here.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    with ThreadPoolExecutor(1, thread_name_prefix="angle") as pool, passed_on() as pass_on:
        future = pool.submit(contextvars.copy_context().run, function)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                pass_on()
