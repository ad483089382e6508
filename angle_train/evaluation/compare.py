"""What models did on one task, compared: figures with intervals, paired differences, tests over seeds.

All models of a task are measured on the same resamples, drawn once.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.data.pairs import PairSet
from angle_train.evaluation.bootstrap import (
    RESAMPLES,
    Difference,
    Interval,
    difference_between,
    draw,
    interval_around,
    resamples_for,
)
from angle_train.evaluation.seeds import SeedTest, System, seed_test
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import Ranked, SpearmanOf
from angle_train.evaluation.task import AVERAGES, GROUPS, Outcome

Array = NDArray[np.float64]

WORD_OVERLAP = "word overlap"
SPEARMAN = "spearman"
_ALWAYS = ("pairs", "role", "count", "model", "score", "baseline", "difference")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one model on one task.

    Attributes:
        pairs: Name of the set of pairs, or of a task of another kind; `GROUP average` for an average.
        role: What the set was used for: `dev` (it chose the checkpoint) or `test`.
        count: How many pairs or other items; tasks for an average.
        model: Name of the model, of several that differ in their seed, or `word overlap`.
        score: The figure with its interval over items; of several seeds their mean.
        baseline: The model that `difference` and `seed_test` compare with.
        difference: This model minus the baseline, paired; its verdict takes the seeds into account.
        metric: Name of the figure.
        main: Whether it is the task's main figure.
        standard_size: Whether the set has its published size; None where there is none.
        values: The figure of every seed; nothing for a single model.
        seed_test: The difference over seeds.
        details: See `task.Outcome`; those of the first seed.
    """

    pairs: str
    role: str
    count: int
    model: str
    score: Interval
    baseline: str | None = None
    difference: Difference | None = None
    metric: str = SPEARMAN
    main: bool = True
    standard_size: bool | None = None
    values: tuple[float, ...] = ()
    seed_test: SeedTest | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; None for a single model."""
        return statistics.stdev(self.values) if self.values else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values with the verdict spelt out; what says nothing more about pairs is left out."""
        row = asdict(self)
        found = {name: row.pop(name) for name in _ALWAYS}
        if self.difference:
            found["verdict"] = self.difference.verdict
        usual = {"metric": SPEARMAN, "main": True, "standard_size": None, "seed_test": None}
        found |= {name: value for name, value in row.items() if value not in (usual.get(name), (), {})}
        return found | ({"sd_over_seeds": self.spread} if self.values else {})


@dataclass(frozen=True, slots=True)
class View:
    """B scored pairs as several models see them: what a report looks at beyond the scores.

    Attributes:
        name: Of the set.
        text1: First texts.
        text2: Second texts.
        gold: Gold scores (B,), larger for more similar pairs.
        similarity: Model -> cosines (B,); the one that the others are compared with comes first.
    """

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    gold: Array
    similarity: Mapping[str, Array]


def compare(
    pairs: PairSet, similarities: Mapping[str, Array], *, baseline: str | None = None, role: str = "test"
) -> list[Result]:
    """Return one result for word overlap and one for every model, in the order given.

    Args:
        pairs: What the models were measured on.
        similarities: Similarity (B,) of the pairs by model name.
        baseline: Name of the model that the others are compared with.
        role: See `Result`.
    """
    systems = {name: System(name, (name,)) for name in similarities}
    comparison = Comparison(list(systems.values()), systems[baseline] if baseline else None)
    ranked = Ranked(pairs.score)
    outcomes = {
        name: Outcome({SPEARMAN: SpearmanOf(pairs.score, column, ranked)})
        for name, column in {WORD_OVERLAP: word_overlap(pairs), **similarities}.items()
    }
    return [replace(result, role=role) for result in comparison.on_task(pairs.name, outcomes)]


@dataclass(frozen=True, slots=True)
class _Figure:
    """One figure under every system: the members' values (M,) and the resampled mean over members (R,)."""

    pairs: str
    metric: str
    count: int
    main: bool
    standard: bool | None
    columns: Mapping[str, tuple[Array, Array]]


class Comparison:
    """Compares systems on one task after the other, and on the averages of groups of tasks.

    Args:
        systems: All that were measured, the baseline among them.
        baseline: What the others are compared with; default nothing.
        resamples: Of the bootstrap; large sets get fewer.
    """

    def __init__(
        self, systems: Sequence[System], baseline: System | None = None, resamples: int = RESAMPLES
    ) -> None:
        self._systems, self._baseline, self._resamples = systems, baseline, resamples
        self._main: dict[str, _Figure] = {}

    def on_task(
        self, name: str, outcomes: Mapping[str, Outcome], published_size: int | None = None, seed: int = 0
    ) -> list[Result]:
        """Return the results of one task, figure by figure; word overlap, if it is there, comes first.

        Args:
            name: Of the task.
            outcomes: Member of a system -> what it did; word overlap may be among them.
            published_size: How many items the published set has.
            seed: Decides the resamples.
        """
        systems = [System(WORD_OVERLAP, (WORD_OVERLAP,))] if WORD_OVERLAP in outcomes else []
        systems += self._systems
        results = []
        for number, metric in enumerate(next(iter(outcomes.values())).statistics):
            of_models = {member: outcome.statistics[metric] for member, outcome in outcomes.items()}
            count = next(iter(of_models.values())).size
            resamples = resamples_for(count, self._resamples)
            drawn = dict(zip(of_models, draw(list(of_models.values()), resamples, seed), strict=True))
            columns = {
                system.name: (
                    np.array([of_models[member].value() for member in system.members]),
                    np.mean([drawn[member] for member in system.members], axis=0),
                )
                for system in systems
            }
            standard = None if published_size is None else count == published_size
            figure = _Figure(name, metric, count, number == 0, standard, columns)
            results += [self._result(figure, system) for system in systems]
            if figure.main:
                self._main[name] = figure
        details = {system.name: outcomes[system.members[0]].details for system in systems}
        return [replace(r, details=details[r.model]) if r.main else r for r in results]

    def averages(self) -> list[Result]:
        """Return the papers' averages over groups of tasks; of those alone that are there in standard size.

        Tasks are resampled independently of each other, although some share pairs (STS-B is chosen from
        the years' sets), so the intervals are a little too narrow.
        """
        results = []
        for group in AVERAGES:
            figures = [self._main[task] for task in GROUPS[group] if task in self._main]
            if len(figures) < len(GROUPS[group]) or any(figure.standard is False for figure in figures):
                continue
            columns = {system.name: _averaged(figures, system.name) for system in self._systems}
            whole = _Figure(f"{group} average", figures[0].metric, len(figures), True, True, columns)
            results += [self._result(whole, system) for system in self._systems]
        return results

    def _result(self, figure: _Figure, system: System) -> Result:
        values, drawn = figure.columns[system.name]
        mean, base = float(values.mean()), self._baseline
        found = Result(
            pairs=figure.pairs,
            role="test",
            count=figure.count,
            model=system.name,
            score=interval_around(mean, drawn),
            metric=figure.metric,
            main=figure.main,
            standard_size=figure.standard,
            values=tuple(values.tolist()) if len(values) > 1 else (),
        )
        if base is None or system.name in (base.name, WORD_OVERLAP):
            return found
        old_values, old_drawn = figure.columns[base.name]
        delta = mean - float(old_values.mean())
        test = seed_test(base, old_values.tolist(), system, values.tolist())
        difference = difference_between(delta, old_drawn, drawn)
        difference = replace(difference, seeds_agree=test.supports(delta) if test else None)
        return replace(found, baseline=base.name, difference=difference, seed_test=test)


def _averaged(figures: Sequence[_Figure], system: str) -> tuple[Array, Array]:
    """Return the mean over tasks of the members' values and of the resampled ones."""
    columns = [figure.columns[system] for figure in figures]
    shortest = min(len(drawn) for _, drawn in columns)
    values: Array = np.mean([values for values, _ in columns], axis=0)
    resampled: Array = np.mean([drawn[:shortest] for _, drawn in columns], axis=0)
    return values, resampled
