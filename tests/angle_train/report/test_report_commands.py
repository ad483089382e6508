"""The pages that `angle-train fit` and `angle-train eval` write, made from the tiny model's own results."""

import gzip
import json

import pytest

from angle_data.jsonl import write_jsonl


@pytest.fixture
def rows(rows):
    """30 graded pairs."""
    return rows[:30]


@pytest.fixture
def run(program):
    def call(*arguments):
        code, _, err = program(*arguments)
        assert not code, err

    return call


def test_fit_hands_over_what_the_report_shows(run, tiny_model_dir, rows, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    write_jsonl(pairs, rows)
    run(
        *("fit", "--data", pairs, "--dev", pairs, "--test", pairs, "--backbone", tiny_model_dir, "--quiet"),
        *("--out", tmp_path / "out", "--epochs", 1, "--batch-size", 8, "--learning-rate", "1e-3"),
    )
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    assert report["verdict"][0] in page
    assert report["details"]["command"] == (
        "angle-train fit --recipe recipe.toml --backbone model --data pairs.jsonl --dev pairs.jsonl "
        "--test pairs.jsonl --out again"
    )
    assert str(tmp_path) not in page
    (shown,) = report["details"]["comparisons"]
    assert shown["pairs"] == "pairs"
    assert set(shown["right"]) == {"backbone", "tuned"}
    assert shown["right"]["backbone"] != shown["right"]["tuned"]
    assert [(note["role"], note["pairs"]) for note in report["data"]] == [
        (role, 30) for role in ("train", "dev", "test")
    ]


def test_eval_writes_a_page_on_a_task(run, tiny_model_dir, rows, tmp_path):
    (tmp_path / "data" / "stsb").mkdir(parents=True)
    with gzip.open(tmp_path / "data" / "stsb" / "test.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    checkpoint = tiny_model_dir.parent / "checkpoint"
    run(
        *("eval", "--model", checkpoint, "--baseline", tiny_model_dir, "--task", "stsb", "--quiet"),
        *("--data-dir", tmp_path / "data", "--report", tmp_path / "page.html"),
    )
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Pair by pair: stsb</h2>" in page
    assert "checkpoint: Not reliably better than model" in page
    assert "angle-train eval --model checkpoint --baseline model --task stsb --data-dir data" in page
    assert str(tmp_path) not in page
