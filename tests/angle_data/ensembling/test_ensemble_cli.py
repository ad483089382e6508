import subprocess
import sys

import pytest
from ensembles import write_run


def angle_data(*arguments):
    command = [sys.executable, "-m", "angle_data", "ensemble", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def run(tmp_path):
    rows = []
    for i in range(20):
        for polarity, text in (
            ("synonym", f"Host alpha{i} is down."),
            ("antonym", f"Host alpha{i} is up."),
            ("antonym", "..."),
        ):
            row = {"source_id": f"t{i}", "source": f"alpha{i} has failed since beta{i}."}
            rows.append(row | {"polarity": polarity, "text": text, "model": "m", "key": "k"})
    return write_run(tmp_path / "run", rows)


def test_ensemble_can_be_quiet(run, tmp_path):
    """What it prints otherwise is among the golden outputs."""
    result = angle_data(run, "--out", tmp_path / "out", "--labels", "ordinal", "--ratios", "1", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_ensemble_mistakes_are_one_line(run, tmp_path):
    result = angle_data(run, "--out", tmp_path / "out", "--strategy", "best")
    message = "angle-data: error: unknown strategy 'best'; choose one of concat, principled, vote\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)


def test_ensemble_without_run_directory(tmp_path):
    result = angle_data(tmp_path, "--out", tmp_path / "out")
    assert result.returncode == 1
    assert result.stderr.startswith(f"angle-data: error: {tmp_path} holds no candidates.jsonl")
    result = angle_data("--out", tmp_path / "out")
    assert (result.returncode, result.stderr[:43]) == (1, "angle-data: error: no run directory given; ")
