"""What a kill leaves in a run folder while its files are written, and what the next start makes of it."""

import subprocess
import sys

import pytest
from fake_openai import FakeOpenAI
from labelling_runs import config_of, write_texts

from angle_data.errors import InputError
from angle_data.labelling.label import label
from angle_data.locking import hold

KILLED = """
import os, signal, sys
from pathlib import Path
from angle_data.jsonl import replace_file
run = Path(sys.argv[1])
with replace_file(run / "candidates.jsonl") as one, replace_file(run / "rejected.jsonl") as two:
    with replace_file(run / "run.json") as three, replace_file(run / "scores.jsonl") as four:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def hidden(run):
    return sorted(path.name for path in run.glob(".*.*"))


@pytest.fixture
def killed(tmp_path):
    write_texts(tmp_path, 2, "Node {:04d} has left the cluster.")
    run = tmp_path / "run"
    run.mkdir()
    (run / "journal.jsonl").touch()
    (run / ".notes.jsonl.deadbeef").write_text("the user's own")
    done = subprocess.run([sys.executable, "-c", KILLED, str(run)], check=False)
    assert done.returncode < 0
    assert len(hidden(run)) == 5
    return run


def test_half_written_files_are_removed_at_the_next_start_and_no_others(tmp_path, killed):
    with FakeOpenAI() as server:
        assert label(config_of(tmp_path, server, polarity="synonym")).counts["replied"] == 2
    assert hidden(killed) == [".notes.jsonl.deadbeef"]


def test_files_that_another_process_may_be_writing_stay(tmp_path, killed):
    with FakeOpenAI() as server, hold(killed), pytest.raises(InputError):
        label(config_of(tmp_path, server, polarity="synonym"))
    assert len(hidden(killed)) == 5
