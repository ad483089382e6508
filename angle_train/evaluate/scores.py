"""From what models did on tasks to figures with intervals, differences to a baseline, and averages."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_data.text import stable_hash
from angle_train.evaluate.bootstrap import (
    Difference,
    Interval,
    difference_between,
    draw,
    interval_around,
    resamples_for,
)
from angle_train.evaluate.seeds import SeedTest, System, seed_test
from angle_train.evaluate.tasks.registry import AVERAGES, GROUPS, Outcome

log = logging.getLogger("angle.evaluate")

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One figure of one system on one task, or the average of a group of tasks.

    Attributes:
        task: Name of the task, or `GROUP average`.
        metric: Name of the figure.
        count: Scored items, or tasks for an average.
        system: Name of the system.
        values: The figure of every member (seed); `score` is about their mean.
        score: With its interval over items.
        main: Whether it is the task's main figure.
        standard: Whether the set has its published size; None where there is none.
        spread: Standard deviation over seeds; None for a single model.
        baseline: What `difference` and `seed_test` compare with.
        difference: Over items, paired; its verdict takes the seeds into account.
        seed_test: Over seeds.
        details: See `Outcome`; those of the first member.
    """

    task: str
    metric: str
    count: int
    system: str
    values: list[float]
    score: Interval
    main: bool
    standard: bool | None = None
    spread: float | None = None
    baseline: str | None = None
    difference: Difference | None = None
    seed_test: SeedTest | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the verdict spelt out."""
        row = {name: getattr(self, name) for name in ("task", "metric", "count", "system", "values", "main")}
        row |= {"standard_size": self.standard, "sd_over_seeds": self.spread, "baseline": self.baseline}
        row["score"] = asdict(self.score)
        row["difference"] = asdict(self.difference) if self.difference else None
        row["verdict"] = self.difference.verdict if self.difference else None
        row["seed_test"] = asdict(self.seed_test) if self.seed_test else None
        return row | {"details": dict(self.details)}


@dataclass(frozen=True, slots=True)
class _Figure:
    """One figure under every system: the members' values (M,) and the resampled mean over members (R,)."""

    task: str
    metric: str
    count: int
    main: bool
    standard: bool | None
    columns: Mapping[str, tuple[Array, Array]]


class Judge:
    """Collects the outcomes of tasks and judges them.

    Args:
        systems: All that were measured, the baseline among them.
        baseline: What the others are compared with; default nothing.
        resamples: Of the bootstrap.
    """

    def __init__(self, systems: Sequence[System], baseline: System | None, resamples: int) -> None:
        self._systems, self._baseline, self._resamples = systems, baseline, resamples
        self._main: dict[str, _Figure] = {}

    def task(self, name: str, standard_size: int | None, outcomes: Mapping[str, Outcome]) -> list[Score]:
        """Return the scores of one task, figure by figure, from the outcome of every model."""
        scores = []
        for number, metric in enumerate(next(iter(outcomes.values())).statistics):
            figure = self._figure(name, metric, standard_size, outcomes, main=number == 0)
            if figure.main:
                self._main[name] = figure
                if figure.standard is False:
                    log.warning(
                        "%s: %d scored items, the published set has %d: no figures to compare with",
                        name,
                        figure.count,
                        standard_size,
                    )
            scores += [
                self._score(figure, system, outcomes[system.members[0]].details if figure.main else {})
                for system in self._systems
            ]
        return scores

    def averages(self) -> list[Score]:
        """Return the papers' averages over groups of tasks; of those alone that are there in standard size.

        Tasks are resampled independently of each other, although some share pairs (STS-B is chosen from
        the years' sets), so the intervals are a little too narrow.
        """
        scores = []
        for group in AVERAGES:
            figures = [self._main[task] for task in GROUPS[group] if task in self._main]
            if len(figures) < len(GROUPS[group]) or any(figure.standard is False for figure in figures):
                if figures:
                    tasks = ", ".join(GROUPS[group])
                    log.info("no %s average: it needs all of %s in their published size", group, tasks)
                continue
            columns = {system.name: _averaged(figures, system.name) for system in self._systems}
            whole = _Figure(f"{group} average", figures[0].metric, len(figures), True, True, columns)
            scores += [self._score(whole, system, {}) for system in self._systems]
        return scores

    def _figure(
        self,
        task: str,
        metric: str,
        standard_size: int | None,
        outcomes: Mapping[str, Outcome],
        *,
        main: bool,
    ) -> _Figure:
        of_models = {member: outcome.statistics[metric] for member, outcome in outcomes.items()}
        count = next(iter(of_models.values())).size
        drawn = draw(
            list(of_models.values()), resamples_for(count, self._resamples), seed=stable_hash(task) % 2**32
        )
        resampled = dict(zip(of_models, drawn, strict=True))
        columns = {
            system.name: (
                np.array([of_models[member].value() for member in system.members]),
                np.mean([resampled[member] for member in system.members], axis=0),
            )
            for system in self._systems
        }
        standard = None if standard_size is None else count == standard_size
        return _Figure(task, metric, count, main, standard, columns)

    def _score(self, figure: _Figure, system: System, details: Mapping[str, Any]) -> Score:
        values, drawn = figure.columns[system.name]
        mean = float(values.mean())
        compared = self._baseline is not None and self._baseline.name != system.name
        difference = seeds = None
        if self._baseline is not None and compared:
            old_values, old_drawn = figure.columns[self._baseline.name]
            seeds = seed_test(self._baseline, old_values.tolist(), system, values.tolist())
            delta = mean - float(old_values.mean())
            agree = seeds.supports(delta) if seeds else None
            difference = replace(difference_between(delta, old_drawn, drawn), seeds_agree=agree)
        return Score(
            task=figure.task,
            metric=figure.metric,
            count=figure.count,
            system=system.name,
            values=values.tolist(),
            score=interval_around(mean, drawn),
            main=figure.main,
            standard=figure.standard,
            spread=statistics.stdev(values.tolist()) if len(values) > 1 else None,
            baseline=self._baseline.name if self._baseline is not None and compared else None,
            difference=difference,
            seed_test=seeds,
            details=details,
        )


def _averaged(figures: Sequence[_Figure], system: str) -> tuple[Array, Array]:
    """Return the mean over tasks of the members' values and of the resampled ones."""
    columns = [figure.columns[system] for figure in figures]
    shortest = min(len(drawn) for _, drawn in columns)
    values: Array = np.mean([values for values, _ in columns], axis=0)
    resampled: Array = np.mean([drawn[:shortest] for _, drawn in columns], axis=0)
    return values, resampled
