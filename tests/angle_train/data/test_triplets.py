"""Rows with negatives as rows of scored pairs."""

import re

import pytest
from train_runs import write

from angle_data.errors import InputError
from angle_train.data.pairs import load_pairs
from angle_train.data.triplets import pairs_of_triplets

ROWS = [
    {"anchor": "Disk full.", "positive": "no space", "negative": "disk empty"},
    {"anchor": "disk full", "positive": "no space left", "negative": "login fails"},
]


def made(rows):
    return [row for _, row in pairs_of_triplets([(f"f:{i}", row) for i, row in enumerate(rows, start=1)])]


def test_a_triplet_is_a_positive_and_a_negative_pair_of_one_source():
    pairs = made(ROWS)
    assert [(row["text1"], row["text2"], row["score"]) for row in pairs] == [
        ("Disk full.", "no space", 1),
        ("Disk full.", "disk empty", 0),
        ("disk full", "no space left", 1),
        ("disk full", "login fails", 0),
    ]
    assert {row["source_id"] for row in pairs} == {"disk full"}


@pytest.mark.parametrize(("anchor", "positive"), [("query", "positive"), ("text1", "text2")])
def test_columns_have_several_names_and_negatives_may_be_many_or_missing(anchor, positive):
    rows = [
        {anchor: "a", positive: "b", "negative_1": "c", "negative_2": "d", "source_id": 7, "weight": 0.5},
        {anchor: "a", positive: "b", "negative_1": "e", "negative_2": None},
        {anchor: "a", positive: "b", "negative_1": "c", "negative_2": " "},
    ]
    pairs = made(rows)
    # The positive pair comes once, and so does the negative that two rows hold.
    assert [(row["text2"], row["score"]) for row in pairs] == [("b", 1), ("c", 0), ("d", 0), ("e", 0)]
    assert [row["source_id"] for row in pairs] == ["7", "7", "7", "a"]
    assert [row.get("weight") for row in pairs] == [0.5, 0.5, 0.5, None]


@pytest.mark.parametrize("anchor", ["anchor", "query"])
def test_positives_need_no_negatives(anchor):
    rows = [{anchor: "a", "positive": "b", "weight": 0.5}, {anchor: "a", "positive": "b"}]
    (pair,) = made([*rows])
    assert pair == {"text1": "a", "text2": "b", "score": 1, "source_id": "a", "weight": 0.5}
    with pytest.raises(InputError, match="f:2: positive must be a text"):
        made([rows[0], {anchor: "c", "positive": ""}])
    scored = [{anchor: "a", "positive": "b", "score": 0.5}]
    assert made(scored) == scored


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"positive": "b", "negative": "c"}, "f:1: a row with negatives needs a column anchor, query"),
        ({"anchor": "a", "negative": "c"}, "f:1: a row with negatives needs a column positive, .*text2"),
        ({"anchor": "a", "positive": "", "negative": "c"}, "f:1: positive must be a text"),
        ({"anchor": 3, "positive": "b", "negative": "c"}, "f:1: field 'anchor' must be a string, got int"),
        ({"anchor": "a", "positive": "b", "negative": None}, "f:1: negative must be a text"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(row, message):
    with pytest.raises(InputError, match=message):
        made([row])


def test_positives_and_negatives_may_be_lists_as_flagembedding_writes_them():
    rows = [
        {
            "query": "Disk full.",
            "pos": ["No space.", "The disk is full."],
            "neg": ["All is well."],
            "type": "x",
        },
        {"query": "Node lost.", "pos": ["A node left."], "neg": []},
    ]
    found = [(row["text1"], row["text2"], row["score"], row["source_id"]) for row in made(rows)]
    assert found == [
        ("Disk full.", "No space.", 1, "disk full"),
        ("Disk full.", "The disk is full.", 1, "disk full"),
        ("Disk full.", "All is well.", 0, "disk full"),
        ("Node lost.", "A node left.", 1, "node lost"),
    ]
    assert len(made([{"query": "a", "pos": ["b", "c"]}])) == 2
    assert len(made([{"anchor": "a", "positive": "b", "negatives": ["c", "d"]}])) == 3
    for row, message in [
        ({"query": "a", "pos": [], "neg": ["c"]}, "f:1: pos holds no text; remove the row"),
        ({"query": "a", "pos": ["b", " "], "neg": []}, "f:1: pos must be a text that is not blank, got ' '"),
        ({"query": "a", "pos": ["b"], "neg": [3]}, "f:1: field 'neg' must be a string, got int"),
        ({"query": "a", "pos": [["b"]], "neg": []}, "f:1: field 'pos' must be a string, got list"),
        (
            {"query": "a", "pos": ["b"], "neg": None},
            "f:1: neg must be a text that is not blank; remove the row",
        ),
    ]:
        with pytest.raises(InputError, match=re.escape(message)):
            made([row])


def test_files_of_triplets_load_as_pairs(tmp_path):
    pairs = load_pairs(write(tmp_path / "triplets.jsonl", ROWS))
    assert pairs.score.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert pairs.sources() == ["disk full"] * 4
