"""Reports as one HTML file each: styles and figures inside, no scripts, opens without a network.

Everything that comes from files or options is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from angle_data.jsonl import replace_file
from angle_train.evaluate.compare import Result
from angle_train.pairs import PairSet
from angle_train.report.figures import interval_figure, learning_curve_figure, similarity_figure
from angle_train.report.summary import BACKBONE, TUNED, FitReport
from angle_train.report.table import COLUMNS, NUMBERS, cells

__all__ = ["write_eval_html", "write_fit_html"]

_TONES = {"better": "good", "worse": "bad"}
_CSS = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2530; }
body { max-width: 60rem; margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
p.sub { color: #56606b; margin-top: 0; overflow-wrap: anywhere; }
.verdict { border-left: .35rem solid #8a94a0; background: #f4f6f8; padding: .8rem 1.1rem; }
.verdict.good { border-color: #009e73; background: #eef8f4; }
.verdict.bad { border-color: #d55e00; background: #fcf2ec; }
.verdict strong { font-size: 1.1rem; } .verdict ul { margin: .4rem 0 0; padding-left: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; vertical-align: top; }
th, td { border-bottom: 1px solid #e3e7eb; }
th { color: #56606b; font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
tr.first td { border-top: 2px solid #c9d0d7; } td.good { color: #00724f; font-weight: 600; }
td.bad { color: #b34700; font-weight: 600; }
figure { margin: .5rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
figcaption, .note { color: #56606b; font-size: .9rem; } code { background: #f4f6f8; padding: 0 .25rem; }
""".strip()
Similarity = tuple[PairSet, NDArray[np.float64], NDArray[np.float64]]


def write_fit_html(path: Path, report: FitReport, similarities: Sequence[Similarity]) -> None:
    """Write the report of a training run.

    Args:
        path: The file.
        report: What the run found.
        similarities: For every set to be drawn: its pairs, and their similarities (B,) under the backbone
            and under the tuned model.
    """
    head, *lines = report.verdict()
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    verdict = f"<strong>{escape(head)}</strong><ul>{items}</ul>"
    warnings = "".join(f'<p class="note">Warning: {escape(note)}.</p>' for note in report.notes)
    clouds = "".join(
        f"<h2>Similarities on {escape(pairs.name)}</h2>"
        + _figure(
            similarity_figure(pairs.score, {BACKBONE: before, TUNED: after}),
            "One point per pair. Better models lift pairs with high gold scores above the others.",
        )
        for pairs, before, after in similarities
    )
    body = [
        f'<h1>Fine-tuning report</h1><p class="sub">backbone {escape(report.backbone)}</p>',
        f'<div class="verdict {_tone(report)}">{verdict}</div>{warnings}',
        f"<h2>Before and after</h2>{_results(report.results)}",
        _figure(interval_figure(report.results), "Points with 95 % bootstrap intervals over pairs."),
        "<h2>Learning curve</h2>",
        _figure(learning_curve_figure(report.curve, report.best_step), _curve_caption(report)),
        clouds,
        f"<h2>Data</h2>{_data(report)}",
        f"<h2>Recipe as run</h2>{_recipe(report)}",
    ]
    _write(path, "Fine-tuning report", body)


def write_eval_html(path: Path, results: Sequence[Result]) -> None:
    """Write the results of an evaluation."""
    body = [
        f"<h1>Evaluation report</h1>{_results(results)}",
        _figure(interval_figure(results), "Points with 95 % bootstrap intervals over pairs."),
    ]
    _write(path, "Evaluation report", body)


def _tone(report: FitReport) -> str:
    found = {result.difference.verdict for result in report.judged if result.difference}
    if "worse" in found:
        return "bad"
    return "good" if report.kept == TUNED and "better" in found else ""


def _results(results: Sequence[Result]) -> str:
    rows = []
    for position, result in enumerate(results):
        first = position == 0 or results[position - 1].pairs != result.pairs
        tone = _TONES.get(result.difference.verdict, "") if result.difference else ""
        row = "".join(_cell(text, i, tone) for i, text in enumerate(cells(result)))
        rows.append(f'<tr class="first">{row}</tr>' if first else f"<tr>{row}</tr>")
    return (
        _table([(name, i in NUMBERS) for i, name in enumerate(COLUMNS)], rows)
        + '<p class="note">Spearman × 100. Intervals are 95 % bootstrap intervals over pairs; differences '
        "are paired, to the baseline. Word overlap is the Jaccard overlap of the two texts' words.</p>"
    )


def _cell(text: str, column: int, tone: str) -> str:
    kind = "number" if column in NUMBERS else tone if COLUMNS[column] == "verdict" else ""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _curve_caption(report: FitReport) -> str:
    stopped = "" if report.steps >= report.planned_steps else f", stopped early of {report.planned_steps}"
    kept = "its best checkpoint was saved" if report.kept == TUNED else "the backbone was saved"
    return f"{report.steps} steps{stopped}; best at step {report.best_step}; {kept}."


def _data(report: FitReport) -> str:
    rows = [
        f'<tr><td>{escape(note.role)}</td><td>{escape(note.name)}</td><td class="number">{note.pairs}</td>'
        f"<td>{escape(note.scale)}</td><td><code>{note.sha256[:12]}</code></td></tr>"
        for note in report.data
    ]
    columns = [("role", False), ("pairs", False), ("n", True), ("score scale", False), ("sha256", False)]
    return _table(columns, rows)


def _recipe(report: FitReport) -> str:
    values = [
        (f"{section}.{key}", value)
        for section, table in report.recipe.items()
        if isinstance(table, dict)
        for key, value in table.items()
    ]
    values += [("computed on", f"{report.device}, {report.precision}")]
    rows = [f"<tr><td>{escape(key)}</td><td>{escape(str(value))}</td></tr>" for key, value in values]
    return _table([("setting", False), ("value", False)], rows)


def _table(columns: Sequence[tuple[str, bool]], rows: Sequence[str]) -> str:
    head = "".join(
        f'<th class="number">{escape(name)}</th>' if number else f"<th>{escape(name)}</th>"
        for name, number in columns
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _write(path: Path, title: str, body: Sequence[str]) -> None:
    with replace_file(path) as stream:
        stream.write(
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>\n{_CSS}\n</style></head>\n<body>\n'
        )
        stream.write("\n".join(body))
        stream.write("\n</body></html>\n")
