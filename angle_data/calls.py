"""How a step is called, as a command and as a function for notebooks: one config says both.

A config among a config's fields gives its options, too. Imports nothing heavy.
"""

from __future__ import annotations

import contextvars
import difflib
import hashlib
import inspect
import json
import logging
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from angle_data.console import configure_logging, log
from angle_data.errors import AngleError, InputError
from angle_data.jsonl import dumps, write_text
from angle_data.text import whole_characters

Config = TypeVar("Config")
Value = TypeVar("Value")
Command = Callable[..., tuple[Mapping[str, Any] | str, str, *tuple[AngleError, ...]]]
"""Gets a config, and what else was asked for; returns its counts for programs (or the JSON that says them),
the same for people, and what the program ends with all the same, if anything."""

IN_MEMORY = ".angle"
"""The folder inside an output folder that holds what was given as rows in memory."""
_SWITCHES = {
    "dry_run": ("--dry-run", "Forecast requests, tokens and cost without sending anything."),
    "quiet": ("--quiet", "Show warnings and errors only."),
    "verbose": ("--verbose", "Show more detail."),
    "as_json": ("--json", "Print the result as JSON."),
}


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a config looks on the command line.

    `flag` replaces the field's name there, `shown` its default in the help. `read` makes the value from the
    text given, or from a list of texts where the flag can be repeated (`many`). An `argument` has no flag.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    shown: str | None = None
    read: Callable[[Any], Any] | None = None
    many: bool = False
    argument: bool = False


def option(help: str, default: Any = MISSING, *, factory: Any = MISSING, **looks: Any) -> Any:
    """Make a field that is an option of the command line; `looks` are those of `Option`."""
    return field(default=default, default_factory=factory, metadata={"option": Option(help, **looks)})


def paths_option(help: str, default: Any = MISSING, **looks: Any) -> Any:
    """Make a field that is an option of paths, or an argument, that can be repeated."""
    return option(help, default, read=lambda texts: tuple(map(path_of, texts)), many=True, **looks)


def check_least(config: object, least: int, *names: str, most: float = math.inf) -> None:
    """Raise an `InputError` unless the options of these names are None, or from `least` to `most`."""
    wanted = f"at least {least}" if most == math.inf else f"from {least} to {most}"
    for name in names:
        if (value := getattr(config, name)) is not None and not least <= value <= most:
            raise InputError(f"--{name.replace('_', '-')} must be {wanted}, got {value}")


def check_named_once(paths: Iterable[Path], option: str = "") -> None:
    """Raise an `InputError` if a path is given twice; `option` opens the message."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{option}{path} is given twice; name each once")
        seen.add(path.resolve())


def is_path(value: object) -> bool:
    """Return whether a value names a file, rather than being what would stand in one."""
    return isinstance(value, str | os.PathLike)


def path_of(value: Any) -> Path:
    """Return a path, with `~` for the home folder as in a shell."""
    return Path(value).expanduser()


def with_options(
    config: type, *, dry_run: bool = False, is_group: bool = False, **defaults: Any
) -> Callable[[Command], Callable[..., None]]:
    """Make a command of a function that gets a `config`: with its options, and printing what it returns.

    With `dry_run` there is that switch, too, and the function gets it second. `defaults` replace those of the
    config. The command of a group (`is_group`) does nothing where one of the group is called, and else needs
    what is None in `defaults`.
    """
    switches = [name for name in _SWITCHES if dry_run or name != "dry_run"]

    def decorate(command: Command) -> Callable[..., None]:
        import typer

        def run(**given: Any) -> None:
            if is_group:
                context = given.pop("context")
                if context.invoked_subcommand is not None:
                    return
                if missing := next((name for name in defaults if given[name] is None), None):
                    context.fail(f"Missing option '--{missing}'.")
            *more, quiet, verbose, as_json = (given.pop(name) for name in switches)
            configure_logging(quiet=quiet, verbose=verbose)
            counts, text, *errors = command(make(config, given), *more)
            if as_json:
                made = isinstance(counts, str)
                typer.echo(counts if made else json.dumps(counts, ensure_ascii=False, default=str))
            elif log.isEnabledFor(logging.INFO):  # not --quiet
                typer.echo(text)
            for error in errors:
                raise error

        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = [inspect.Parameter("context", keyword, annotation=typer.Context)] if is_group else []
        shown += _parameters(config, defaults)
        for name in switches:
            flag, does = _SWITCHES[name]
            shown.append(_parameter(name, bool, False, typer.Option(flag, help=does)))
        run.__doc__ = command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return run

    return decorate


def make(config: type[Config], given: dict[str, Any]) -> Config:
    """Take the options of a config, as texts or as values, out of those given, and return it.

    An `InputError` where a value is of a wrong kind, cannot be read, or is out of its range.
    """
    kinds, values = get_type_hints(config), {}
    for item in fields(config):  # type: ignore[arg-type]
        name, kind, look = item.name, kinds[item.name], item.metadata.get("option")
        if look is None:
            if is_dataclass(kind):
                values[name] = make(kinds[name], given)
            continue
        members = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        value: Any = given.pop(look.flag or name)
        if look.many:
            value = [value] if is_path(value) else value or []
            if isinstance(value, list | tuple):
                value = [os.fspath(item) if is_path(item) else str(item) for item in value]
                value = look.read(value) if look.read else value
        elif value is None and type(None) not in members:
            continue
        elif is_path(value):
            path = path_of(value) if Path in members else os.fspath(value)
            value = look.read(value) if look.read else path
        value = value.item() if hasattr(value, "item") else value  # a number of numpy
        plain = [kind for kind in members if kind in (int, float, str, bool)]
        fits = value is None or type(value) in plain or (type(value) is int and float in plain)
        if plain and not fits:
            raise InputError(f"{look.flag or name} must be of type {plain[0].__name__}, got {value!r}")
        values[name] = value
    return config(**values)


def _parameters(config: Any, defaults: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameter of each option, as typer wants it; what a config inside needs comes first."""
    import typer

    kinds, own, inside = get_type_hints(config), list[inspect.Parameter](), list[inspect.Parameter]()
    for item in fields(config):
        name, kind, look = item.name, kinds[item.name], item.metadata.get("option")
        if look is None:
            inside += _parameters(kind, defaults) if is_dataclass(kind) else ()
            continue
        default = defaults.get(name, item.default)
        if look.read is not None:
            kind = list[str] | None if look.many else str | None
            default = None if look.many or not isinstance(default, str | int | float) else str(default)
        flag = (f"--{name.replace('_', '-')}",) if kind is bool else ()  # without a --no-...
        made = typer.Option(*flag, help=look.help, metavar=look.metavar, show_default=look.shown or True)
        if look.argument:
            made = typer.Argument(help=look.help, metavar=look.metavar, show_default=False)
        own.append(_parameter(look.flag or name, kind, default, made))
    empty = inspect.Parameter.empty
    yield from (parameter for parameter in inside if parameter.default is empty)
    yield from own
    yield from (parameter for parameter in inside if parameter.default is not empty)


def _parameter(name: str, kind: Any, default: Any, look: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    kind = Annotated[kind, look]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def check_names(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise a `TypeError` if a function has not all options given; it names those that are near."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{function}() has no option {name!r}; {hint}")


def sources(value: Any, folder: Path, name: str, text_field: str | None = None) -> list[str]:
    """Return the files of what was given: a path, a list of paths, or rows in memory; none for None.

    Rows are a list of dictionaries, a `datasets.Dataset` or a pandas data frame; `name` is what readers and
    errors call them. Their file is `FOLDER/HASH/NAME.jsonl`, by a hash of their content, so that the same
    call goes on where it stopped. With a `text_field`, strings are texts, which stand in that field.
    """
    if value is None:
        return []
    paths = [value] if is_path(value) else value if text_field is None else None
    if isinstance(paths, list | tuple) and all(map(is_path, paths)):
        return [os.path.expanduser(os.fspath(path)) for path in paths]  # what is none, as `hub:ID`, stays so
    lines = [whole_characters(dumps(row)) + "\n" for row in _rows(value, name, text_field)]
    if not lines:
        raise InputError(f"{name}: an empty {type(value).__name__}; give at least one")
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
    path = folder / digest / f"{name}.jsonl"
    if not path.exists():
        write_text(path, "".join(lines))
    return [str(path)]


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


_stops: list[Callable[[], object]] = []


@contextmanager
def on_interrupt(stop: Callable[[], object]) -> Iterator[None]:
    """Have `stop` called at every Ctrl-C inside the block that reaches `beside_loop`."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


def beside_loop(function: Callable[[], Value]) -> Value:
    """Return what a function returns that runs an event loop of its own, although one may run already.

    Where one runs, as in a notebook, the function is called in another thread, and this one waits. A Ctrl-C
    (the notebook's stop button) is passed on to `on_interrupt`; what the function makes of it is raised here.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    with ThreadPoolExecutor(1, thread_name_prefix="angle") as pool:
        future = pool.submit(contextvars.copy_context().run, function)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                for stop in list(_stops):
                    stop()
