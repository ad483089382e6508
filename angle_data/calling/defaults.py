"""`angle.toml`: a file in a project folder that holds options of commands, by command, and nothing else.

    [llm-label]               # what every llm-label is given here
    texts = "../notes.csv"

    [llm-label.contrast]      # one run of several: its own options, and those above
    prompts = "contrast"

Where it lies in the current folder, every command takes from it what is not given on the command line, and
says so. Paths in it are relative to its folder.
"""

from __future__ import annotations

import difflib
import shlex
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError

if TYPE_CHECKING:
    import typer

PROJECT_FILE = "angle.toml"

Options = dict[str, Any]
"""Options by the names that a function has for them: with `_` for `-`."""


def read_sections(folder: Path) -> dict[str, Options]:
    """Return what angle.toml in a folder says, by command; its runs are dictionaries among the options.

    Raises:
        InputError: There is none, or it is no valid TOML, or holds an option outside a section.
    """
    path = folder / PROJECT_FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} is no project, for it holds no {PROJECT_FILE}; make one with "
            "`angle-data start notes.csv` and go into its folder, or give --project DIR"
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML ({error}); correct it") from None
    for name, section in content.items():
        if not isinstance(section, dict):
            raise InputError(f"{path}: {name!r} stands in no section; write it below one, such as [fit]")
    return {name: _named(section) for name, section in content.items()}


def shared_options(section: Options) -> Options:
    """Return the options of a section without its runs."""
    return {name: value for name, value in section.items() if not isinstance(value, dict)}


def runs_of(section: Options) -> dict[str, Options]:
    """Return the runs of a section by name, each with what all share; one without a name if it has none."""
    shared = shared_options(section)
    runs = {name: value for name, value in section.items() if isinstance(value, dict)}
    return {name: shared | own for name, own in runs.items()} or {"": shared}


def _named(section: Mapping[str, Any]) -> Options:
    """Return a section with its options by the names that functions have for them."""
    runs = {name: _named(value) for name, value in section.items() if isinstance(value, dict)}
    own = {name.replace("-", "_"): value for name, value in section.items() if name not in runs}
    return own | runs


def default_map(app: typer.Typer, folder: Path) -> dict[str, Options]:
    """Return the options in a folder's angle.toml as typer's `default_map`; empty where there is no file.

    Raises:
        InputError: The file is damaged, a command has no such option, or one with a value is true or false.
    """
    if not (folder / PROJECT_FILE).is_file():
        return {}
    from typer.main import get_command

    known: Mapping[str, Any] = getattr(get_command(app), "commands", {})
    found = dict[str, Options]()
    for name, section in read_sections(folder).items():
        if (command := known.get(name)) is None:
            continue  # of the other program
        several = {p.name: getattr(p, "multiple", False) or p.nargs == -1 for p in command.params}
        flags = {p.name for p in command.params if getattr(p, "is_flag", False)}
        place = f"{folder / PROJECT_FILE}: [{name}]"
        for run in runs_of(section).values():
            check_known(run, several, place)
            for option, value in run.items():
                if isinstance(value, bool) and option not in flags:  # else a number would read it as 1 or 0
                    flag = option.replace("_", "-")
                    raise InputError(f"{place} {flag} takes a value, got {str(value).lower()}")
        found[name] = {
            option: [value] if several[option] and not isinstance(value, list) else value
            for option, value in shared_options(section).items()
        }
    return found


def check_known(given: Iterable[str], known: Collection[str], place: str) -> None:
    """Raise an `InputError` about the first option that a command has not; it names the nearest."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0].replace('_', '-')}?" if near else ""
            raise InputError(f"{place} has no option {name.replace('_', '-')!r}{hint}")


def hint_on(error: Exception, options: Mapping[str, Options]) -> str:
    """Return what to add to an error about what an option from angle.toml names: it opens with that name."""
    given = (value for section in options.values() for value in section.values())
    named = (str(one) for value in given for one in (value if isinstance(value, list) else [value]))
    about = any(str(error).startswith(f"{name} ") for name in named)
    return "; `angle-data status` says what comes first in this project" if about else ""


def command_words(program: str, options: Mapping[str, Any]) -> str:
    """Return a command in a shell's quoting: its first words, and the names and values of its options.

    A list repeats the option for each of its values, True makes a flag, and options with None, False or
    nothing are left out.
    """
    words = [program]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False and value != "":
            several = value if isinstance(value, list | tuple) else [value]
            words += [f"{flag} {shlex.quote(str(one))}" for one in several]
    return " ".join(words)
