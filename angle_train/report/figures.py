"""The figures of a report: intervals, learning curve, densities, clouds, alignment and uniformity.

Each function returns panels, `(title, SVG)`; what their colours mean is said by `LEGEND`-like lists of
`(class, name)` that the page writes below them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.analysis import density, density_by_band
from angle_train.evaluate.bootstrap import Interval
from angle_train.evaluate.compare import WORD_OVERLAP, View
from angle_train.report.svg import Plot

Panel = tuple[str, str]
"""Title and SVG."""

_ROW = 40
_COLOURS = 5
_MOST_DOTS = 1000


def series(number: int) -> str:
    """Return the classes of the model at a position from 0; after five the colours come again, dashed."""
    return f"s{number % _COLOURS + 1}" + (" dashed" if number // _COLOURS % 2 else "")


def interval_panel(
    title: str, rows: Sequence[tuple[str, Interval]], reach: tuple[float, float], label: str
) -> Panel:
    """Return the intervals of one set or task, a row for each model.

    Args:
        title: Of the panel.
        rows: Model and interval; the place among the models gives the colour.
        reach: Lowest and highest value of all panels that are to be compared, times 100.
        label: What is measured.
    """
    plot = Plot(reach, (0, len(rows)), height=46 + _ROW * len(rows), left=10)
    models = [model for model, _ in rows if model != WORD_OVERLAP]
    for number, (model, score) in enumerate(rows):
        style = series(models.index(model)) if model in models else "s0"
        place = len(rows) - number - 0.72
        plot.label_at(place, _shortened(model))
        plot.interval(100 * score.value, 100 * score.low, 100 * score.high, place, style)
    plot.x_axis(label)
    told = "; ".join(f"{model} {100 * score.value:.1f}" for model, score in rows)
    return title, plot.svg(f"{label} on {title}: {told}")


def learning_curve_panel(curve: Sequence[Mapping[str, Any]], best_step: int) -> Panel:
    """Return the dev Spearman over the steps; the first point is the untouched backbone, a dashed line.

    Args:
        curve: See `summary.FitReport`.
        best_step: The step to mark.
    """
    steps = [float(point["step"]) for point in curve]
    scores = [100 * float(point["dev"]) for point in curve]
    room = max((max(scores) - min(scores)) * 0.1, 0.1)
    plot = Plot((0, max(steps[-1], 1)), (min(scores) - room, max(scores) + room))
    plot.y_axis("dev Spearman × 100")
    plot.x_axis("step")
    plot.line([0, max(steps[-1], 1)], [scores[0], scores[0]], "s1 dashed")
    plot.line(steps, scores, "s2")
    plot.dots(steps, scores, "big s2")
    if best_step in steps:
        plot.ring(best_step, scores[steps.index(best_step)], "ink")
    return "", plot.svg(f"dev Spearman from {scores[0]:.1f} to {max(scores):.1f} over {steps[-1]:g} steps")


def density_panel(view: View) -> Panel:
    """Return the density of all cosines under every model, and that of the gold scores, mapped to 0..1."""
    curves = [density(column, -1.0, 1.0) for column in view.similarity.values()]
    gold = density((view.gold - view.gold.min()) / np.ptp(view.gold), 0.0, 1.0)
    low = _lowest(view)
    plot = Plot((low, 1), (0, max(max(curve.y) for curve in [*curves, gold])))
    plot.y_axis("density", numbers=False)
    plot.x_axis("cosine; gold score")
    plot.line(gold.x, gold.y, "s0 dashed")
    for number, curve in enumerate(curves):
        plot.line(*_from(low, curve.x, curve.y), series(number))
    return "all pairs", plot.svg(f"densities of gold scores and of cosines on {view.name}; see the table")


def band_panels(view: View) -> list[Panel]:
    """Return for every model the density of its cosines in each band of gold scores."""
    found = {model: density_by_band(column, view.gold) for model, column in view.similarity.items()}
    low = _lowest(view)
    top = max(
        max(curve.y)
        for curves in found.values()
        for name, curve in curves.items()
        if name not in ("all", "gold")
    )
    panels = []
    for model, curves in found.items():
        plot = Plot((low, 1), (0, top))
        plot.y_axis("density", numbers=False)
        plot.x_axis("cosine")
        kept = [curve for name, curve in curves.items() if name not in ("all", "gold")]
        for number, curve in enumerate(kept):
            plot.line(*_from(low, curve.x, curve.y), f"b{_colour(number, len(kept))}")
        panels.append((model, plot.svg(f"densities of cosines under {model} by gold score; see the table")))
    return panels


def cloud_panels(view: View) -> list[Panel]:
    """Return for every model the cosine of each pair over its gold score; see `dots_caption`."""
    chosen = _dotted(view)
    gold = view.gold[chosen]
    # Pairs with equal scores would hide each other; a fixed jitter spreads them.
    jitter = np.random.default_rng(0).uniform(-0.012, 0.012, len(gold)) * np.ptp(view.gold)
    low, room = _lowest(view), 0.04 * np.ptp(view.gold)
    panels = []
    for number, (model, column) in enumerate(view.similarity.items()):
        plot = Plot((view.gold.min() - room, view.gold.max() + room), (low, 1))
        plot.y_axis("cosine")
        plot.x_axis("gold score")
        plot.dots(gold + jitter, column[chosen], series(number))
        panels.append((model, plot.svg(f"cosines under {model} over gold scores: {dots_caption(view)}")))
    return panels


def dots_caption(view: View) -> str:
    """Return which pairs `cloud_panels` draws: all, or 1,000 drawn at random, always the same."""
    drawn, count = len(_dotted(view)), len(view.gold)
    return "a dot for each pair" if drawn == count else f"a dot for each of {drawn:,} of the {count:,} pairs"


def _dotted(view: View) -> NDArray[np.int64]:
    # Not every so many-th pair: files in which labels alternate would lose some of them.
    count = len(view.gold)
    return np.sort(np.random.default_rng(0).choice(count, min(count, _MOST_DOTS), replace=False))


def uniformity_panel(points: Mapping[str, tuple[float, float]]) -> Panel:
    """Return the plane of alignment and uniformity, a point for each model; lower left is better."""
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    plot = Plot(_around(xs), _around(ys))
    plot.y_axis("uniformity")
    plot.x_axis("alignment")
    for number, (x, y) in enumerate(points.values()):
        if number < _COLOURS:
            plot.dots([x], [y], f"huge {series(number)}")
        else:
            plot.ring(x, y, series(number))
    told = "; ".join(f"{model} {x:.3f}, {y:.3f}" for model, (x, y) in points.items())
    return "alignment and uniformity", plot.svg(f"alignment and uniformity: {told}")


def histogram_panel(title: str, counts: Mapping[str, int]) -> Panel:
    """Return a bar for each score, or range of scores."""
    plot = Plot((0, len(counts)), (0, max(counts.values())), height=170)
    plot.y_axis("pairs")
    for number, count in enumerate(counts.values()):
        plot.bar(number, number + 1, count, "s1")
    plot.x_axis("gold score", at=())
    for number, name in enumerate(counts):
        middle = 44 + (340 - 54) * (number + 0.5) / len(counts)
        plot.text(middle, 148, name.split("-")[0] if len(counts) > 6 else name, anchor="middle")
    told = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return title, plot.svg(f"pairs by gold score: {told}")


def _from(low: float, xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the part of a curve that is not left of `low`."""
    kept = [(x, y) for x, y in zip(xs, ys, strict=True) if x >= low]
    return [x for x, _ in kept], [y for _, y in kept]


def _lowest(view: View) -> float:
    """Return a round number below all cosines and gold scores from 0."""
    lowest = min(0.0, *(float(column.min()) for column in view.similarity.values()))
    return max(-1.0, float(np.floor(lowest * 5)) / 5)


def _around(values: Sequence[float] | Any) -> tuple[float, float]:
    low, high = float(min(values)), float(max(values))
    room = (high - low) * 0.15 or 0.1
    return low - room, high + room


def _colour(number: int, count: int) -> int:
    """Return which of the five ordered colours the band has: the ends of the range where there are fewer."""
    return round(4 * number / max(count - 1, 1))


def _shortened(text: str, most: int = 44) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
