import json
import subprocess
import sys
from pathlib import Path

import pytest


def angle_data(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "angle_data", "ensemble", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", 20)


def write_run(path: Path, sources: int) -> Path:
    path.mkdir()
    rows = []
    for i in range(sources):
        for polarity, text in (
            ("synonym", f"Host alpha{i} is down."),
            ("antonym", f"Host alpha{i} is up."),
            ("antonym", "..."),
        ):
            row = {"source_id": f"t{i}", "source": f"alpha{i} has failed since beta{i}."}
            rows.append(row | {"polarity": polarity, "text": text, "model": "m", "key": "k"})
    (path / "candidates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_ensemble_prints_where_everything_went(run: Path, tmp_path: Path) -> None:
    result = angle_data(run, "--out", tmp_path / "out", "--labels", "ordinal", "--ratios", "1")
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert result.stderr.startswith("must opposites be kept apart? You did not say, and they score 0.5. ")
    again = angle_data(run, "--out", tmp_path / "out", "--labels", "ordinal", "--ratios", "1", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert result.stdout.splitlines() == [
        "candidates  60 = 40 kept + 20 dropped",
        "dropped     blank 20",
        "m           60 candidates, in 40 pairs, dropped blank 20",
        "train       60 pairs: antonym 20, random 20, synonym 20",
        f"data set    {tmp_path / 'out' / 'dataset'}",
    ]


def test_ensemble_json(run: Path, tmp_path: Path) -> None:
    options = "--json --strategy concat --random-per-source 2 --max-per-source 1 --seed 4"
    result = angle_data(run, "--out", tmp_path / "out", *options.split())
    summary = json.loads(result.stdout)
    assert (summary["candidates"], summary["kept"], summary["dropped"]) == (60, 40, {"blank": 20})
    assert summary["annotators"]["m"]["supports"] == 40
    assert set(summary["pairs"]) == {"train", "validation"}
    settings = json.loads((tmp_path / "out" / "report.json").read_text())["settings"]
    assert settings == {
        "strategy": "concat",
        "labels": "binary",
        "random-per-source": 2,
        "max-per-source": 1,
        "graders": "none",
        "ratios": "0.9,0.1",
        "seed": 4,
    }


def test_ensemble_mistakes_are_one_line(run: Path, tmp_path: Path) -> None:
    result = angle_data(run, "--out", tmp_path / "out", "--strategy", "best")
    message = "angle-data: error: unknown strategy 'best'; choose one of concat, principled, vote\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)


def test_ensemble_with_grades(tmp_path: Path) -> None:
    """Of the 200 pairs that pass the gate one antonym was offered as a synonym; all options are passed on."""
    run = write_run(tmp_path / "run", 100)
    rows = [json.loads(line) for line in (run / "candidates.jsonl").read_text().splitlines()]
    folders = []
    for grader in ("x", "y", "z"):
        folders.append(tmp_path / grader)
        folders[-1].mkdir()
        lines = [
            {
                "text1": r["source"],
                "text2": r["text"],
                "score": (4 if "down" in r["text"] else 0) + sum(map(ord, grader + r["source"])) % 7 / 10,
                "model": grader,
            }
            for r in rows
            if r["text"] != "..."
        ]
        (folders[-1] / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows[1]["polarity"] = "synonym"
    for i, r in enumerate(rows):
        r["key"] = f"k{i}"
    (run / "candidates.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    scores = [part for folder in folders for part in ("--scores", folder)]
    options = "--strategy principled --labels graded"
    options += " --purpose topics --ratios 1"
    result = angle_data(run, "--out", tmp_path / "out", *scores, *options.split())
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[:3] == [
        "candidates  300 = 200 kept + 100 dropped",
        "dropped     blank 100",
        "flipped     1 of those kept: now with the other polarity",
    ]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["flipped"]["m"] == {"synonym_to_antonym": 1, "antonym_to_synonym": 0}


def test_ensemble_without_run_directory(tmp_path: Path) -> None:
    result = angle_data(tmp_path, "--out", tmp_path / "out")
    assert result.returncode == 1
    assert result.stderr.startswith(f"angle-data: error: {tmp_path} holds no candidates.jsonl")
    result = angle_data("--out", tmp_path / "out")
    assert (result.returncode, result.stderr[:43]) == (1, "angle-data: error: no run directory given; ")
