"""What tests of training and evaluation share: the demo's graded pairs, and the program called in place."""

import json
import sys

import pytest

from angle_train.cli import main


@pytest.fixture(scope="session")
def rows(examples):
    """The dev pairs of the demo's natural set, as rows of a file without splits."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row.pop("split") == "dev"]


@pytest.fixture
def program(monkeypatch, capsys):
    """Run `angle-train` with the given arguments; returns exit code, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["angle-train", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return (code, *capsys.readouterr())

    return call
