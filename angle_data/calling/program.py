"""What both command-line programs share: the app with --version, error lines, and exit codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from angle_data.calling.defaults import (
    PROJECT_FILE,
    Options,
    check_known,
    read_sections,
    runs_of,
    shared_options,
    typed,
)
from angle_data.calling.interrupts import EXIT_INTERRUPTED, like_ctrl_c, said_of
from angle_data.errors import AngleError, InputError, StoppedError
from angle_data.text import printable

if TYPE_CHECKING:
    import typer

_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # they come without the name of a file, too

_ASKS = {"--help", "--version"}


def make_app(program: str, about: str) -> typer.Typer:
    """Return a program that has no commands yet, but for `--version`; `about` opens its help."""
    import typer

    from angle_data.calling.commands import Program

    app = Program(name=program, no_args_is_help=True)

    @app.callback(help=about, invoke_without_command=True)
    def _(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
        if version:
            from importlib.metadata import version as version_of

            typer.echo(f"angle-toolkit {version_of('angle-toolkit')}")
            raise typer.Exit

    return app


def run_app(app: Callable[..., Any], program: str) -> None:
    """Run a typer app and turn the errors a user can fix into one line and the documented exit code.

    What is not given to a command comes from angle.toml in the current folder, if that is there.

    A SIGTERM, as containers and batch systems send it, and the SIGHUP of a closed terminal are taken like a
    Ctrl-C. A KeyboardInterrupt may carry what is to be said beside "interrupted".
    """

    def end(line: str, code: int) -> NoReturn:
        with suppress(OSError, ValueError):  # the terminal may be gone, or stderr closed
            print(printable(f"{program}: {line}"), file=sys.stderr)  # noqa: T201 - errors go here
        sys.exit(code)

    options = dict[str, Any]()
    try:
        with like_ctrl_c():
            # Help and version are for those, too, who look for a slip in the file.
            with suppress(InputError) if _ASKS & {*sys.argv} else nullcontext():
                options |= _default_map(cast("typer.Typer", app), Path())
            app(**({"default_map": options} if options else {}))
    except AngleError as error:
        # A limit that was reached is no error.
        kind = "" if isinstance(error, StoppedError) else "error: "
        end(f"{kind}{error}{_hint_on(error, options)}", error.exit_code)
    except SystemExit as stop:
        # Typer makes exits of its own of a Ctrl-C, without a word, and of a reader of our stdout (such as
        # `head`) that went away, which is no error.
        if stop.code == EXIT_INTERRUPTED:
            end(said_of(stop), EXIT_INTERRUPTED)
        if isinstance(stop.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except KeyboardInterrupt as stop:
        end(said_of(stop), EXIT_INTERRUPTED)
    except OSError as error:
        # A read-only folder, a full or failing disk, a missing right: the user's to mend. Errors of
        # connections and the like carry no file name and are defects here.
        if error.filename is None and error.errno not in _OF_DISKS:
            raise
        place = f"{error.filename}: " if error.filename is not None else ""
        fix = "check the disk" if error.errno == errno.EIO else "choose another place, or make room"
        end(f"error: {place}{error.strerror}; {fix}", AngleError.exit_code)
    except MemoryError:
        end("error: out of memory; give it more, or less to do at once", AngleError.exit_code)


def _default_map(app: typer.Typer, folder: Path) -> dict[str, Options]:
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
        names = {p.name.rstrip("_"): p.name for p in command.params}  # `as` is the parameter `as_`
        several = {p.name for p in command.params if getattr(p, "multiple", False) or p.nargs == -1}
        flags = {p.name for p in command.params if getattr(p, "is_flag", False)}
        place = f"{folder / PROJECT_FILE}: [{name}]"
        for run in runs_of(section).values():
            check_known(run, names, place)
            for option, value in run.items():
                # A number would read true as 1.
                if isinstance(value, bool) and names[option] not in flags:
                    raise InputError(f"{place} {typed(option)} takes a value, got {str(value).lower()}")
        found[name] = {
            names[option]: [value] if names[option] in several and not isinstance(value, list) else value
            for option, value in shared_options(section).items()
        }
    return found


def _hint_on(error: Exception, options: Mapping[str, Options]) -> str:
    """Return what to add to an error about what an option from angle.toml names: it opens with that name."""
    given = (value for section in options.values() for value in section.values())
    named = (str(one) for value in given for one in (value if isinstance(value, list) else [value]))
    about = any(str(error).startswith(f"{name} ") and not name.startswith("http") for name in named)
    return "; `angle-data status` says what comes first in this project" if about else ""
