"""Whether the steps of a project can be taken: values, prompts, models, keys, prices and files.

All is looked at before the first request, the training too: a wrong value of a later step would else stop the
path when money has been spent. Nothing is sent, and of a file of texts the first text alone is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import price_of
from angle_data.annotators.spec import AnnotatorSpec, EngineConfig
from angle_data.annotators.transport import service_headers
from angle_data.calling.checks import errors_of
from angle_data.calling.defaults import PROJECT_FILE, Options, shared_options
from angle_data.calling.options import make, path_of, with_defaults, wrong_values
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import AngleError, InputError
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import LabelJob
from angle_data.labelling.mine import MineConfig
from angle_data.labelling.prompts import load_prompt, load_prompts
from angle_data.labelling.score import prompt_path
from angle_data.look.config import GradeConfig
from angle_data.look.grade import SHEET_SPLITS, split_file
from angle_data.project.steps import COMMANDS, Step, real_path
from angle_data.records import read_run_file

_CONFIGS: dict[str, type[Any]] = {
    "llm-label": LabelConfig,
    "mine": MineConfig,
    "llm-score": ScoreConfig,
    "ensemble": EnsembleConfig,
    "grade": GradeConfig,
}
OF_OTHER_PROGRAMS = {"fit": "angle_train.given:look_at_section"}
"""Sections of another program -> "module:function": options and place in, errors and files read out."""
_WRITE_FILES = ("mine", "grade")
"""Commands that write a file; the others write a folder."""
_WHO_ANSWERS = {"model", "engine", "checkpoint", "base_url", "api_key_env", "header", "replies"}
"""Options without which nobody knows whether a model or its key is there."""


def problems(folder: Path, steps: Sequence[Step], sections: Mapping[str, Options]) -> list[str]:
    """Return what keeps a project in `folder` from coming to its end: one line each.

    `steps` are those of its `sections`; those of another program are looked at as well.
    """
    found = [error for _, _, errors in _looked_at(folder, steps) for error in errors]
    return [str(error) for error in [*found, *section_errors(folder, steps, sections)]]


def section_errors(folder: Path, steps: Sequence[Step], sections: Mapping[str, Options]) -> list[AngleError]:
    """Return what is wrong in the sections of another program, see `OF_OTHER_PROGRAMS`."""
    written = {file for step in steps for file in _written_by(step)}
    found = list[AngleError]()
    for name in OF_OTHER_PROGRAMS.keys() & sections.keys():
        place = f"{folder / PROJECT_FILE}: [{name}]"
        with chdir(folder):
            errors, files = resolve_name(OF_OTHER_PROGRAMS[name])(shared_options(sections[name]), place)
            found += [*errors, *(InputError(f"{place} {error}") for error in _missing(files, written))]
    return found


def ready(
    folder: Path, steps: Sequence[Step], *, price: str | None = None, max_usd: float | None = None
) -> list[Step]:
    """Return the steps with the prices that they need, when all can be taken.

    Args:
        folder: The project.
        steps: Its steps.
        price: `IN,OUT` of the models whose price neither angle.toml nor the toolkit knows. Without it, that
            of an earlier session with the same model, asked in the same way at the same address, counts.
        max_usd: A limit, which needs the price of every model.

    Raises:
        AngleError: A step cannot be taken, or a price that is needed is not known.
    """
    done = []
    for step, spec, errors in _looked_at(folder, steps):
        if errors:
            raise errors[0]
        if spec is not None:
            known = price or _price_before(folder, spec, [step, *steps])
            step = _priced(folder, step, spec, known, needed=max_usd is not None)
        done.append(step)
    return done


def _looked_at(
    folder: Path, steps: Sequence[Step]
) -> Iterator[tuple[Step, AnnotatorSpec | None, list[AngleError]]]:
    """Yield every step with the model that it asks, if any, and with all that keeps it from being taken."""
    written = set[Path]()
    for step in steps:
        with chdir(folder):
            spec, errors = _look(step, written)
        for error in errors:
            error.args = (f"{folder / PROJECT_FILE}: {step.section} {error}",)
        written |= _written_by(step)
        yield step, spec, errors


def _written_by(step: Step) -> set[Path]:
    """Return what a step writes that a later one may read, relative to the project."""
    if step.command != "grade":
        return {step.out}
    return {step.out, *(split_file(step.out, split) for split in SHEET_SPLITS)}


def _look(step: Step, written: set[Path]) -> tuple[AnnotatorSpec | None, list[AngleError]]:
    """Return the model that a step asks, and what is wrong with its options, in the project's folder.

    What is wrong by itself counts as not given, so that it does not hide the rest.
    """
    config = _CONFIGS[step.command]
    given = with_defaults(COMMANDS[step.command], step.options)
    wrong = wrong_values(config, given)
    known: list[AngleError] = [*wrong.values(), *_no_place(step), *_missing(step.reads, written)]
    if wrong.keys() & _WHO_ANSWERS:
        return None, known
    defaults = with_defaults(COMMANDS[step.command], {})
    options = given | {key: defaults[key] for key in wrong}
    specs = list[AnnotatorSpec]()
    checks: list[Callable[[], object]] = []
    if config in (LabelConfig, ScoreConfig):  # apart from the rest, which may be refused with a good engine
        out = step.out
        checks.append(lambda: specs.append(choose_annotator(make(EngineConfig, dict(options)), out)))
    try:
        made = make(config, dict(options))
    except AngleError as error:
        known = known if wrong else [error, *known]
    else:
        if isinstance(made, ScoreConfig):
            checks.append(partial(load_prompt, prompt_path(made), {"pairs"}))
        elif isinstance(made, LabelConfig):
            checks.append(partial(load_prompts, made.prompts))
            if not known:  # it reads the first text, by all options
                checks.append(partial(LabelJob, replace(made, limit=1, pilot=None)))
    told = {*map(str, known)}
    found = [*known, *(error for error in errors_of(checks) if str(error) not in told)]
    spec = specs[0] if specs else None
    if spec is not None and spec.paid and not read_run_file(step.out).get("finished"):
        found += errors_of([partial(service_headers, spec)])  # where a key is missing
    return spec, found


def _no_place(step: Step) -> list[InputError]:
    """Return an error where a file stands in the place of the folder that a step writes, or above it."""
    folder = step.out.parent if step.command in _WRITE_FILES else step.out
    there = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
    if there.is_dir() or not os.path.lexists(there):
        return []
    which = "is" if there == step.out else f"is below {there},"
    return [InputError(f"out: {step.out} {which} a file or a link to nothing; give another place")]


def _missing(files: Iterable[tuple[str, str]], written: Collection[Path]) -> list[InputError]:
    """Return an error about each file that is not there, and that no earlier step writes."""
    found = list[InputError]()
    for name, file in files:
        path = path_of(file)
        will_be = any(real_path(path).is_relative_to(real_path(out)) for out in written)
        if not (will_be or os.path.exists(path)):
            said = (
                f"{name.replace('_', '-')}: {file} is not there, seen from the project, and no step "
                "before writes it; put it back, or correct its path (was the project moved?)"
            )
            found.append(InputError(said))
    return found


def _price_before(folder: Path, spec: AnnotatorSpec, steps: Iterable[Step]) -> str | None:
    """Return the price that an earlier session of a step was given for the same model at the same address."""
    asked = {"checkpoint": spec.checkpoint, "engine": spec.engine, "base_urls": list(spec.base_urls)}
    runs = (read_run_file(folder / step.out) for step in steps)
    same = (run for run in runs if all(run.get(name) == value for name, value in asked.items()))
    prices = (run.get("usd_per_million") for run in same)
    before = next((price for price in prices if isinstance(price, dict)), None)
    return None if before is None else f"{before['input']:g},{before['output']:g}"


def _priced(folder: Path, step: Step, spec: AnnotatorSpec, price: str | None, *, needed: bool) -> Step:
    """Return a step with a price for its model, if one is to be had; see `ready`."""
    with chdir(folder):
        if not spec.paid or price_of(replace(spec, max_usd=None, max_tokens_total=None)) is not None:
            return step
    if price is not None:
        return replace(step, options=step.options | {"price": price})
    if needed:
        raise InputError(
            f"--max-usd needs a price, and that of {spec.checkpoint!r} at {spec.addresses[0]} is not known: "
            f'give --price IN,OUT (USD per million tokens), or write price = "IN,OUT" below {step.section} '
            f"in {folder / PROJECT_FILE}"
        )
    return step
