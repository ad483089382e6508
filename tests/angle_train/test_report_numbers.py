"""What a report says beyond the scores, on pairs small enough to be counted by hand; commands; axes."""

import shlex

import numpy as np
import pytest
from report_examples import view

from angle_train.evaluate.compare import View, sample
from angle_train.report.insight import bands, biggest_changes, score_counts, space_figures
from angle_train.report.repeat import command_line, portable
from angle_train.report.svg import Plot, ticks


def small(gold, before, after):
    texts = [f"pair {i}" for i in range(len(gold))]
    columns = {"old": np.array(before), "new": np.array(after)}
    return View("set", texts, texts, np.array(gold), columns, {})


def test_changes_are_counted_in_places():
    # Gold places 1 2 3 4; before 1 2 3 4; after 4 2 3 1: the first and the last pair are 3 places off.
    found = small([0.0, 0.2, 0.6, 1.0], [0.1, 0.2, 0.3, 0.4], [0.9, 0.2, 0.3, 0.1])
    worse, better = biggest_changes(found, "old", "new")
    assert [(change.text1, change.off_before, change.off_after) for change in worse] == [
        ("pair 0", 0, 3),
        ("pair 3", 0, 3),
    ]
    assert better == []
    assert worse[0].growth == 3
    back, gained = biggest_changes(found, "new", "old", most=1)
    assert back == []
    assert [change.text1 for change in gained] == ["pair 3"]


def test_equal_gold_scores_share_their_place():
    found = small([0.0, 0.0, 1.0, 1.0], [0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.4, 0.3])
    assert biggest_changes(found, "old", "new") == ([], [])


def test_bands_cut_the_range_of_the_gold_scores_into_fifths():
    found = small([1.0, 1.9, 3.0, 5.0], [0.0, 0.2, 0.5, 1.0], [0.0, 0.4, 0.5, 1.0])
    first, middle, last = ((b.low, b.high, b.count, b.means) for b in (bands(found)[i] for i in (0, -2, -1)))
    assert first == (1.0, 1.8, 1, [0.0, 0.0])
    assert middle[:2] == pytest.approx((2.6, 3.4))
    assert middle[2:] == (1, [0.5, 0.5])
    assert last[2:] == (1, [1.0, 1.0])
    assert bands(small([0, 0, 1], [0.0, 0.4, 1], [0, 0, 0]))[0].spreads == pytest.approx([0.2, 0])


def test_shares_are_over_all_pairs_and_the_rest_needs_embeddings():
    similarity = np.array([0.96, 0.9, 0.1, 0.5])
    assert space_figures(similarity, np.arange(4.0), None) == {
        "cosine above 0.95": 0.25,
        "cosine above 0.8": 0.5,
    }
    shown = view(count=20, saturated=2)
    found = space_figures(shown.similarity["tuned"], shown.gold, shown.embeddings["tuned"])
    assert {"alignment", "uniformity"} < found.keys()


def test_alignment_is_over_the_best_pairs_alone():
    first = np.eye(4, dtype=np.float32)
    second = first.copy()
    second[0] = [0, 0, 0, 1]  # a bad pair far apart does not count
    found = space_figures(np.ones(4), np.array([0.0, 1.0, 1.0, 1.0]), (first, second))
    assert found["alignment"] == pytest.approx(0)


@pytest.mark.parametrize(("count", "taken"), [(3, 3), (500, 500), (10_000, 500)])
def test_sample_is_drawn_from_all_pairs(count, taken):
    chosen = sample(count)
    assert len(chosen) == len(set(chosen.tolist())) == taken
    assert chosen.tolist() == sorted(chosen)
    assert chosen[-1] < count
    assert count <= 500 or {0, 1} == set((chosen % 2).tolist())  # no fixed step


def test_scores_are_counted_by_value_or_by_tenth():
    assert score_counts([0, 1, 1, 0.2]) == {"0": 1, "0.2": 1, "1": 2}
    many = score_counts(np.linspace(0, 1, 101))
    assert next(iter(many)) == "0-0.1"
    assert sum(many.values()) == 101


def test_command_is_quoted_and_tells_no_place_on_the_machine():
    line = command_line(
        "angle-train fit",
        [("--data", ["my pairs.jsonl", "b"]), ("--x", None), ("--drop-leaks", True), ("--y", False)],
    )
    assert shlex.split(line) == [
        "angle-train", "fit", "--data", "my pairs.jsonl", "--data", "b", "--drop-leaks",
    ]  # fmt: skip
    assert portable("runs/pairs/dataset") == "runs/pairs/dataset"
    assert portable("hub:some/data") == "hub:some/data"
    assert portable("/home/someone/dev.jsonl") == "dev.jsonl"
    assert portable("/home/someone/pairs/dataset") == "pairs/dataset"


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
