"""The report of a training run as one HTML file: verdict first, then the figures that it rests on.

Styles and drawings inside, no scripts, opens without a network. Everything that comes from files or options
is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from angle_train.evaluate.compare import Result
from angle_train.evaluate.views import View
from angle_train.report.advice import tone
from angle_train.report.figures import interval_panel
from angle_train.report.markup import Row, figure, section, table, write_page
from angle_train.report.run_sections import data_section, learning_section, reproduce_section
from angle_train.report.sections import view_section
from angle_train.report.summary import BACKBONE, TUNED, FitReport
from angle_train.report.table import COLUMNS, NUMBERS, cells

__all__ = ["results_section", "verdict_box", "write_fit_html"]

_TONES = {"better": "good", "worse": "bad"}


def write_fit_html(path: Path, report: FitReport, views: Sequence[View]) -> None:
    """Write the report of a training run.

    Args:
        path: The file.
        report: What the run found.
        views: The sets to be looked at more closely, under the backbone and the tuned weights.
    """
    analyses = [found["models"] for found in report.details.get("analysis", [])]
    head = tone(report.compared) if report.kept == TUNED else ""
    body = [
        f'<h1>Fine-tuning report</h1><p class="sub">backbone {escape(report.backbone)}</p>',
        verdict_box(report.advice(), report.verdict()[0 if report.kept == BACKBONE else 1 :], head),
        *(f'<p class="warning">Warning: {escape(note)}.</p>' for note in report.notes),
        # What nothing was chosen on says most, so the test sets come first.
        results_section("Before and after", sorted(report.results, key=lambda r: r.role != "test")),
        *(
            view_section(view, analyses[number] if number < len(analyses) else None, [(BACKBONE, TUNED)])
            for number, view in enumerate(views)
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


def results_section(title: str, results: Sequence[Result]) -> str:
    """Return the scores of all models on all sets of pairs, as table and as figure."""
    rows: list[Row] = []
    for position, result in enumerate(results):
        first = position == 0 or results[position - 1].pairs != result.pairs
        kind = _TONES.get(result.difference.verdict, "") if result.difference else ""
        rows.append((" ".join(filter(None, ["first" if first else "", kind])), cells(result)))
    sets = list(dict.fromkeys((result.role, result.pairs) for result in results))
    low = min(100 * result.score.low for result in results)
    high = max(100 * result.score.high for result in results)
    panels = [
        interval_panel(
            f"{pairs} ({role})",
            [
                (result.model, result.score)
                for result in results
                if (result.role, result.pairs) == (role, pairs)
            ],
            (low, high),
            "Spearman × 100",
        )
        for role, pairs in sets
    ]
    note = (
        "Spearman × 100: 100 is the order that people gave the pairs, 0 is chance. Differences are paired, "
        "to the baseline; an interval that does not hold 0 is reliable. Word overlap is the Jaccard overlap "
        "of the two texts' words: what needs no model."
    )
    return section(
        title,
        table("Rank correlation with the gold scores, with 95 % intervals", COLUMNS, rows, NUMBERS),
        f'<p class="note">{escape(note)}</p>',
        figure(panels, "Dots with 95 % bootstrap intervals over pairs."),
    )
