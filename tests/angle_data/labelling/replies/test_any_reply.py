"""What holds of any reply, however odd: known parts, whole characters, and an end in reasonable time."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from angle_data.labelling.replies.degrees import parse_degrees
from angle_data.labelling.replies.parse import REASONS, parse_reply

FRAGMENTS = [
    "1. ", "2) ", "\n", '"', '{"sentences": [', '"]}', "**", "```json\n", "<think>", "</think>", "- ",
    " / ", "[1] ", "I'm sorry, but I can't assist", "Here are 2 sentences:", "Input sentence: ", "一、",
    "<|im_end|>", "</s>", "assistant", "<li>", "</li>", "| a | b |", "|---|", "> ", "Got it.",
    "A node failed.", "\\", "\0", "['a', ", "}", "{", "]", ":", "\\ud83d",
    "5: ", "4. ", '{"5": "', '", "4": "', "Degree 3", "(2)", '{"degree": 5, "sentence": "', "5/5",
    "same meaning",
]  # fmt: skip


PIECES = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4)).map("".join)


@given(
    raw=st.text() | PIECES,
    source=st.text(max_size=30),
    finish=st.sampled_from(["unknown", "done", "cut"]),
    size=st.integers(1, 4),
)
@example(raw='["It \\ud83d is up.", {"n": "\\ud83d"}]', source="It runs.", finish="unknown", size=1)
@example(raw='{"5": "It \\ud83d is up.", "n": "\\ud83d"}', source="It runs.", finish="unknown", size=1)
@example(raw="It \ud83d is up.", source="It runs.", finish="unknown", size=1)
@example(raw="<think>\ud83d", source="It runs.", finish="unknown", size=1)
def test_any_text_is_parsed_into_known_parts(raw, source, finish, size):
    for parts, most in (
        (parse_reply(raw, source=source, finish=finish, size=size), size),
        (parse_degrees(raw, source=source, finish=finish), 5),
    ):
        sentences = [part.text for part in parts if part.reason is None]
        assert parts
        assert len(sentences) <= most
        assert {part.reason for part in parts} <= {None, *REASONS}
        for sentence in sentences:
            assert sentence == " ".join(sentence.split())
            assert any(character.isalnum() for character in sentence)
        "".join(part.text for part in parts).encode()


HOSTILE = [
    '{"' * 50_000, "<|x|>" * 20_000, "<li>" * 30_000, "|a" * 30_000, '[{"a": ' * 9000, "> " * 50_000,
    "[" * 100_000, '{"a":' * 100_000, "['" * 50_000, "1. " * 30_000, '"' * 50_000, 'so {"a ' * 30_000,
    '{"5": ' * 20_000, "5: " * 30_000, "5 (" * 30_000, "5 - same " * 20_000, "- " * 50_000,
    '{"degree":' * 50_000, "5\n" * 30_000, "same meaning " * 20_000, "*" * 50_000, '{"5": "' + '"x ' * 50_000,
]  # fmt: skip


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: raw[:8])
def test_hostile_replies_are_parsed_in_reasonable_time(raw):
    assert parse_reply(raw, source="It runs.", finish="unknown", size=2)
    assert parse_degrees(raw, source="It runs.", finish="unknown")
