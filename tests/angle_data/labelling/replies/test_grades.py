import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.labelling.replies.grades import GRADE_REASONS, parse_grades


def grades(raw, count, finish="done"):
    return parse_grades(raw, count=count, finish=finish)


def grade(raw, finish="done"):
    (found,) = grades(raw, 1, finish)
    return found


FORMS = [
    '{"grades": [{"id": 1, "score": 3.5}]}', '```json\n{"grades": [{"id": 1, "score": 3.5}]}\n```',
    'Sure:\n{"grades": [{"id": 1, "score": "3.5"}]}\nHope this helps 100%!',
    '[{"id": "1", "rating": "3.5/5"}]', '{"1": 3.5}', '{"score": 3.5}', "[3.5]", "3.5", "3,5", "Score: 3.5",
    "**Score:** 3.5/5", "I would give this 3.5 out of 5.", "On the scale from 0 to 5 the grade is 3.5.",
    "The score is 3.5, although the pair names 2 hosts.", "1. 3.5\n",
    "```json\n[3.5]\n```", "Pair [1]: 3.5", "[1] 3.5", "Score: 3.5. [1]", "Score: 3.5<|im_end|>",
    "assistant\n\n3.5</s>", "3.5<|im_end|>\n<|im_start|>user\nNow grade 4 more.",
    "Score: 3.5\n\nFinal score: 3.5", '{"grades": [{"id": 0, "score": 3.5}]}',
]  # fmt: skip


@pytest.mark.parametrize("raw", FORMS)
def test_one_grade_in_many_forms(raw):
    assert grade(raw) == 3.5


NO_GRADES = {
    # The last one's grade stands in what an object says of something else.
    "no_number": ("", "They are close.", '{"grades": ' * 900 + "4" + "}" * 900, '{"scale": {"score": 5}}'),
    "ambiguous": (
        "3 or 4", "3-4", "It could be 2, or rather 4.", "Both have 12 nodes and 3 zones.", "Score: 3-4",
        "See [1] and [2].", "Both are close [3, 4].", "[4, 3, 2]", "0: unrelated\n5: the same",
        '{"score": true}', '{"score": "high"}', '{"grades": [{"id": 1, "score": 2}, {"id": 1, "score": 4}]}',
    ),
    "out_of_range": (
        "Score: 7", '{"score": -1}', '{"score": 1e400}', '{"score": NaN}', '{"score": ' + "9" * 400 + "}",
    ),
    "refusal": ("I'm sorry, but I can't assist with that request.",),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "reason"), [(raw, why) for why, raws in NO_GRADES.items() for raw in raws])
def test_what_is_no_grade_gets_a_reason(raw, reason):
    assert grade(raw) == reason


@pytest.mark.parametrize("before", ["", "[", "Sure:\n", "```json\n", '{"grades": ['])
@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_a_pair_in_a_reply_that_was_cut_off_is_not_its_grade(before, count):
    cut = before + '{"id": 1, "sco'
    assert grades(cut, count, "cut") == ["truncated"] * count
    assert grades(cut, count) == ["no_number"] * count


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_reply_that_was_cut_off_anywhere_keeps_only_whole_grades(cut):
    asked_for = '{"grades": [{"id": 1, "score": 2.5}, {"id": 2, "score": 3.5}]}'
    for whole in (asked_for, "1: 2.5\n2: 3.5", "[2.5, 3.5]"):
        for found, true in zip(grades(whole[:-cut], 2, "cut"), (2.5, 3.5), strict=True):
            assert found in (true, "truncated")
    assert grades('{"grades": [{"id": 1, "score": 2}, {"id": 2, "sco', 2, "cut") == [2.0, "truncated"]
    assert grades("1: 2.5\n2: 3", 2, "cut") == [2.5, "truncated"]


TWO = (
    "1: 4\n2: 0.5\n", "Pair 1: 4/5\nPair 2: 0.5/5", "1. 4\n2) 0.5", "Pair [1]: 4\nPair [2]: 0.5", "[4, 0.5]",
    "```json\n[4, 0.5]\n```", '{"pair 1": 4, "2": {"score": "0.5"}}',
)  # fmt: skip
PLACES = ("[4, 3, 2]", "Both are close [3, 4].", '[{"score": 4}, {"score": 3}]')


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        *((raw, [4.0, 0.5]) for raw in TWO),
        # They belong to their numbers, and not to their places.
        ('{"grades": [{"id": 3, "score": 0}, {"id": 1, "score": 5}]}', [5.0, "missing_id", 0.0]),
        *((raw, ["no_number"] * 2) for raw in PLACES),
        # A grader that counts from 0 would give each grade to the neighbour: a number that no pair has
        # makes every grade ambiguous.
        ('{"grades": [{"id": 0, "score": 5}, {"id": 1, "score": 0}]}', ["ambiguous"] * 2),
        ('{"grades": [{"id": 1, "score": 5}, {"id": 4, "score": 3}]}', ["ambiguous"] * 2),
        ('{"0": 5, "1": 0, "2": 3}', ["ambiguous"] * 3),
        ("0: 5\n1: 0\n2: 3", ["ambiguous"] * 3),
        # A legend before them says nothing about pairs.
        ("0: unrelated\n5: the same\n\n1: 4\n2: 3", [4.0, 3.0, "missing_id"]),
    ],
)
def test_several_grades(raw, found):
    assert grades(raw, len(found)) == found


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
    assert len(parsed) == count
    for found in parsed:
        assert found in GRADE_REASONS if isinstance(found, str) else 0 <= found <= 5
