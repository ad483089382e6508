import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.labelling.replies.grades import GRADE_REASONS, parse_grade


def grade(raw, finish_reason="stop"):
    return parse_grade(raw, finish_reason=finish_reason)


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
        "Score: 3.5\n\nFinal score: 3.5",
        '{"grades": [{"id": 0, "score": 3.5}]}',
    ],
)
def test_one_grade_in_many_forms(raw):
    assert grade(raw) == 3.5


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
        ("Both are close [3, 4].", "ambiguous"),
        ("[4, 3, 2]", "ambiguous"),
        ("0: unrelated\n5: the same", "ambiguous"),
        ("Score: 7", "out_of_range"),
        ('{"score": -1}', "out_of_range"),
        ('{"score": 1e400}', "out_of_range"),
        ('{"score": NaN}', "out_of_range"),
        ('{"score": ' + "9" * 400 + "}", "out_of_range"),
        ('{"grades": ' * 900 + "4" + "}" * 900, "no_number"),
        ('{"score": true}', "ambiguous"),
        ('{"score": "high"}', "ambiguous"),
        ('{"grades": [{"id": 1, "score": 2}, {"id": 1, "score": 4}]}', "ambiguous"),
        ("I'm sorry, but I can't assist with that request.", "refusal"),
    ],
)
def test_what_is_no_grade_gets_a_reason(raw, reason):
    assert grade(raw) == reason


def test_a_reply_that_was_cut_off_has_no_grade():
    assert grade('{"grades": [{"id": 1, "sco', "length") == "truncated"
    assert grade('{"grades": [{"id": 1, "sco') == "no_number"


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["grades", "id", "score", "1", "pair 2", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=50)
@given(raw=st.text(max_size=200) | json_values.map(json.dumps))
def test_every_reply_gives_a_grade_in_range_or_a_known_reason(raw):
    found = grade(raw, None)
    assert found in GRADE_REASONS if isinstance(found, str) else 0 <= found <= 5
