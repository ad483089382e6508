"""Recorded replies: matched by text and polarity, and one annotator's rows at a time."""

import asyncio
import json
from pathlib import Path

import pytest

from angle_data.annotators.base import ChatRequest, Failure, Reply, Sampling
from angle_data.annotators.recorded import Recorded
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.errors import InputError


def row(text, polarity, reply, annotator="a"):
    return {"id": "x", "text": text, "polarity": polarity, "annotator": annotator, "reply": reply}


ROWS = [
    row("One.", "synonym", "1. First."),
    row("One.", "antonym", "1. Not one."),
    row("One.", "synonym", "1. Other.", annotator="b"),
    row(" Two. ", "synonym", "1. Second."),
]


def build(path: Path, rows, name="a"):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Recorded(AnnotatorSpec(name, "recorded", "r", replies=path))


def request(source, polarity):
    return ChatRequest(f"{source} {polarity}", "s", source, polarity, (), "r", Sampling(0.0, 1))


def answers(annotator, *requests):
    async def collect():
        return [outcome async for outcome in annotator.stream(requests)]

    return asyncio.run(collect())


def test_replies_match_text_polarity_and_annotator(tmp_path):
    annotator = build(tmp_path / "r.jsonl", ROWS)
    wanted = [request("Two.", "synonym"), request("One.", "antonym"), request("One.", "synonym")]
    assert [o.text for o in answers(annotator, *wanted)] == ["1. Second.", "1. Not one.", "1. First."]
    assert answers(build(tmp_path / "r.jsonl", ROWS, "b"), wanted[2]) == [Reply("One. synonym", "1. Other.")]


def test_a_text_without_reply_is_a_failure_of_its_own(tmp_path):
    (outcome,) = answers(build(tmp_path / "r.jsonl", ROWS), request("Two.", "antonym"))
    assert outcome == Failure("Two. antonym", "not_recorded", "no recorded antonym reply for this text")


@pytest.mark.parametrize("task", ["degrees", "graded"])
def test_replies_with_degrees_match_by_their_task(tmp_path, task):
    of_degrees = {"id": "x", "text": "One.", "task": task, "annotator": "a", "reply": '{"5": "First."}'}
    annotator = build(tmp_path / "r.jsonl", [*ROWS, of_degrees])
    wanted = request("One.", "degrees"), request("One.", "antonym"), request("Two.", "degrees")
    found, antonym, missing = answers(annotator, *wanted)
    assert (found.text, antonym.text) == ('{"5": "First."}', "1. Not one.")
    assert missing == Failure("Two. degrees", "not_recorded", "no recorded degrees reply for this text")


def test_rows_without_annotator_belong_to_whoever_asks(tmp_path):
    rows = [{"text": "One.", "polarity": "synonym", "reply": "1. First."}]
    annotator = build(tmp_path / "r.jsonl", rows, "anyone")
    assert answers(annotator, request("One.", "synonym"))[0].text == "1. First."


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"r.jsonl holds no replies"),
        (ROWS, r"holds no replies of 'z'; annotators found: a, b"),
        (
            [{"text": "One.", "polarity": "synonym"}],
            r"r.jsonl:1: field 'reply' must be a string, got NoneType",
        ),
        (
            [row("One.", "similar", "x", "z")],
            r"r.jsonl:1: polarity must be one of synonym, antonym, got 'similar'",
        ),
        (
            [row("One.", "synonym", "x", "z"), row("One.", "synonym", "y", "z")],
            r"r.jsonl:2: a second, different synonym reply for the same text",
        ),
        (
            [{"text1": "One.", "text2": "1.", "reply": reply} for reply in "45"],
            r"r.jsonl:2: a second, different score reply for the same pair",
        ),
        (
            [{"text": "One.", "task": "ranked", "reply": "x"}],
            r"r.jsonl:1: task must be degrees or graded, got 'ranked'; or give a polarity",
        ),
        (
            [{"text": "One.", "task": task, "reply": task} for task in ("degrees", "graded")],
            r"r.jsonl:2: a second, different degrees reply for the same text",
        ),
    ],
)
def test_unusable_files(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        build(tmp_path / "r.jsonl", rows, "z")
