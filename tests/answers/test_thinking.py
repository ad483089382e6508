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


@pytest.mark.parametrize(
    ("source", "text", "answer"),
    [
        ("Wrap it in <analysis> tags.", "1. Put <analysis> around it.\n2. Use <analysis> tags.", None),
        ("Wrap it in <analysis> tags.", "1. Open with <think>.\n2. Use <analysis> tags.", None),
        ("Remove <think> and </think>.", "1. Drop <think> and </think>.\n2. No </think>, no <think>.", None),
        ("<think> is shown to users.", "<think> appears to users.\n<think> is not hidden.", None),
        ("The <|channel|> token leaks.", "The token <|channel|> is visible.", None),
        ("Put it in <answer> tags.", "1. Use <answer> tags.\n2. The tags are <answer>.", None),
        ("Reasoning: the pod is up.", "Reasoning: the pod runs.", None),
        ("Reasoning\nis slow here.", "Reasoning\nis not fast here.", None),
        ("Wrap it in <think> tags.", "<think>About tags.</think>1. Put <think> in.", "1. Put <think> in."),
        (
            "Remove <think> and </think>.",
            "<think>\nIt says </think> here.\n</think>\n\n1. Drop </think>.\n2. Drop <think> and </think>.",
            "1. Drop </think>.\n2. Drop <think> and </think>.",
        ),
        ("Wrap it in <analysis> tags.", "Hm.</think>1. Put <analysis> there.", "1. Put <analysis> there."),
        ("Remove <think>.", "<think>Is it the <think> mark", ""),
        (
            "Remove <think> and </think>.",
            '<think>Hm, </think> too.</think>{"sentences": ["No </think>."]}',
            '{"sentences": ["No </think>."]}',
        ),
    ],
)  # fmt: skip
def test_a_mark_that_the_source_holds_may_be_echoed_and_no_sentence_is_lost(source, text, answer):
    found = answer_of({"reply": text, "source": source, "finish_reason": "stop"})
    assert found.text.strip() == (text if answer is None else answer)


def test_without_such_a_source_the_same_marks_are_those_of_thoughts():
    row = {"reply": "1. Put it in.\n<analysis> tags.", "source": "Put it in tags."}
    assert answer_of(row).text == "1. Put it in.\n"
