"""A run's directory: what is deleted, and in which order, so that a kill leaves nothing to be mistaken."""

import json
from pathlib import Path

import pytest

from angle_data.errors import InputError
from angle_train.train.run_directory import RunDirectory

PARTS = {"recipe": "", "training pairs": "a"}


class KilledError(RuntimeError):
    """Stands for a kill."""


def finished(path):
    """The directory of a finished run, with parts of another run and a file in it."""
    run = RunDirectory(path, PARTS)
    path.mkdir()
    run.claim("new", overwrite=False)
    run.finish()
    (path / "folds" / "part-1").mkdir(parents=True)
    (path / "model.safetensors").write_text("old")
    return run


def test_parts_of_an_earlier_run_are_gone_before_a_new_one_is_noted(tmp_path, monkeypatch):
    finished(tmp_path / "out")
    run = RunDirectory(tmp_path / "out", {**PARTS, "training pairs": "b"})

    def killed(*given, **options):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "_write", killed)
        with pytest.raises(KilledError):
            run.claim(run.status(overwrite=True), overwrite=True)
    # The next start could take them for its own; the old model is deleted once the new run is noted.
    assert not run.folds.exists()
    assert (run.path / "model.safetensors").exists()
    assert json.loads((run.path / ".angle" / "fit_state.json").read_text())["status"] == "finished"


def test_the_start_of_a_first_note_is_no_obstacle(tmp_path):
    (tmp_path / ".angle").mkdir()
    (tmp_path / ".angle" / ".fit_state.json.x1y2").write_text("{")
    assert RunDirectory(tmp_path, PARTS).status(overwrite=False) == "new"
    (tmp_path / ".thesis.x1y2").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier run"):
        RunDirectory(tmp_path, PARTS).status(overwrite=False)


def test_a_grid_replaces_its_own_files_alone_and_never_a_run(tmp_path):
    grid = RunDirectory(tmp_path / "grid", PARTS, ("trials", "grid.json"))
    grid.claim("new", overwrite=False)
    (grid.path / "grid.json").write_text("{}")
    (grid.path / "notes.txt").write_text("mine")
    (grid.path / "checkpoints" / "checkpoint-5").mkdir(parents=True)
    grid.trials.mkdir()
    grid.finish()
    grid.claim(grid.status(overwrite=True), overwrite=True)
    grid.finish()
    assert sorted(path.name for path in grid.path.iterdir()) == [".angle", "checkpoints", "notes.txt"]
    assert (grid.path / "checkpoints" / "checkpoint-5").is_dir()
    with pytest.raises(InputError, match="holds a grid; give another directory to the run"):
        RunDirectory(grid.path, PARTS).status(overwrite=True)
    run = finished(tmp_path / "out")
    with pytest.raises(InputError, match="holds a run of fit; give another directory to the grid"):
        RunDirectory(run.path, PARTS, ("trials", "grid.json")).status(overwrite=True)


def test_what_a_kill_left_of_a_finished_run_is_deleted(tmp_path):
    run = finished(tmp_path / "out")
    run.checkpoints.mkdir()
    run.tidy()
    assert (run.checkpoints.exists(), run.folds.exists()) == (False, False)
    assert (run.path / "model.safetensors").exists()


def test_a_run_with_overwrite_is_noted_before_the_rest_is_deleted(tmp_path, monkeypatch):
    run = finished(tmp_path / "out")

    def killed(path, **options):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KilledError):
            run.claim(run.status(overwrite=True), overwrite=True)
    state = json.loads((run.path / ".angle" / "fit_state.json").read_text())
    assert (state["status"], state["overwrite"]) == ("interrupted", True)
    assert run.status(overwrite=True) == "new"  # it has no checkpoint yet
    assert run.claim("new", overwrite=True) is None
