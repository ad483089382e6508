"""The commands `angle-data start`, `pilot`, `run` and `status`: options in, one call, what came of it out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from angle_data.annotators.spec import read_price
from angle_data.calling.defaults import PROJECT_FILE, command_words
from angle_data.calling.options import check_values, option, with_options
from angle_data.errors import InputError
from angle_data.project.start import QUESTIONS, StartConfig
from angle_data.project.status import forecast_usd

if TYPE_CHECKING:
    from angle_data.project.project import Project

_FOLDER = "Folder of the project."
_PURPOSES = {
    **dict.fromkeys(("y", "yes", "opposites"), "opposites"),
    **dict.fromkeys(("n", "no", "topics"), "topics"),
    "search": "search",
}
_PRICE = "USD per million prompt and reply tokens, of models whose price is not known."


@with_options(StartConfig)
def start(config: StartConfig) -> tuple[dict[str, Any], str]:
    """Make a project of a file of texts: a folder whose angle.toml holds the options of all that follows.

    Three questions are asked in a terminal: which column, whether opposites must be kept apart (or is it for
    search), and who writes. Options answer them, too; --yes takes what is proposed. What leaves this machine
    later: your texts and the prompts, to the model that you name, and nothing else.

    Example: angle-data start notes.csv

    In a script: angle-data start notes.csv --text-field note --purpose opposites --model gpt-4o-mini
    """
    from angle_data.project.start import judged_by, write_project

    config = _answered(config)
    folder, count, is_new = write_project(config)
    go = "" if folder.resolve() == Path().resolve() else f"cd {quote(str(folder))} && "
    made = "all options; change what you like" if is_new else "was there, and says the same: unchanged"
    then = "pilot   (50 texts first: what they cost, and pairs to read)" if is_new else "status"
    lines = [
        f"project  {folder / 'angle.toml'}  ({made})",
        f"texts    {count:,} of {config.texts}, column {config.text_field}",
        f"purpose  {config.purpose}, written by {config.model}",
        f"judged   by {judged_by(config)}",
        f"next     {go}angle-data {then}",
    ]
    if config.grader is not None and config.grader == config.model:
        lines.append("note     a model's grades of what it wrote itself do not count; name another --grader")
    inside = go and folder.resolve().is_relative_to(Path().resolve())
    if is_new and inside and Path(PROJECT_FILE).is_file():
        lines.append("note     it lies in the folder of another project; give --out DIR to have it elsewhere")
    return {"folder": folder, "texts": count}, "\n".join(lines)


def _answered(config: StartConfig) -> StartConfig:
    """Return the config with an answer to every question."""
    from angle_data.project.start import answered, proposals

    proposed, columns = proposals(config.texts)
    if len(columns) < 2:  # nothing to choose
        proposed_alone = {"text_field": proposed["text_field"]} if config.text_field is None else {}
        config = answered(config, proposed_alone)
    missing = [name for name in QUESTIONS if getattr(config, name) is None]
    if config.yes:
        return answered(config, {name: proposed[name] for name in missing})
    if missing and not in_terminal():
        given = {name: getattr(config, name) or proposed[name] for name in QUESTIONS}
        line = command_words(f"angle-data start {quote(str(config.texts))}", given)
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise InputError(f"no terminal to ask in: give {flags}, as in `{line}`, or --yes for just that")
    given = {name: _ask(name, proposed[name], columns, config.base_url) for name in missing}
    return answered(config, given)


def in_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin.isatty()


def _ask(name: str, proposed: str, columns: list[str], base_url: str | None) -> str:
    """Return the answer to a question, which is asked again until it can be used."""
    import typer

    from angle_data.project.start import check_can_ask

    said = f" ({', '.join(columns)})" if name == "text_field" else ""
    while True:
        answer: str = typer.prompt(QUESTIONS[name] + said, default=None if name == "purpose" else proposed)
        if name == "text_field" and answer not in columns:
            continue
        if name == "purpose":
            if answer.lower() in _PURPOSES:
                return _PURPOSES[answer.lower()]
            continue
        try:
            if name == "model":
                check_can_ask(answer, base_url)
        except InputError as error:
            typer.echo(str(error), err=True)
        else:
            return answer


@dataclass(frozen=True, slots=True)
class PilotConfig:
    """What `pilot` needs, see its options."""

    project: Path = option(_FOLDER, Path(), shown="the current one")  # noqa: RUF009
    n: int = option("Texts to ask about first.", 50, ge=1)
    price: tuple[float, float] | None = option(
        _PRICE, None, metavar="IN,OUT", shown="the known price", read=read_price
    )

    def __post_init__(self) -> None:
        check_values(self)


@with_options(PilotConfig)
def pilot(config: PilotConfig) -> tuple[dict[str, Any], str]:
    """Ask about fifty texts first: forecast tokens, cost, time and yield of all, and show ten pairs to read.

    The texts count as done. It stands for llm-label --pilot, with the options in angle.toml. Those of every
    step, and of the training, are checked before the first request.

    Example: angle-data pilot
    """
    project = _open(config.project)
    runs = project.pilot(config.n, price=config.price)
    lines = [f"{run}\n" for run in runs]
    if len(runs) > 1 and (usd := forecast_usd([run.counts for run in runs])) is not None:
        lines.append(f"all of it, by {len(runs)} runs: {usd:.4f} USD\n")
    return {"runs": [dict(run.counts) for run in runs]}, "\n".join([*lines, _next(project)])


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What `run` needs, see its options."""

    project: Path = option(_FOLDER, Path(), shown="the current one")  # noqa: RUF009
    max_usd: float | None = option(
        "Stop before all runs of the project together cost more than this (exit 75).", None, gt=0
    )
    price: tuple[float, float] | None = option(
        _PRICE, None, metavar="IN,OUT", shown="the known price", read=read_price
    )

    def __post_init__(self) -> None:
        check_values(self)


@with_options(RunConfig)
def run(config: RunConfig) -> tuple[dict[str, Any], str]:
    """Label all texts, have a second model grade (if one is named), make pairs, and draw some to grade.

    Each step stands for a long command, which is said, and takes its options from angle.toml. Those of all
    steps, and of the training, are checked before the first request. Stopped at any point, the same command
    goes on; nothing is asked, or paid for, twice.

    Example: angle-data run --max-usd 2
    """
    project = _open(config.project)
    pairs = project.run(config.max_usd, price=config.price)
    counts = {name: sum(kinds.values()) for name, kinds in pairs.summary.pairs.items()}
    return {"pairs": counts, "dataset": pairs.path}, str(project.status())


@dataclass(frozen=True, slots=True)
class StatusConfig:
    """What `status` needs, see its options."""

    project: Path = option(_FOLDER, Path(), shown="the current one")  # noqa: RUF009


@with_options(StatusConfig)
def status(config: StatusConfig) -> tuple[dict[str, Any], str]:
    """Say where a project is: what is done, what was spent, what is missing, and the next command.

    A line `mend` names each wrong value in angle.toml, and each file, model or key that is missing. Nothing
    is sent.

    Example: angle-data status
    """
    found = _open(config.project).status()
    parts = [{"part": name, "says": said} for name, said in found.rows]  # a name may stand more than once
    return {"parts": parts, "usd": found.usd, "next": found.next}, str(found)


def _open(folder: Path) -> Project:
    from angle_data.project.project import Project

    return Project(folder)


def _next(project: Project) -> str:
    return f"next     {project.status().next}"
