"""Models compared on pairs and on tasks: intervals, paired differences, seeds as one system, averages."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from angle_train.data.pairs import PairSet
from angle_train.evaluation import compare as comparison
from angle_train.evaluation.bootstrap import difference_between, draw, interval_around
from angle_train.evaluation.compare import WORD_OVERLAP, Comparison, compare
from angle_train.evaluation.seeds import System
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import MeanOf, SpearmanOf
from angle_train.evaluation.task import GROUPS, Outcome
from angle_train.report.text import notes_on, results_table, table_of

RNG = np.random.default_rng(0)
GOLD = RNG.random(60)
COLUMNS = {name: GOLD + RNG.normal(size=60) * noise for name, noise in [("old", 2), ("s1", 0.3), ("s2", 0.5)]}
PAIRS = PairSet("made", [f"a b{i % 3}" for i in range(60)], [f"a b{i}" for i in range(60)], GOLD, np.ones(60))
OLD, NEW = System("old", ("old",)), System("new*", ("s1", "s2"))


def outcomes(**details):
    return {name: Outcome({"spearman": SpearmanOf(GOLD, c)}, details) for name, c in COLUMNS.items()}


def test_word_overlap_baseline_and_models_are_measured_on_one_drawing_of_resamples(monkeypatch):
    drawings = []
    monkeypatch.setattr(
        comparison, "draw", lambda columns, *more: drawings.append(len(columns)) or draw(columns, *more)
    )
    results = compare(PAIRS, {"old": COLUMNS["old"], "new": COLUMNS["s1"]}, baseline="old", role="dev")
    assert drawings == [3]
    assert [(r.pairs, r.role, r.count, r.model, r.baseline) for r in results] == [
        ("made", "dev", 60, WORD_OVERLAP, None),
        ("made", "dev", 60, "old", None),
        ("made", "dev", 60, "new", "old"),
    ]
    columns = (word_overlap(PAIRS), COLUMNS["old"], COLUMNS["s1"])
    for result, column in zip(results, columns, strict=True):
        statistic = SpearmanOf(GOLD, column)
        assert result.score == interval_around(statistic.value(), *draw([statistic], 10_000, 0))
    old, new = (SpearmanOf(GOLD, COLUMNS[name]) for name in ("old", "s1"))
    expected = difference_between(new.value() - old.value(), *draw([old, new], 10_000, 0))
    assert results[2].difference == expected
    assert all(r.difference is None for r in compare(PAIRS, {"old": GOLD}))


def test_results_are_read_back_from_plain_values_and_say_what_applies_alone():
    on_pairs = compare(PAIRS, {"old": COLUMNS["old"], "new": GOLD}, baseline="old")
    assert list(on_pairs[1].to_dict()) == [
        "pairs", "role", "count", "model", "score", "baseline", "difference",
    ]  # fmt: skip
    assert on_pairs[2].to_dict()["verdict"] == "better"
    on_task = Comparison([OLD, NEW], OLD, 50).on_task("stsb", outcomes(note="x"), 1379)
    row = on_task[1].to_dict()
    assert (row["standard_size"], row["sd_over_seeds"], row["details"]) == (
        False,
        on_task[1].spread,
        {"note": "x"},
    )


def test_seeds_are_averaged_item_by_item_and_tested_seed_by_seed():
    old, new = Comparison([OLD, NEW], OLD, 400).on_task("stsb", outcomes(), seed=7)
    values = [SpearmanOf(GOLD, COLUMNS[name]).value() for name in ("s1", "s2")]
    assert (old.values, new.values) == ((), tuple(values))
    assert new.score.value == pytest.approx(np.mean(values))
    assert new.spread == pytest.approx(np.std(values, ddof=1))
    drawn = draw([SpearmanOf(GOLD, COLUMNS[n]) for n in COLUMNS], 400, 7)
    mean = (drawn[1] + drawn[2]) / 2
    assert new.score.low == pytest.approx(np.percentile(mean, 2.5))
    assert new.difference.high == pytest.approx(np.percentile(mean - drawn[0], 97.5))
    known = ttest_1samp(np.array(values) - old.score.value, 0)
    assert new.seed_test.p_value == pytest.approx(known.pvalue)


def accuracy(share, n):
    return Outcome({"accuracy": MeanOf((np.arange(n) < round(share * n)).astype(float))})


def test_averages_are_given_for_whole_groups_of_standard_size_only():
    sizes = dict(zip(GROUPS["transfer"], range(100, 800, 100), strict=True))

    def averaged(names, standard=lambda n: n):
        systems = [System("a", ("a",)), System("b", ("b",))]
        found = Comparison(systems, systems[0], resamples=50)
        for position, name in enumerate(names):
            n = sizes[name]
            of = {"a": accuracy(0.5, n), "b": accuracy(0.5 + 0.05 * position, n)}
            found.on_task(name, of, standard(n), seed=position)
        return found.averages()

    a, b = averaged(sizes)
    assert (a.pairs, a.count, a.score.value) == ("transfer average", 7, pytest.approx(0.5))
    assert b.score.value == pytest.approx(0.65)
    assert b.difference.delta == pytest.approx(0.15)
    assert b.difference.low < 0.15 < b.difference.high
    # Tasks are resampled apart: the average of seven is known better than each of them.
    assert b.score.high - b.score.low < 0.1
    assert averaged(list(sizes)[1:]) == []
    assert averaged(sizes, standard=lambda n: n + 1) == []
    assert len(averaged(sizes, standard=lambda n: None)) == 2


def judged(values, before=(0.5,), n=400):
    """A system of seeds against another, by accuracies on the same items."""
    old = System("old", tuple(f"o{i}" for i in range(len(before))), tuple(map(str, range(len(before)))))
    new = System("new", tuple(f"n{i}" for i in range(len(values))), tuple(map(str, range(len(values)))))
    of = dict(zip((*old.members, *new.members), (accuracy(v, n) for v in (*before, *values)), strict=True))
    _, result = Comparison([old, new], old, resamples=300).on_task("cr", of)
    return result


@pytest.mark.parametrize(
    ("values", "before", "agree", "verdict", "cell"),
    [
        ((0.7, 0.72, 0.71), (0.5,), True, "better", "better, p = "),
        ((0.7, 0.72, 0.71), (0.5, 0.51, 0.5), True, "better", "better, p = "),
        ((0.51, 0.9), (0.5,), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.1, 0.49), (0.5,), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.3, 0.32, 0.31), (0.5,), True, "worse", "worse, p = "),
        ((0.7,), (0.5, 0.6), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.505, 0.4975), (0.5,), False, "no reliable difference", "no reliable difference, p = "),
        ((0.7,), (0.5,), None, "better", "better"),
    ],
)
def test_what_seeds_do_not_support_is_not_called_better(values, before, agree, verdict, cell):
    result = judged(values, before)
    assert result.difference.seeds_agree is agree
    assert result.to_dict()["verdict"] == result.difference.verdict == verdict
    (row,) = table_of([result]).rows
    assert row[-1].startswith(cell)
    assert (", p = " in row[-1]) == (len(values) + len(before) > 2)


def test_the_table_has_a_line_for_every_figure_with_notes_on_what_it_is():
    results = Comparison([OLD, NEW], OLD, resamples=100).on_task("stsb", outcomes(), 1379)
    lines = results_table(results).splitlines()
    assert lines[0].split()[:4] == ["pairs", "n", "model", "Spearman"]
    assert lines[2].split()[:3] == ["stsb*", "60", "old"]
    assert f"{100 * results[1].score.value:.1f} ± {100 * results[1].spread:.1f}" in lines[3]
    assert f"{100 * results[1].difference.delta:+.1f}" in lines[3]
    assert f"p = {results[1].seed_test.p_value:.3g}" in lines[3]
    seeds = [
        "± standard deviation over seeds.",
        "p: over seeds, paired t-test. Better, worse: over items and over seeds, each at 95 %.",
    ]
    size = "* not of the published size: not comparable with published figures."
    note = "Spearman x 100, 95 % bootstrap intervals over pairs; differences to old, paired."
    assert lines[4:] == [note, *seeds, size]
    assert "±" not in results_table(results[:1])
    mixed = results_table([*results, judged((0.7,))]).splitlines()
    assert mixed[0].split()[:6] == ["task", "n", "figure", "model", "x", "100"]
    assert mixed[4].split()[:4] == ["cr", "400", "accuracy", "new"]
    assert mixed[5] == "95 % bootstrap intervals over items; differences to old, paired."


def test_the_table_says_how_seeds_are_judged():
    welch, paired, single = judged((0.7, 0.72, 0.71), (0.5, 0.52)), judged((0.7, 0.72)), judged((0.7,))
    rule = "Better, worse: over items and over seeds, each at 95 %."
    named = "Welch's t-test, as the seeds are not the same"
    assert notes_on([welch]) == ["± standard deviation over seeds.", f"p: over seeds, {named}. {rule}"]
    assert notes_on([welch, paired])[1] == f"p: over seeds, paired t-test; {named}. {rule}"
    assert notes_on([single]) == []
    assert notes_on([replace(paired, seed_test=None)]) == ["± standard deviation over seeds."]
