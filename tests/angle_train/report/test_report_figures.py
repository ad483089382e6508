"""Where the reports' drawings put things: places computed by hand, colours, room for what is written.

A plot is 340 wide; its numbers take 54 at the left, 18 at the right, 8 at the top and 38 at the bottom.
"""

import re

import numpy as np
import pytest

from angle_train.evaluation.statistics import Interval
from angle_train.report import figures
from angle_train.report.figures import Plot, curve_panel, ticks


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


def test_points_go_right_with_x_and_up_with_y():
    plot = Plot((0, 10), (0, 100))
    plot.dots([0, 5, 10], [0, 50, 100], "s1")
    plot.line([0, 2.5], [100, 25], "s2")
    plot.x_axis("across")
    plot.y_axis("up")
    svg = plot.svg("drawing")
    assert paths(svg) == [("dots s1", [54, 192, 188, 100, 322, 8]), ("line s2", [54, 8, 121, 146])]
    assert texts(svg)["4"] == (161.2, 208)
    assert texts(svg)["50"] == (49, 104)
    assert texts(svg)["across"] == (188, 225)


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


def test_more_than_five_models_share_colours_and_differ_in_their_dashes():
    kinds = [figures.series(number) for number in range(7)]
    assert kinds == ["s1", "s2", "s3", "s4", "s5", "s1 dashed", "s2 dashed"]
    rows = [(f"m{number}", Interval(0.5, 0.4, 0.6)) for number in range(7)]
    _, svg = figures.interval_panel("news", rows, (0, 100), "Spearman")
    assert [kind for kind, _ in paths(svg)[::2]] == [f"line {kind}" for kind in kinds]


def test_of_many_pairs_500_are_drawn_whatever_the_order_of_their_labels():
    assert figures.sample(500).tolist() == list(range(500))
    chosen = figures.sample(5000)
    assert len(set(chosen.tolist())) == 500
    assert np.bincount(chosen // 500, minlength=10).min() > 30  # of each tenth


def test_the_learning_curve_goes_through_every_evaluation_and_marks_what_was_taken():
    curve = [{"step": 0, "epoch": 0.0, "dev": 0.5}, {"step": 4, "epoch": 1.0, "dev": 0.7},
             {"step": 8, "epoch": 2.0, "dev": 0.6}]  # fmt: skip
    _, svg = curve_panel(curve, 4, 0.5)
    assert "from 50.0 at step 0 to 60.0 at step 8; backbone 50.0" in svg
    line = re.search(r'class="line s1" d="M([^"]*)"', svg)[1].split()
    xs, ys = list(map(float, line[::2])), list(map(float, line[1::2]))
    assert xs == [54, 188, 322]  # in steps, left to right
    assert ys[1] < ys[2] < ys[0]  # higher figures stand higher
    assert re.search(r'class="dots big s1" d="M188 ', svg)
    assert curve_panel(curve[:1], 0, 0.5) is None
    assert curve_panel([*curve, {"step": 9, "epoch": 3.0, "dev": float("nan")}], 4, 0.5) is None
