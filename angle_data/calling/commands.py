"""Commands of both programs: an option that takes one value is given once, one from angle.toml is called so.

Click takes the last of several values and drops the others without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from angle_data.calling.defaults import PROJECT_FILE, typed
from angle_data.calling.options import from_project
from angle_data.errors import AngleError, InputError


class Program(typer.Typer):
    """A program, or a command with commands of its own; what it is given is checked as this file says."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, pretty_exceptions_enable=False, rich_markup_mode=None, **options)

    def command(self, name: str | None = None, **options: Any) -> Any:
        """Return what makes a command of a function."""
        return super().command(name, cls=_Command, **options)


class _Checked:
    """What a command and a group have in common; it stands before the class of typer."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _check_given_once(self, ctx, args)
        with _told_of_file(ctx):
            parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return parsed

    def invoke(self, ctx: Any) -> Any:
        with _told_of_file(ctx):
            return super().invoke(ctx)  # type: ignore[misc]


class _Command(_Checked, TyperCommand):
    pass


class _Group(_Checked, TyperGroup):
    pass


def _check_given_once(command: Any, context: Any, given: Sequence[str]) -> None:
    """Refuse a command line that gives an option more than once, although it takes one value."""
    if context.resilient_parsing:  # the shell completes a line that is not finished
        return
    *_, order = command.make_parser(context).parse_args(args=[*given])
    if any(parameter.is_eager for parameter in order):  # --help, which comes before any mistake
        return
    for parameter in order:
        one_value = parameter.param_type_name == "option" and not (
            parameter.multiple or parameter.is_flag or parameter.count
        )
        if one_value and order.count(parameter) > 1:
            context.fail(f"{max(parameter.opts, key=len)} is given more than once; give it once")


@contextmanager
def _told_of_file(context: Any) -> Iterator[None]:
    """Let an error about an option that came from angle.toml say so."""
    place = f"{PROJECT_FILE}: [{context.info_name}]"
    try:
        yield
    except typer.BadParameter as error:
        name = getattr(error.param, "name", None)
        taken = from_project(context)
        if name not in taken:
            raise
        value = json.dumps(taken[name], ensure_ascii=False, default=str)
        raise InputError(f"{place} {typed(name)} = {value}: {error.message}; correct it") from None
    except AngleError as error:
        flags = [f"--{typed(name)}" for name in from_project(context)]
        about = str(error).partition(" ")[0].rstrip(":")
        if about in flags and getattr(context, "invoked_subcommand", None) is None:
            error.args = (f"{place} {error}",)
        raise
