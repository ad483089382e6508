"""`angle-train encode`: rows stay where they are, in either kind of file, and mistakes cost no encoding."""

import json

import numpy as np
import pytest
from pyarrow import parquet
from sentence_transformers import SentenceTransformer
from train_runs import damaged

from angle_data.errors import InputError
from angle_data.text import content_id
from angle_train import encode as encode_module
from angle_train.encode import encode_file, read_ids_and_texts
from angle_train.model.load import load_backbone, load_for_training
from angle_train.options import EncodeConfig
from angle_train.recipe import BackboneConfig

TEXTS = ["the node failed", "a", "the node failed", "deploy to the cluster, then wait", "a much longer text"]


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{i}", "text": t}) + "\n" for i, t in enumerate(TEXTS)))
    return path


@pytest.fixture
def reference(tiny_model_dir):
    return load_backbone(str(tiny_model_dir), device="cpu").encode(TEXTS)


def test_array_has_the_embeddings_in_order(monkeypatch, program, tiny_model_dir, jsonl, tmp_path, reference):
    monkeypatch.setattr(encode_module, "_BLOCK", 2)  # blocks and their last, shorter one
    embedded, original = [], SentenceTransformer.encode

    def spy(self, texts, **options):
        embedded.append(texts)
        return original(self, texts, **options)

    monkeypatch.setattr(SentenceTransformer, "encode", spy)
    out = tmp_path / "new" / "texts.npy"
    given = ["encode", "--model", tiny_model_dir, "--texts", jsonl, "--out", out]
    done = program(*given, "--batch-size", 3, "--json")
    assert embedded == [TEXTS[:2], TEXTS[3:4], TEXTS[4:]]  # at most two at once, and none again
    assert json.loads(done.stdout) == {"out": str(out), "texts": 5, "blank": 0, "width": 32}
    array = np.load(out)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, reference, atol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["texts.npy"]


def test_parquet_has_ids_too_and_opens_with_datasets(
    monkeypatch, program, tiny_model_dir, jsonl, tmp_path, reference
):
    from datasets import load_dataset

    monkeypatch.setattr(encode_module, "_BLOCK", 2)
    out = tmp_path / "texts.parquet"
    given = ["encode", "--model", tiny_model_dir, "--texts", jsonl, "--out", out, "--normalize"]
    done = program(*given)
    assert done.stdout == f"5 texts, embeddings of width 32: {out}\n"
    done = program(*given, "--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    assert parquet.ParquetFile(out).num_row_groups == 3
    rows = load_dataset("parquet", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert rows["id"][:] == ["t0", "t1", "t2", "t3", "t4"]
    expected = reference / np.linalg.norm(reference, axis=1, keepdims=True)
    np.testing.assert_allclose(np.array(rows["embedding"][:]), expected, atol=1e-6)


def test_fields_are_chosen_and_numbers_are_ids(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"number": 7, "body": "one"}\n{"number": null, "body": "half \\ud83d"}\n')
    rows = list(read_ids_and_texts(path, "body", "number"))
    assert rows == [("7", "one"), (content_id("half �"), "half �")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "a"}\n{"body": "b"}\n',
            r"x.jsonl:2: no field 'text'; fields found: body \(choose with --t",
        ),
        ('{"text": 3}\n', r"x.jsonl:1: field 'text' must be a string, got int"),
        ('{"text": "a", "id": true}\n', r"x.jsonl:1: field 'id' must be a string or integer, got bool"),
        ('{"text": "a\\u0000"}\n', r"x.jsonl:1: field 'text' holds NUL characters, .*; convert the file"),
        ("", r"x.jsonl holds no texts; give a file with at least one"),
    ],
)
def test_bad_rows_are_named_before_a_model_is_loaded(tmp_path, content, message):
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        encode_file(EncodeConfig("no/model", path, tmp_path / "x.npy"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "x.csv"}, r"x.csv: unknown kind of file; give .npy or .parquet"),
        ({"texts": "x.doc"}, r"x.doc: unknown kind of file; give .jsonl.*, or .txt"),
        ({"texts": "x.txt"}, r"x.txt does not exist"),
        ({"device": "gpu"}, r"--device gpu: torch finds no such device"),
        ({"out": "same.parquet", "texts": "same.parquet"}, r"is the file of the texts"),
        ({"id_field": "key"}, r"texts.jsonl:1: no field 'key'; fields found: id, text .* --id-field"),
        ({"max_seq_length": 65}, r"reads at most 64 tokens; max_seq_length 65 is too long"),
    ],
)
def test_options_that_do_not_work_are_refused(tiny_model_dir, jsonl, tmp_path, changes, message):
    paths = {name: tmp_path / value for name, value in changes.items() if name in ("out", "texts")}
    values = {"model": str(tiny_model_dir), "texts": jsonl, "out": tmp_path / "x.npy"} | changes | paths
    with pytest.raises(InputError, match=message):
        encode_file(EncodeConfig(**values))
    assert {path.name for path in tmp_path.iterdir()} == {"texts.jsonl"}


@pytest.mark.parametrize("option", ["--max-seq-length", "--batch-size"])
def test_a_number_that_cannot_be_is_one_line_and_exit_1(program, tiny_model_dir, jsonl, tmp_path, option):
    given = ["encode", "--model", tiny_model_dir, "--texts", jsonl, "--out", tmp_path / "x.npy"]
    code, _, err = program(*given, option, 0)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"angle-train: error: {option} must be at least ")
    assert not (tmp_path / "x.npy").exists()


def test_texts_that_are_cut_are_reported(tiny_model_dir, tmp_path, caplog):
    model = load_for_training(str(tiny_model_dir), BackboneConfig(), max_seq_length=8, device="cpu")
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    (tmp_path / "x.txt").write_text("a\nb\n" + "a b c d e f g h\n" + "c\n" * 5)
    with caplog.at_level("INFO", logger="angle"):
        encode_file(EncodeConfig(str(tmp_path / "model"), tmp_path / "x.txt", tmp_path / "x.npy"))
    assert "25.0 % of the first 4 distinct texts have more than 8 tokens and are truncated" in caplog.text


def test_embeddings_that_are_not_numbers_are_refused(program, tiny_model_dir, jsonl, tmp_path):
    model = damaged(tiny_model_dir, tmp_path / "model")
    (tmp_path / "x.npy").write_text("kept")
    done = program("encode", "--model", model, "--texts", jsonl, "--out", tmp_path / "x.npy")
    assert done.returncode == 1
    assert "model: 5 of 5 embeddings are not numbers; its weights are damaged" in done.stderr
    assert (tmp_path / "x.npy").read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"model", "texts.jsonl", "x.npy"}


def test_blank_texts_keep_their_place_and_are_counted(tiny_model_dir, tmp_path, caplog):
    (tmp_path / "x.txt").write_text("one\n\n  \ntwo\n")
    with caplog.at_level("WARNING", logger="angle"):
        result = encode_file(EncodeConfig(str(tiny_model_dir), tmp_path / "x.txt", tmp_path / "x.npy"))
    assert (result["texts"], result["blank"]) == (4, 2)
    assert "2 of 4 texts are blank" in caplog.text
    model = load_backbone(str(tiny_model_dir), device="cpu")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy")[3], model.encode("two"), atol=1e-6)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_file_that_was_there_stays_until_the_new_one_is_whole(
    monkeypatch, tiny_model_dir, jsonl, tmp_path, kind
):
    out = tmp_path / f"x.{kind}"
    out.write_bytes(b"old")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(SentenceTransformer, "encode", stop)
    with pytest.raises(KeyboardInterrupt):
        encode_file(EncodeConfig(str(tiny_model_dir), jsonl, out))
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"texts.jsonl", out.name}
