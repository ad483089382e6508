import os
import subprocess
import sys

import pytest

from angle_data.errors import InputError
from angle_data.locking import LOCK_NAME, hold

HOLDER = """
import sys
from pathlib import Path
from angle_data.locking import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_is_held_by_one_process_and_freed_when_it_is_killed(tmp_path):
    run = tmp_path / "new" / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(InputError, match=rf"run is in use by another process \(pid {holder.pid}\); wait"),
            hold(run),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with hold(run):
        assert run.is_dir()


def test_the_number_of_an_earlier_process_does_not_run_into_the_new_one(tmp_path):
    (tmp_path / LOCK_NAME).write_text("12345678901")
    with (
        hold(tmp_path),
        pytest.raises(InputError, match=rf"another process \(pid {os.getpid()}\)"),
        hold(tmp_path),
    ):
        pass


def test_a_file_in_place_of_the_directory_or_above_it_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file is a file; give a directory"), hold(tmp_path / "file"):
        pass
    with pytest.raises(InputError, match=r"run goes through a file; give"), hold(tmp_path / "file" / "run"):
        pass


def test_a_hidden_folder_is_called_by_the_one_around_it(tmp_path):
    hidden = tmp_path / "model" / ".run"
    with hold(hidden), pytest.raises(InputError, match=r"/model is in use by another process"):
        hold(hidden).__enter__()
