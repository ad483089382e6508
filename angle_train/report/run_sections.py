"""The sections on one training run: its curve, its data, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from angle_train.recipe import Recipe
from angle_train.report.figures import histogram_panel, learning_curve_panel
from angle_train.report.markup import Html, Row, figure, folded, section, table
from angle_train.report.summary import TUNED, FitReport

_SHOWN = {"analysis", "command", "dropped", "folds", "leaks", "lengths", "merge"}
_BESIDE = (
    "<p class='note'>recipe.toml lies beside this report and holds all settings. Names without a folder "
    "stand for files that lay elsewhere; the digests above tell whether they are the same.</p>"
)


def learning_section(report: FitReport) -> str:
    """Return the section on the dev scores over the steps, and how the kept weights were chosen."""
    folds = report.details.get("folds")
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
    measured = "Evaluations on the dev pairs, and losses"
    if folds:
        legend[1:] = [("s2", "mean of the parts"), ("ink", "chosen (ring)")]
        measured = "Evaluations, as means over the parts held out in turn"
    return section(
        "Learning curve",
        figure([learning_curve_panel(report.curve, report.best_step)], _course(report), legend),
        folded("All evaluations", table(measured, columns, rows, range(len(columns)))),
        _folds(folds) if folds else "",
        _merge(report),
    )


def _course(report: FitReport) -> str:
    """Return how long the run was, what was best, and what was saved."""
    tuned, folds = report.kept == TUNED, report.details.get("folds")
    share = (report.details.get("merge") or folds or {}).get("share", 0.0)
    mixed = f", mixed with {100 * share:g} % of the backbone," if share else ""
    if folds:
        made = (
            f"The run on all pairs took {report.steps} of {report.planned_steps} steps, as was best there; "
            f"its weights{mixed} were saved."
            if tuned
            else "Nothing was better than the backbone there: no run on all pairs was made."
        )
        return f"The curve is the mean over the parts held out in turn. {made}"
    stopped = "" if report.steps >= report.planned_steps else f", stopped early of {report.planned_steps}"
    dev = f" (dev {100 * report.dev_after:.1f})" if mixed else ""
    kept = f"its best checkpoint{mixed} was saved{dev}" if tuned else "the backbone was saved"
    return f"{report.steps} steps{stopped}; best at step {report.best_step}; {kept}."


def _folds(folds: Mapping[str, Any]) -> str:
    """Return what parts of the human-graded pairs, held out in turn, said."""
    rows: list[Row] = [
        ("", [f"part {number}", str(size), f"{100 * score:.2f}"])
        for number, (size, score) in enumerate(zip(folds["sizes"], folds["scores"], strict=True), start=1)
    ]
    means = ", ".join(f"{100 * mean:.2f}" for mean in folds["means"])
    mixed = f", with {100 * folds['share']:g} % of the backbone mixed in," if folds["share"] else ""
    taken, best_one = folds["evaluation"], folds.get("best", folds["evaluation"])
    best = f"was best after evaluation {best_one} of {len(folds['means'])}"
    if best_one != taken:
        best += f", and evaluation {taken}, the last within one standard error of that, was taken"
    text = (
        f"No dev pairs were given, so {len(rows)} parts of the human-graded pairs were held out in turn: a "
        "run on all other pairs was measured on each. Their mean Spearman "
        f"{best if taken else 'was never better than the backbone’s'}; after each "
        f"evaluation{mixed} it was {means}. {_shared(folds)}Every part is ranked by itself here; in the "
        "table of results all these pairs are ranked together, so the figures differ."
    )
    spread = f"{100 * folds['mean']:.2f} ± {100 * folds['spread']:.2f}"
    rows.append(("first", ["mean ± standard deviation", str(sum(folds["sizes"])), spread]))
    rows.append(("", ["backbone", str(sum(folds["sizes"])), f"{100 * folds['backbone']:.2f}"]))
    return f"<h3>Human-graded pairs, held out in turn</h3><p>{escape(text)}</p>" + table(
        "Dev Spearman × 100 of each part", ("part", "pairs", "Spearman"), rows, (1, 2)
    )


def _shared(folds: Mapping[str, Any]) -> str:
    """Return a sentence on the texts that several parts have; nothing where a report does not know."""
    if "shared_texts" not in folds:
        return ""
    texts, total = folds["shared_texts"]
    if not texts:
        return f"None of their {total:,} texts is in two parts. "
    return f"{texts:,} of their {total:,} texts are in two parts or more, which flatters the scores. "


def _merge(report: FitReport) -> str:
    """Return how much of the backbone was mixed into the weights."""
    merge = report.details.get("merge")
    if not merge:
        return ""
    mix = f"{100 * merge['share']:g} % backbone and {100 - 100 * merge['share']:g} % tuned"
    text = (
        f"<p>The saved weights are {mix}.</p>"
        if report.kept == TUNED
        else f"<p>A mix of {mix} ranked the dev pairs no better than the backbone, which was saved.</p>"
    )
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
        _left_out(report),
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


def _left_out(report: FitReport) -> str:
    """Return what training did not see: dropped pairs, the ends of long texts."""
    details, backbone = report.details, report.recipe.get("backbone", {})
    lines = [
        f"{count:,} training pairs left out: {reason}" for reason, count in details.get("dropped", {}).items()
    ]
    lengths = details.get("lengths")
    if lengths:
        both_ends = backbone.get("long_text", "cut") == "head_tail"
        how = "of these the start and the end were read" if both_ends else "these were cut"
        lines.append(
            f"{100 * lengths['truncated']:.1f} % of the training texts are longer than the "
            f"{lengths['max_seq_length']:,} tokens that were read at once"
            f"{': ' + how if lengths['truncated'] else ''}; the longest has {lengths['longest']:,}"
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
