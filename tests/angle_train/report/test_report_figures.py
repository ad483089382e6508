"""Where the reports' drawings put things: places computed by hand, colours, room for what is written.

A plot is 340 wide; its numbers take 54 at the left, 18 at the right, 8 at the top and 38 at the bottom.
"""

import re

import numpy as np
import pytest

from angle_train.evaluation.bootstrap import Interval
from angle_train.evaluation.compare import WORD_OVERLAP, View
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


def view(gold=(0.0, 0.5, 1.0), **similarity):
    columns = {model: np.array(column) for model, column in similarity.items()}
    return View("set", NAMES, NAMES, np.array(gold), columns)


def test_points_go_right_with_x_and_up_with_y():
    plot = Plot((0, 10), (0, 100))
    plot.dots([0, 5, 10], [0, 50, 100], "s1")
    plot.line([0, 2.5], [100, 25], "s2")
    plot.ring(7.5, 75, "ink")
    plot.x_axis("across")
    plot.y_axis("up")
    svg = plot.svg("drawing")
    assert paths(svg) == [("dots s1", [54, 192, 188, 100, 322, 8]), ("line s2", [54, 8, 121, 146])]
    assert '<circle class="line ink" cx="255" cy="54.0" r="6"/>' in svg
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


def test_intervals_stand_row_by_row_under_their_names():
    rows = [
        (WORD_OVERLAP, Interval(0.2, 0.1, 0.3)),
        ("old", Interval(0.5, 0.4, 0.7)),
        ("new", Interval(0.8, 0.7, 0.9)),
    ]
    title, svg = figures.interval_panel("news", rows, (10, 90), "Spearman")
    assert title == "news"
    assert paths(svg) == [
        ("line s0", [18, 36.8, 94]),
        ("dots big s0", [56, 36.8]),
        ("line s1", [132, 76.8, 246]),
        ("dots big s1", [170, 76.8]),
        ("line s2", [246, 116.8, 322]),
        ("dots big s2", [284, 116.8]),
    ]
    places = texts(svg)
    assert [places[model] for model, _ in rows] == [(18, 27.8), (18, 67.8), (18, 107.8)]
    assert svg.count('class="grid"') == 4  # at 20, 40, 60, 80


def test_learning_curve_starts_at_the_backbone_and_rings_the_best():
    curve = [{"step": 0, "dev": 0.4}, {"step": 10, "dev": 0.6}, {"step": 20, "dev": 0.5}]
    _, svg = figures.learning_curve_panel(curve, best_step=10)
    points = [54, 176.7, 188, 23.3, 322, 100]
    assert paths(svg) == [
        ("line s1 dashed", [54, 176.7, 322, 176.7]),
        ("line s2", points),
        ("dots big s2", points),
    ]
    assert '<circle class="line ink" cx="188" cy="23.3" r="6"/>' in svg


def test_fifths_cut_the_range_of_the_gold_scores():
    found = figures.fifths(np.array([1.0, 1.9, 3.0, 5.0]))
    assert [(low, high, inside.nonzero()[0].tolist()) for low, high, inside in found] == [
        (1, pytest.approx(1.8), [0]),
        (pytest.approx(1.8), pytest.approx(2.6), [1]),
        (pytest.approx(2.6), pytest.approx(3.4), [2]),
        (pytest.approx(4.2), 5, [3]),
    ]


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


def test_pairs_stand_over_their_gold_scores_with_the_mean_of_each_fifth():
    shown = view((0.0, 0.0, 1.0), old=[0.0, 0.5, 1.0], new=[1.0, 1.0, 1.0])
    (_, svg), (title, after) = figures.scatter_panels(shown)
    (kind, dots), *means = paths(svg)
    assert (kind, dots[1::2]) == ("dots s1", [192, 100, 8])
    # From -0.04 to 1.04 over 268; a dot is at most 0.02 beside its gold score.
    assert all(abs(x - place) <= 5 for x, place in zip(dots[::2], (63.9, 63.9, 312.1), strict=True))
    assert [(kind, drawn[1]) for kind, drawn in means] == [("line ink mean", 146), ("line ink mean", 8)]
    assert title == "new"
    assert paths(after)[0][0] == "dots s2"
