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


@pytest.mark.parametrize(("sets", "wanted"), [(0, "--test or one --dev"), (2, "--test")])
def test_one_set_of_test_pairs_is_needed(run, sets, wanted):
    data = RunData(people([1]), [], [people([n, n + 1]) for n in range(sets)])
    with pytest.raises(InputError, match=f"--judged goes with one {wanted}: "):
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


def test_files_and_unfinished_runs_are_read(run, tmp_path, caplog):
    (run / "run.json").write_text(json.dumps({"command": "llm-score", "finished": False}))
    assert len(load_judged(str(run))) == 60
    assert "is not finished" in caplog.text
    write_jsonl(tmp_path / "unnamed.jsonl", [{"sentence1": "b", "sentence2": "a", "label": 9}])
    assert load_judged(str(tmp_path / "unnamed.jsonl")).name == "unnamed"
    write_jsonl(tmp_path / "none.jsonl", [])
    with pytest.raises(InputError, match="no graded pairs in it"):
        load_judged(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("scores", [None, ""])
def test_a_run_of_which_nothing_can_be_used_is_no_warning(run, scores, caplog):
    (run / "run.json").write_text(json.dumps({"command": "llm-score", "finished": False}))
    (run / "scores.jsonl").unlink()
    if scores is not None:
        (run / "scores.jsonl").write_text(scores)
    with pytest.raises(InputError, match=r"holds no scores\.jsonl|no graded pairs in it"):
        load_judged(str(run))
    assert not caplog.records


def graded(*scores, model="gpt-x", **more):
    """Grades of one pair, every other one with its texts exchanged."""
    texts = [("a", "b"), ("B.", "A")]
    found = ((*texts[number % 2], score) for number, score in enumerate(scores))
    return [{"text1": one, "text2": two, "score": score, "model": model} | more for one, two, score in found]


def test_of_several_grades_of_a_pair_the_mean_counts_in_any_order_of_the_rows(tmp_path, caplog):
    again = [*graded(0.1, 5.3, 0.7), *graded(4.0, model="other")]
    file = tmp_path / "mine.jsonl"
    found = set()
    for order in (again, again[::-1], again[1:] + again[:1]):
        every = [*order, *rows(range(5)), *rows([3])]
        write_jsonl(file, [row | {"scale": "0-9"} for row in every])
        caplog.clear()
        pairs = load_judged(str(file))
        assert len(pairs) == 6
        assert pairs.score.tolist()[1:] == [0, 1, 2, 3, 4]
        found.add(float(pairs.score[0]))
        assert [record.message.split(": ", 2)[2] for record in caplog.records] == [
            "1 pair with several grades that differ; their mean counts"
        ]
    assert len(found) == 1
    assert found.pop() == pytest.approx(((0.1 + 5.3 + 0.7) / 3 + 4) / 2)


def test_grades_of_several_graders_need_one_stated_scale(tmp_path):
    file = tmp_path / "mine.jsonl"
    apart = [row | {"model": "other"} for row in rows(range(5))]
    for others in (graded(80, model="other"), graded(80, model="other", scale="0-100"), apart):
        write_jsonl(file, [*graded(4.0), *others])
        with pytest.raises(InputError, match=r"several graders \(gpt-x and other\), on scales that not all"):
            load_judged(str(file))


def test_equal_grades_of_a_pair_stay_as_they_are(tmp_path, caplog):
    write_jsonl(tmp_path / "mine.jsonl", [*graded(0.1, 0.1, 0.1), *rows(range(5))])
    assert load_judged(str(tmp_path / "mine.jsonl")).score[0] == 0.1
    assert not caplog.records


@pytest.mark.parametrize("score", [9, -50])
def test_a_grade_outside_the_scale_that_its_row_states_is_refused(tmp_path, score):
    file = tmp_path / "mine.jsonl"
    wrong = graded(score, scale="0-5")
    for others in (rows(range(5)), [row | {"scale": "0-5"} for row in rows(range(5))]):
        write_jsonl(file, [*others, *wrong])
        with pytest.raises(InputError, match=rf"mine.jsonl:6: score {score} is outside the scale 0-5; fix"):
            load_judged(str(file))
    write_jsonl(file, [*rows(range(5)), *graded(score)])
    assert load_judged(str(file)).score[-1] == score  # no scale is stated: the rank alone counts


def test_rows_that_state_different_scales_are_refused(tmp_path):
    write_jsonl(
        tmp_path / "mine.jsonl", [row | {"scale": f"0-{5 + n}"} for n, row in enumerate(rows([1, 2]))]
    )
    with pytest.raises(InputError, match="the column scale says 0-5 and 0-6; bring all scores on one scale"):
        load_judged(str(tmp_path / "mine.jsonl"))


def test_other_grades_are_another_run(run):
    graded = people([3, 4, 5])
    found = match_judged(str(run), graded)
    write_jsonl(
        run / "scores.jsonl",
        [row | {"score": 1.0} if row["text1"] == "a 3" else row for row in rows(range(60))],
    )
    assert match_judged(str(run), graded).sha256() != found.sha256()
