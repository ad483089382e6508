"""What a teacher is asked about: neither what has labels, nor what measures."""

import gzip

import pytest
from train_runs import pair_set, write

from angle_data.errors import InputError
from angle_train.data.teacher import MOST_TEXTS, load_unscored

LABELLED = pair_set([("alpha one", "beta"), ("gamma two", "delta")])
DEV = pair_set([("Dev Text", "epsilon"), ("zeta", "eta")])


def test_pairs_and_texts_are_read_and_each_counts_once(tmp_path):
    mined = write(
        tmp_path / "mined.jsonl",
        [
            {"text1": "a", "text2": "b", "kind": "near"},
            {"text1": "B", "text2": "a", "kind": "near"},
            {"text1": "beta", "text2": "Alpha one"},  # has a label
            {"text1": "zeta", "text2": "eta"},  # measures
            {"text1": "c", "text2": "zeta"},
        ],
    )
    texts = write(tmp_path / "texts.jsonl", [{"text": "one"}, {"text": "One"}, {"text": "dev  text"}])
    found = load_unscored([mined, texts], [LABELLED], [DEV])
    assert found.pairs == [("B", "a"), ("c", "zeta")]
    assert found.texts == ["One"]
    assert found.name == "mined + texts"


def test_a_text_file_has_a_text_a_line(tmp_path):
    with gzip.open(tmp_path / "texts.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n\n".join("abcdefgh"))
    found = load_unscored([str(tmp_path / "texts.txt.gz")], [LABELLED], [DEV])
    assert (found.pairs, sorted(found.texts), found.name) == ([], [*"abcdefgh"], "texts.txt.gz")


def test_without_files_pairs_are_drawn_among_the_first_texts_of_labelled_pairs():
    labelled = pair_set([(f"text {number:04d}", "other") for number in range(MOST_TEXTS + 50)])
    found = load_unscored([], [labelled], [DEV])
    assert not found.pairs
    assert len({*found.texts}) == len(found.texts) == MOST_TEXTS
    assert {*found.texts} < {*labelled.text1}
    assert found.texts != sorted(found.texts)


def test_the_fingerprint_tells_pairs_from_texts(tmp_path):
    specs = [
        write(tmp_path / f"{name}.jsonl", rows)
        for name, rows in {
            "ab": [{"text1": "a", "text2": "b"}, {"text1": "c", "text2": "d"}],
            "cd": [{"text1": "a", "text2": "b"}, {"text1": "c", "text2": "e"}],
            "texts": [{"text": letter} for letter in "abcdefgh"],
        }.items()
    ]
    assert len({load_unscored([spec], [], []).sha256() for spec in specs}) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"name": "alone"}], r"mined.jsonl:1: --teacher-pairs needs pairs, .*found: name"),
        ([{"text1": "one", "text2": " "}], r"mined.jsonl:1: text2 must be a text that is not blank"),
        (
            [{"text1": "a", "text2": "b"}],
            r"--teacher-pairs .*\.jsonl: the teacher .* 1 pair and 0 texts .*angle-data mine",
        ),
        ([{"text": letter} for letter in "abcdefg"], "0 pairs and 7 texts"),
    ],
)
def test_what_cannot_be_scored_is_said_in_one_line(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        load_unscored([write(tmp_path / "mined.jsonl", rows)], [], [])
