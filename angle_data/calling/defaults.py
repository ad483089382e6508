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
from typing import Any

from angle_data.errors import InputError

PROJECT_FILE = "angle.toml"
SECTION_NAMES = (
    *("start", "pilot", "run", "status", "llm-label", "llm-score", "probe", "mine", "ensemble", "gis"),
    *("show", "grade", "fit", "eval", "encode"),
)
"""The commands of both programs: what a section may be called, whichever of them reads it."""

Options = dict[str, Any]
"""Options by the names that a function has for them: with `_` for `-`."""


def read_sections(folder: Path) -> dict[str, Options]:
    """Return what angle.toml in a folder says, by command; its runs are dictionaries among the options.

    Raises:
        InputError: There is none, it is no valid TOML, holds an option outside a section, or a section that
            is of no command: its options would be left out without a word.
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
        if name not in SECTION_NAMES:
            near = difflib.get_close_matches(name.lower().replace("_", "-"), SECTION_NAMES, n=1)
            hint = f"did you mean [{near[0]}]?" if near else f"there are {', '.join(SECTION_NAMES)}"
            raise InputError(f"{path}: [{name}] is the section of no command; {hint}")
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


def check_known(given: Iterable[str], known: Collection[str], place: str) -> None:
    """Raise an `InputError` about the first option that a command has not; it names the nearest."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {typed(near[0])}?" if near else ""
            raise InputError(f"{place} has no option {name.replace('_', '-')!r}{hint}")


def typed(name: str) -> str:
    """Return an option as a user types it; `as_` is `as`, a word that Python keeps for itself."""
    return name.rstrip("_").replace("_", "-")


def command_words(program: str, options: Mapping[str, Any]) -> str:
    """Return a command in a shell's quoting: its first words, and the names and values of its options.

    A list repeats the option for each of its values, True makes a flag, and options with None, False or
    nothing are left out.
    """
    words = [program]
    for name, value in options.items():
        flag = f"--{typed(name)}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False and value != "":
            several = value if isinstance(value, list | tuple) else [value]
            words += [f"{flag} {shlex.quote(str(one))}" for one in several]
    return " ".join(words)
