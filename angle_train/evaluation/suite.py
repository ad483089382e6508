"""Measures models on tasks: the tasks of the papers, and the user's own pairs as tasks like them.

The data of all tasks is read before any model is loaded. A task that cannot be measured, for its data or
under one of the models, is reported and left out, and so is a model that cannot be loaded, unless the others
were to be compared with it; the others go on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.text import stable_hash
from angle_train.data.pairs import check_stated_scale, distinct_names, load_pairs
from angle_train.data.sources import dataset_splits, is_dataset
from angle_train.evaluation.compare import WORD_OVERLAP, Comparison, Result, View
from angle_train.evaluation.pairs import BEST_ACCURACY, OwnPairs, judge
from angle_train.evaluation.seeds import System
from angle_train.evaluation.similarity import Embedder, Encode, word_overlap
from angle_train.evaluation.statistics import Ranked
from angle_train.evaluation.task import Outcome, Settings, Source, Task
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
        views: The pairs of tasks that are about pairs, under the first model of each system.
        seeds: The systems of several seeds, their models in the order of the results' `values`.
    """

    results: list[Result]
    averages: list[Result] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    seeds: list[System] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Sentences on what readers of the figures must know and the figures do not show."""
        notes = [
            f"{system.name}: {len(system.members)} models, seeds {', '.join(system.seeds)}."
            for system in self.seeds
        ]
        if any(result.metric == BEST_ACCURACY for result in self.results):
            notes.append(f"{BEST_ACCURACY}: the threshold was chosen on the same pairs, which flatters it.")
        return notes

    def to_json(self) -> str:
        """Return the figures as JSON."""
        content = {
            "results": [{"metric": result.metric} | result.to_dict() for result in self.results],
            "averages": [{"metric": result.metric} | result.to_dict() for result in self.averages],
            "failed": self.failed,
            "seeds": {system.name: system.members for system in self.seeds},
        }
        return json.dumps(content, ensure_ascii=False, indent=1)


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
    return {pairs.name: OwnPairs(pairs, Ranked(pairs.score)) for pairs in sets}


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
        systems: What to measure, under names that differ; the baseline is measured too and comes first.
        tasks: Name -> task, see `task.load_task` and `own_pairs`.
        source: Where the tasks' data is; not asked for the user's own pairs.
        baseline: What the others are compared with.
        settings: Choices of the user.

    Raises:
        InputError: A model's directory does not exist, the baseline cannot be loaded, or nothing can be
            measured.
    """
    settings = settings or Settings()
    chosen = list(dict.fromkeys([*([baseline] if baseline else []), *systems]))
    members = list(dict.fromkeys(member for system in chosen for member in system.members))
    for member in members:
        check_model_path(member)
    needed = members if len(members) == 1 else baseline.members if baseline else ()
    run = _Run(tasks, settings)
    run.load(source)
    with Progress("evaluating", len(members) * len(run.data)) as progress:
        for member in members:
            try:
                embed = Embedder(load_backbone(member, device=settings.device), member)
            except InputError as error:
                run.fail(member, error, stop=member in needed)
                continue
            for name in run.data:
                run.measure(name, member, embed)
                progress.advance()
    return run.report(chosen, baseline)


@dataclass(frozen=True, slots=True)
class _Run:
    """What was measured so far.

    Attributes:
        tasks: Name -> task.
        settings: Choices of the user.
        data: Task -> its data, where that could be read.
        failed: See `Evaluation`.
        outcomes: Task -> model -> outcome.
    """

    tasks: Mapping[str, Task]
    settings: Settings
    data: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    def fail(self, name: str, error: InputError, *, stop: bool) -> None:
        """Note why a task or model is left out, or raise that at once."""
        if stop:
            raise error
        self.failed[name] = str(error)
        log.error("%s: %s", name, error)

    def load(self, source: Source) -> None:
        """Read the data of all tasks; raise if there is none at all."""
        for name, task in self.tasks.items():
            try:
                self.data[name] = task.load(source)
            except InputError as error:
                self.fail(name, error, stop=len(self.tasks) == 1)
        if not self.data:
            raise InputError("none of the tasks can be measured; see above")

    def measure(self, name: str, member: str, embed: Encode) -> None:
        """Measure one model on one task, unless another could not be measured on it."""
        if name in self.failed:
            return
        try:
            outcome = self.tasks[name].measure(self.data[name], embed, self.settings)
        except InputError as error:
            self.fail(name, error, stop=len(self.data) == 1)
            return
        self.outcomes.setdefault(name, {})[member] = outcome

    def report(self, chosen: Sequence[System], baseline: System | None) -> Evaluation:
        """Return what is known of the systems all of whose models were loaded, on tasks that all managed."""
        systems = [system for system in chosen if self.failed.keys().isdisjoint(system.members)]
        done = [name for name in self.outcomes if name not in self.failed]
        if not systems or not done:
            raise InputError("nothing could be measured; see above")
        comparison = Comparison(systems, baseline, self.settings.resamples)
        results: list[Result] = []
        views = []
        for name in done:
            task, outcomes = self.tasks[name], self.outcomes[name]
            seed = stable_hash(name) % 2**32
            if isinstance(task, OwnPairs):
                seed = 0
                overlap = judge(task.pairs, word_overlap(task.pairs), ranked=task.ranked)
                outcomes = {WORD_OVERLAP: overlap} | outcomes
            results += comparison.on_task(name, outcomes, task.standard_size, seed)
            if pairs := outcomes[systems[0].members[0]].pairs:
                similarity = {system.name: outcomes[system.members[0]].similarity for system in systems}
                views.append(View(name, pairs.text1, pairs.text2, pairs.score, similarity))
        seeds = [system for system in systems if len(system.members) > 1]
        return Evaluation(results, comparison.averages(), self.failed, views, seeds)
