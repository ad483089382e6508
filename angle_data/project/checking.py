"""Whether the steps of a project can be taken: values, prompts, models, keys, prices and files.

All is looked at before the first request: a wrong value of a later step would else stop the path when money
has been spent. Nothing is sent, and of a file of texts the first text alone is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import price_of
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import service_headers
from angle_data.calling.defaults import PROJECT_FILE
from angle_data.calling.options import make, with_defaults
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import AngleError, InputError
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import LabelJob
from angle_data.labelling.mine import MineConfig
from angle_data.labelling.prompts import load_prompt
from angle_data.labelling.score import prompt_path
from angle_data.look.command import GradeConfig
from angle_data.project.steps import COMMANDS, Step
from angle_data.records import read_run_file

_CONFIGS: dict[str, type[Any]] = {
    "llm-label": LabelConfig,
    "mine": MineConfig,
    "llm-score": ScoreConfig,
    "ensemble": EnsembleConfig,
    "grade": GradeConfig,
}
_READ = ("texts", "replies", "runs", "pairs", "scores", "data", "embeddings", "prices")
# Options that name what a step reads; what an earlier step writes need not be there yet.


def problems(folder: Path, steps: Sequence[Step]) -> list[str]:
    """Return what keeps the steps of a project in `folder` from being taken: one line each."""
    return [str(error) for _, found in _looked_at(folder, steps) if isinstance(error := found, AngleError)]


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
        written.add(step.out)
        yield step, found


def _look(step: Step, written: set[Path]) -> AnnotatorSpec | None:
    """Return the model that a step asks, having checked all of its options in the project's folder."""
    config = make(_CONFIGS[step.command], with_defaults(COMMANDS[step.command], step.options))
    _check_files(step, written)
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


def _check_files(step: Step, written: set[Path]) -> None:
    """Raise an `InputError` about a file that is not there, and that no earlier step writes."""
    for name in _READ:
        given = step.options.get(name) or []
        for file in given if isinstance(given, list) else [given]:
            if not (Path(file) in written or Path(file).expanduser().exists()):
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
