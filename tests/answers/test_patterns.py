"""Every pattern of `angle_data` is linear on hostile texts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "hostile_patterns.py"


def failing(*modules, planted=()):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *modules], input=json.dumps(planted), capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_no_pattern_takes_more_than_linear_time():
    assert failing("angle_data") == []


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\s+x", "(?:a|aa)*b"])
def test_an_exponential_or_quadratic_pattern_is_found(pattern):
    assert failing("angle_data.errors", planted=[pattern])
