"""The figures of a page as SVG text: intervals, gold against cosine.

The page's style sheet gives the colours by class, `s0` … for models, so that one drawing suits light and dark
pages. A figure is narrow enough for a phone. The same numbers give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluation.compare import WITHOUT_MODEL, View
from angle_train.evaluation.statistics import Interval

Panel = tuple[str, str]
"""Title and SVG."""

_WIDTH = 340
_LEFT = 54
_RIGHT = 18
_TOP = 8
_BOTTOM = 38
_ROW = 40
_COLOURS = 5
_LONGEST_NAME = 44
_BANDS = 5
_MOST_DOTS = 500


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about `about` round numbers within [low, high]; low must be below high."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


class Plot:
    """A plot with linear axes of these lowest and highest values, drawn piece by piece.

    `height` is in units of the drawing, which is 340 units wide; `left` is room for the numbers of the y
    axis. `style` are class names, such as `s1` or `s0 dashed`.
    """

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], height: int = 230, left: int = _LEFT
    ) -> None:
        # Equal values get an axis around them.
        self._x, self._y = ((a, b) if b > a else (a - 0.5, b + 0.5) for a, b in (x, y))
        self._bottom = height - _BOTTOM
        self._height = height
        self._left = left
        self._parts: list[str] = []

    def x_axis(self, label: str, grid: bool = False) -> None:
        """Draw the axis at the bottom, with round numbers, and lines up from them as a grid."""
        self._parts.append(f'<path class="axis" d="M{self._left} {self._bottom}H{_WIDTH - _RIGHT}"/>')
        for value in ticks(*self._x):
            place = self._across(value)
            if grid:
                self._parts.append(f'<path class="grid" d="M{place} {_TOP}V{self._bottom}"/>')
            self._parts.append(f'<path class="axis" d="M{place} {self._bottom}v4"/>')
            self.text(place, self._bottom + 16, f"{value:g}", "middle")
        self.text((self._left + _WIDTH - _RIGHT) / 2, self._height - 5, label, "middle")

    def y_axis(self, label: str) -> None:
        """Draw lines across with their numbers, and the label along the axis."""
        for value in ticks(*self._y, about=4):
            place = self._up(value)
            self._parts.append(f'<path class="grid" d="M{self._left} {place}H{_WIDTH - _RIGHT}"/>')
            self.text(self._left - 5, place + 4, f"{value:g}", "end")
        self._parts.append(
            f'<text text-anchor="middle" transform="translate(11 {(_TOP + self._bottom) / 2:g}) rotate(-90)">'
            f"{escape(label)}</text>"
        )

    def line(self, xs: Iterable[float], ys: Iterable[float], style: str) -> None:
        """Draw a line through points."""
        points = " ".join(f"{self._across(x)} {self._up(y)}" for x, y in zip(xs, ys, strict=True))
        self._parts.append(f'<path class="line {style}" d="M{points}"/>')

    def dots(self, xs: Iterable[float], ys: Iterable[float], style: str) -> None:
        """Draw points as one path: a dot is a line of no length with round ends."""
        points = "".join(f"M{self._across(x)} {self._up(y)}h0" for x, y in zip(xs, ys, strict=True))
        self._parts.append(f'<path class="dots {style}" d="{points}"/>')

    def interval(self, name: str, score: Interval, y: float, style: str) -> None:
        """Draw a score, times 100, as a dot on the line of its interval, below its name, cut if long."""
        cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        self.text(self._left, self._up(y) - 9, cut)
        ends = f"M{self._across(100 * score.low)} {self._up(y)}H{self._across(100 * score.high)}"
        self._parts.append(f'<path class="line {style}" d="{ends}"/>')
        self.dots([100 * score.value], [y], f"big {style}")

    def text(self, x: float | str, y: float, text: str, anchor: str = "start") -> None:
        """Write at a place in the drawing's own units."""
        self._parts.append(f'<text x="{float(x):g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def svg(self, description: str) -> str:
        """Return the drawing, with a description for readers who cannot see it."""
        return (
            f'<svg viewBox="0 0 {_WIDTH} {self._height}" role="img" aria-label="{escape(description)}">'
            f"{''.join(self._parts)}</svg>"
        )

    def _across(self, value: float) -> str:
        low, high = self._x
        place = self._left + (_WIDTH - _RIGHT - self._left) * (value - low) / (high - low)
        return f"{place:.1f}".removesuffix(".0")

    def _up(self, value: float) -> float:
        low, high = self._y
        return float(round(self._bottom - (self._bottom - _TOP) * (value - low) / (high - low), 1))


def fifths(gold: NDArray[np.float64]) -> list[tuple[float, float, NDArray[np.bool_]]]:
    """Return the ends of every fifth of the range of gold scores (B,), not all equal, and its pairs (B,)."""
    low, high = float(gold.min()), float(gold.max())
    number = np.minimum(((gold - low) / (high - low) * _BANDS).astype(np.int64), _BANDS - 1)
    edges = [low + (high - low) * part / _BANDS for part in range(_BANDS + 1)]
    return [(edges[i], edges[i + 1], number == i) for i in np.unique(number).tolist()]


def sample(count: int) -> NDArray[np.int64]:
    """Return the positions (S,) of at most 500 of `count` pairs, drawn once and for all.

    Every n-th pair would not do: where labels alternate, all of them would have the same one.
    """
    return np.sort(np.random.default_rng(0).choice(count, min(count, _MOST_DOTS), replace=False))


def series(number: int) -> str:
    """Return the classes of the model at a position from 0; after five the colours come again, dashed."""
    return f"s{number % _COLOURS + 1}" + (" dashed" if number // _COLOURS % 2 else "")


def interval_panel(
    title: str, rows: Sequence[tuple[str, Interval]], reach: tuple[float, float], label: str
) -> Panel:
    """Return the intervals of one set or task, a row for each model.

    A model's place gives its colour. `reach` are the lowest and highest value, times 100, of all panels that
    are to be compared; `label` says what is measured.
    """
    plot = Plot(reach, (0, len(rows)), height=46 + _ROW * len(rows), left=18)
    plot.x_axis(label, grid=True)
    models = [model for model, _ in rows if model not in WITHOUT_MODEL]
    for number, (model, score) in enumerate(rows):
        place = len(rows) - number - 0.72
        plot.interval(model, score, place, series(models.index(model)) if model in models else "s0")
    described = "; ".join(f"{model} {100 * score.value:.1f}" for model, score in rows)
    return title, plot.svg(f"{label} on {title}: {described}")


def scatter_panels(view: View) -> list[Panel]:
    """Return for every model the cosines of the sampled pairs over their gold scores.

    Dots are moved sideways a little, as many pairs have equal gold scores. A bar is the mean cosine of all
    pairs in one fifth of the gold scores.
    """
    gold = view.pairs.score
    chosen = sample(len(gold))
    low = float(gold.min())
    wide = float(np.ptp(gold))
    places = gold[chosen] + np.random.default_rng(0).uniform(-0.02, 0.02, len(chosen)) * wide
    lowest = min(0.0, *(float(column.min()) for column in view.similarity.values()))
    panels = []
    for number, (model, column) in enumerate(view.similarity.items()):
        plot = Plot((low - 0.04 * wide, low + 1.04 * wide), (lowest, 1.0))
        plot.y_axis("cosine")
        plot.x_axis("gold score")
        plot.dots(places, column[chosen], series(number))
        for start, end, inside in fifths(gold):
            ends = (0.9 * start + 0.1 * end, 0.1 * start + 0.9 * end)
            plot.line(ends, [float(column[inside].mean())] * 2, "ink mean")
        panels.append((model, plot.svg(f"cosine under {model} over gold score, {len(chosen)} pairs")))
    return panels


def curve_panel(
    curve: Sequence[Mapping[str, Any]], taken: int, start: float, figure: str = "Spearman"
) -> Panel | None:
    """Return the learning curve: the dev sets' figure, times 100, by step; None of fewer than two points.

    Args:
        curve: Points with `step` and `dev`, in order, see `training.watch.Point`.
        taken: The step of the tuned weights, which gets a big dot.
        start: The figure of the backbone, drawn dashed across.
        figure: What it is called.
    """
    steps = [float(point["step"]) for point in curve]
    figures = [100 * float(point["dev"]) for point in curve]
    if len(curve) < 2 or not all(map(math.isfinite, figures)):
        return None
    before = 100 * start
    lowest, highest = min(before, *figures), max(before, *figures)
    room = 0.1 * max(highest - lowest, 1.0)
    plot = Plot((0, max(steps)), (lowest - room, highest + room))
    plot.y_axis(f"dev {figure} × 100")
    plot.x_axis("steps")
    plot.line((0, max(steps)), (before, before), "s0 dashed")
    plot.line(steps, figures, "s1")
    plot.dots(steps, figures, "s1")
    if taken in steps:
        plot.dots([taken], [figures[steps.index(taken)]], "big s1")
    ends = f"from {figures[0]:.1f} at step {steps[0]:g} to {figures[-1]:.1f} at step {steps[-1]:g}"
    return "", plot.svg(f"dev {figure} times 100 by step, {ends}; backbone {before:.1f}")
