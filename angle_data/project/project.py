"""A project folder whose steps can be taken, from a terminal or in Python."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

from angle_data import api
from angle_data.calling.defaults import PROJECT_FILE, read_sections, shared_options
from angle_data.calling.notebook import check_names
from angle_data.calling.options import make, path_of, with_defaults
from angle_data.errors import InputError
from angle_data.look.command import draw_sheet, grade
from angle_data.look.config import GradeConfig
from angle_data.project.checking import problems, ready, section_errors
from angle_data.project.start import StartConfig, answered, proposals, write_project
from angle_data.project.status import ProjectStatus, spent_usd, status_of
from angle_data.project.steps import ASKING, Step, steps_of

log = logging.getLogger("angle.project")

PriceGiven = str | Sequence[float] | None
"""USD per million tokens of prompt and reply: `(0.15, 0.60)` or `"0.15,0.60"`."""
_START_OPTIONS = [item.name for item in fields(StartConfig) if item.name not in ("texts", "yes")]
_LEAST = 1e-9  # USD: a step that has nothing to ask goes through, any other stops at once


class Project:
    """A folder with an `angle.toml`: `Project.start("notes.csv", …)` makes one, `Project("notes")` opens it.

    Each method takes the step of the command of its name, as `angle-data` does in that folder: it goes on
    where it was stopped, raises the same one-line errors as `AngleError`, and logs the long commands that it
    stands for. While a step runs, the current folder is the project's. `angle_train.fit(project)` trains.
    """

    def __init__(self, folder: Any = ".") -> None:
        self.folder = path_of(folder).resolve()
        self.sections = read_sections(self.folder)

    @classmethod
    def start(cls, texts: Any, **options: Any) -> Self:
        """Make a project of a file of texts: the command `angle-data start`.

        Args:
            texts: The file.
            **options: Those of the command: `text_field`, `purpose`, `model` (what is not given is as
                proposed), `grader`, `base_url`, `price`, `backbone`, `out`. Another one is a `TypeError`.
        """
        check_names("Project.start", options, _START_OPTIONS)
        if options.get("out") is not None:
            options["out"] = path_of(options["out"])
        config = StartConfig(path_of(texts), **options | {"yes": True})
        proposed, _ = proposals(config.texts)
        open_questions = {name: value for name, value in proposed.items() if getattr(config, name) is None}
        return cls(write_project(answered(config, open_questions)).folder)

    def __repr__(self) -> str:
        return f"Project {self.folder}\n{self.status()}"

    @property
    def steps(self) -> list[Step]:
        """The long commands of the project, in order."""
        return steps_of(self.sections, self.folder)

    def pilot(self, n: int = 50, *, price: PriceGiven = None) -> list[api.Run]:
        """Have a model write for `n` texts first, and forecast tokens, cost, time and yield of all.

        `price` is as for `run`. Before the first request, every step is checked.
        """
        steps = self._ready(price)
        return [self._take(step, pilot=n) for step in steps if step.command == "llm-label"]

    def run(self, max_usd: float | None = None, *, price: PriceGiven = None) -> api.Pairs:
        """Take every step up to the pairs to grade; stop before all runs together cost more than `max_usd`.

        Before the first request, the options of every step are checked. `price` (USD per million prompt and
        reply tokens, as in `(0.15, 0.60)`) is that of models whose price is not known.

        Returns the pairs to train on.
        """
        results = {}
        for step in self._ready(price, max_usd):
            result = self._take(step, **self._budget(step, max_usd))
            log.info("%s", result)
            results[step.command] = result
        if "ensemble" not in results:
            raise InputError(f"{self.folder / PROJECT_FILE} has no section [ensemble]: nothing makes pairs")
        pairs: api.Pairs = results["ensemble"]
        return pairs

    def grade(self, *, browser: bool = True) -> dict[str, Any]:
        """Serve the page to grade on until it is finished there; return how many pairs are graded."""
        config = self._grade_config({"no_browser": not browser})
        with chdir(self.folder):
            from angle_data.look.command import serve_sheet

            found: dict[str, Any] = serve_sheet(config)[0]
        return found

    def status(self) -> ProjectStatus:
        """Return what the folder has, what was spent, and what comes next."""
        steps = self.steps
        return status_of(self.folder, self.sections, steps, problems(self.folder, steps, self.sections))

    def options_of(self, command: str) -> dict[str, Any]:
        """Return the options of a command, such as `fit`; its paths are relative to the folder."""
        return shared_options(self.sections.get(command, {}))

    def _ready(self, price: PriceGiven, max_usd: float | None = None) -> list[Step]:
        """Return the steps with the prices that they need, once nothing is in the way of any, or of `fit`."""
        steps = ready(self.folder, self.steps, price=_text_of(price), max_usd=max_usd)
        if errors := section_errors(self.folder, steps, self.sections):
            raise errors[0]
        return steps

    def _budget(self, step: Step, max_usd: float | None) -> dict[str, Any]:
        """Return what the other runs leave of the budget to a step that asks a model."""
        if max_usd is None or step.command not in ASKING:
            return {}
        others = [other for other in self.steps if other.command in ASKING and other.out != step.out]
        spent = sum(spent_usd(self.folder / other.out) for other in others)
        left = max_usd - spent
        if spent:
            log.info("of --max-usd %g, %.4f went to other runs: %.4f left", max_usd, spent, max(left, 0.0))
        return {"max_usd": max(left, _LEAST)}

    def _take(self, step: Step, **more: Any) -> Any:
        """Take a step, with more options; say the command first, and what came of it then."""
        step = replace(step, options=step.options | more)
        log.info("$ %s", step.line)
        with chdir(self.folder):
            return _FUNCTIONS[step.command](**step.options | {"out": self._out(step)})

    def _out(self, step: Step) -> Path:
        """Return where a step writes; absolute, as what it returns outlives the folder's being current."""
        return self.folder / step.out

    def _grade_config(self, more: dict[str, Any]) -> GradeConfig:
        return make(GradeConfig, with_defaults(grade, shared_options(self.sections.get("grade", {})) | more))


def _text_of(price: PriceGiven) -> str | None:
    """Return a price as an option has it."""
    return price if price is None or isinstance(price, str) else ",".join(f"{usd:g}" for usd in price)


def _draw(**options: Any) -> str:
    """Draw the pairs to grade; those that were drawn before stay, for they may have grades."""
    config = make(GradeConfig, with_defaults(grade, options))
    if config.out is not None and config.out.exists():
        return f"{config.out}: drawn before"
    return draw_sheet(config)[1]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "llm-label": api.label,
    "mine": api.mine,
    "llm-score": api.score,
    "ensemble": api.ensemble,
    "grade": _draw,
}
