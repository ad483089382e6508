"""Where thoughts end and an answer begins, in the cases that no shape has."""

import pytest

from angle_data.annotators.answers import answer_of, reply_of
from angle_data.annotators.thinking import split_thinking

FINAL = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm.</think>The pod is up.<think>Or is it?", "The pod is up."),
        (f"{FINAL}The pod is up.<|channel|>commentary<|message|>Done.", "The pod is up."),
    ],
    ids=["reopened", "a channel after final"],
)  # fmt: skip
def test_what_follows_the_answer_is_no_part_of_it(text, answer):
    found, thoughts = split_thinking(text)
    assert found == answer
    assert "Hm." in thoughts


def test_the_end_of_details_that_nothing_opened_ends_no_thoughts():
    page = "The pod is up.\n</details>\nThe disk is full."
    assert split_thinking(page) == (page, "")


def test_tokens_that_are_read_in_another_way_are_kept_as_the_service_counted_them():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}
    choice = {"message": {"content": "The pod is up."}, "finish_reason": "stop"}
    reply = reply_of("k", {"choices": [choice], "usage": usage}, 0.0)
    assert reply.usage["completion_tokens"] == 30
    assert reply.raw == {"usage": usage}
    row = {"reply": reply.text, "finish_reason": "stop", "usage": reply.usage, "raw": reply.raw}
    assert answer_of(row).usage == reply.usage
