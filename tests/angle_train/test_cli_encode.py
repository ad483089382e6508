"""`angle-train encode`: rows stay where they are, in either kind of file, and mistakes cost no encoding."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from angle_data.errors import InputError
from angle_data.text import content_id
from angle_train import encode as encode_module
from angle_train.cli import app
from angle_train.data.texts import read_texts
from angle_train.encode import EncodeConfig, encode
from angle_train.model.load import load_backbone
from angle_train.model.prepare import load_for_training
from angle_train.model.prompt import set_prompt
from angle_train.settings import BackboneConfig

TEXTS = ["the node failed", "a", "the node failed", "deploy to the cluster, then wait", "a much longer text"]


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{i}", "text": t}) + "\n" for i, t in enumerate(TEXTS)))
    return path


@pytest.fixture
def reference(tiny_model_dir):
    return load_backbone(str(tiny_model_dir), device="cpu").encode(TEXTS)


def run(*arguments):
    return CliRunner().invoke(app, ["encode", *map(str, arguments)], catch_exceptions=False)


def test_array_has_the_embeddings_in_order(monkeypatch, tiny_model_dir, jsonl, tmp_path, reference):
    monkeypatch.setattr(encode_module, "_BLOCK", 2)  # blocks and their last, shorter one
    out = tmp_path / "new" / "texts.npy"
    done = run("--model", tiny_model_dir, "--texts", jsonl, "--out", out, "--batch-size", 3, "--json")
    assert json.loads(done.stdout) == {"out": str(out), "texts": 5, "blank": 0, "width": 32}
    array = np.load(out)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, reference, atol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["texts.npy"]


def test_parquet_has_ids_too_and_opens_with_datasets(monkeypatch, tiny_model_dir, jsonl, tmp_path, reference):
    from datasets import load_dataset

    monkeypatch.setattr(encode_module, "_BLOCK", 2)
    out = tmp_path / "texts.parquet"
    done = run("--model", tiny_model_dir, "--texts", jsonl, "--out", out, "--normalize")
    assert done.stdout == f"5 texts, embeddings of width 32: {out}\n"
    done = run("--model", tiny_model_dir, "--texts", jsonl, "--out", out, "--normalize", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    assert parquet.ParquetFile(out).num_row_groups == 3
    rows = load_dataset("parquet", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert rows["id"][:] == ["t0", "t1", "t2", "t3", "t4"]
    expected = reference / np.linalg.norm(reference, axis=1, keepdims=True)
    np.testing.assert_allclose(np.array(rows["embedding"][:]), expected, atol=1e-6)


def test_all_kinds_of_files_hold_the_same_texts(tmp_path):
    plain = "".join(f"{text}\n" for text in TEXTS)
    (tmp_path / "a.txt").write_text(plain)
    with gzip.open(tmp_path / "b.txt.gz", "wt") as stream:
        stream.write(plain)
    (tmp_path / "c.csv").write_text("text\n" + "".join(f'"{text}"\n' for text in TEXTS))
    parquet.write_table(pa.table({"text": TEXTS, "other": TEXTS}), tmp_path / "d.parquet")
    for path in sorted(tmp_path.iterdir()):
        rows = list(read_texts(path))
        assert [row.text for row in rows] == TEXTS, path
        assert [row.id for row in rows] == list(map(content_id, TEXTS))


def test_fields_are_chosen_and_numbers_are_ids(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"number": 7, "body": "one"}\n{"body": "half \\ud83d"}\n')
    rows = list(read_texts(path, "body", "number"))
    assert [(row.id, row.text) for row in rows] == [("7", "one"), (content_id("half �"), "half �")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "a"}\n{"body": "b"}\n',
            r"x.jsonl:2: no field 'text'; fields found: body \(choose with --t",
        ),
        ('{"text": 3}\n', r"x.jsonl:1: field 'text' must be a string, got int"),
        ('{"text": "a", "id": true}\n', r"x.jsonl:1: field 'id' must be a string or integer, got bool"),
        ('{"text": "a\\u0000"}\n', r"x.jsonl:1: the text holds NUL characters; convert the file to UTF-8"),
        ("{\n", r"x.jsonl:1: not valid JSON"),
        ("", r"x.jsonl holds no texts; give a file with at least one"),
    ],
)
def test_bad_rows_are_named_before_a_model_is_loaded(tmp_path, content, message):
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        encode(EncodeConfig("no/model", path, tmp_path / "x.npy"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "x.csv"}, r"x.csv: unknown kind of file; give .npy or .parquet"),
        (
            {"texts": "x.doc"},
            r"x.doc: unknown kind of file; give .jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or",
        ),
        ({"texts": "x.txt"}, r"x.txt does not exist"),
        ({"batch_size": 0}, r"--batch-size must be at least 1, got 0"),
        ({"device": "gpu"}, r"--device gpu: torch finds no such device here"),
        ({"prompt": "say {text} again"}, r"only what stands before the text can be given here"),
        ({"out": "same.parquet", "texts": "same.parquet"}, r"is the file of texts itself"),
        ({"id_field": "key"}, r"texts.jsonl: no row has an id in the field 'key'; check --id-field"),
        ({"model": "./none"}, r"model directory ./none does not exist"),
        ({"max_seq_length": 65}, r"has positions for 64 tokens; max_seq_length 65 is too long"),
    ],
)
def test_options_that_do_not_work_are_refused(tiny_model_dir, jsonl, tmp_path, changes, message):
    paths = {name: tmp_path / value for name, value in changes.items() if name in ("out", "texts")}
    values = {"model": str(tiny_model_dir), "texts": jsonl, "out": tmp_path / "x.npy"} | changes | paths
    with pytest.raises(InputError, match=message):
        encode(EncodeConfig(**values))
    assert {path.name for path in tmp_path.iterdir()} == {"texts.jsonl"}


@pytest.mark.parametrize(
    ("sent", "ids", "said"),
    [
        ("one\n{two\n", [content_id("one"), content_id("{two")], "a text a line"),
        ('{"text": "one", "id": "a"}\n{"text": "{two"}\n', ["a", content_id("{two")], "JSON Lines"),
    ],
)
def test_texts_come_from_standard_input(tiny_model_dir, tmp_path, sent, ids, said):
    arguments = [
        "encode",
        "--model",
        str(tiny_model_dir),
        "--texts",
        "-",
        "--out",
        str(tmp_path / "x.parquet"),
    ]
    done = CliRunner().invoke(app, arguments, input=sent, catch_exceptions=False)
    assert done.stdout == f"2 texts, embeddings of width 32: {tmp_path / 'x.parquet'}\n"
    assert f"standard input is read as {said}\n" in done.stderr
    rows = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["id"] for row in rows] == ids
    expected = load_backbone(str(tiny_model_dir), device="cpu").encode(["one", "{two"])
    np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=1e-6)


def test_errors_name_standard_input_by_its_line(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}\n{"body": "b"}\n')))
    with pytest.raises(InputError, match=r"^standard input:2: no field 'text'; fields found: body"):
        encode(EncodeConfig("no/model", Path("-"), tmp_path / "x.npy"))


def test_ids_that_stand_for_several_texts_are_told_where_ids_are_written(tiny_model_dir, tmp_path, caplog):
    path = tmp_path / "x.jsonl"
    rows = [("a", "one"), ("a", "one"), ("a", "two"), ("b", "two"), ("b", "three"), ("c", "a")]
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in rows))
    with caplog.at_level("INFO", logger="angle"):
        encode(EncodeConfig(str(tiny_model_dir), path, tmp_path / "x.npy"))
        assert "have the id of another text" not in caplog.text
        encode(EncodeConfig(str(tiny_model_dir), path, tmp_path / "x.parquet", id_field="id"))
        assert "warning: 2 texts have the id of another text; --id-field chooses" in caplog.text
        assert "will be replaced" not in caplog.text
        encode(EncodeConfig(str(tiny_model_dir), path, tmp_path / "x.npy"))
        assert f"{tmp_path / 'x.npy'} is there already and will be replaced" in caplog.text


def test_prompt_replaces_the_models_own(tiny_model, jsonl, tmp_path):
    tiny_model.save_pretrained(str(tmp_path / "plain"), create_model_card=False)
    set_prompt(tiny_model, "about: ")
    tiny_model.save_pretrained(str(tmp_path / "prompted"), create_model_card=False)

    def embedded(model, prompt=None):
        encode(EncodeConfig(str(tmp_path / model), jsonl, tmp_path / "x.npy", prompt=prompt))
        return np.load(tmp_path / "x.npy")

    assert (embedded("prompted") == embedded("plain", "about: ")).all()
    assert (embedded("prompted") == embedded("plain", "about: {text}")).all()
    assert (embedded("prompted", "") == embedded("plain")).all()
    assert not np.allclose(embedded("prompted"), embedded("plain"))
    set_prompt(tiny_model, "about {text}: ")
    tiny_model.save_pretrained(str(tmp_path / "template"), create_model_card=False)
    with pytest.raises(InputError, match="puts its own template around every text; leave out --prompt"):
        embedded("template", "about: ")


@pytest.mark.parametrize("long_text", ["cut", "windows"])
def test_texts_that_are_cut_are_reported(tiny_model_dir, tmp_path, caplog, long_text):
    config = BackboneConfig(long_text=long_text)
    model = load_for_training(str(tiny_model_dir), config, max_seq_length=8, device="cpu")
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    (tmp_path / "x.txt").write_text("a\nb\n" + "a b c d e f g h\n" + "c\n" * 5)
    with caplog.at_level("INFO", logger="angle"):
        encode(EncodeConfig(str(tmp_path / "model"), tmp_path / "x.txt", tmp_path / "x.npy"))
    said = "25.0 % of the first 4 distinct texts have more than 8 tokens and are cut there" in caplog.text
    assert said == (long_text == "cut")


def test_blank_texts_keep_their_place_and_are_counted(tiny_model_dir, tmp_path, caplog):
    (tmp_path / "x.txt").write_text("one\n\n  \ntwo\n")
    with caplog.at_level("WARNING", logger="angle"):
        result = encode(EncodeConfig(str(tiny_model_dir), tmp_path / "x.txt", tmp_path / "x.npy"))
    assert (result.texts, result.blank) == (4, 2)
    assert "2 of 4 texts are blank" in caplog.text
    model = load_backbone(str(tiny_model_dir), device="cpu")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy")[3], model.encode("two"), atol=1e-6)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_file_that_was_there_stays_until_the_new_one_is_whole(
    monkeypatch, tiny_model_dir, jsonl, tmp_path, kind
):
    out = tmp_path / f"x.{kind}"
    out.write_bytes(b"old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(encode_module, "_embeddings", stop)
    with pytest.raises(KeyboardInterrupt):
        encode(EncodeConfig(str(tiny_model_dir), jsonl, out))
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"texts.jsonl", out.name}


def test_memory_does_not_grow_with_the_rows(monkeypatch, tiny_model_dir, tmp_path):
    """At most a block of rows is read ahead of what is written."""
    monkeypatch.setattr(encode_module, "_BLOCK", 4)
    path = tmp_path / "x.txt"
    path.write_text("a\n" * 30)
    read = written = ahead = 0
    real_rows, real_embeddings = encode_module.read_texts, encode_module._embeddings

    def rows(*arguments):
        nonlocal read
        read = 0
        for row in real_rows(*arguments):
            read += 1
            yield row

    def embeddings(model, texts, *rest):
        nonlocal written, ahead
        ahead = max(ahead, read - written)
        written += len(texts)
        return real_embeddings(model, texts, *rest)

    monkeypatch.setattr(encode_module, "read_texts", rows)
    monkeypatch.setattr(encode_module, "_embeddings", embeddings)
    encode(EncodeConfig(str(tiny_model_dir), path, tmp_path / "x.npy"))
    assert (written, ahead) == (30, 4)


def test_the_program_ends_in_one_line(tmp_path):
    command = [sys.executable, "-m", "angle_train.cli", "encode", "--model", "x"]
    done = subprocess.run(
        [*command, "--texts", str(tmp_path / "none.txt"), "--out", str(tmp_path / "x.npy")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert done.returncode == 1
    assert done.stderr == f"angle-train: error: {tmp_path / 'none.txt'} does not exist; check the path\n"
