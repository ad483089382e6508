"""Where the reports' drawings put things: places computed by hand, colours of series.

A plot is 340 wide; its numbers take 44 at the left, 10 at the right, 8 at the top and 38 at the bottom.
"""

import re

import pytest

from angle_train.evaluate.bootstrap import Interval
from angle_train.evaluate.compare import WORD_OVERLAP
from angle_train.report import figures
from angle_train.report.figures import ticks


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
    same = Interval(0.5, 0.5, 0.5)
    _, equal = figures.interval_panel("news", [("one <b>", same)], (50, 50), "Spearman")
    assert paths(equal)[0] == ("line s1", [170, 36.8, 170])
    assert "one &lt;b&gt;" in equal
    places = texts(svg)
    assert places["40"] == (130, 144)
    assert places["Spearman"] == (170, 161)
    assert [places[model] for model, _ in rows] == [(10, 27.8), (10, 67.8), (10, 107.8)]


def test_learning_curve_starts_at_the_backbone_and_rings_the_best():
    curve = [{"step": 0, "dev": 0.4}, {"step": 10, "dev": 0.6}, {"step": 20, "dev": 0.5}]
    _, svg = figures.learning_curve_panel(curve, best_step=10)
    points = [44, 176.7, 187, 23.3, 330, 100]
    assert paths(svg) == [
        ("line s1 dashed", [44, 176.7, 330]),
        ("line s2", points),
        ("dots big s2", points),
    ]
    assert '<circle class="line ink" cx="187" cy="23.3" r="6"/>' in svg


def test_more_than_five_models_share_colours_and_differ_in_their_dashes():
    kinds = [figures.series(number) for number in range(7)]
    assert kinds == ["s1", "s2", "s3", "s4", "s5", "s1 dashed", "s2 dashed"]
    rows = [(f"m{number}", Interval(0.5, 0.4, 0.6)) for number in range(7)]
    _, svg = figures.interval_panel("news", rows, (0, 100), "Spearman")
    assert [kind for kind, _ in paths(svg)[::2]] == [f"line {kind}" for kind in kinds]
