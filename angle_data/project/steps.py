"""The sections of `angle.toml` as long commands, in the order in which a project takes them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from angle_data.calling.defaults import PROJECT_FILE, Options, check_known, command_words, runs_of
from angle_data.calling.options import NOT_OPTIONS, is_path, path_of
from angle_data.ensembling.command import ensemble
from angle_data.errors import InputError
from angle_data.labelling.command import llm_label, llm_score, mine
from angle_data.look.command import grade

COMMANDS: dict[str, Callable[..., None]] = {
    "llm-label": llm_label,
    "mine": mine,
    "llm-score": llm_score,
    "ensemble": ensemble,
    "grade": grade,
}
"""The commands of a project's sections, in the usual order of its steps."""
ASKING = ("llm-label", "llm-score")
"""Those that ask a model, and may cost money."""
_READ = (
    "texts", "replies", "runs", "pairs", "scores", "data", "embeddings", "prices", "negatives",
    "query_embeddings",
)  # fmt: skip
# Options that name what a step reads.
# The command itself asks for these with a whole line to copy, so they have defaults in its signature.
_NEEDED_TOO = {"llm-label": ["texts"]}
_ARGUMENTS = {"mine": "runs", "llm-score": "runs", "ensemble": "runs", "grade": "data"}  # they have no flag


@dataclass(frozen=True, slots=True)
class Step:
    """A long command of a project: its name and its options, by the names that functions have for them.

    `run` is the name of the run, where its section has several.
    """

    command: str
    options: Options
    run: str = ""

    @property
    def section(self) -> str:
        """The section of `angle.toml` that it comes from."""
        return f"[{self.command}{f'.{self.run}' if self.run else ''}]"

    @property
    def out(self) -> Path:
        """What it writes, relative to the project unless it is absolute or in the home folder."""
        return path_of(self.options["out"])

    @property
    def reads(self) -> list[tuple[str, str]]:
        """The files and folders that it reads, each with the option that names it."""
        given = ((name, self.options.get(name) or []) for name in _READ)
        every = ((name, value if isinstance(value, list) else [value]) for name, value in given)
        return [(name, file) for name, files in every for file in files]

    def needs(self, other: Step, folder: Path) -> bool:
        """Return whether it reads what another step writes, in the project's folder."""
        written = real_path(folder / other.out)
        return any(real_path(folder / path_of(file)).is_relative_to(written) for _, file in self.reads)

    @property
    def line(self) -> str:
        """The command as it is typed in the project's folder."""
        options = dict(self.options)
        given = options.pop(_ARGUMENTS.get(self.command, ""), [])
        arguments = map(quote, given if isinstance(given, list) else [given])
        return command_words(" ".join(["angle-data", self.command, *arguments]), options)


def steps_of(sections: Mapping[str, Options], folder: Path) -> list[Step]:
    """Return the steps of a project, in order; those of `fit` and other programs are not among them.

    The order is that of `COMMANDS`, but a step that reads what another writes comes after it.

    Raises:
        InputError: A section has an option that its command has not, lacks one that it needs, or names
            a file by what is no path.
    """
    steps = []
    for command, function in COMMANDS.items():
        known = inspect.signature(function).parameters
        needed = [name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty]
        needed += _NEEDED_TOO.get(command, [])
        for name, options in runs_of(sections[command]).items() if command in sections else ():
            place = f"{folder / PROJECT_FILE}: [{command}{f'.{name}' if name else ''}]"
            check_known(options, known.keys() - NOT_OPTIONS, place)
            if missing := [name for name in [*needed, "out"] if name not in {*options, *NOT_OPTIONS}]:
                raise InputError(f"{place} lacks {missing[0].replace('_', '-')}; add it")
            step = Step(command, options, name)
            for option, path in [*step.reads, ("out", options["out"])]:
                if not is_path(path):
                    raise InputError(f"{place} {option.replace('_', '-')} must be a path, got {path!r}")
            steps.append(step)
    if not steps:
        raise InputError(f"{folder / PROJECT_FILE} has no section of a step; see `angle-data start --help`")
    return _in_order(steps, folder)


def real_path(path: Path) -> Path:
    """Return where a path leads, however it is spelled; what is no path (a NUL, a loop of links) stays."""
    try:
        return Path(os.path.realpath(path))  # Path.resolve raises at a loop of links
    except ValueError:
        return path.absolute()


def _waits(step: Step, ahead: Sequence[Step], folder: Path) -> bool:
    """Return whether a step reads what another of those that are still ahead writes."""
    return any(step.needs(other, folder) for other in ahead if other is not step)


def _in_order(steps: Sequence[Step], folder: Path) -> list[Step]:
    """Return the steps with each after those whose results it reads, and else as they are."""
    ahead = list(steps)
    done = list[Step]()
    while ahead:
        ready = (one for one in ahead if not _waits(one, ahead, folder))
        if (step := next(ready, None)) is None:
            names = " and ".join(one.section for one in ahead)
            raise InputError(
                f"{folder / PROJECT_FILE}: {names} wait for each other: each reads what another writes; "
                "correct what they read"
            )
        ahead.remove(step)
        done.append(step)
    return done
