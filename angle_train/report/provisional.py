"""What a run found so far: a sentence, and a page that the report of the whole run replaces."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from angle_data.console import duration
from angle_data.jsonl import write_text
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.compare import Comparison, Outcome, Result, View, compare
from angle_train.evaluation.dev_sets import (
    Column,
    DevSet,
    figure_of,
    mean_figure,
    name_of_figure,
    name_of_items,
)
from angle_train.evaluation.search import NDCG
from angle_train.report.page import render, scores_of
from angle_train.report.right_shares import shares_of, shares_sentence
from angle_train.report.verdict import BACKBONE
from angle_train.training.choosing import Columns

log = logging.getLogger("angle.fit")

_NOW = "tuned so far"


def teller(
    out: Path, sets: Sequence[DevSet], before: Columns, planned: int
) -> Callable[[int, Columns], None]:
    """Return what tells of each evaluation: a line, and a page where no finished run's report stands.

    Args:
        out: The run's directory.
        sets: The dev sets.
        before: Their columns under the backbone.
        planned: How many steps the training takes.
    """
    begun = time.monotonic()
    page = out / "report.html"
    free = not (out / "report.json").exists()

    def told(step: int, now: Columns) -> None:
        if free:
            write_provisional_page(page, sets, before, now, f"step {step:,} of {planned:,}")
        where = f" (provisional: {page})" if free else ""
        spent = duration(time.monotonic() - begun)
        log.info("after %s of training: %s%s", spent, so_far(sets, before, now), where)

    return told


def so_far(sets: Sequence[DevSet], before: Columns, now: Columns) -> str:
    """Return how many comparisons of the dev pairs come out right now and before, and what searches find."""
    said = []
    if views := _views(sets, before, now):
        shares = shares_sentence([shares_of(view) for view in views], _NOW, BACKBONE, "before")
        said.append(f"on the dev pairs, {shares}")
    every = zip(sets, before, now, strict=True)
    if rows := [(one, old, new) for one, old, new in every if isinstance(one, SearchSet)]:
        searches = [one for one, _, _ in rows]
        old = 100 * mean_figure(searches, [column for _, column, _ in rows])
        new = 100 * mean_figure(searches, [column for _, _, column in rows])
        name = f"{name_of_figure(searches)} of the dev {name_of_items(searches)}"
        said.append(f"{name} {new:.1f}, {old:.1f} before")
    return "; ".join(said)


def write_provisional_page(
    path: Path, sets: Sequence[DevSet], before: Columns, now: Columns, progress: str
) -> None:
    """Write what is known after `progress`, such as `step 300 of 1,200`, atomically; without times.

    Args:
        path: The page.
        sets: The dev sets.
        before: Their columns under the backbone.
        now: The same under the weights of that step.
        progress: How far the training is.
    """
    every = zip(sets, before, now, strict=True)
    results = [result for one, old, new in every for result in _results(one, old, new)]
    page = render(
        "page.html",
        run=None,
        title="Provisional report",
        sub=f"The training is at {progress}; the report of the whole run will replace this page.",
        headline=f"So far, {so_far(sets, before, now)}.",
        advice=f"No weights are chosen yet. The dev {name_of_items(sets)} choose them, so they flatter the "
        "model; test pairs and guards are measured at the end.",
        lines=[],
        tone="",
        warnings=[],
        scores=scores_of(results, roles=True),
        looks=[],
        searches=[],
        curve=None,
        command="",
        made="",
    )
    write_text(path, page)


def _views(sets: Sequence[DevSet], before: Columns, now: Columns) -> list[View]:
    every = zip(sets, before, now, strict=True)
    return [View(one, {BACKBONE: old, _NOW: new}) for one, old, new in every if isinstance(one, PairSet)]


def _results(one: DevSet, *columns: Column) -> list[Result]:
    """Return the results of a set under the backbone and now."""
    models = dict(zip((BACKBONE, _NOW), columns, strict=True))
    if isinstance(one, PairSet):
        return compare(one, models, baseline=BACKBONE, role="dev")
    outcomes = {model: Outcome({NDCG: figure_of(one, column)}) for model, column in models.items()}
    return [replace(found, role="dev") for found in Comparison(BACKBONE).on_task(one.name, outcomes)]
