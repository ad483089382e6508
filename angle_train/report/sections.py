"""The sections that a fit's and an evaluation's report share: what models do to one set of pairs.

Every figure has its numbers in a table below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from angle_train.evaluate.compare import View, sample
from angle_train.report.figures import (
    band_panels,
    cloud_panels,
    density_panel,
    dots_caption,
    series,
    uniformity_panel,
)
from angle_train.report.insight import Change, Figures, bands, biggest_changes, space_figures
from angle_train.report.markup import Row, clipped, figure, folded, section, table

Analyses = Mapping[str, Figures]
"""Model -> figures, see `insight.space_figures`."""

_SHARES = ("cosine above 0.95", "cosine above 0.8")


def analyses_of(view: View) -> dict[str, Figures]:
    """Return the papers' figures of every model on one set of pairs."""
    return {
        model: space_figures(column, view.gold, view.embeddings.get(model))
        for model, column in view.similarity.items()
    }


def view_section(
    view: View, analyses: Analyses | None = None, compared: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the section on one set of pairs.

    Args:
        view: The pairs, under one model or more.
        analyses: See `analyses_of`; computed where not given.
        compared: Before and after: the two models whose biggest changes are listed.
    """
    title = f"A closer look at {view.name}"
    if len(view.gold) < 2 or np.ptp(view.gold) == 0:
        return section(title, "<p>All gold scores are equal: there is nothing to rank.</p>")
    changes = "".join(_changes(view, before, after) for before, after in compared)
    return section(title, changes, _densities(view), _space(view, analyses or analyses_of(view)))


def _changes(view: View, before: str, after: str) -> str:
    worse, better = biggest_changes(view, before, after)
    note = (
        "<p class='note'>Pairs are put in order by cosine and by gold score; “places off” is how far apart "
        f"the two orders put a pair, of {len(view.gold):,} pairs.</p>"
    )
    heading = f"Where “{after}” ranks pairs worse, and better, than “{before}”"
    return (
        f"<h3>{escape(heading)}</h3>{note}"
        + _change_list("Worst regressions", worse, "No pair is ranked worse.", opened=True)
        + _change_list("Best gains", better, "No pair is ranked better.", opened=False)
    )


def _change_list(title: str, changes: Sequence[Change], none: str, *, opened: bool) -> str:
    if not changes:
        return folded(f"{title}: none", f"<p>{none}</p>", opened=opened)
    rows: list[Row] = [
        (
            "",
            [
                clipped(change.text1),
                clipped(change.text2),
                f"{change.gold:.2f}",
                f"{change.before:.2f} → {change.after:.2f}",
                f"{change.off_before:g} → {change.off_after:g}",
                f"{change.growth:+g}",
            ],
        )
        for change in changes
    ]
    columns = ("first text", "second text", "gold", "cosine", "places off", "change")
    shown = table(f"{title}: pairs whose rank changed most", columns, rows, (2, 3, 4, 5), texts=2)
    return folded(f"{title}: {len(changes)} pairs", shown, opened=opened)


def _densities(view: View) -> str:
    models = list(view.similarity)
    found = bands(view)
    names = [f"{band.low:g} to {band.high:g}" for band in found]
    rows: list[Row] = [
        (
            "",
            [
                name,
                f"{band.count:,}",
                *(f"{m:.2f} ± {s:.2f}" for m, s in zip(band.means, band.spreads, strict=True)),
            ],
        )
        for name, band in zip(names, found, strict=True)
    ]
    overall = [f"{column.mean():.2f} ± {column.std():.2f}" for column in view.similarity.values()]
    rows.append(("first", ["all", f"{len(view.gold):,}", *overall]))
    whole = [("s0 dashed", "gold scores"), *((series(i), model) for i, model in enumerate(models))]
    steps = [(f"b{round(4 * i / max(len(found) - 1, 1))}", f"gold {name}") for i, name in enumerate(names)]
    return (
        "<h3>Cosines by gold score</h3>"
        + figure(
            [density_panel(view)],
            "A model that uses the whole range spreads its cosines as widely as people spread their scores.",
            whole,
        )
        + figure(
            band_panels(view),
            "One line for each fifth of the gold scores. The less they overlap, the better a threshold on "
            "the cosine tells them apart.",
            steps,
        )
        + table(
            "Cosines by gold score: mean ± standard deviation",
            ("gold score", "pairs", *models),
            rows,
            range(1, 2 + len(models)),
        )
        + folded(
            "Every pair",
            figure(
                cloud_panels(view),
                f"{dots_caption(view).capitalize()}: better models lift high gold scores above low.",
            ),
        )
    )


def _space(view: View, analyses: Analyses) -> str:
    models = [model for model in view.similarity if model in analyses]
    names = list(dict.fromkeys(name for model in models for name in analyses[model]))
    rows: list[Row] = [
        ("", [name, *(_value(name, analyses[model].get(name)) for model in models)]) for name in names
    ]
    shown = sample(len(view.gold))
    part = (
        ""
        if len(shown) == len(view.gold)
        else f"; all but the shares: {len(shown)} of {len(view.gold):,} pairs"
    )
    legend = [(series(i), model) for i, model in enumerate(models)]
    return (
        "<h3>Saturation and the space of vectors</h3>"
        "<p class='note'>Where the cosine is near 1 it is flat, and its gradient teaches little: the papers’ "
        "reason for optimising an angle. Alignment (how close paraphrases lie) and uniformity (how evenly "
        "all texts fill the sphere) are better when smaller.</p>"
        + table(
            f"Saturation, alignment, uniformity{part}", ("figure", *models), rows, range(1, 1 + len(models))
        )
        + _plane(analyses, models, legend)
    )


def _plane(analyses: Analyses, models: Sequence[str], legend: Sequence[tuple[str, str]]) -> str:
    plane: dict[str, tuple[float, float]] = {}
    for model in models:
        x, y = analyses[model].get("alignment"), analyses[model].get("uniformity")
        if x is not None and y is not None:
            plane[model] = (x, y)
    if len(plane) < len(models):
        return ""
    return folded(
        "Alignment and uniformity", figure([uniformity_panel(plane)], "Lower left is better.", legend)
    )


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "no pair"
    return f"{100 * value:.1f} %" if name in _SHARES else f"{value:.3f}"
