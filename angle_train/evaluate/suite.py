"""Runs models on tasks: every figure with its interval, compared with a baseline on the same resamples.

The data of all tasks is read before any model is loaded. A task whose data is missing is reported and left
out; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.backbones import load_backbone
from angle_train.evaluate.analysis import analyse
from angle_train.evaluate.bootstrap import RESAMPLES
from angle_train.evaluate.embedding import Embedder, embedding_file
from angle_train.evaluate.scores import Judge, Score
from angle_train.evaluate.seeds import System
from angle_train.evaluate.sources import Source
from angle_train.evaluate.tasks import Encode, Outcome, ScoredPairs, Settings, Task, load_task
from angle_train.evaluate.views import Sampled, View, sample

__all__ = ["SuiteReport", "run_suite"]

log = logging.getLogger("angle.evaluate")


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """All figures, task by task, the averages, the tasks that failed and why, and the analyses.

    Attributes:
        scores: In the order of the tasks.
        averages: Of the groups in `AVERAGES` that were measured whole and in standard size.
        failed: Task -> reason.
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
        InputError: A model cannot be used, or no task's data can.
    """
    tasks = {name: load_task(name) for name in names}
    data, failed = _load_all(tasks, source)
    chosen = {system.name: system for system in ([baseline] if baseline else []) + list(systems)}
    members = list(dict.fromkeys(member for system in chosen.values() for member in system.members))
    outcomes: dict[str, dict[str, Outcome]] = {name: {} for name in data}
    analyses: dict[str, dict[str, Any]] = {}
    looks = _Looks({system.members[0]: system.name for system in chosen.values()} if views else {})
    with Progress("evaluating", len(members) * len(data)) as progress:
        for member in members:
            model = load_backbone(member, device=device)
            file = embedding_file(cache, member, model) if cache else None
            with closing(file) if file else nullcontext():
                embed = Embedder(model, member, file)
                for name in data:
                    outcomes[name][member] = tasks[name].measure(data[name], embed, settings or Settings())
                    pairs = tasks[name].pairs(data[name]) if analysis or views else None
                    if pairs is not None:
                        looks.add(name, member, pairs, outcomes[name][member], embed)
                    if pairs is not None and analysis:
                        found = analyse(embed(pairs.text1), embed(pairs.text2), pairs.gold)
                        analyses.setdefault(name, {})[member] = found
                    progress.advance()
    judge = Judge(list(chosen.values()), baseline, resamples)
    scores = [
        score
        for name, by_member in outcomes.items()
        for score in judge.task(name, tasks[name].standard_size, by_member)
    ]
    return SuiteReport(scores, judge.averages(), failed, analyses, looks.views())


class _Looks:
    """Collects what the first models of systems, by the systems' names, make of tasks about pairs."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._found: dict[str, tuple[ScoredPairs, dict[str, Any], dict[str, Sampled]]] = {}

    def add(self, task: str, member: str, pairs: ScoredPairs, outcome: Outcome, embed: Encode) -> None:
        """Note what one model made of one task."""
        if member not in self._names or outcome.similarity is None:
            return
        _, similarity, sampled = self._found.setdefault(task, (pairs, {}, {}))
        chosen = sample(len(pairs.gold))
        first, second = ([texts[i] for i in chosen] for texts in (pairs.text1, pairs.text2))
        similarity[self._names[member]] = outcome.similarity
        sampled[self._names[member]] = embed(first), embed(second)

    def views(self) -> list[View]:
        """Return them, task by task."""
        return [
            View(task, pairs.text1, pairs.text2, pairs.gold, similarity, sampled)
            for task, (pairs, similarity, sampled) in self._found.items()
        ]


def _load_all(tasks: Mapping[str, Task], source: Source) -> tuple[dict[str, Any], dict[str, str]]:
    data, failed = {}, {}
    for name, task in tasks.items():
        try:
            data[name] = task.load(source)
        except InputError as error:
            failed[name] = str(error)
            log.error("%s: %s", name, error)
    if not data:
        raise InputError(f"none of the tasks can be measured: {'; '.join(failed.values())}")
    return data, failed
