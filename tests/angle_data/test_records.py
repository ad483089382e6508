import dataclasses

import pytest

from angle_data.errors import InputError
from angle_data.records import Candidate, LabelledPair, Text, check_polarity


def test_records_survive_a_round_trip():
    pair = LabelledPair("a", "b", 1, 1.0, 0.5, "synonym", "t1", ["x"], ["near_copy"])
    assert LabelledPair.from_dict(pair.to_dict(), "here") == pair
    assert list(pair.to_dict()) == [field.name for field in dataclasses.fields(LabelledPair)]


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Text("t1", "a").id = "t2"


def test_unknown_and_missing_fields_are_named_with_their_place():
    with pytest.raises(InputError, match=r"f.jsonl:3: unknown field 'extra' in a Text record"):
        Text.from_dict({"id": "t1", "text": "a", "extra": 1}, "f.jsonl:3")
    row = {"source_id": "t1", "source": "a", "polarity": "synonym", "text": "b"}
    with pytest.raises(InputError, match=r"f.jsonl:3: a Candidate record lacks key, model"):
        Candidate.from_dict(row, "f.jsonl:3")


def test_polarity_is_checked():
    assert check_polarity("antonym", "f:1") == "antonym"
    with pytest.raises(InputError, match=r"f:1: polarity must be one of synonym, antonym, got 'opposite'"):
        check_polarity("opposite", "f:1")
