import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.labelling.replies.grades import GRADE_REASONS, parse_grades


def grades(raw, count=1, finish_reason="stop"):
    return parse_grades(raw, count=count, finish_reason=finish_reason)


@pytest.mark.parametrize(
    "raw",
    [
        '{"grades": [{"id": 1, "score": 3.5}]}',
        '```json\n{"grades": [{"id": 1, "score": 3.5}]}\n```',
        'Sure:\n{"grades": [{"id": 1, "score": "3.5"}]}\nHope this helps 100%!',
        '[{"id": "1", "rating": "3.5/5"}]',
        '{"1": 3.5}',
        '{"score": 3.5}',
        "[3.5]",
        "3.5",
        "3,5",
        "Score: 3.5",
        "**Score:** 3.5/5",
        "I would give this 3.5 out of 5.",
        "On the scale from 0 to 5 the grade is 3.5.",
        "The score is 3.5, although the pair names 2 hosts.",
        "<think>maybe 2, no, 4</think>3.5",
        "1. 3.5\n",
        "```json\n[3.5]\n```",
        "Pair [1]: 3.5",
        "[1] 3.5",
        "Score: 3.5. [1]",
        "Score: 3.5<|im_end|>",
        "assistant\n\n3.5</s>",
        "3.5<|im_end|>\n<|im_start|>user\nNow grade 4 more.",
    ],
)
def test_one_grade_in_many_forms(raw):
    assert grades(raw).grades == {1: 3.5}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "no_number"),
        ("They are quite close.", "no_number"),
        ("3 or 4", "ambiguous"),
        ("3-4", "ambiguous"),
        ("It could be 2, or rather 4.", "ambiguous"),
        ("Both have 12 nodes and 3 zones.", "ambiguous"),
        ("Score: 3-4", "ambiguous"),
        ("See [1] and [2].", "ambiguous"),
        ("Score: 7", "out_of_range"),
        ('{"score": -1}', "out_of_range"),
        ('{"score": 1e400}', "out_of_range"),
        ('{"score": NaN}', "out_of_range"),
        ('{"score": ' + "9" * 400 + "}", "out_of_range"),
        ('{"grades": ' * 900 + "4" + "}" * 900, "ambiguous"),
        ('{"score": true}', "ambiguous"),
        ('{"score": "high"}', "ambiguous"),
        ('{"grades": [{"id": 1, "score": 2}, {"id": 1, "score": 4}]}', "ambiguous"),
        ("I'm sorry, but I can't assist with that request.", "refusal"),
    ],
)
def test_what_is_no_grade_gets_a_reason(raw, reason):
    parsed = grades(raw)
    assert (parsed.grades, parsed.rejected) == ({}, {1: reason})


def test_a_reply_that_was_cut_off_keeps_the_grades_it_holds():
    parsed = grades('{"grades": [{"id": 1, "score": 2}, {"id": 2, "sco', 2, "length")
    assert parsed.grades == {1: 2.0}
    assert parsed.rejected == {2: "truncated"}


def test_grades_belong_to_their_numbers_not_their_places():
    raw = '{"grades": [{"id": 3, "score": 0}, {"id": 1, "score": 5}]}'
    parsed = grades(raw, 3)
    assert parsed.grades == {1: 5.0, 3: 0.0}
    assert parsed.rejected == {2: "missing_id"}


@pytest.mark.parametrize(
    "raw",
    [
        '{"grades": [{"id": 0, "score": 5}, {"id": 1, "score": 0}, {"id": 2, "score": 3}]}',
        '{"grades": [{"id": 1, "score": 5}, {"id": 2, "score": 0}, {"id": 4, "score": 3}]}',
        '{"0": 5, "1": 0, "2": 3}',
        "0: 5\n1: 0\n2: 3",
    ],
    ids=["from 0", "a gap", "mapping", "lines"],
)
def test_a_number_that_no_pair_has_makes_every_grade_ambiguous(raw):
    """A grader that counts from 0 would give each grade to the neighbour."""
    assert grades(raw, 3).grades == {}
    assert grades(raw, 3).rejected == dict.fromkeys((1, 2, 3), "ambiguous")


def test_a_legend_before_the_grades_says_nothing_about_pairs():
    assert grades("0: unrelated\n5: the same\n\n1: 4\n2: 3", 3).grades == {1: 4.0, 2: 3.0}


@pytest.mark.parametrize(
    "raw",
    ["1: 4\n2: 0.5\n", "Pair 1: 4/5\nPair 2: 0.5/5", "1. 4\n2) 0.5", "[4, 0.5]", "```json\n[4, 0.5]\n```"],
)
def test_several_grades_without_the_asked_for_json(raw):
    assert grades(raw, 2).grades == {1: 4.0, 2: 0.5}


def test_a_list_of_another_length_is_not_matched_by_place():
    assert grades("[4, 3, 2]", 2).grades == {}


def test_marks_in_brackets_are_no_list_of_grades():
    assert grades("Pair [1]: 4\nPair [2]: 0.5", 2).grades == {1: 4.0, 2: 0.5}
    assert grades("Both are close [3, 4].", 2).grades == {}


def test_the_same_grade_twice_is_one_grade():
    assert grades("Score: 4\n\nFinal score: 4").grades == {1: 4.0}


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["grades", "id", "score", "1", "pair 2", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=50)
@given(raw=st.text(max_size=200) | json_values.map(json.dumps), count=st.integers(1, 4))
def test_every_pair_gets_a_grade_in_range_or_a_known_reason(raw, count):
    parsed = grades(raw, count, None)
    assert parsed.grades.keys() | parsed.rejected.keys() == set(range(1, count + 1))
    assert not parsed.grades.keys() & parsed.rejected.keys()
    assert all(0 <= grade <= 5 for grade in parsed.grades.values())
    assert set(parsed.rejected.values()) <= GRADE_REASONS.keys()
