"""How far two people agree who graded the same pairs."""

import csv
import json

import pytest
from programs import run_here

from angle_data.cli import main
from angle_data.errors import InputError
from angle_data.look.agreement import agreement_of
from angle_data.look.grade import write_sheet

TEXTS = [(f"one {n}", f"other {n}") for n in range(12)]


def sheet(path, grades, turned=False):
    """A filled sheet; `turned` has the texts of each pair the other way round."""
    rows = [
        (*(texts[::-1] if turned else texts), "" if grade is None else str(grade), ("dev", "test")[n % 2])
        for n, (texts, grade) in enumerate(zip(TEXTS, grades, strict=True))
    ]
    write_sheet(path, [("sentence1", "sentence2", "score", "split"), *rows])
    return path


def test_two_people_are_compared_on_what_both_graded_in_either_order_of_the_texts(tmp_path):
    mine = sheet(tmp_path / "my.csv", [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, None])
    theirs = sheet(tmp_path / "theirs.csv", [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 1, 5], turned=True)
    found = agreement_of(mine, theirs)
    assert found.pairs == 11
    assert found.apart == pytest.approx(3 / 11)
    assert found.near == pytest.approx(10 / 11)
    assert found.farthest == [("one 10", "other 10", 4.0, 1.0)]
    # The figure of scipy.stats.spearmanr for these eleven grades, of which some are equal.
    assert found.spearman == pytest.approx(0.8365, abs=1e-4)
    assert "graded 11 pairs: Spearman 0.84, 0.3 apart on average, 91 % at most one apart" in str(found)
    assert "4 and 1: one 10 | other 10" in str(found)


def test_one_who_gives_a_single_grade_ranks_nothing(tmp_path):
    found = agreement_of(
        sheet(tmp_path / "my.csv", [2] * 12), sheet(tmp_path / "theirs.csv", [0, 1, 2, 3, 4, 5] * 2)
    )
    assert found.spearman is None
    assert "unknown" in str(found)


def test_a_sheet_of_other_pairs_is_refused(tmp_path):
    mine = sheet(tmp_path / "my.csv", [0, 1, 2, 3, 4, 5] * 2)
    few = sheet(tmp_path / "few.csv", [None] * 9 + [1, 2, 3])
    with pytest.raises(InputError, match=r"3 pairs .* let the second person grade a copy"):
        agreement_of(mine, few)


def test_the_command_says_it_and_writes_the_first_persons_pairs(tmp_path):
    mine = sheet(tmp_path / "my.csv", [0, 1, 2, 3, 4, 5] * 2)
    theirs = sheet(tmp_path / "theirs.csv", [5, 1, 2, 3, 4, 5] * 2)
    done = run_here(main, "grade", "--finish", mine, "--second", theirs)
    assert done.returncode == 0, done.stderr
    assert "both     graded 12 pairs" in done.stdout
    dev = csv.DictReader((tmp_path / "my-dev.csv").read_text().splitlines())
    assert {row["score"] for row in dev} == {"0", "2", "4"}
    found = json.loads(run_here(main, "grade", "--finish", mine, "--second", theirs, "--json").stdout)
    assert found["agreement"]["pairs"] == 12
    alone = run_here(main, "grade", "--second", theirs)
    assert alone.returncode == 1
    assert "--second goes with --finish" in alone.stderr
