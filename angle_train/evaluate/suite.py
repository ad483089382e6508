"""Runs models on tasks: every figure with its interval, compared with a baseline on the same resamples.

The data of all tasks is read before any model is loaded. A task that cannot be measured, for its data or
under one of the models, is reported and left out, and so is a model that cannot be loaded; the others go on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.evaluate.analysis import analyse
from angle_train.evaluate.bootstrap import RESAMPLES
from angle_train.evaluate.embedding import Embedder, embedding_file
from angle_train.evaluate.scores import Judge, Score
from angle_train.evaluate.seeds import System
from angle_train.evaluate.tasks.registry import Encode, Outcome, ScoredPairs, Settings, Task, load_task
from angle_train.evaluate.tasks.sources import Source
from angle_train.evaluate.views import Sampled, View, sample
from angle_train.model.load import check_model_path, load_backbone

log = logging.getLogger("angle.evaluate")


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """All figures, task by task, the averages, what failed and why, and the analyses.

    Attributes:
        scores: In the order of the tasks.
        averages: Of the groups in `AVERAGES` that were measured whole and in standard size.
        failed: Task, or model that could not be loaded -> reason.
        analyses: Task -> model -> what `analysis.analyse` returns.
        views: The pairs of tasks that are about pairs, under the first model of each system.
    """

    scores: list[Score]
    averages: list[Score]
    failed: dict[str, str]
    analyses: dict[str, dict[str, Any]]
    views: list[View] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the views are for reports with figures."""
        return {
            "scores": [score.to_dict() for score in self.scores],
            "averages": [score.to_dict() for score in self.averages],
            "failed": self.failed,
            "analyses": self.analyses,
        }


def run_suite(
    systems: Sequence[System],
    names: Sequence[str],
    source: Source,
    *,
    baseline: System | None = None,
    settings: Settings | None = None,
    cache: Path | None = None,
    analysis: bool = False,
    views: bool = False,
    device: str | None = None,
    resamples: int = RESAMPLES,
) -> SuiteReport:
    """Measure systems on tasks.

    Args:
        systems: What to measure; the baseline is measured too and comes first.
        names: Tasks, see `tasks.expand_names`.
        source: Where their data is.
        baseline: What the others are compared with.
        settings: Choices of the tasks.
        cache: Folder for embeddings, to be found again by later runs; default in memory alone.
        analysis: Whether to analyse the pairs of tasks that are about pairs.
        views: Whether to return those pairs as the models see them.
        device: `cpu`, `cuda` …; default the best there is.
        resamples: Of the bootstrap.

    Raises:
        InputError: A model's directory does not exist, two systems have one name, or nothing can be measured.
    """
    chosen = _distinct([*([baseline] if baseline else []), *systems])
    members = list(dict.fromkeys(member for system in chosen for member in system.members))
    for member in members:
        check_model_path(member)
    tasks = {name: load_task(name) for name in names}
    data, failed = _load_all(tasks, source)
    found = _Found({name: tasks[name] for name in data}, data, settings or Settings(), failed)
    looks = _Looks(chosen if views else [])
    with Progress("evaluating", len(members) * len(data)) as progress:
        for member in members:
            try:
                model = load_backbone(member, device=device)
            except InputError as error:
                if len(members) == 1:
                    raise
                _fail(failed, member, error)
                continue
            file = embedding_file(cache, member, model) if cache else None
            with closing(file) if file else nullcontext():
                embed = Embedder(model, member, file)
                for name in data:
                    found.measure(name, member, embed, looks if views else None, analysis=analysis)
                    progress.advance()
    return found.report(chosen, baseline, looks, resamples)


@dataclass(frozen=True, slots=True)
class _Found:
    """What models did on tasks so far.

    Attributes:
        tasks: Those whose data is there.
        data: Theirs.
        settings: Choices of the tasks.
        failed: Task or model -> reason.
        outcomes: Task -> model -> outcome.
        analyses: See `SuiteReport`.
    """

    tasks: Mapping[str, Task]
    data: Mapping[str, Any]
    settings: Settings
    failed: dict[str, str]
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    analyses: dict[str, dict[str, Any]] = field(default_factory=dict)

    def measure(self, name: str, member: str, embed: Encode, looks: _Looks | None, *, analysis: bool) -> None:
        """Measure one model on one task, unless another could not be measured on it."""
        if name in self.failed:
            return
        try:
            outcome = self.tasks[name].measure(self.data[name], embed, self.settings)
        except InputError as error:
            if len(self.tasks) == 1:
                raise
            _fail(self.failed, name, error)
            return
        self.outcomes.setdefault(name, {})[member] = outcome
        pairs = self.tasks[name].pairs(self.data[name]) if analysis or looks else None
        if pairs is None:
            return
        if looks:
            looks.add(name, member, pairs, outcome, embed)
        if analysis:
            values = analyse(embed(pairs.text1), embed(pairs.text2), pairs.gold)
            self.analyses.setdefault(name, {})[member] = values

    def report(
        self, systems: Sequence[System], baseline: System | None, looks: _Looks, resamples: int
    ) -> SuiteReport:
        """Return the figures of the systems all of whose models were loaded, on tasks that all managed."""
        whole = [system for system in systems if self.failed.keys().isdisjoint(system.members)]
        done = [name for name in self.outcomes if name not in self.failed]
        if not whole or not done:
            raise InputError(f"nothing could be measured: {'; '.join(self.failed.values())}")
        judge = Judge(whole, baseline if baseline in whole else None, resamples)
        scores = [
            score
            for name in done
            for score in judge.task(name, self.tasks[name].standard_size, self.outcomes[name])
        ]
        analyses = {name: self.analyses[name] for name in done if name in self.analyses}
        kept = {system.name for system in whole}
        views = [view for view in looks.views(kept) if view.name in done]
        return SuiteReport(scores, judge.averages(), self.failed, analyses, views)


class _Looks:
    """Collects what the first models of systems, by the systems' names, make of tasks about pairs."""

    def __init__(self, systems: Sequence[System]) -> None:
        self._systems = systems
        self._found: dict[str, tuple[ScoredPairs, dict[str, Any], dict[str, Sampled]]] = {}

    def add(self, task: str, member: str, pairs: ScoredPairs, outcome: Outcome, embed: Encode) -> None:
        """Note what one model made of one task."""
        names = [system.name for system in self._systems if system.members[0] == member]
        if not names or outcome.similarity is None:
            return
        _, similarity, sampled = self._found.setdefault(task, (pairs, {}, {}))
        chosen = sample(len(pairs.gold))
        first, second = ([texts[i] for i in chosen] for texts in (pairs.text1, pairs.text2))
        rows = embed(first), embed(second)
        for name in names:
            similarity[name], sampled[name] = outcome.similarity, rows

    def views(self, systems: Container[str]) -> list[View]:
        """Return them, task by task, of the systems of these names in the order of all."""
        names = [system.name for system in self._systems if system.name in systems]
        return [
            View(
                task,
                pairs.text1,
                pairs.text2,
                pairs.gold,
                {name: similarity[name] for name in names if name in similarity},
                {name: sampled[name] for name in names if name in sampled},
            )
            for task, (pairs, similarity, sampled) in self._found.items()
        ]


def _distinct(systems: Sequence[System]) -> list[System]:
    """Return systems without repetition; two that only have the same name would be taken for one."""
    every = list(dict.fromkeys(systems))
    twice = [name for name, count in Counter(system.name for system in every).items() if count > 1]
    if twice:
        raise InputError(f"two systems are called {twice[0]}; give them names that differ")
    return every


def _load_all(tasks: Mapping[str, Task], source: Source) -> tuple[dict[str, Any], dict[str, str]]:
    data: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, task in tasks.items():
        try:
            data[name] = task.load(source)
        except InputError as error:
            failed[name] = str(error)
    if not data:
        raise InputError(f"none of the tasks can be measured: {'; '.join(failed.values())}")
    for name, reason in failed.items():
        log.error("%s: %s", name, reason)
    return data, failed


def _fail(failed: dict[str, str], name: str, error: InputError) -> None:
    failed[name] = str(error)
    log.error("%s: %s", name, error)
