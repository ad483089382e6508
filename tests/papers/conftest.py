"""What the tests of the papers' scripts share: the scripts themselves, and tiny data."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / "papers"), str(ROOT / "benchmarks")]


@pytest.fixture
def graded(tmp_path):
    """A file of 24 graded training pairs, and one of dev pairs."""
    from angle_data.jsonl import write_jsonl

    def rows(start):
        return [
            {"text1": f"node {i} failed", "text2": "disk " * (i % 4) + f"node {i} down", "score": i % 6}
            for i in range(start, start + 24)
        ]

    for name, start in (("train", 0), ("dev", 50)):
        write_jsonl(tmp_path / f"{name}.jsonl", rows(start))
    return tmp_path / "train.jsonl", tmp_path / "dev.jsonl"


@pytest.fixture
def script(monkeypatch, capsys):
    """Run a script's `main` with these arguments in this process; returns what it printed."""

    def run(module, *arguments):
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
        module.main()
        return capsys.readouterr().out

    return run
