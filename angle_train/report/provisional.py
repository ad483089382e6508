"""What a run found so far: a sentence, and a page that the report of the whole run replaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from angle_data.jsonl import write_text
from angle_train.data.pairs import PairSet
from angle_train.evaluation.compare import View, compare
from angle_train.report.page import render, scores_of
from angle_train.report.right_shares import shares_of, shares_sentence
from angle_train.report.verdict import BACKBONE
from angle_train.training.choosing import Columns

_NOW = "tuned so far"


def so_far(sets: Sequence[PairSet], before: Columns, now: Columns) -> str:
    """Return how many comparisons of the dev pairs come out right under the backbone and now."""
    views = _views(sets, before, now)
    return (
        f"on the dev pairs, {shares_sentence([shares_of(view) for view in views], _NOW, BACKBONE, 'before')}"
    )


def write_provisional_page(
    path: Path, sets: Sequence[PairSet], before: Columns, now: Columns, progress: str
) -> None:
    """Write what is known after `progress`, such as `step 300 of 1,200`, atomically; without times.

    Args:
        path: The page.
        sets: The dev sets.
        before: Their similarities under the backbone.
        now: The same under the weights of that step.
        progress: How far the training is.
    """
    views = _views(sets, before, now)
    results = [
        result
        for view in views
        for result in compare(view.pairs, view.similarity, baseline=BACKBONE, role="dev")
    ]
    page = render(
        "page.html",
        run=None,
        title="Provisional report",
        sub=f"The training is at {progress}; the report of the whole run will replace this page.",
        headline=f"So far, {so_far(sets, before, now)}.",
        advice="No weights are chosen yet. The dev pairs choose them, so they flatter the model; test pairs "
        "and guards are measured at the end.",
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


def _views(sets: Sequence[PairSet], before: Columns, now: Columns) -> list[View]:
    every = zip(sets, before, now, strict=True)
    return [View(pairs, {BACKBONE: old, _NOW: new}) for pairs, old, new in every]
