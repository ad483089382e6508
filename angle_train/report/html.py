"""The report of a training run as one HTML file: verdict first, then the figures that it rests on.

Styles and drawings inside, no scripts, opens without a network. Everything that comes from files or options
is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TypeVar

from angle_train.evaluate.compare import SPEARMAN, Result, View
from angle_train.report.advice import tone
from angle_train.report.figures import interval_panel
from angle_train.report.markup import Row, figure, section, table, write_page
from angle_train.report.run_sections import data_section, learning_section, reproduce_section
from angle_train.report.sections import view_section
from angle_train.report.summary import BACKBONE, NAMING_NOTES, TUNED, FitReport
from angle_train.report.text import notes_on, table_of

_TONES = {"better": "good", "worse": "bad"}
_Value = TypeVar("_Value")
_ON_FIGURES = "95 % bootstrap intervals over items; differences are paired, to the baseline."
_ON_SPEARMAN = (
    "Spearman × 100: 100 is the order of the gold scores, 0 is chance. Where many gold scores are equal "
    "no model reaches 100: of labels 0 and 1, as many of each, the best order has 86.6. Differences are "
    "paired, to the baseline; an interval that does not hold 0 is reliable. Word overlap is the Jaccard "
    "overlap of the two texts' words: what needs no model."
)


def write_fit_html(path: Path, report: FitReport, views: Sequence[View]) -> None:
    """Write the report of a training run.

    Args:
        path: The file.
        report: What the run found.
        views: The sets to be looked at more closely, under the backbone and the tuned weights.
    """
    name = report.tuned_name
    analyses = [_called(found["models"], name) for found in report.details.get("analysis", [])]
    compared = [(BACKBONE, name)] if name else []
    head = tone(report.compared) if report.kept == TUNED else ""
    body = [
        f'<h1>Fine-tuning report</h1><p class="sub">backbone {escape(report.backbone)}</p>',
        verdict_box(report.advice(), report.verdict()[0 if report.kept == BACKBONE else 1 :], head),
        *(
            f'<p class="warning">Warning: {escape(note)}.</p>'
            for note in report.notes
            if note not in NAMING_NOTES
        ),
        # What nothing was chosen on says most, so the test sets come first.
        results_section(
            "Before and after",
            sorted(report.shown(), key=lambda r: r.role != "test"),
            roles=True,
            coloured=report.kept == TUNED,
        ),
        *(
            view_section(view, analyses[number] if number < len(analyses) else None, compared)
            for number, view in enumerate(_named(view, name) for view in views)
        ),
        learning_section(report),
        data_section(report),
        reproduce_section(report),
    ]  # fmt: skip
    write_page(path, "Fine-tuning report", body)


def verdict_box(advice: str, lines: Sequence[str], tone: str) -> str:
    """Return the conclusion and the lines that it rests on; `tone` is `good`, `bad` or nothing."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    listed = f"<ul>{items}</ul>" if items else ""
    return f'<div class="verdict {tone}"><strong>{escape(advice)}</strong>{listed}</div>'


def results_section(
    title: str, results: Sequence[Result], *, roles: bool = False, coloured: bool = True
) -> str:
    """Return the scores of all models on all sets of pairs, as table and as figure.

    Args:
        title: Of the section.
        results: Set by set.
        roles: Whether to say what each set was used for.
        coloured: Whether the verdicts are for or against a model that can be had.
    """
    made = table_of(results, roles=roles)
    alone = all(result.metric == SPEARMAN for result in results)
    rows: list[Row] = []
    sets = [(result.role, result.pairs) for result in results]
    for position, (result, cells) in enumerate(zip(results, made.rows, strict=True)):
        first = position == 0 or sets[position - 1] != sets[position]
        kind = _TONES.get(result.difference.verdict, "") if result.difference and coloured else ""
        rows.append((" ".join(filter(None, ["first" if first else "", kind])), cells))
    main = [result for result in results if result.main]
    reach = (min(100 * result.score.low for result in main), max(100 * result.score.high for result in main))
    panels = [
        interval_panel(
            f"{pairs} ({role})" if roles else pairs,
            [(r.model, r.score) for r in main if (r.role, r.pairs) == (role, pairs)],
            reach,
            f"{'Spearman' if metric == SPEARMAN else metric} × 100",
        )
        for role, pairs, metric in dict.fromkeys((r.role, r.pairs, r.metric) for r in main)
    ]
    note = (
        _ON_SPEARMAN
        if alone
        else "95 % bootstrap intervals over items; differences are paired, to the baseline."
    )
    what = "Rank correlation with the gold scores" if alone else "Figures × 100"
    return section(
        title,
        table(f"{what}, with 95 % intervals", made.columns, rows, made.numbers),
        f'<p class="note">{escape(" ".join([note, *notes_on(results)]))}</p>',
        figure(panels, f"Dots with 95 % bootstrap intervals over {'pairs' if alone else 'items'}."),
    )


def _named(view: View, name: str | None) -> View:
    return replace(view, similarity=_called(view.similarity, name), embeddings=_called(view.embeddings, name))


def _called(by_model: Mapping[str, _Value], name: str | None) -> dict[str, _Value]:
    """Return what is known of the backbone and of the tuned weights, these under another name or left out."""
    return {
        name if name and model == TUNED else model: value
        for model, value in by_model.items()
        if name or model != TUNED
    }
