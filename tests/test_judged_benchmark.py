"""`benchmarks/evaluation/judged.py`: which pairs of a domain it takes; a grader trusted and corrected."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks" / "evaluation")]

import judged  # noqa: E402


def test_pairs_of_a_domain_have_a_label_and_a_grade_each():
    pairs = [{"text1": f"a{n}", "text2": f"b{n}"} for n in range(20)]
    labelled = [pair | {"label": n % 2} for n, pair in enumerate(pairs) if n != 3]
    graded = [pair | {"score": n / 20} for n, pair in enumerate(pairs) if n != 5]
    rows = judged.labelled_and_graded(labelled, graded, 100)
    assert len(rows) == 18
    for row in rows:
        number = int(row["sentence1"].removeprefix("a"))
        assert (row["sentence2"], row["human"], row["grade"]) == (f"b{number}", number % 2, number / 20)
    drawn = judged.labelled_and_graded(labelled, graded, 7)
    assert drawn == rows[:7] == judged.labelled_and_graded(labelled, graded, 7)
    assert drawn != sorted(rows, key=lambda row: row["grade"])[:7]


def test_a_grader_that_favours_a_model_is_wrong_when_trusted_and_right_when_corrected():
    world = judged.made_world("favours the new model", "far", size=4000)
    assert world.by_grader > world.truth + 0.03
    found = judged.measured(world, graded=40, judged=300, draws=20, truth=world.truth)
    assert found["naive"] <= 0.5
    assert found["coverage"] >= 0.8
    assert found["width"] < 1
    assert np.isclose(found["agreement"], judged.spearman(world.people, world.grader), atol=0.1)
