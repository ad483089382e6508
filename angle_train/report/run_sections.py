"""The sections on one training run: its curve, its data, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from angle_train.config import Recipe
from angle_train.report.figures import histogram_panel, learning_curve_panel
from angle_train.report.markup import Html, Row, figure, folded, section, table
from angle_train.report.summary import TUNED, FitReport

__all__ = ["data_section", "learning_section", "reproduce_section"]

_SHOWN = {"analysis", "command", "dropped", "folds", "leaks", "lengths", "merge"}
_BESIDE = (
    "<p class='note'>recipe.toml lies beside this report and holds all settings. Names without a folder "
    "stand for files that lay elsewhere; the digests above tell whether they are the same.</p>"
)


def learning_section(report: FitReport) -> str:
    """Return the section on the dev scores over the steps, and how the kept weights were chosen."""
    stopped = "" if report.steps >= report.planned_steps else f", stopped early of {report.planned_steps}"
    kept = "its best checkpoint was saved" if report.kept == TUNED else "the backbone was saved"
    caption = f"{report.steps} steps{stopped}; best at step {report.best_step}; {kept}."
    terms = list(dict.fromkeys(name for point in report.curve for name in point["terms"]))
    rows: list[Row] = [
        (
            "changed" if point["step"] == report.best_step else "",
            [
                str(point["step"]),
                f"{point['epoch']:.2f}",
                f"{100 * point['dev']:.2f}",
                *(f"{point['terms'][name]:.4f}" if name in point["terms"] else "" for name in terms),
            ],
        )
        for point in report.curve
    ]
    columns = ("step", "epoch", "dev Spearman × 100", *(name.replace("_", " ") for name in terms))
    legend = [("s1 dashed", "backbone"), ("s2", "during tuning"), ("ink", "best checkpoint (ring)")]
    return section(
        "Learning curve",
        figure([learning_curve_panel(report.curve, report.best_step)], caption, legend),
        folded(
            "All evaluations",
            table("Evaluations on the dev pairs, and losses", columns, rows, range(len(columns))),
        ),
        _folds(report.details.get("folds")),
        _merge(report.details.get("merge")),
    )


def _folds(folds: Mapping[str, Any] | None) -> str:
    """Return what parts of the human-graded pairs, held out in turn, said."""
    if not folds:
        return ""
    rows: list[Row] = [
        ("", [f"part {number}", str(size), f"{100 * score:.2f}"])
        for number, (size, score) in enumerate(zip(folds["sizes"], folds["scores"], strict=True), start=1)
    ]
    spread = f"{100 * folds['mean']:.2f} ± {100 * folds['spread']:.2f}"
    rows.append(("first", ["mean ± standard deviation", str(sum(folds["sizes"])), spread]))
    rows.append(("", ["backbone", str(sum(folds["sizes"])), f"{100 * folds['backbone']:.2f}"]))
    means = ", ".join(f"{100 * mean:.2f}" for mean in folds["means"])
    text = (
        "No dev pairs were given: parts of the human-graded pairs were held out in turn. Evaluation "
        f"{folds['evaluation']} and a share of {100 * folds['share']:g} % of the backbone were chosen; the "
        f"means after each evaluation were {means}."
    )
    return f"<h3>Human-graded pairs, held out in turn</h3><p>{escape(text)}</p>" + table(
        "Dev Spearman × 100 of each part", ("part", "pairs", "Spearman"), rows, (1, 2)
    )


def _merge(merge: Mapping[str, Any] | None) -> str:
    """Return how much of the backbone was mixed into the weights."""
    if not merge:
        return ""
    text = f"<p>{100 * merge['share']:g} % of the backbone's weights are in the saved ones.</p>"
    rows: list[Row] = [
        ("changed" if share == merge["share"] else "", [f"{100 * share:g} %", f"{100 * score:.2f}"])
        for share, score in zip(merge["shares"], merge["dev"], strict=False)
    ]
    tried = table("Dev Spearman × 100 by share of the backbone", ("share", "Spearman"), rows, (0, 1))
    return f"<h3>Merged back</h3>{text}{tried if rows else ''}"


def data_section(report: FitReport) -> str:
    """Return the section on the pairs: what they hold, share, and lack."""
    rows: list[Row] = [
        (
            "",
            [
                note.role,
                note.name,
                f"{note.pairs:,}",
                note.scale,
                Html(f'<code title="{note.sha256}">{note.sha256[:12]}</code>'),
            ],
        )
        for note in report.data
    ]
    counted = [note for note in report.data if note.scores]
    panels = [histogram_panel(f"{note.name} ({note.role})", note.scores) for note in counted]
    scores: list[Row] = [
        (
            "",
            [
                f"{note.name} ({note.role})",
                "; ".join(f"{score}: {count:,}" for score, count in note.scores.items()),
            ],
        )
        for note in counted
    ]
    return section(
        "Data",
        table("Sets of pairs", ("role", "pairs", "n", "score scale", "sha256"), rows, (2,)),
        figure(panels, "How often each gold score occurs, on the scale from 0 to 1.") if panels else "",
        folded("Numbers", table("Pairs by gold score", ("pairs", "score: pairs"), scores)) if scores else "",
        _leaks(report.details.get("leaks", [])),
        _left_out(report.details),
    )


def _leaks(leaks: Sequence[Mapping[str, Any]]) -> str:
    if not leaks:
        return ""
    rows: list[Row] = [
        (
            "bad" if leak["pairs"] else "",
            [
                f"{leak['name']} ({leak['role']})",
                str(leak["origin"]),
                f"{leak['pairs']:,} of {leak['count']:,}",
                f"{100 * leak['texts']:.1f} %",
            ],
        )
        for leak in leaks
    ]
    columns = ("measured on", "learned from", "pairs in both", "texts in both")
    return "<h3>Leaks</h3>" + table("What is measured on that was learned from", columns, rows, (2, 3))


def _left_out(details: Mapping[str, Any]) -> str:
    """Return what training did not see: dropped pairs, the ends of long texts."""
    lines = [
        f"{count:,} training pairs left out: {reason}" for reason, count in details.get("dropped", {}).items()
    ]
    lengths = details.get("lengths")
    if lengths:
        lines.append(
            f"{100 * lengths['truncated']:.1f} % of the training texts are longer than the "
            f"{lengths['max_seq_length']:,} tokens that the model reads; the longest has "
            f"{lengths['longest']:,}"
        )
    items = "".join(f"<li>{escape(line)}.</li>" for line in lines)
    return f"<h3>Left out and cut</h3><ul>{items}</ul>" if items else ""


def reproduce_section(report: FitReport) -> str:
    """Return the section on the command and the settings."""
    command = report.details.get("command")
    defaults = {name: asdict(part) for name, part in _sections(Recipe()).items()}
    rows: list[Row] = []
    for name, values in report.recipe.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            usual = json.loads(json.dumps(defaults.get(name, {}).get(key)))
            changed = value != usual
            rows.append(
                (
                    "changed" if changed else "",
                    [f"{name}.{key}", _plain(value), _plain(usual) if changed else ""],
                )
            )
    shown = f"<pre><code>{escape(command)}</code></pre>{_BESIDE}" if command else ""
    other = [(key, value) for key, value in sorted(report.details.items()) if key not in _SHOWN]
    rows += [("", ["computed on", f"{report.device}, {report.precision}", ""])]
    rows += [("", [key, json.dumps(value, ensure_ascii=False), ""]) for key, value in other]
    return section(
        "How to reproduce",
        shown,
        folded(
            "Recipe as run",
            table("Settings; in bold what differs from the defaults", ("setting", "value", "default"), rows),
        ),
    )


def _sections(recipe: Recipe) -> dict[str, Any]:
    return {"objective": recipe.objective, "backbone": recipe.backbone, "training": recipe.training}


def _plain(value: object) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value) or "(none)"
