"""Measures models on tasks: the tasks of the papers, and the user's own pairs as tasks like them.

The data of all tasks is read before any model is loaded. A task that cannot be measured, for its data or
under one of the models, is reported and left out, and so is a model that cannot be loaded; the others go on.
With the user's own pairs any such mistake stops the evaluation.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.text import stable_hash
from angle_train.data.pairs import PairSet, check_stated_scale, distinct_names, load_pairs
from angle_train.data.sources import dataset_splits, is_dataset
from angle_train.evaluate.analysis import analyse
from angle_train.evaluate.compare import SPEARMAN, Comparison, Result, Sampled, View, sampled_embeddings
from angle_train.evaluate.seeds import System
from angle_train.evaluate.similarity import Embedder, Encode, pair_embeddings, pair_similarity
from angle_train.evaluate.statistics import SpearmanOf
from angle_train.evaluate.task import Outcome, Settings, Source, Task, TaskData
from angle_train.model.load import check_model_path, load_backbone

log = logging.getLogger("angle.evaluate")

_FEW = 20  # a resample of fewer repeats half of them; with five, the interval may have no width at all


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was found.

    Attributes:
        results: In the order of the tasks, the baseline first.
        averages: Of the groups in `task.AVERAGES` that were measured whole and in standard size.
        failed: Task that could not be measured, or model that could not be loaded -> reason.
        analyses: Task -> model -> what `analysis.analyse` returns; empty unless asked for.
        views: The pairs of tasks that are about pairs, under the first model of each system.
    """

    results: list[Result]
    averages: list[Result] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    analyses: dict[str, dict[str, Any]] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the figures as JSON, null in place of numbers that it does not have."""
        content = {
            "results": [{"metric": result.metric} | result.to_dict() for result in self.results],
            "averages": [{"metric": result.metric} | result.to_dict() for result in self.averages],
            "failed": self.failed,
            "analyses": self.analyses,
        }
        return json.dumps(_finite(content), ensure_ascii=False, indent=1, allow_nan=False)

    def what_failed(self, tasks: Collection[str]) -> str:
        """Return which of the tasks could not be measured and which models could not be loaded."""
        lost = [name for name in self.failed if name in tasks]
        models = [name for name in self.failed if name not in tasks]
        parts = (
            [f"{len(lost)} of {len(tasks)} tasks could not be measured: {', '.join(lost)}"] if lost else []
        )
        return "; ".join([*parts, *([f"not loaded: {', '.join(models)}"] if models else [])])


@dataclass(frozen=True, slots=True)
class OwnPairs:
    """The task that a set of the user's own pairs is: the correlation of cosines with their scores."""

    pairs: PairSet
    standard_size: int | None = None

    @property
    def data(self) -> TaskData:
        """Where the pairs were: they are loaded already."""
        return TaskData(self.pairs.name)

    def load(self, source: Source) -> PairSet:
        """Return the pairs."""
        return self.pairs

    def measure(self, data: PairSet, encode: Encode, settings: Settings) -> Outcome:
        """Correlate the cosines with the gold scores."""
        return spearman_outcome(data, encode)


def spearman_outcome(pairs: PairSet, encode: Encode) -> Outcome:
    """Return what a task about graded pairs measures: Spearman's correlation of cosines with gold scores."""
    similarity = pair_similarity(pairs, encode)
    return Outcome({SPEARMAN: SpearmanOf(pairs.score, similarity)}, pairs=pairs, similarity=similarity)


def own_pairs(
    sources: Sequence[str], split: str | None = None, scale: str | None = None
) -> dict[str, OwnPairs]:
    """Return the tasks that files of scored pairs are, by names that differ.

    Args:
        sources: Files, dataset directories or hub data sets, see `data.pairs.load_pairs`.
        split: Rows of files with a `split` column, or the split of datasets; default all rows, or test.
        scale: Scale of the scores, `LOW-HIGH`; default detected.

    Raises:
        InputError: A source cannot be used.
    """
    sets = [load_pairs(source, split=_split_of(source, split), scale=scale, rows=split) for source in sources]
    check_stated_scale(scale, sets)
    sets = distinct_names(sets, sources)
    for pairs in sets:
        if len(pairs) < _FEW:
            log.warning("%s has %d pairs only: its figures and intervals say little", pairs.name, len(pairs))
    return {pairs.name: OwnPairs(pairs) for pairs in sets}


def _split_of(source: str, split: str | None) -> str | None:
    """Return the split of a data set to measure on: pairs that models train on are never taken unasked."""
    if split is not None or not is_dataset(source):
        return "validation" if split == "dev" else split
    found = dataset_splits(source)
    if "test" in found or len(found) == 1:
        return "test" if "test" in found else found[0]
    raise InputError(f"{source} has the splits {', '.join(found)}; choose one with --split")


def evaluate(
    systems: Sequence[System],
    tasks: Mapping[str, Task],
    source: Source,
    baseline: System | None = None,
    settings: Settings | None = None,
) -> Evaluation:
    """Measure systems on tasks.

    Args:
        systems: What to measure; the baseline is measured too and comes first.
        tasks: Name -> task, see `task.load_task` and `own_pairs`.
        source: Where the tasks' data is; not asked for the user's own pairs.
        baseline: What the others are compared with.
        settings: Choices of the user.

    Raises:
        InputError: A model's directory does not exist, two systems have one name, or nothing can be measured.
    """
    chosen = _distinct([*([baseline] if baseline else []), *systems])
    members = list(dict.fromkeys(member for system in chosen for member in system.members))
    for member in members:
        check_model_path(member)
    run = _Run(chosen, baseline, tasks, settings or Settings())
    run.load(source)
    strict = run.strict or len(members) == 1
    with Progress("evaluating", len(members) * len(run.data)) as progress:
        for member in members:
            try:
                model = load_backbone(member, device=run.settings.device)
            except InputError as error:
                run.fail(member, error, stop=strict)
                continue
            embed = Embedder(model, member)
            for name in run.data:
                run.measure(name, member, embed)
                progress.advance()
    return run.report()


@dataclass(frozen=True, slots=True)
class _Run:
    """What was measured so far.

    Attributes:
        systems: All of them, the baseline first.
        baseline: What the others are compared with.
        tasks: Name -> task.
        settings: Choices of the user.
        data: Task -> its data, where that could be read.
        failed: See `Evaluation`.
        outcomes: Task -> model -> outcome.
        pairs: Task -> its pairs, where it is about pairs.
        sampled: Task -> model -> embeddings of the sampled pairs.
        analyses: See `Evaluation`.
    """

    systems: Sequence[System]
    baseline: System | None
    tasks: Mapping[str, Task]
    settings: Settings
    data: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    pairs: dict[str, PairSet] = field(default_factory=dict)
    sampled: dict[str, dict[str, Sampled]] = field(default_factory=dict)
    analyses: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def strict(self) -> bool:
        """Whether the first mistake stops the evaluation: there are own pairs."""
        return any(isinstance(task, OwnPairs) for task in self.tasks.values())

    def fail(self, name: str, error: InputError, *, stop: bool) -> None:
        """Note why a task or model is left out, or raise that at once."""
        if stop:
            raise error
        self.failed[name] = str(error)
        log.error("%s: %s", name, error)

    def load(self, source: Source) -> None:
        """Read the data of all tasks; raise if there is none at all."""
        problems: dict[str, str] = {}
        for name, task in self.tasks.items():
            try:
                self.data[name] = task.load(source)
            except InputError as error:
                problems[name] = str(error)
        if not self.data:
            raise InputError(f"none of the tasks can be measured: {'; '.join(problems.values())}")
        for name, reason in problems.items():
            self.fail(name, InputError(reason), stop=False)

    def measure(self, name: str, member: str, embed: Encode) -> None:
        """Measure one model on one task, unless another could not be measured on it."""
        if name in self.failed:
            return
        try:
            outcome = self.tasks[name].measure(self.data[name], embed, self.settings)
        except InputError as error:
            self.fail(name, error, stop=self.strict or len(self.data) == 1)
            return
        self.outcomes.setdefault(name, {})[member] = outcome
        if outcome.pairs is None:
            return
        self.pairs[name] = outcome.pairs
        if any(system.members[0] == member for system in self.systems):
            self.sampled.setdefault(name, {})[member] = sampled_embeddings(outcome.pairs, embed)
        if self.settings.analysis:
            rows = pair_embeddings(outcome.pairs, embed)
            self.analyses.setdefault(name, {})[member] = analyse(*rows, outcome.pairs.score)

    def report(self) -> Evaluation:
        """Return what is known of the systems all of whose models were loaded, on tasks that all managed."""
        systems = [system for system in self.systems if self.failed.keys().isdisjoint(system.members)]
        done = [name for name in self.outcomes if name not in self.failed]
        if not systems or not done:
            raise InputError(f"nothing could be measured: {'; '.join(self.failed.values())}")
        baseline = self.baseline if self.baseline in systems else None
        comparison = Comparison(systems, baseline, self.settings.resamples)
        results = [result for name in done for result in self._results(name, comparison)]
        return Evaluation(
            results,
            comparison.averages(),
            self.failed,
            {name: self.analyses[name] for name in done if name in self.analyses},
            [self._view(name, systems) for name in done if name in self.pairs],
        )

    def _results(self, name: str, comparison: Comparison) -> list[Result]:
        task, outcomes = self.tasks[name], self.outcomes[name]
        if isinstance(task, OwnPairs):
            return comparison.on_pairs(task.pairs, {m: outcome.similarity for m, outcome in outcomes.items()})
        return comparison.on_task(name, outcomes, task.standard_size, stable_hash(name) % 2**32)

    def _view(self, name: str, systems: Sequence[System]) -> View:
        pairs = self.pairs[name]
        firsts = {system.name: system.members[0] for system in systems}
        return View(
            name,
            pairs.text1,
            pairs.text2,
            pairs.score,
            {system: self.outcomes[name][member].similarity for system, member in firsts.items()},
            {system: self.sampled[name][member] for system, member in firsts.items()},
        )


def _distinct(systems: Sequence[System]) -> list[System]:
    """Return systems without repetition; two that only have the same name would be taken for one."""
    every = list(dict.fromkeys(systems))
    twice = [name for name, count in Counter(system.name for system in every).items() if count > 1]
    if twice:
        raise InputError(f"two systems are called {twice[0]}; give them names that differ")
    return every


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
