"""Files of texts and vectors: three kinds, one lookup, and one clear line for what is wrong with them."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from angle_data.errors import InputError
from angle_train.data.vectors import check_vectors, is_vectors, load_vectors, vectors_identity

TEXTS = ["the node failed", "deploy\nto the cluster", "the node failed"]
VECTORS = np.array([[1, 0, 0.5], [0.25, 2, -1], [9, 9, 9]], dtype=np.float32)


def rows():
    return [{"text": text, "embedding": row.tolist()} for text, row in zip(TEXTS, VECTORS, strict=True)]


def as_lines(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))


def as_packed_lines(path):
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows())


def as_parquet(path):
    import pandas

    pandas.DataFrame(rows()).assign(id=[1, 2, 3]).to_parquet(path)


def as_array(path):
    np.save(path, VECTORS.astype(np.float64))
    path.with_suffix(".csv").write_text("n,text\n" + "".join(f'1,"{text}"\n' for text in TEXTS))


@pytest.mark.parametrize(
    ("name", "write"),
    [("v.jsonl", as_lines), ("v.jsonl.gz", as_packed_lines), ("v.parquet", as_parquet), ("v.npy", as_array)],
)
def test_every_kind_gives_the_vectors_of_texts_in_any_order(tmp_path, name, write):
    write(tmp_path / name)
    vectors = load_vectors(str(tmp_path / name))
    found = vectors(["deploy to the  cluster", "the node failed", "deploy\nto the cluster"])
    assert found.dtype == np.float32
    assert (found == VECTORS[[1, 0, 1]]).all()  # of a text that is there twice the first counts


def test_zeros_stand_for_a_blank_text_alone(tmp_path):
    lines = [{"text": text, "embedding": [number, 0]} for text, number in ((" ", 0), ("a", 1), ("b\nc", 0))]
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    vectors = load_vectors(str(tmp_path / "v.jsonl"))
    assert vectors(["", "a"]).tolist() == [[0, 0], [1, 0]]
    said = r"v.jsonl: the vectors of 1 of 2 texts are nothing but zeros, such as that of 'b c'; embed such"
    with pytest.raises(InputError, match=said):
        vectors(["a", "b c", "b c"])


def test_texts_without_a_vector_are_counted_once_each_and_one_is_shown(tmp_path):
    as_lines(tmp_path / "v.jsonl")
    vectors = load_vectors(str(tmp_path / "v.jsonl"))
    said = r"v.jsonl has no vector for 2 of 3 texts, such as 'x{60}…'; add them to the file"
    with pytest.raises(InputError, match=said):
        vectors(["x" * 99, "the node failed", "two\nlines", "two\nlines"])
    with pytest.raises(InputError, match="for 1 of 1 text, such as 'The node failed'; add it"):
        vectors(["The node failed"])  # letters in another case have another embedding


def test_the_name_of_vectors_follows_from_what_is_in_the_files(tmp_path):
    (tmp_path / "copy").mkdir()
    as_array(tmp_path / "v.npy")
    as_array(tmp_path / "copy" / "v.npy")
    first = vectors_identity(str(tmp_path / "v.npy"))
    assert first.startswith("v.npy@")
    assert vectors_identity(str(tmp_path / "copy" / "v.npy")) == first
    (tmp_path / "v.csv").write_text("text\nother\ntexts\nare here\n")
    assert vectors_identity(str(tmp_path / "v.npy")) != first


def test_models_are_no_vectors(tmp_path):
    (tmp_path / "odd.parquet").mkdir()
    for name in ("sentence-transformers/all-MiniLM-L6-v2", "runs/model", str(tmp_path / "odd.parquet")):
        assert not is_vectors(name)
    assert is_vectors("V.NPY")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"text": "a", "vector": [1]}], r"v.jsonl:1: no field 'embedding'; fields found: text, vector"),
        ([{"name": "a", "embedding": [1]}], r"v.jsonl:1: no field 'text'"),
        ([{"text": "a", "embedding": "1 2"}], r"v.jsonl:1: embedding must be a list of numbers"),
        ([{"text": "a", "embedding": []}], r"v.jsonl:1: embedding must be a list of numbers"),
        ([{"text": "a", "embedding": [[1, 2]]}], r"v.jsonl:1: embedding must be a list of numbers"),
        (
            [{"text": "a", "embedding": [1, 2]}, {"text": "b", "embedding": [1]}],
            r"v.jsonl:2: embedding has 1 numbers, that of the first row 2",
        ),
        (
            [{"text": "a", "embedding": [1, None]}, {"text": "b", "embedding": [0, 0]}],
            r"v.jsonl: numbers that are not finite in 1 of 2 vectors, such as that of 'a'; embed such texts",
        ),
        ([], "holds no vectors"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_place(tmp_path, lines, message):
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    with pytest.raises(InputError, match=message):
        load_vectors(str(tmp_path / "v.jsonl"))


@pytest.mark.parametrize("name", ["v.jsonl", "v.jsonl.gz", "v.csv", "v.csv.gz", "v.tsv", "v.tsv.gz",
                                  "v.parquet", "v.txt", "v.txt.gz"])  # fmt: skip
def test_every_kind_of_texts_in_the_documents_is_read_beside_an_array(tmp_path, name):
    np.save(tmp_path / "v.npy", VECTORS[:2])
    if name.endswith(".parquet"):
        import pandas

        pandas.DataFrame({"text": ["a", "b"]}).to_parquet(tmp_path / name)
    else:
        header = "" if ".txt" in name else "text\n"
        lines = '{"text": "a"}\n{"text": "b"}\n' if ".jsonl" in name else f"{header}a\nb\n"
        with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wt") as stream:
            stream.write(lines)
    assert (load_vectors(str(tmp_path / "v.npy"))(["b"]) == VECTORS[1]).all()
    section = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text().split("## ")[2]
    assert f"`NAME.{name.split('.')[1]}" in section


def test_an_array_needs_its_texts_beside_it(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    with pytest.raises(
        InputError,
        match=r"array without texts; put them beside it.*as v.jsonl or v.txt, .*--out .*/v.parquet`",
    ):
        check_vectors(str(tmp_path / "v.npy"))
    (tmp_path / "v.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"for each of the 2 texts of v.txt, not \(3, 3\)"):
        load_vectors(str(tmp_path / "v.npy"))
    (tmp_path / "v.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"not a readable .npy file"):
        load_vectors(str(tmp_path / "v.npy"))
    with pytest.raises(InputError, match="does not exist; check the path"):
        check_vectors(str(tmp_path / "other.npy"))
