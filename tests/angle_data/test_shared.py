"""What every room shares: records, packaged folders, install commands, one process at a time in a folder."""

import os
import subprocess
import sys

import pytest

from angle_data.errors import InputError
from angle_data.locking import LOCK_NAME, hold
from angle_data.records import Candidate, Rejection
from angle_data.resources import install_command, packaged_folder

ASKED = {"source_id": "t1", "source": "a", "text": "b", "model": "m", "key": "k"}


def test_a_candidate_has_a_polarity_or_a_degree():
    of_degree = Candidate.from_dict({**ASKED, "polarity": None, "degree": 4}, "f:1")
    assert of_degree == Candidate("t1", "a", None, "b", "m", "k", 4)
    assert of_degree.to_dict() == {**ASKED, "polarity": None, "degree": 4}
    of_polarity = Candidate.from_dict({**ASKED, "polarity": "antonym"}, "f:1")
    assert of_polarity == Candidate.from_dict({**ASKED, "polarity": "antonym", "degree": None}, "f:1")
    assert list(of_polarity.to_dict()) == ["source_id", "source", "polarity", "text", "model", "key"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"polarity": None}, "a candidate has a polarity or a degree from 1 to 5, one of the two"),
        ({"polarity": "synonym", "degree": 5}, "a candidate has a polarity or a degree from 1 to 5, one of"),
        ({"polarity": "near"}, "polarity: Input should be 'synonym' or 'antonym'"),
        ({"polarity": None, "degree": 0}, "a candidate has a polarity or a degree from 1 to 5"),
        ({"polarity": None, "degree": 4.5}, "degree: Input should be a valid integer, .*; it is 4.5"),
        ({"polarity": "synonym", "text": 4}, "text: Input should be a valid string"),
        ({"polarity": "synonym", "extra": 1}, "extra: Unexpected keyword argument"),
        ({}, "polarity: Field required"),
    ],
)
def test_a_candidate_of_anything_else_is_refused(asked, message):
    with pytest.raises(InputError, match=f"^f:7: .*{message}"):
        Candidate.from_dict({**ASKED, **asked}, "f:7")


def test_a_rejection_may_belong_to_no_degree():
    row = {**ASKED, "polarity": None, "reason": "refusal", "raw": "No."}
    names = ["source_id", "source", "polarity", "text", "model", "key", "reason", "raw"]
    assert list(Rejection(**row).to_dict()) == names


@pytest.mark.parametrize("home", ["prompts", "angle_data/prompts", "angle_train/prompts"])
def test_a_folder_is_found_at_the_root_of_a_clone_or_first_inside_a_package(tmp_path, home):
    for place in ("prompts", home):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    assert packaged_folder("prompts", tmp_path) == tmp_path / home


def test_the_toolkits_own_folders_are_found():
    assert list(packaged_folder("recipes").glob("*.toml"))
    assert list(packaged_folder("prompts").glob("*/*.txt"))
    with pytest.raises(FileNotFoundError, match="'nonsense' is missing from the installed toolkit"):
        packaged_folder("nonsense")


def test_the_install_command_fits_where_the_toolkit_is(tmp_path):
    assert install_command("train", tmp_path) == 'pip install "angle-toolkit[train]"'
    (tmp_path / "pyproject.toml").touch()
    assert install_command("train", tmp_path) == 'pip install -e ".[train]"'


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
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(run)], **streams) as holder:
        assert holder.stdout.readline() == b"held\n"
        used = rf"run is in use by another process \(pid {holder.pid}\); wait"
        with pytest.raises(InputError, match=used):
            hold(run).__enter__()
        holder.kill()
    # The number of an earlier process, were it longer, does not run into the new one.
    (run / LOCK_NAME).write_text("12345678901")
    with hold(run), pytest.raises(InputError, match=rf"another process \(pid {os.getpid()}\)"):
        hold(run).__enter__()


def test_a_file_in_place_of_the_directory_or_above_it_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for path in ("file", "file/run", "link"):
        with pytest.raises(InputError, match=rf"{path} is a file, a link"), hold(tmp_path / path):
            pass

    out = tmp_path / ".model"  # what the user named is in the message, not what lies in it
    with hold(out / ".run", out), pytest.raises(InputError, match=r"/\.model is in use by another process"):
        hold(out / ".run", out).__enter__()
    with pytest.raises(InputError, match=r"file is a file, a link"):
        hold(tmp_path / "file" / ".run", tmp_path / "file").__enter__()
