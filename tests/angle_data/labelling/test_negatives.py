"""Hard negatives: near the query, below the positive, and never what answers it; by words and vectors."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.mine import MineConfig, mine
from angle_data.similar.bm25 import BM25
from angle_train.data.triplets import pairs_of_triplets

PASSAGES = [
    "Restart the gateway when the login fails.",
    "When the login fails, restart the gateway.",  # as good an answer
    "The gateway logs each login.",
    "A login needs a token.",
    "The disk of the replica is full.",
    "Order more coffee.",
]
QUERY = "what to restart when login fails"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def find(tmp_path, pairs, passages=PASSAGES, **options):
    """The counts and rows of negatives."""
    out = tmp_path / "negatives.jsonl"
    out.unlink(missing_ok=True)
    texts = write(tmp_path / "passages.jsonl", [{"text": text} for text in passages])
    counts = mine(MineConfig(out, texts, negatives=write(tmp_path / "pairs.jsonl", pairs), **options))
    return counts, [row for _, row in read_jsonl(out)]


def test_words_find_what_is_near_but_below_the_positive(tmp_path):
    counts, (row,) = find(tmp_path, [{"query": QUERY, "positive": PASSAGES[0]}], per_query=2)
    scores = BM25(PASSAGES).scores(QUERY)
    assert scores[1] > 0.95 * scores[0]  # so it may answer the query, too
    assert row == {
        "query": QUERY,
        "positive": PASSAGES[0],
        "negatives": [PASSAGES[2], PASSAGES[3]],
        "purpose": "search",
    }
    assert counts == {"pairs": 1, "negatives": 2, "too near": 1, "not found": 0, "alone": 0}


def test_other_known_answers_are_no_negatives_and_need_not_be_among_the_texts(tmp_path):
    elsewhere = "What to restart when the login fails."
    pairs = [{"text1": QUERY, "text2": PASSAGES[0]}, {"text1": QUERY.upper(), "text2": PASSAGES[2]}]
    _, (row, *_) = find(tmp_path, pairs)
    assert row["negatives"] == [PASSAGES[3]]
    _, (row,) = find(tmp_path, [{"text1": QUERY, "text2": elsewhere}], per_query=1)
    assert (row["positive"], row["negatives"]) == (elsewhere, [PASSAGES[0]])


def test_a_text_that_is_the_query_is_no_negative(tmp_path):
    _, (row,) = find(tmp_path, [{"query": PASSAGES[2], "positive": PASSAGES[0]}])
    assert PASSAGES[2] not in row["negatives"]


def vectors_at(path, degrees):
    """Vectors of other lengths that point there."""
    angles = np.radians(degrees)
    np.save(path, (3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float32))
    return path


def test_embeddings_find_what_is_near_but_below_the_positive(tmp_path):
    pairs = [
        {"query": "zero", "positive": PASSAGES[1], "label": 1},
        {"query": "zero", "positive": PASSAGES[4], "label": 0},  # no answer, but a row of the file
        {"query": "forty", "positive": PASSAGES[5], "label": 1},
    ]
    given = {
        "embeddings": vectors_at(tmp_path / "p.npy", [5, 20, 30, 40, 60, 41]),
        "query_embeddings": vectors_at(tmp_path / "q.npy", [0, 0, 40]),
    }
    counts, rows = find(tmp_path, pairs, per_query=2, **given)
    # cos 20° is 0.940, 95 % of it 0.893: 5° is too near, 30° (0.866) and 40° (0.766) are not.
    assert [row["negatives"] for row in rows] == [[PASSAGES[2], PASSAGES[3]], [PASSAGES[4], PASSAGES[1]]]
    assert counts["too near"] == 1 + 2  # of 41°, 40° and 30° are


def test_what_has_no_negative_is_left_out_and_counted(tmp_path):
    pairs = [
        {"query": QUERY, "positive": PASSAGES[0]},
        {"query": "coffee", "positive": PASSAGES[5]},  # nothing else holds the word
        {"query": "tea", "positive": PASSAGES[5]},  # words do not find it
    ]
    counts, rows = find(tmp_path, pairs)
    assert (len(rows), counts["alone"], counts["not found"]) == (1, 1, 1)


def test_fit_reads_them(tmp_path):
    _, rows = find(tmp_path, [{"query": QUERY, "positive": PASSAGES[0]}], per_query=2)
    pairs = [row for _, row in pairs_of_triplets([(f"{at}", row) for at, row in enumerate(rows)])]
    assert [(row["text1"], row["score"]) for row in pairs] == [(QUERY, 1), (QUERY, 0), (QUERY, 0)]


def test_the_command_says_what_it_found(tmp_path):
    texts = write(tmp_path / "passages.jsonl", [{"text": text} for text in PASSAGES])
    pairs = write(tmp_path / "pairs.jsonl", [{"query": QUERY, "positive": PASSAGES[0]}])
    arguments = ["mine", "--negatives", str(pairs), "--texts", str(texts), "--out", str(tmp_path / "n.jsonl")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "2 negatives for 1 pair\n1 candidate too near the positive left out\n" in done.output
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)["negatives"] == 2


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (
            [{"query": "a", "answer": "b"}],
            {},
            r":1: no columns query, positive \(or text1, text2\); found: qu",
        ),
        ([{"query": "a", "positive": "b", "label": 0}], {}, "holds no pairs of a query and a passage"),
        ([{"query": "a", "positive": " A."}], {}, "holds no pairs of a query and a passage"),
        (
            [{"query": "tea", "positive": "Order more coffee."}],
            {},
            "has a negative: 1 positives are not found",
        ),
        ([{"query": "a", "positive": "b"}], {"n": 3}, "takes --per-query rather than --n"),
        (
            [{"query": "a", "positive": "b"}],
            {"embeddings": "p.npy"},
            "needs both --embeddings and --query-em",
        ),
        ([{"query": "a", "positive": "b"}], {"per_query": 0}, "--per-query must be at least 1, got 0"),
    ],
)
def test_mistakes_are_one_line(tmp_path, pairs, options, message):
    options = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises(InputError, match=message):
        find(tmp_path, pairs, **options)


def test_query_embeddings_must_be_of_the_pairs(tmp_path):
    given = {
        "embeddings": vectors_at(tmp_path / "p.npy", [5, 20, 30, 40, 60, 41]),
        "query_embeddings": vectors_at(tmp_path / "q.npy", [0, 40]),
    }
    with pytest.raises(
        InputError, match=r"--query-embeddings .*one row for each of the 1 rows of --negatives"
    ):
        find(tmp_path, [{"query": "a", "positive": PASSAGES[0]}], **given)
    with pytest.raises(InputError, match="--query-embeddings is for --negatives"):
        MineConfig(tmp_path / "x.jsonl", tmp_path / "y.jsonl", query_embeddings=tmp_path / "q.npy")
