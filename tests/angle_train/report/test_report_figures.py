"""Where the reports' drawings put things: places computed by hand, colours, contrast.

A plot is 340 wide; its numbers take 44 at the left, 10 at the right, 8 at the top and 38 at the bottom.
"""

import re

import numpy as np
import pytest

from angle_train.evaluate.bootstrap import Interval
from angle_train.evaluate.compare import WORD_OVERLAP, View
from angle_train.report import figures
from angle_train.report.figures import Plot, ticks

NAMES = ["one", "two", "three"]


def paths(svg):
    """Class names and coordinates of everything that shows data."""
    found = re.findall(r'<path class="((?:line|dots)[^"]*)" d="([^"]*)"', svg)
    return [
        (kind, [float(n) for n in re.findall(r"-?[\d.]+", drawn.replace("h0", ""))]) for kind, drawn in found
    ]


def texts(svg):
    """What is written -> its place."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', svg)
    return {text: (float(x), float(y)) for x, y, text in found}


def peak(drawn):
    """The place of a line's highest point; y counts from the top."""
    points = list(zip(drawn[::2], drawn[1::2], strict=True))
    return min(points, key=lambda point: point[1])


def view(gold=(0.0, 0.5, 1.0), embeddings=None, **similarity):
    columns = {model: np.array(column) for model, column in similarity.items()}
    return View("set", NAMES, NAMES, np.array(gold), columns, embeddings or {})


def test_points_go_right_with_x_and_up_with_y():
    plot = Plot((0, 10), (0, 100))
    plot.dots([0, 5, 10], [0, 50, 100], "s1")
    plot.line([0, 2.5], [100, 25], "s2")
    plot.ring(7.5, 75, "ink")
    plot.x_axis("across")
    plot.y_axis("up")
    svg = plot.svg("drawing")
    assert paths(svg) == [("dots s1", [44, 192, 187, 100, 330, 8]), ("line s2", [44, 8, 115.5, 146])]
    assert '<circle class="line ink" cx="258.5" cy="54.0" r="6"/>' in svg
    assert texts(svg)["4"] == (158.4, 208)
    assert texts(svg)["50"] == (39, 104)
    assert texts(svg)["across"] == (187, 225)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-23, 71, [-20, 0, 20, 40, 60]),
        (0.61, 0.63, [0.61, 0.615, 0.62, 0.625, 0.63]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_a_plot_of_equal_values_has_axes_too():
    plot = Plot((1, 1), (0, 0))
    plot.x_axis("x")
    plot.dots([1], [0], "s1")
    assert "nan" not in plot.svg("one <dot>")
    assert "one &lt;dot&gt;" in plot.svg("one <dot>")


def test_intervals_stand_row_by_row_under_their_names():
    rows = [
        (WORD_OVERLAP, Interval(0.2, 0.1, 0.3)),
        ("old", Interval(0.5, 0.4, 0.7)),
        ("new", Interval(0.8, 0.7, 0.9)),
    ]
    title, svg = figures.interval_panel("news", rows, (10, 90), "Spearman")
    assert title == "news"
    assert paths(svg) == [
        ("line s0", [10, 36.8, 90]),
        ("dots big s0", [50, 36.8]),
        ("line s1", [130, 76.8, 250]),
        ("dots big s1", [170, 76.8]),
        ("line s2", [250, 116.8, 330]),
        ("dots big s2", [290, 116.8]),
    ]
    places = texts(svg)
    assert [places[model] for model, _ in rows] == [(10, 27.8), (10, 67.8), (10, 107.8)]


def test_learning_curve_starts_at_the_backbone_and_rings_the_best():
    curve = [{"step": 0, "dev": 0.4}, {"step": 10, "dev": 0.6}, {"step": 20, "dev": 0.5}]
    _, svg = figures.learning_curve_panel(curve, best_step=10)
    points = [44, 176.7, 187, 23.3, 330, 100]
    assert paths(svg) == [
        ("line s1 dashed", [44, 176.7, 330, 176.7]),
        ("line s2", points),
        ("dots big s2", points),
    ]
    assert '<circle class="line ink" cx="187" cy="23.3" r="6"/>' in svg


def test_bands_cut_the_range_of_the_gold_scores_into_fifths():
    found = figures.bands(view((1.0, 1.9, 3.0, 5.0), old=[0.0, 0.2, 0.5, 1.0]))
    assert [(band.name, band.style, band.cosines["old"].tolist()) for band in found] == [
        ("1 to 1.8", "b0", [0.0]),
        ("1.8 to 2.6", "b1", [0.2]),
        ("2.6 to 3.4", "b3", [0.5]),
        ("4.2 to 5", "b4", [1.0]),
    ]


def test_bands_have_the_ordered_colours_of_their_gold_scores():
    panels = figures.band_panels(view(old=[0.1, 0.5, 0.9], new=[0.9, 0.5, 0.1]))
    assert [title for title, _ in panels] == ["old", "new"]
    found = [[(kind, peak(drawn)[0]) for kind, drawn in paths(svg)] for _, svg in panels]
    assert found == [
        [("line b0", 72.6), ("line b2", 187), ("line b4", 301.4)],
        [("line b0", 301.4), ("line b2", 187), ("line b4", 72.6)],
    ]


def test_more_than_five_models_share_colours_and_differ_in_their_dashes():
    kinds = [figures.series(number) for number in range(7)]
    assert kinds == ["s1", "s2", "s3", "s4", "s5", "s1 dashed", "s2 dashed"]
    rows = [(f"m{number}", Interval(0.5, 0.4, 0.6)) for number in range(7)]
    _, svg = figures.interval_panel("news", rows, (0, 100), "Spearman")
    assert [kind for kind, _ in paths(svg)[::2]] == [f"line {kind}" for kind in kinds]
