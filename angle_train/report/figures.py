"""The figures of a page as SVG text: intervals and learning curve.

The page's style sheet gives the colours by class, `s0` … for models, so that one drawing suits light and dark
pages. A figure is narrow enough for a phone. The same numbers give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from angle_train.evaluate.bootstrap import Interval
from angle_train.evaluate.compare import WORD_OVERLAP

Panel = tuple[str, str]
"""Title and SVG."""
Place = Callable[[float], str]
"""From a value to its place in the drawing's own units."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 330, 8, 38  # what numbers and labels leave of a width of 340
_ROW = 40
_COLOURS = 5
_LONGEST_NAME = 44


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about `about` round numbers within [low, high]; low must be below high."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def series(number: int) -> str:
    """Return the classes of the model at a position from 0; after five the colours come again, dashed."""
    return f"s{number % _COLOURS + 1}" + (" dashed" if number // _COLOURS % 2 else "")


def interval_panel(
    title: str, rows: Sequence[tuple[str, Interval]], reach: tuple[float, float], label: str
) -> Panel:
    """Return the intervals of one set or task, a row for each model.

    Args:
        title: Title of the panel.
        rows: Model and interval; the place among the models gives the colour.
        reach: Lowest and highest value of all panels that are to be compared, times 100.
        label: What is measured.
    """
    left, bottom = 10, _TOP + _ROW * len(rows)
    low, high = reach if reach[0] < reach[1] else (reach[0] - 0.5, reach[1] + 0.5)
    x = _places(low, high, left, _RIGHT)
    models = [model for model, _ in rows if model != WORD_OVERLAP]
    parts = [_x_axis(x, ticks(low, high), left, bottom, label)]
    for number, (model, score) in enumerate(rows):
        y = f"{_TOP + _ROW * (number + 0.72):g}"
        style = series(models.index(model)) if model in models else "s0"
        name = model if len(model) <= _LONGEST_NAME else f"{model[: _LONGEST_NAME - 1]}…"
        parts += [
            _text(left, float(y) - 9, name),
            f'<path class="line {style}" d="M{x(100 * score.low)} {y}H{x(100 * score.high)}"/>',
            _dots([(x(100 * score.value), y)], style),
        ]
    described = "; ".join(f"{model} {100 * score.value:.1f}" for model, score in rows)
    return title, _svg(bottom + _BOTTOM, parts, f"{label} on {title}: {described}")


def learning_curve_panel(curve: Sequence[Mapping[str, Any]], best_step: int) -> Panel:
    """Return the dev Spearman over the steps; the first point is the untouched backbone, a dashed line.

    Args:
        curve: See `result.FitReport`.
        best_step: The step to mark.
    """
    steps = [float(point["step"]) for point in curve]
    scores = [100 * float(point["dev"]) for point in curve]
    room = max((max(scores) - min(scores)) * 0.1, 0.1)
    low, high, end, bottom = min(scores) - room, max(scores) + room, max(steps[-1], 1), 192
    x, y = _places(0, end, _LEFT, _RIGHT), _places(low, high, bottom, _TOP)
    points = [(x(step), y(score)) for step, score in zip(steps, scores, strict=True)]
    parts = []
    for value in ticks(low, high, about=4):
        parts.append(f'<path class="grid" d="M{_LEFT} {y(value)}H{_RIGHT}"/>')
        parts.append(_text(_LEFT - 5, float(y(value)) + 4, f"{value:g}", "end"))
    parts += [
        f'<text text-anchor="middle" transform="translate(11 {(_TOP + bottom) / 2:g}) rotate(-90)">'
        "dev Spearman × 100</text>",
        _x_axis(x, ticks(0, end), _LEFT, bottom, "step"),
        f'<path class="line s1 dashed" d="M{_LEFT} {points[0][1]}H{_RIGHT}"/>',
        f'<path class="line s2" d="M{" ".join(f"{a} {b}" for a, b in points)}"/>',
        _dots(points, "s2"),
    ]
    if best_step in steps:
        a, b = points[steps.index(best_step)]
        parts.append(f'<circle class="line ink" cx="{a}" cy="{b}" r="6"/>')
    described = f"dev Spearman from {scores[0]:.1f} to {max(scores):.1f} over {steps[-1]:g} steps"
    return "", _svg(bottom + _BOTTOM, parts, described)


def _places(low: float, high: float, start: float, end: float) -> Place:
    """Return what puts the values from `low` to `high` evenly between two places."""
    return lambda value: f"{start + (end - start) * (value - low) / (high - low):.1f}".removesuffix(".0")


def _x_axis(x: Place, values: Iterable[float], left: int, bottom: int, label: str) -> str:
    parts = [f'<path class="axis" d="M{left} {bottom}H{_RIGHT}"/>']
    for value in values:
        parts.append(f'<path class="axis" d="M{x(value)} {bottom}v4"/>')
        parts.append(_text(float(x(value)), bottom + 16, f"{value:g}", "middle"))
    return "".join([*parts, _text((left + _RIGHT) / 2, bottom + _BOTTOM - 5, label, "middle")])


def _dots(points: Iterable[tuple[str, str]], style: str) -> str:
    """Return points as one path: a dot is a line of no length with round ends."""
    drawn = "".join(f"M{a} {b}h0" for a, b in points)
    return f'<path class="dots big {style}" d="{drawn}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, parts: Iterable[str], description: str) -> str:
    """Return a drawing, with a description for readers who cannot see it."""
    return (
        f'<svg viewBox="0 0 340 {height}" role="img" aria-label="{escape(description)}">'
        f"{''.join(parts)}</svg>"
    )
