"""Pairs that a language model graded: which are those that people graded, and what is left out."""

import json
import logging

import numpy as np
import pytest
from train_runs import pair_set

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_train.data.judged import load_judged, match_judged
from angle_train.data.splits import RunData
from angle_train.inputs import with_judged


def rows(numbers):
    return [{"text1": f"a {n}", "text2": f"b {n}", "score": n % 6, "model": "gpt-x"} for n in numbers]


@pytest.fixture
def run(tmp_path):
    """A finished run of llm-score with 60 grades."""
    write_jsonl(tmp_path / "run" / "scores.jsonl", rows(range(60)))
    (tmp_path / "run" / "run.json").write_text(json.dumps({"command": "llm-score", "finished": True}))
    return tmp_path / "run"


def people(numbers, name="my"):
    """Pairs that people graded, spelt a little differently and some the other way round."""
    texts = [(f"A {n}.", f"b {n}") if n % 2 else (f"b {n}", f"a {n}!") for n in numbers]
    return pair_set(texts, name=name)


def test_pairs_are_matched_by_their_texts_in_either_order_and_the_rest_is_apart(run):
    found = match_judged(str(run), people([3, 4, 5, 99]))
    assert found.grader == "gpt-x"
    assert found.grades.tolist()[:3] == [3, 4, 5]
    assert np.isnan(found.grades[3])
    assert len(found.rest) == 57
    assert not {"a 3", "a 4", "a 5"} & {*found.rest.text1}
    assert dict(zip(found.rest.text1, found.rest.score, strict=True))["a 8"] == 2


def test_what_trains_or_chooses_is_left_out_and_said(run, caplog):
    caplog.set_level(logging.INFO)
    data = RunData(people(range(10, 20)), [people(range(20, 25))], [people([3, 4, 10])])
    found = with_judged(data, str(run), dev_by_people=True).judged
    assert len(found.rest) == 60 - 3 - 14  # pair 10 trains too, but is a test pair
    assert not {f"a {n}" for n in range(10, 25)} & {*found.rest.text1}
    assert "14 judged pairs left out: they train, choose or test" in caplog.text
    assert [role for role, _ in with_judged(data, str(run), dev_by_people=True).evaluated] == [
        "dev",
        "test",
        "judged",
    ]


@pytest.mark.parametrize("sets", [0, 2])
def test_one_set_of_test_pairs_is_needed(run, sets):
    data = RunData(people([1]), [], [people([n, n + 1]) for n in range(sets)])
    with pytest.raises(InputError, match="--judged goes with one --test: "):
        with_judged(data, str(run), dev_by_people=True)


def test_nothing_in_common_and_nothing_more_are_a_line_with_the_fix(run):
    with pytest.raises(InputError, match=r"none of its 60 pairs is among the 2 of my; .* angle-data grade"):
        match_judged(str(run), people([100, 101]))
    with pytest.raises(InputError, match="it grades no pairs beyond those of my; have more pairs graded"):
        match_judged(str(run), people(range(60)))
    taken = (
        r"alone graded 50 pairs, and all of them train, choose or test here; .* --data, --dev and --teacher-"
    )
    with pytest.raises(InputError, match=taken):
        match_judged(str(run), people(range(10)), [people(range(10, 60))])


def test_files_and_unfinished_runs_are_read_and_of_two_grades_of_a_pair_the_first_counts(
    run, tmp_path, caplog
):
    (run / "run.json").write_text(json.dumps({"command": "llm-score", "finished": False}))
    assert len(load_judged(str(run))) == 60
    assert "is not finished" in caplog.text
    again = [{"sentence1": f"b {n}", "sentence2": f"a {n}", "label": 9} for n in range(3)]
    write_jsonl(tmp_path / "mine.jsonl", [*rows(range(5)), *again])
    found = load_judged(str(tmp_path / "mine.jsonl"))
    assert (len(found), found.score.tolist()) == (5, [0, 1, 2, 3, 4])
    write_jsonl(tmp_path / "unnamed.jsonl", again)
    assert load_judged(str(tmp_path / "unnamed.jsonl")).name == "unnamed"
    write_jsonl(tmp_path / "none.jsonl", [])
    with pytest.raises(InputError, match="no graded pairs in it"):
        load_judged(str(tmp_path / "none.jsonl"))


def test_other_grades_are_another_run(run):
    graded = people([3, 4, 5])
    found = match_judged(str(run), graded)
    write_jsonl(
        run / "scores.jsonl",
        [row | {"score": 1.0} if row["text1"] == "a 3" else row for row in rows(range(60))],
    )
    assert match_judged(str(run), graded).sha256() != found.sha256()
