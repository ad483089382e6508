"""What tests of training and evaluation share: the demo's graded pairs, and the program called in place."""

import json
from functools import partial

import pytest
from programs import run_here

from angle_train.cli import main


@pytest.fixture(scope="session")
def rows(examples):
    """The dev pairs of the demo's natural set, as rows of a file without splits."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row.pop("split") == "dev"]


@pytest.fixture
def two_parts(monkeypatch):
    """Few graded pairs are cut into two parts."""
    monkeypatch.setattr("angle_train.training.folds.PARTS", 2)


@pytest.fixture
def program():
    """Run `angle-train` with the given arguments; returns exit code, stdout and stderr."""
    return partial(run_here, main)
