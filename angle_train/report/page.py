"""The report of a training run as one HTML file, which opens without a network, and the parts of all pages.

This module turns results into rows and figures; `page.html` has the words and `style.css` the colours. The
template escapes every text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from scipy.stats import rankdata

from angle_data.jsonl import write_text
from angle_train.evaluation.compare import SPEARMAN, Result, SearchView, View
from angle_train.report.figures import curve_panel, interval_panel, sample, scatter_panels
from angle_train.report.result import FitReport
from angle_train.report.right_shares import DEFINITION
from angle_train.report.search_look import look_at_search
from angle_train.report.text import measured_items, notes_on, table_of
from angle_train.report.verdict import BACKBONE, TUNED, Verdict, chosen_on

_Row = tuple[str, Sequence[str]]
"""Class names of a row of a table, and its cells."""
_TONES = {"better": "good", "worse": "bad"}
_MOST_CHANGES = 3
_FIGURES = {"pairs": "Spearman", "queries": "nDCG@10", "pairs and queries": "mean of Spearman and nDCG@10"}


def write_fit_page(
    path: Path,
    report: FitReport,
    views: Sequence[View],
    made: str = "",
    searches: Sequence[SearchView] = (),
) -> None:
    """Write the page of a training run, atomically.

    The `views` and `searches` are looked at more closely, under the backbone and the tuned weights if there
    are any; `made` is `text.made_line`.
    """
    tuned = report.kept == TUNED
    judged = {(result.role, result.pairs) for result in report.judged}
    # What nothing was chosen on says most, so the test sets come first.
    results = sorted(report.results, key=lambda result: (result.role, result.pairs) not in judged)
    learned = [
        f"{note.pairs:,} pairs of {note.name}" for note in report.data if note.role in ("train", "human")
    ]
    reason = report.details.get("reason", "")
    why = f" {reason[0].upper()}{reason[1:]}." if reason else ""
    data: list[_Row] = [("", [note.role, note.name, f"{note.pairs:,}", note.scale]) for note in report.data]
    leaks: list[_Row] = []
    for leak in report.details.get("leaks", ()):
        pairs = f"{leak['pairs']:,} of {leak['count']:,}"
        texts = f"{100 * leak['texts']:.1f} %"
        cells = [f"{leak['name']} ({leak['role']})", leak["origin"], pairs, texts]
        leaks.append(("bad" if leak["pairs"] else "", cells))
    on = chosen_on(report.results)
    page = render(
        "page.html",
        run=report,
        title="Fine-tuning report",
        sub=f"Backbone {report.base}, tuned on {' and '.join(learned)}.{why}",
        headline=report.verdict.headline,
        advice=report.verdict.advice,
        lines=_under_the_verdict(report.verdict),
        tone=report.verdict.tone,
        warnings=[f"{note}." for note in report.notes],
        scores=scores_of(results, roles=True, coloured=tuned, charted=judged),
        looks=[look_at(view, BACKBONE) for view in views],
        searches=[look_at_search(view, BACKBONE) for view in searches],
        tables={"data": data, "leaks": leaks},
        curve=curve_panel(report.curve, report.best_step, report.dev_before, _FIGURES[on]),
        chosen_on=on,
        command=report.details.get("command"),
        made=made,
    )
    write_text(path, page)


def _under_the_verdict(verdict: Verdict) -> list[str]:
    """Return what got worse and what that cost, what to do next, what stands behind it, then every set."""
    first = list(filter(None, [verdict.worse, verdict.spared, verdict.next]))
    return [*first, *verdict.evidence, *(line for line in verdict.lines[1:] if line not in first)]


def render(template: str, **content: Any) -> str:
    """Return what a template of this folder makes of its values; in HTML all of them are escaped."""
    environment = Environment(
        loader=PackageLoader("angle_train.report", ""),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["x100"] = lambda value, digits=1: f"{100 * value:.{digits}f}"
    environment.globals["definition"] = DEFINITION
    environment.filters["comma"] = lambda count: f"{count:,}"
    return environment.get_template(template).render(content)


def scores_of(
    results: Sequence[Result],
    *,
    roles: bool = False,
    coloured: bool = True,
    charted: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return the scores of all models on all sets, as a table and as intervals.

    Args:
        results: Set by set.
        roles: Whether to say what each set was used for.
        coloured: Whether to colour the verdicts; not where they are about a model that was not saved.
        charted: Roles and names of the sets whose intervals are drawn; default all.
    """
    made = table_of(results, roles=roles)
    rows: list[_Row] = []
    before = None
    for result, cells in zip(results, made.rows, strict=True):
        classes = "" if (result.role, result.pairs) == before else "first"
        if result.difference and coloured:
            classes += f" {_TONES.get(result.difference.verdict, '')}"
        rows.append((classes.strip(), cells))
        before = (result.role, result.pairs)
    main = [r for r in results if r.main and (not charted or (r.role, r.pairs) in charted)]
    lowest, highest = min(r.score.low for r in main), max(r.score.high for r in main)
    reach = (10.0 * math.floor(10 * lowest), 10.0 * math.ceil(10 * highest))
    panels = [
        interval_panel(
            f"{pairs} ({role})" if roles and not pairs.endswith(f"/{role}") else pairs,
            [(r.model, r.score) for r in main if (r.role, r.pairs) == (role, pairs)],
            reach,
            f"{'Spearman' if metric == SPEARMAN else metric} × 100",
        )
        for role, pairs, metric in dict.fromkeys((r.role, r.pairs, r.metric) for r in main)
    ]
    return {
        "alone": all(result.metric == SPEARMAN for result in results),
        "items": measured_items(results),
        "columns": made.columns,
        "rows": rows,
        "numbers": made.numbers,
        "notes": notes_on(results),
        "panels": panels,
    }


def look_at(view: View, baseline: str) -> dict[str, Any]:
    """Return a closer look at one set of pairs, and at what changed from the baseline, if it is there."""
    others = [model for model in view.similarity if model != baseline and baseline in view.similarity]
    return {
        "name": view.pairs.name,
        "count": len(view.pairs),
        "changes": [(baseline, model, *_changes(view, baseline, model)) for model in others],
        "scatter": scatter_panels(view),
        "sampled": len(sample(len(view.pairs))),
    }


def _changes(view: View, before: str, after: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the pairs whose rank got most wrong and those whose rank got most right, 3 of each at most.

    Each is given by its texts, gold score, cosines, and places off.

    A pair's error is how many places its rank by cosine lies from its rank by gold score. Ranks count from
    the lowest, and ties share their mean rank. Pairs whose error did not change are in neither list.
    """
    pairs = view.pairs
    wanted = rankdata(view.pairs.score)
    old, new = (np.abs(rankdata(view.similarity[model]) - wanted) for model in (before, after))
    growth = new - old
    order = np.argsort(-growth, kind="stable")

    def row(i: int) -> list[str]:
        cosines = f"{view.similarity[before][i]:.2f} → {view.similarity[after][i]:.2f}"
        return [pairs.text1[i], pairs.text2[i], f"{pairs.score[i]:.2f}", cosines, f"{old[i]:g} → {new[i]:g}"]

    worse = [row(i) for i in order[:_MOST_CHANGES] if growth[i] > 0]
    better = [row(i) for i in order[::-1][:_MOST_CHANGES] if growth[i] < 0]
    return worse, better
