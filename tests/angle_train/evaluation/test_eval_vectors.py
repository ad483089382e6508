"""`eval --model vectors.parquet`: vectors from a file are measured as the model is that they came from."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from angle_data.jsonl import read_jsonl, write_jsonl
from angle_train import evaluate


@pytest.fixture
def files(program, rows, tiny_model_dir, tmp_path):
    """Pairs, more of them with a language model's grades, a task, and vectors of all their texts."""
    pairs = [
        {"text1": row["sentence1"], "text2": row["sentence2"], "score": row["score"]} for row in rows[:60]
    ]
    write_jsonl(tmp_path / "pairs.jsonl", pairs[:30])
    write_jsonl(tmp_path / "judged.jsonl", pairs)
    write_jsonl(tmp_path / "data" / "stsb" / "test.jsonl", pairs[30:])
    texts = sorted({row[name] for row in pairs for name in ("text1", "text2")})
    write_jsonl(tmp_path / "texts.jsonl", ({"text": text} for text in texts))
    for out in ("vectors.parquet", "texts.npy"):
        given = ("--texts", tmp_path / "texts.jsonl", "--out", tmp_path / out)
        assert program("encode", "--model", tiny_model_dir, *given)[0] == 0
    return tmp_path


@pytest.mark.parametrize("name", ["vectors.parquet", "texts.npy"])
@pytest.mark.parametrize(
    "measured",
    ["--pairs PLACE/pairs.jsonl", "--pairs PLACE/pairs.jsonl --judged PLACE/judged.jsonl",
     "--task stsb --data-dir PLACE/data"],
)  # fmt: skip
def test_vectors_do_what_their_model_does(program, files, tiny_model_dir, name, measured):
    common = measured.replace("PLACE", str(files)).split()
    given = ["--model", files / name, "--baseline", tiny_model_dir, *common]
    code, out, err = program("eval", *given, "--json")
    assert code == 0, err
    by_model = {row["model"]: row for row in json.loads(out)["results"] if row["model"] != "word overlap"}
    assert by_model.keys() == {"model", name}
    assert by_model[name]["score"]["value"] == pytest.approx(by_model["model"]["score"]["value"], abs=1e-6)
    assert by_model[name]["difference"]["delta"] == pytest.approx(0, abs=1e-6)


def test_vectors_are_a_baseline_too_and_in_python(files, tiny_model_dir):
    found = evaluate(tiny_model_dir, pairs=files / "pairs.jsonl", baseline=files / "vectors.parquet")
    assert [row["model"] for row in found.figures] == ["word overlap", "vectors.parquet", "model"]
    assert found.figures[-1]["baseline"] == "vectors.parquet"


def test_texts_without_vectors_are_counted_in_one_line(program, files, tiny_model_dir):
    rows = [row | {"text1": "New: " + row["text1"]} for _, row in read_jsonl(files / "pairs.jsonl")]
    write_jsonl(files / "other.jsonl", rows)
    models = ("--model", files / "vectors.parquet", "--baseline", tiny_model_dir)
    code, out, err = program("eval", *models, "--pairs", files / "other.jsonl")
    count = len({row["text1"] for row in rows})
    assert (code, out) == (1, "")
    assert f"vectors.parquet has no vector for {count} of " in err
    assert "such as 'New: " in err
    assert "Traceback" not in err
    # With several sets the others are measured, and the end says which one is missing.
    both = ("--pairs", files / "other.jsonl", "--pairs", files / "pairs.jsonl")
    code, out, err = program("eval", *models, *both)
    assert code == 1
    assert "pairs  " in out
    assert err.splitlines()[-1].startswith("angle-train: error: not measured: other")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nowhere.parquet", "nowhere.parquet does not exist; check the path"),
        ("alone.npy", "alone.npy is an array without texts; put them beside it"),
        ("judged.jsonl", "judged.jsonl:1: no field 'text'; fields found: text1, text2, score"),
    ],
)
def test_files_that_are_no_vectors_are_refused(program, files, tiny_model_dir, model, message):
    Path(files / "alone.npy").touch()
    common = ("--pairs", files / "pairs.jsonl", "--quiet")
    code, out, err = program("eval", "--model", files / model, *common)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert message in err


def test_rows_of_zeros_are_refused_with_a_text_of_theirs(program, files):
    array = np.load(files / "texts.npy")
    texts = [row["text"] for _, row in read_jsonl(files / "texts.jsonl")]
    _, pair = next(read_jsonl(files / "pairs.jsonl"))
    for rows, count in ((texts.index(pair["text1"]), "1"), (slice(None), r"\d+")):
        array[rows] = 0
        np.save(files / "texts.npy", array)
        code, out, err = program("eval", "--model", files / "texts.npy", "--pairs", files / "pairs.jsonl")
        assert (code, out) == (1, "")
        assert re.search(
            rf"texts.npy: the vectors of {count} of \d+ texts are nothing but zeros, such as", err
        )
        assert pair["text1"][:60] in err


def test_a_row_of_zeros_for_a_text_of_no_pair_does_no_harm(program, files):
    array = np.load(files / "texts.npy")
    np.save(files / "texts.npy", np.vstack([array, np.zeros_like(array[:1])]))
    with (files / "texts.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "of no pair"}\n')
    code, _, err = program("eval", "--model", files / "texts.npy", "--pairs", files / "pairs.jsonl")
    assert code == 0, err


@pytest.mark.parametrize(
    "command", ["fit --data D --out O --backbone V", "encode --texts D --out O.npy --model V"]
)
def test_a_model_that_is_needed_itself_cannot_be_a_file(program, files, command):
    places = {"D": files / "judged.jsonl", "O": files / "out", "V": files / "vectors.parquet"}
    code, _, err = program(*(places.get(word, word) for word in command.split()))
    assert code == 1
    assert "is a file; give the directory of a model" in err.splitlines()[-1]
