"""Small plots as SVG text: linear axes, lines, dots, bars and intervals.

The page's style sheet gives the colours by class (`s0` … for series, `b0` … for ordered bands), so that one
drawing suits light and dark pages, and a plot is narrow enough for a phone: several stand side by side where
there is room. The same numbers give the same bytes. Knows nothing of models or pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

_WIDTH = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 38


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers within [low, high], some `about` of them; low must be below high."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


class Plot:
    """A plot that is drawn on piece by piece.

    Args:
        x: Lowest and highest value across.
        y: Lowest and highest value upwards.
        height: In units of the drawing, of which it is 340 wide.
        left: Room for the numbers of the y axis.
    """

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], height: int = 230, left: int = _LEFT
    ) -> None:
        self._x, self._y = _widened(*x), _widened(*y)
        self._height, self._left = height, left
        self._parts: list[str] = []

    def x_axis(self, label: str, at: Sequence[float] | None = None) -> None:
        """Draw the axis at the bottom, with its numbers."""
        bottom = self._height - _BOTTOM
        self._parts.append(f'<path class="axis" d="M{self._left} {bottom}H{_WIDTH - _RIGHT}"/>')
        for value in at if at is not None else ticks(*self._x):
            place = self._across(value)
            self._parts.append(f'<path class="axis" d="M{place} {bottom}v4"/>')
            self.text(place, bottom + 16, f"{value:g}", anchor="middle")
        self.text((self._left + _WIDTH - _RIGHT) / 2, self._height - 5, label, anchor="middle")

    def y_axis(self, label: str, numbers: bool = True) -> None:
        """Draw lines across with their numbers, and the label along the axis."""
        for value in ticks(*self._y, about=4) if numbers else ():
            place = self._up(value)
            self._parts.append(f'<path class="grid" d="M{self._left} {place}H{_WIDTH - _RIGHT}"/>')
            self.text(self._left - 5, place + 4, f"{value:g}", anchor="end")
        middle = (_TOP + self._height - _BOTTOM) / 2
        self._parts.append(
            f'<text text-anchor="middle" transform="translate(11 {middle:g}) rotate(-90)">'
            f"{escape(label)}</text>"
        )

    def line(self, xs: Iterable[float], ys: Iterable[float], style: str) -> None:
        """Draw a line through points; `style` are class names, such as `s1` or `s0 dashed`."""
        points = " ".join(f"{self._across(x)} {self._up(y)}" for x, y in zip(xs, ys, strict=True))
        self._parts.append(f'<path class="line {style}" d="M{points}"/>')

    def dots(self, xs: Iterable[float], ys: Iterable[float], style: str) -> None:
        """Draw points as one path: a dot is a line of no length with round ends."""
        points = "".join(f"M{self._across(x)} {self._up(y)}h0" for x, y in zip(xs, ys, strict=True))
        self._parts.append(f'<path class="dots {style}" d="{points}"/>')

    def ring(self, x: float, y: float, style: str) -> None:
        """Draw a ring around a point."""
        self._parts.append(f'<circle class="line {style}" cx="{self._across(x)}" cy="{self._up(y)}" r="6"/>')

    def bar(self, low: float, high: float, y: float, style: str) -> None:
        """Draw a bar from the bottom up to `y`, between two values across."""
        left, right, top = (float(v) for v in (self._across(low), self._across(high), self._up(y)))
        height = self._height - _BOTTOM - top
        self._parts.append(
            f'<rect class="bar {style}" x="{left + 1:g}" y="{top:g}" width="{max(right - left - 2, 1):.4g}" '
            f'height="{height:.4g}"/>'
        )

    def interval(self, value: float, low: float, high: float, y: float, style: str) -> None:
        """Draw a value as a dot on the line of its interval."""
        place = self._up(y)
        self._parts.append(
            f'<path class="line {style}" d="M{self._across(low)} {place}H{self._across(high)}"/>'
        )
        self.dots([value], [y], f"big {style}")

    def text(self, x: float | str, y: float, text: str, anchor: str = "start") -> None:
        """Write at a place in the drawing's own units."""
        place = f'x="{float(x):g}" y="{y:g}" text-anchor="{anchor}"'
        self._parts.append(f"<text {place}>{escape(text)}</text>")

    def label_at(self, y: float, text: str) -> None:
        """Write at the left edge, above a value upwards."""
        self.text(self._left, float(self._up(y)) - 9, text)

    def svg(self, description: str) -> str:
        """Return the drawing, with what it shows for those who cannot see it."""
        content = "".join(self._parts)
        return (
            f'<svg viewBox="0 0 {_WIDTH} {self._height}" role="img" aria-label="{escape(description)}">'
            f"{content}</svg>"
        )

    def _across(self, value: float) -> str:
        low, high = self._x
        place = self._left + (_WIDTH - _RIGHT - self._left) * (value - low) / (high - low)
        return f"{place:.1f}".removesuffix(".0")

    def _up(self, value: float) -> float:
        low, high = self._y
        bottom = self._height - _BOTTOM
        return round(bottom - (bottom - _TOP) * (value - low) / (high - low), 1)


def _widened(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, high + 0.5)
