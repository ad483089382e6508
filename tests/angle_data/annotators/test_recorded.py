"""Recorded replies: matched by text and polarity, and one annotator's rows at a time."""

import json
from pathlib import Path

import pytest
from tiny_llm import ask

from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.recorded import Recorded
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import InputError


def row(text, polarity, reply, annotator="a"):
    return {"id": "x", "text": text, "polarity": polarity, "annotator": annotator, "reply": reply}


ROWS = [
    row("One.", "synonym", "1. First."), row("One.", "antonym", "1. Not one."),
    row("One.", "synonym", "1. Other.", annotator="b"), row(" Two. ", "synonym", "1. Second."),
]  # fmt: skip


def build(path: Path, rows, name="a"):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Recorded(AnnotatorSpec(name, "recorded", "r", replies=path))


def request(source, polarity):
    return ChatRequest(f"{source} {polarity}", "s", source, polarity, (), "r", Sampling(0.0, 1))


@pytest.mark.parametrize("task", ["degrees", "graded"])
def test_replies_match_text_task_and_annotator(tmp_path, task):
    rows = [*ROWS, {"text": "One.", "task": task, "reply": '{"5": "First."}'}]  # of whoever asks
    wanted = [request("Two.", "synonym"), request("One.", "synonym"), request("One.", "degrees")]
    wanted += [request("Two.", "antonym"), request("Two.", "degrees")]
    found = ask(build(tmp_path / "r.jsonl", rows), wanted)
    assert [outcome.text for outcome in found[:3]] == ["1. Second.", "1. First.", '{"5": "First."}']
    for failure, asked in zip(found[3:], ("antonym", "degrees"), strict=True):
        said = f"no recorded {asked} reply for this text"
        assert failure == Failure(f"Two. {asked}", "not_recorded", said)
    assert ask(build(tmp_path / "r.jsonl", rows, "b"), wanted[1:2]) == [Reply("One. synonym", "1. Other.")]


SECOND = "r.jsonl:2: a second, different {}"
ONE, TWO = {"text": "One.", "reply": "x"}, {"text1": "One.", "text2": "1."}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"r.jsonl holds no replies"),
        (ROWS, r"holds no replies of 'z'; annotators found: a, b"),
        ([{"text": "One.", "polarity": "synonym"}], r"r.jsonl:1: field 'reply' must be a string, got None"),
        (
            [{"a": "One.", "text2": "1.", "reply": "4"}],
            ":1: llm-score needs text1 and text2 .*found: a, text2, r",
        ),
        (
            [{"text1": "One.", "score": 4}],
            r":1: llm-score needs text1 and text2 .*; fields found: text1, score",
        ),
        (
            [{"reply": "4"}],
            ":1: llm-score needs text1 and text2 .*, the other commands text; fields found: r",
        ),
        ([row("One.", "similar", "x", "z")], ":1: polarity must be synonym or antonym, .*, got 'similar'"),
        ([row("One.", "synonym", reply, "z") for reply in "xy"], SECOND.format("synonym reply for the same")),
        ([TWO | {"reply": reply} for reply in "45"], SECOND.format("score reply for the same text or")),
        ([ONE | {"task": "ranked"}], "r.jsonl:1: .*, or task degrees, query or duplicate, got 'ranked'"),
        ([ONE | {"task": t, "reply": t} for t in ("degrees", "graded")], SECOND.format("degrees reply for")),
    ],
)
def test_unusable_files(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        build(tmp_path / "r.jsonl", rows, "z")
