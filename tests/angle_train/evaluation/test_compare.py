"""Models compared on pairs and on tasks: intervals, paired differences."""

import numpy as np

from angle_train.data.pairs import PairSet
from angle_train.evaluation import compare as comparison
from angle_train.evaluation.compare import WORD_OVERLAP, Comparison, Outcome, compare
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import (
    Difference,
    draw,
    draw_figures,
    interval_around,
    mean_of,
    spearman_of,
)
from angle_train.report.text import results_table

RNG = np.random.default_rng(0)
GOLD = RNG.random(60)
COLUMNS = {name: GOLD + RNG.normal(size=60) * noise for name, noise in [("old", 2), ("new", 0.3)]}
PAIRS = PairSet(
    "made", [f"a b{i % 3} {i}" for i in range(60)], [f"c b{i}" for i in range(60)], GOLD, np.ones(60)
)


def outcomes():
    return {name: Outcome({"spearman": spearman_of(GOLD, c)}) for name, c in COLUMNS.items()}


def test_word_overlap_baseline_and_models_are_measured_on_one_drawing_of_resamples(monkeypatch):
    drawings = []
    monkeypatch.setattr(
        comparison,
        "draw_figures",
        lambda columns, *more: drawings.append(len(columns)) or draw_figures(columns, *more),
    )
    results = compare(PAIRS, COLUMNS, baseline="old", role="dev")
    assert drawings == [3]
    assert [(r.pairs, r.role, r.count, r.model, r.baseline) for r in results] == [
        ("made", "dev", 60, WORD_OVERLAP, None),
        ("made", "dev", 60, "old", None),
        ("made", "dev", 60, "new", "old"),
    ]
    for result, column in zip(results, [word_overlap(PAIRS), *COLUMNS.values()], strict=True):
        statistic = spearman_of(GOLD, column)
        assert result.score == interval_around(statistic.value(), *draw([statistic], 10_000, 0))
    old, new = (spearman_of(GOLD, COLUMNS[name]) for name in ("old", "new"))
    before, after = draw([old, new], 10_000, 0)
    found = interval_around(new.value() - old.value(), after - before)
    expected = Difference(found.value, found.low, found.high)
    assert results[2].difference == expected
    assert all(r.difference is None for r in compare(PAIRS, {"old": GOLD}))


def test_results_are_read_back_from_plain_values_and_say_what_applies_alone():
    on_pairs = compare(PAIRS, {"old": COLUMNS["old"], "new": GOLD}, baseline="old")
    assert list(on_pairs[1].to_dict()) == [
        "pairs", "role", "count", "model", "score", "baseline", "difference",
    ]  # fmt: skip
    assert on_pairs[2].to_dict()["verdict"] == "better"
    row = Comparison("old").on_task("stsb", outcomes(), 1379)[1].to_dict()
    assert row["standard_size"] is False


def accuracy(share, n):
    return Outcome({"accuracy": mean_of((np.arange(n) < round(share * n)).astype(float))})


def test_the_table_has_a_line_for_every_figure_with_notes_on_what_it_is():
    results = Comparison("old").on_task("stsb", outcomes(), 1379)
    lines = results_table(results).splitlines()
    assert lines[2].split()[:3] == ["stsb*", "60", "old"]
    size = "* not of the published size: not comparable with published figures."
    note = "Spearman x 100, 95 % bootstrap intervals over pairs; differences to old, paired."
    assert lines[4:] == [note, size]
    other = Comparison("old").on_task("cr", {"old": accuracy(0.5, 400), "new": accuracy(0.7, 400)})
    mixed = results_table([*results, other[1]]).splitlines()
    assert mixed[0].split()[:6] == ["task", "n", "figure", "model", "x", "100"]
    assert mixed[4].split()[:4] == ["cr", "400", "accuracy", "new"]
    assert mixed[5] == "95 % bootstrap intervals over items; differences to old, paired."
