"""One config, a dataclass, says the options of a command and of its function: kinds, ranges, defaults, help.

Pydantic checks them, whoever made the config. A config among a config's fields gives its options, too.
Imports nothing heavy: pydantic comes with the first check.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

from angle_data.calling.defaults import PROJECT_FILE, command_words, typed
from angle_data.console import configure_logging, log
from angle_data.errors import AngleError, InputError

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

Config = TypeVar("Config")
Command = Callable[..., tuple[Mapping[str, Any] | str, str, *tuple[AngleError, ...]]]
"""Gets a config, and what else was asked for; returns its counts for programs (or the JSON that says them),
the same for people, and what the program ends with all the same, if anything."""

_OUT_OF_RANGE = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
"""Pydantic's names for what is wrong with a number."""
_SWITCHES = {
    "dry_run": ("--dry-run", "Forecast requests, tokens and cost without sending anything."),
    "quiet": ("--quiet", "Show warnings and errors only."),
    "verbose": ("--verbose", "Show more detail."),
    "as_json": ("--json", "Print the result as JSON."),
}


NOT_OPTIONS = frozenset({"context", "quiet", "verbose", "as_json"})
"""Parameters of every command that are a program's own matters."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a config looks on the command line.

    `flag` replaces the field's name there, `shown` its default in the help. `read` makes the value from the
    text given, or from a list of texts where the flag can be repeated (`many`). An `argument` has no flag.
    A number is from `ge` to `le`, above `gt`, and below `lt`.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    shown: str | None = None
    read: Callable[[Any], Any] | None = None
    many: bool = False
    argument: bool = False
    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None


def option(help: str, default: Any = MISSING, *, factory: Any = MISSING, **looks: Any) -> Any:
    """Make a field that is an option of the command line; `looks` are those of `Option`."""
    return field(default=default, default_factory=factory, metadata={"option": Option(help, **looks)})


def paths_option(help: str, default: Any = MISSING, **looks: Any) -> Any:
    """Make a field that is an option of paths, or an argument, that can be repeated."""
    return option(help, default, read=lambda texts: tuple(map(path_of, texts)), many=True, **looks)


def check_values(config: Any) -> None:
    """Raise an `InputError` about the first option whose value is of a wrong kind or out of its range."""
    values = {name: getattr(config, name) for name in _options(type(config))}
    if wrong := _refused(type(config), values):
        raise next(iter(wrong.values()))


def _refused(config: type, values: Mapping[str, Any]) -> dict[str, InputError]:
    """Return, by option, what is said of those values that are of a wrong kind or out of their range."""
    from pydantic import ValidationError

    found = dict[str, InputError]()
    try:
        _checker(config).model_validate(values)
    except ValidationError as error:
        for each in error.errors():
            if (name := str(each["loc"][0])) in values:
                look = _options(config)[name]
                wanted = _range(look) if each["type"] in _OUT_OF_RANGE else _kind(config, name)
                key = look.flag or name
                said = f"--{typed(key)} must be {wanted}, got {values[name]!r}"
                found.setdefault(key, InputError(said))
    return found


def _range(look: Option) -> str:
    """Return the range of an option in words."""
    if look.ge is None:
        return f"more than {look.gt}" + ("" if look.lt is None else f" and less than {look.lt}")
    return f"at least {look.ge}" if look.le is None else f"from {look.ge} to {look.le}"


def _kind(config: type, name: str) -> str:
    kind = get_type_hints(config)[name]
    kind = get_args(kind)[0] if isinstance(kind, UnionType) else kind
    return f"of type {getattr(kind, '__name__', kind)}"


def _options(config: type) -> dict[str, Option]:
    """Return the options of a config by the names of their fields, without those of a config inside it."""
    options = ((item.name, item.metadata.get("option")) for item in fields(config))
    return {name: look for name, look in options if look is not None}


@cache
def _checker(config: type) -> type[BaseModel]:
    """Return what checks the values of a config's options, which are not converted."""
    from pydantic import ConfigDict, Field, create_model

    kinds = get_type_hints(config)
    checked = dict[str, Any]()
    for name, look in _options(config).items():
        # A price or a rate without an end is a slip, as is one that is no number.
        end = math.inf if look.gt is not None and look.lt is None else look.lt
        checked[name] = Annotated[kinds[name], Field(ge=look.ge, le=look.le, gt=look.gt, lt=end)], ...
    as_it_is = ConfigDict(strict=True, arbitrary_types_allowed=True, protected_namespaces=())
    return create_model(config.__name__, __config__=as_it_is, **checked)


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
    """Return a path, with `~` for the home folder as in a shell; of no user's it stays, as there."""
    return Path(os.path.expanduser(value))


def with_options(
    config: type,
    *,
    dry_run: bool = False,
    is_group: bool = False,
    complete: Callable[[dict[str, Any]], None] | None = None,
    **defaults: Any,
) -> Callable[[Command], Callable[..., None]]:
    """Make a command of a function that gets a `config`: with its options, and printing what it returns.

    With `dry_run` there is that switch, too, and the function gets it second. `defaults` replace those of the
    config; `complete` fills in others, by what is given. The command of a group (`is_group`) does nothing
    where one of the group is called, and else needs what is None in `defaults`.
    """
    switches = [name for name in _SWITCHES if dry_run or name != "dry_run"]

    def decorate(command: Command) -> Callable[..., None]:
        import typer

        def run(**given: Any) -> None:
            context = given.pop("context", None)
            (complete or _as_it_is)(given)
            if is_group and _is_of_another(context, given, defaults):
                return
            *more, quiet, verbose, as_json = (given.pop(name) for name in switches)
            configure_logging(quiet=quiet, verbose=verbose)
            if taken := from_project(context):
                log.info("%s: %s", PROJECT_FILE, command_words("", taken).strip())
            counts, text, *errors = command(make(config, given), *more)
            if as_json:
                made = isinstance(counts, str)
                typer.echo(counts if made else json.dumps(counts, ensure_ascii=False, default=str))
            elif log.isEnabledFor(logging.INFO):  # not --quiet
                typer.echo(text)
            for error in errors:
                raise error

        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = [inspect.Parameter("context", keyword, annotation=typer.Context)]
        shown += _parameters(config, defaults)
        for name in switches:
            flag, does = _SWITCHES[name]
            shown.append(_parameter(name, bool, False, typer.Option(flag, help=does)))
        run.__doc__ = command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return run

    return decorate


def _as_it_is(given: dict[str, Any]) -> None:
    """Fill in nothing."""


def _is_of_another(context: typer.Context, given: Mapping[str, Any], needed: Iterable[str]) -> bool:
    """Return whether a command of the group is called; if not, the group needs some options."""
    if context.invoked_subcommand is not None:
        return True
    if missing := next((name for name in needed if given[name] is None), None):
        context.fail(f"Missing option '--{missing}'.")
    return False


def from_project(context: typer.Context | None) -> dict[str, Any]:
    """Return the options that a command took from angle.toml."""
    options = getattr(context, "default_map", None)
    if context is None or not options:
        return {}
    source = context.get_parameter_source
    return {name: v for name, v in options.items() if getattr(source(name), "name", "") == "DEFAULT_MAP"}


def with_defaults(command: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a command by name, and the defaults of those that are not given."""
    parameters = inspect.signature(command).parameters.items()
    return {name: p.default for name, p in parameters if name not in NOT_OPTIONS} | dict(given)


def make(config: type[Config], given: dict[str, Any]) -> Config:
    """Take the options of a config, as texts or as values, out of those given, and return it.

    An `InputError` where a value is of a wrong kind, cannot be read, or is out of its range.
    """
    values, wrong = _values(config, given)
    if wrong:
        raise next(iter(wrong.values()))
    return config(**values)


def wrong_values(config: type, given: Mapping[str, Any]) -> dict[str, InputError]:
    """Return, by option, what `make` has against every single value; not which of them contradict."""
    return _values(config, dict(given))[1]


def _values(config: type, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, InputError]]:
    """Take the values of a config's fields out of those given; also return, by option, what is wrong."""
    kinds = get_type_hints(config)
    values = dict[str, Any]()
    wrong = dict[str, InputError]()
    for item in fields(config):
        name, kind, look = item.name, kinds[item.name], item.metadata.get("option")
        key = name if look is None else look.flag or name
        try:
            if look is not None:
                value = _read(look, kind, given.pop(key))
                if value is not MISSING:
                    values[name] = value
            elif is_dataclass(kind):
                inner, its = _values(kinds[name], given)
                wrong |= its
                if not its:
                    values[name] = kinds[name](**inner)
        except InputError as error:
            wrong[key] = error
    return values, wrong | _refused(config, {k: v for k, v in values.items() if k in _options(config)})


def _read(look: Option, kind: Any, value: Any) -> Any:
    """Return the value of an option from a text or a value; MISSING where its default counts."""
    members = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if look.many:
        value = [value] if is_path(value) else value or []
        if isinstance(value, list | tuple):
            value = [os.fspath(item) if is_path(item) else str(item) for item in value]
            value = look.read(value) if look.read else value
    elif value is None and type(None) not in members:
        return MISSING
    elif is_path(value):
        path = path_of(value) if Path in members else os.fspath(value)
        value = look.read(value) if look.read else path
    return value.item() if hasattr(value, "item") else value  # a number of numpy


def _parameters(config: Any, defaults: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameter of each option, as typer wants it; what a config inside needs comes first."""
    import typer

    kinds = get_type_hints(config)
    own = list[inspect.Parameter]()
    inside = list[inspect.Parameter]()
    for item in fields(config):
        name = item.name
        kind = kinds[item.name]
        look = item.metadata.get("option")
        if look is None:
            inside += _parameters(kind, defaults) if is_dataclass(kind) else ()
            continue
        default = defaults.get(name, item.default)
        if look.read is not None:
            kind = list[str] | None if look.many else str | None
            default = None if look.many or not isinstance(default, str | int | float) else str(default)
        own_flag = kind is bool or name.endswith("_")  # without a --no-...; `as_` is --as
        flag = (f"--{typed(name)}",) if own_flag else ()
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
