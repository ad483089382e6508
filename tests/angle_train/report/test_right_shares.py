"""How good a model is in words: comparisons that come out right, words that mislead, what a sample shows."""

import re
import time

import numpy as np
import pytest
from report_examples import BETTER, SAME, result
from train_runs import pair_set

from angle_train.evaluation.compare import View
from angle_train.report.right_shares import (
    RightShares,
    misled_sentence,
    power_sentences,
    right_where,
    shares_of,
    shares_sentence,
)
from angle_train.report.text import made_line


@pytest.mark.parametrize(
    ("gold", "similarity", "share"),
    [
        ([0, 1, 2], [0.1, 0.2, 0.3], 1.0),
        ([0, 1, 2], [0.3, 0.2, 0.1], 0.0),
        ([0, 0, 1], [0.1, 0.9, 0.5], 0.5),  # of two comparisons one is right; equal grades are not compared
        ([0, 1, 2], [0.1, 0.1, 0.2], 5 / 6),  # equal cosines count half
        ([0, 1], [0.4, 0.4], 0.5),
    ],
)
def test_a_comparison_is_right_if_the_higher_grade_has_the_higher_cosine(gold, similarity, share):
    assert right_where(np.array(gold)[:, None] > gold, np.array(similarity)) == pytest.approx(share)
    pairs = [(f"text {i}", f"text {i}") for i in gold]
    found = shares_of(View(pair_set(pairs, gold, "set"), {"new": np.array(similarity)}))
    assert (found.right, found.misled) == ({"new": pytest.approx(share)}, {})
    assert (
        shares_of(View(pair_set(pairs, np.ones(len(gold)), "set"), {"new": np.array(similarity)})).right == {}
    )


def opposites(count):
    """Pairs of opposites, all words but one shared, and as many paraphrases without a common word."""
    low = [(f"the disk {i} is full", f"the disk {i} is empty") for i in range(count)]
    high = [(f"host {i} fails", "this machine breaks down often") for i in range(count)]
    gold = np.repeat([0.0, 1.0], count)
    halves = np.concatenate([np.tile([0.2, 0.8], count // 2), np.full(count, 0.5)])
    return View(pair_set([*low, *high], gold, "set"), {"old": 1 - gold, "new": halves})


def test_words_mislead_where_the_pair_with_the_lower_grade_shares_more_of_them():
    found = shares_of(opposites(20))
    assert found.misled == pytest.approx({"old": 0.0, "new": 0.5})
    assert found.right == pytest.approx({"old": 0.0, "new": 0.5})
    assert misled_sentence([found], "new", "old", "before") == (
        "Where shared words mislead, as with opposites, 50 of 100 come out right (nearly a coin flip), "
        "0 before"
    )
    assert misled_sentence([found], "old").endswith("0 of 100 come out right (worse than a coin flip)")
    # Fewer than 200 comparisons say little.
    assert shares_of(opposites(10)).misled == {}
    assert misled_sentence([shares_of(opposites(10))], "new") == ""


def test_levels_of_several_sets_are_told_as_a_mean():
    sets = [RightShares(f"set{i}", {"new": 0.8 + i / 100, "old": 0.7}) for i in range(4)]
    assert shares_sentence(sets[:1], "new") == "of 100 comparisons 80 come out right"
    assert shares_sentence(sets[:2], "new", "old", "before") == (
        "of 100 comparisons 80 come out right on average over 2 sets, 70 before"
    )
    assert shares_sentence(
        [*sets, RightShares("far", {"new": 0.3, "old": 0.2})], "new", "old", "with old"
    ) == ("of 100 comparisons 71 come out right on average over 5 sets, 60 with old")
    worst = misled_sentence([RightShares("a", {}, {"new": 0.9}), RightShares("b", {}, {"new": 0.6})], "new")
    assert worst == "Where shared words mislead, as with opposites (b), 60 of 100 come out right"


def test_a_small_sample_says_what_it_can_show_and_how_many_pairs_would_do():
    assert power_sentences([result("set", "tuned", 0.5, BETTER), result("set", "backbone", 0.5)]) == []
    # 200 pairs show ±11; five times as fine takes (11 / 5)² as many: 968.
    wide = result("set", "tuned", 0.5, (-0.01, -0.12, 0.10))
    line = "set: 200 pairs show only differences above ±11; grade about 970 to see ±5"
    assert power_sentences([wide, result("set", "other", 0.5, SAME)]) == [line]


def test_nobody_is_asked_to_grade_more_where_more_grades_would_change_nothing():
    proven, lost, alike = (0.30, 0.02, 0.58), (-0.30, -0.58, -0.02), (0.0, 0.0, 0.0)
    shown = [result("set", "tuned", 0.5, difference) for difference in (proven, lost, alike)]
    assert power_sentences(shown) == []


def test_the_day_can_be_fixed(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert re.fullmatch(r"Made on 2 January 1970, angle-toolkit [\d.]+\.", made_line())
    assert made_line(7500, 1.234).endswith(", computing took 2 h 5 min, the labels cost 1.23 USD.")
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert f"{time.gmtime().tm_year}, angle-toolkit" in made_line()
