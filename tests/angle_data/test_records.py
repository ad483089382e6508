import dataclasses

import pytest

from angle_data.errors import InputError
from angle_data.records import Candidate, LabelledPair, Rejection, Text


def test_records_survive_a_round_trip():
    pair = LabelledPair("a", "b", 1, 1.0, 0.5, "synonym", "t1", ["x"], ["near_copy"], purpose="topics")
    assert LabelledPair.from_dict(pair.to_dict(), "here") == pair
    assert list(pair.to_dict()) == [field.name for field in dataclasses.fields(LabelledPair)]


def test_unknown_and_missing_fields_are_named_with_their_place():
    with pytest.raises(InputError, match=r"f.jsonl:3: unknown field 'extra' in a Text record"):
        Text.from_dict({"id": "t1", "text": "a", "extra": 1}, "f.jsonl:3")
    row = {"source_id": "t1", "source": "a", "polarity": "synonym", "text": "b"}
    with pytest.raises(InputError, match=r"f.jsonl:3: a Candidate record lacks key, model"):
        Candidate.from_dict(row, "f.jsonl:3")


ASKED = {"source_id": "t1", "source": "a", "text": "b", "model": "m", "key": "k"}


def test_a_candidate_has_a_polarity_or_a_degree():
    of_degree = Candidate.from_dict({**ASKED, "polarity": None, "degree": 4}, "f:1")
    assert of_degree == Candidate("t1", "a", None, "b", "m", "k", 4)
    assert of_degree.to_dict() == {**ASKED, "polarity": None, "degree": 4}
    of_polarity = Candidate.from_dict({**ASKED, "polarity": "antonym"}, "f:1")
    assert of_polarity == Candidate.from_dict({**ASKED, "polarity": "antonym", "degree": None}, "f:1")
    assert list(of_polarity.to_dict()) == ["source_id", "source", "polarity", "text", "model", "key"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"polarity": None}, "polarity and degree are both missing"),
        ({"polarity": "synonym", "degree": 5}, "polarity and degree are both set"),
        ({"polarity": "near"}, "polarity must be one of synonym, antonym, got 'near'"),
        ({"polarity": None, "degree": 0}, "degree must be a whole number from 1 to 5, got 0"),
        ({"polarity": None, "degree": True}, "got True"),
        ({"polarity": None, "degree": 4.0}, "got 4.0"),
    ],
)
def test_a_candidate_of_anything_else_is_refused(asked, message):
    with pytest.raises(InputError, match=f"^f:7: .*{message}"):
        Candidate.from_dict({**ASKED, **asked}, "f:7")


def test_a_rejection_may_belong_to_no_degree():
    row = {**ASKED, "polarity": None, "reason": "refusal", "raw": "No."}
    assert Rejection.from_dict(row, "f:1").to_dict() == {
        **{name: row[name] for name in ("source_id", "source", "polarity", "text")},
        **{name: row[name] for name in ("model", "key", "reason", "raw")},
    }
    with pytest.raises(InputError, match="f:1: polarity and degree are both set"):
        Rejection.from_dict({**row, "polarity": "synonym", "degree": 5}, "f:1")
