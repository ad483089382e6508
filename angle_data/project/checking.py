"""Whether the steps of a project can be taken: values, prompts, models, keys, prices and files.

All is looked at before the first request, the training too: a wrong value of a later step would else stop the
path when money has been spent. Nothing is sent, and of a file of texts the first text alone is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import price_of
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import service_headers
from angle_data.calling.defaults import PROJECT_FILE, Options, shared_options
from angle_data.calling.options import make, with_defaults
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import AngleError, InputError
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import LabelJob
from angle_data.labelling.mine import MineConfig
from angle_data.labelling.prompts import load_prompt
from angle_data.labelling.score import prompt_path
from angle_data.look.command import GradeConfig
from angle_data.look.grade import SHEET_SPLITS, split_file
from angle_data.project.steps import COMMANDS, Step
from angle_data.records import read_run_file

_CONFIGS: dict[str, type[Any]] = {
    "llm-label": LabelConfig,
    "mine": MineConfig,
    "llm-score": ScoreConfig,
    "ensemble": EnsembleConfig,
    "grade": GradeConfig,
}
OF_OTHER_PROGRAMS = {"fit": "angle_train.given:check_section"}
"""Sections of another program -> "module:function" that checks one: options and place in, files read out."""


def problems(folder: Path, steps: Sequence[Step], sections: Mapping[str, Options]) -> list[str]:
    """Return what keeps a project in `folder` from coming to its end: one line each.

    `steps` are those of its `sections`; those of another program are looked at as well.
    """
    found = [error for _, error in _looked_at(folder, steps) if isinstance(error, AngleError)]
    try:
        check_sections(folder, steps, sections)
    except AngleError as error:
        found.append(error)
    return [str(error) for error in found]


def check_sections(folder: Path, steps: Sequence[Step], sections: Mapping[str, Options]) -> None:
    """Raise an `InputError` about what stands in a section of another program, see `OF_OTHER_PROGRAMS`."""
    written = {file for step in steps for file in _written_by(step)}
    for name in OF_OTHER_PROGRAMS.keys() & sections.keys():
        place = f"{folder / PROJECT_FILE}: [{name}]"
        with chdir(folder):
            files = resolve_name(OF_OTHER_PROGRAMS[name])(shared_options(sections[name]), place)
            try:
                _check_files(files, written)
            except InputError as error:
                raise InputError(f"{place} {error}") from None


def ready(
    folder: Path, steps: Sequence[Step], *, price: str | None = None, max_usd: float | None = None
) -> list[Step]:
    """Return the steps with the prices that they need, when all can be taken.

    Args:
        folder: The project.
        steps: Its steps.
        price: `IN,OUT` of the models whose price neither angle.toml nor the toolkit knows. Without it, that
            of an earlier session of the same run counts.
        max_usd: A limit, which needs the price of every model.

    Raises:
        AngleError: A step cannot be taken, or a price that is needed is not known.
    """
    done = []
    for step, found in _looked_at(folder, steps):
        if isinstance(found, AngleError):
            raise found
        if found is not None:
            step = _priced(folder, step, found, price, needed=max_usd is not None)
        done.append(step)
    return done


def _looked_at(
    folder: Path, steps: Sequence[Step]
) -> Iterator[tuple[Step, AnnotatorSpec | AngleError | None]]:
    """Yield every step with the model that it asks, if any, or with why it cannot be taken."""
    written = set[Path]()
    for step in steps:
        try:
            with chdir(folder):
                found: AnnotatorSpec | AngleError | None = _look(step, written)
        except AngleError as error:
            error.args = (f"{folder / PROJECT_FILE}: {step.section} {error}",)
            found = error
        written |= _written_by(step)
        yield step, found


def _written_by(step: Step) -> set[Path]:
    """Return what a step writes that a later one may read, relative to the project."""
    if step.command != "grade":
        return {step.out}
    return {step.out, *(split_file(step.out, split) for split in SHEET_SPLITS)}


def _look(step: Step, written: set[Path]) -> AnnotatorSpec | None:
    """Return the model that a step asks, having checked all of its options in the project's folder."""
    config = make(_CONFIGS[step.command], with_defaults(COMMANDS[step.command], step.options))
    _check_files(step.reads, written)
    if isinstance(config, LabelConfig):
        spec = LabelJob(replace(config, limit=1, pilot=None)).spec
    elif isinstance(config, ScoreConfig):
        spec = choose_annotator(config.engine, config.out)
        load_prompt(prompt_path(config), {"pairs"})
    else:
        return None
    if spec.paid and not read_run_file(step.out).get("finished"):
        service_headers(spec)  # raises where a key is missing
    return spec


def _check_files(files: Iterable[tuple[str, str]], written: Collection[Path]) -> None:
    """Raise an `InputError` about a file that is not there, and that no earlier step writes."""
    for name, file in files:
        path = Path(file)
        if not (any(path.is_relative_to(out) for out in written) or path.expanduser().exists()):
            raise InputError(
                f"{name.replace('_', '-')}: {file} is not there, seen from the project, and no step "
                "before writes it; put it back, or correct its path (was the project moved?)"
            )


def _priced(folder: Path, step: Step, spec: AnnotatorSpec, price: str | None, *, needed: bool) -> Step:
    """Return a step with a price for its model, if one is to be had; see `ready`."""
    with chdir(folder):
        if not spec.paid or price_of(replace(spec, max_usd=None, max_tokens_total=None)) is not None:
            return step
        before = read_run_file(step.out).get("usd_per_million")
    if price is None and isinstance(before, dict):
        price = f"{before['input']:g},{before['output']:g}"
    if price is not None:
        return replace(step, options=step.options | {"price": price})
    if needed:
        raise InputError(
            f"--max-usd needs a price, and that of {spec.checkpoint!r} at {spec.addresses[0]} is not known: "
            f'give --price IN,OUT (USD per million tokens), or write price = "IN,OUT" below {step.section} '
            f"in {folder / PROJECT_FILE}"
        )
    return step
