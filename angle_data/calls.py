"""What the functions for notebooks share: options by name, rows in memory as files, and a running loop.

Rows in memory are written to a file whose folder is named by a hash of their content, so that the same call
finds the same file and goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import contextvars
import difflib
import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from angle_data.errors import InputError
from angle_data.jsonl import dumps, replace_file
from angle_data.text import whole_characters

Value = TypeVar("Value")
IN_MEMORY = ".angle"
"""The folder inside an output folder that holds what was given as rows in memory."""
_POLL_S = 0.5


def check_names(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Check that a function has the options given.

    Raises:
        TypeError: It has not; names the options that are near.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{function}() has no option {name!r}; {hint}")


def is_path(value: object) -> bool:
    """Return whether a value names a file, rather than being what would stand in one."""
    return isinstance(value, str | os.PathLike)


def path_of(value: Any) -> Path:
    """Return a path, with `~` for the home folder as in a shell."""
    return Path(value).expanduser()


@contextmanager
def sources(value: Any, folder: Path, name: str, text_field: str | None = None) -> Iterator[list[str]]:
    """Yield the files of what was given: a path, a list of paths, or rows in memory; none for None.

    Args:
        value: Rows are a list of dictionaries, a `datasets.Dataset` or a pandas data frame.
        folder: Where a file of rows is put: `FOLDER/HASH/NAME.jsonl`. What cannot be used leaves none behind.
        name: What the rows are, as readers and errors call them.
        text_field: Where given, strings are texts and not paths, and stand in this field.

    Raises:
        InputError: It is none of these.
    """
    if value is None:
        yield []
    elif is_path(value):
        yield [_source(value)]
    elif text_field is None and isinstance(value, list | tuple) and all(map(is_path, value)):
        yield [_source(item) for item in value]
    else:
        lines = [whole_characters(dumps(row)) + "\n" for row in _rows(value, name, text_field)]
        if not lines:
            raise InputError(f"{name}: an empty {type(value).__name__}; give at least one")
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
        path = folder / digest / f"{name}.jsonl"
        made = [place for place in (path, *path.parents) if not place.exists()]
        if path in made:
            with replace_file(path) as stream:
                stream.writelines(lines)
        try:
            yield [str(path)]
        except InputError:
            for place in made:
                with suppress(OSError):  # a folder with something else in it by now
                    place.unlink() if place == path else place.rmdir()
            raise


def _source(value: Any) -> str:
    """Return a path as a string; what is no path, such as `hub:ID`, stays as it is."""
    return os.path.expanduser(str(os.fspath(value)))


def _rows(value: Any, name: str, text_field: str | None) -> Iterator[dict[str, Any]]:
    """Yield rows in memory as plain dictionaries; what JSON cannot hold is left out."""
    wanted = "dictionaries" if text_field is None else "strings or dictionaries"
    if hasattr(value, "iterrows"):  # a pandas data frame, whose own iterator gives its columns
        value = value.to_dict("records")
    if isinstance(value, Mapping):
        raise InputError(f"{name}: got a {type(value).__name__}; give one part of it, or a list of {wanted}")
    if not isinstance(value, Iterable):
        raise InputError(f"{name}: got {value!r}; give a path, or a list of {wanted}")
    for number, row in enumerate(value, start=1):
        if text_field is not None and isinstance(row, str):
            row = {text_field: row}
        if not isinstance(row, Mapping):
            raise InputError(f"{name}: item {number} is of type {type(row).__name__}; give {wanted}")
        plain = ((str(key), _plain(item)) for key, item in row.items())
        yield {key: item for key, item in plain if item is None or isinstance(item, str | int | float | list)}


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's, and anything else as it is; lists but of strings are dropped."""
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
    is_list = isinstance(value, list)
    return () if is_list and not all(isinstance(item, str) for item in value) else value


# --- a running event loop -----------------------------------------------------------------------------


class _Relay:
    """Passes a Ctrl-C of the main thread on to whoever listens in another; one too early is kept for them."""

    def __init__(self) -> None:
        self._lock, self._missed = threading.Lock(), False
        self._stop: Callable[[], object] | None = None

    def listen(self, stop: Callable[[], object] | None) -> None:
        with self._lock:
            self._stop = stop
            if stop is not None and self._missed:
                stop()

    def press(self) -> None:
        with self._lock:
            self._missed = True
            if self._stop is not None:
                self._stop()


_relay: contextvars.ContextVar[_Relay | None] = contextvars.ContextVar("relay", default=None)


@contextmanager
def on_interrupt(stop: Callable[[], object]) -> Iterator[None]:
    """Have `stop` called at every Ctrl-C inside the block, if that runs in the thread of `beside_loop`."""
    relay = _relay.get()
    if relay is not None:
        relay.listen(stop)
    try:
        yield
    finally:
        if relay is not None:
            relay.listen(None)


def beside_loop(function: Callable[[], Value]) -> Value:
    """Return what a function returns that runs an event loop of its own, although one may run already.

    Where one runs, as in a notebook, the function is called in another thread, and this one waits. A Ctrl-C
    (the notebook's stop button) is passed on to `on_interrupt`; what the function makes of it is raised here.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    relay, context = _Relay(), contextvars.copy_context()
    context.run(_relay.set, relay)
    with ThreadPoolExecutor(1, thread_name_prefix="angle") as pool:
        future = pool.submit(context.run, function)
        while True:
            try:
                while not future.done():
                    wait([future], timeout=_POLL_S)
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                relay.press()
