"""A run's directory: what is deleted, and in which order, so that a kill leaves nothing to be mistaken."""

import os
import re
import shutil
from itertools import count

import pytest

from angle_data.errors import InputError
from angle_train.training.run_directory import RunDirectory

PARTS = {"epochs": "3", "training pairs": "a"}


OLD = {"config.json": "old", "1_Pooling/config.json": "old", "model.safetensors": "old"}
NEW = {"config.json": "new", "1_Pooling/config.json": "new", "model-00001-of-00001.safetensors": "new"}
MINE = {"notes.txt": "mine", "model-old.safetensors": "mine"}


class KilledError(RuntimeError):
    """Stands for a kill."""


def write_all(folder, texts):
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def texts_in(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and ".angle" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def cut_off_at(patch, number, *, for_good):
    """Let the change of the disk of that number fail; `for_good`, all later ones too, as after a kill."""
    changes = count()

    def cut(change):
        def changed(*given, **options):
            now = next(changes)
            if now == number or (for_good and now > number):
                raise KilledError
            return change(*given, **options)

        return changed

    for name in ("mkdir", "replace", "rmdir", "unlink"):
        patch.setattr(os, name, cut(getattr(os, name)))


@pytest.fixture
def run(tmp_path):
    """The directory of a finished run, with parts of another run and a file in it."""
    run = RunDirectory(tmp_path / "out", PARTS)
    assert run.claim(run.status(overwrite=False)) is None
    run.finish()
    (run.folds / "part-1").mkdir(parents=True)
    (run.path / "model.safetensors").write_text("old")
    return run


def test_the_start_of_a_first_note_is_no_obstacle(tmp_path):
    (tmp_path / ".angle").mkdir()
    (tmp_path / ".angle" / ".fit_state.json.x1y2").write_text("{")
    assert RunDirectory(tmp_path, PARTS).status(overwrite=False) == "new"
    (tmp_path / ".thesis.x1y2").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run to resume"):
        RunDirectory(tmp_path, PARTS).status(overwrite=False)


def test_what_a_kill_left_of_a_finished_run_is_deleted(run):
    run.checkpoints.mkdir()
    run.tidy()
    assert sorted(path.name for path in run.path.iterdir()) == [".angle", "model.safetensors"]


def test_what_differs_is_named_and_replaced_on_demand_alone(run):
    other = RunDirectory(run.path, {"epochs": "4", "training pairs": "b", "seed": "1"})
    told = r"different epochs \(3 -> 4\), training pairs, seed \(none -> 1\); give another directory"
    with pytest.raises(InputError, match=told):
        other.status(overwrite=False)
    assert other.status(overwrite=True) == run.status(overwrite=True) == "new"
    assert run.status(overwrite=False) == "finished"


def test_a_run_that_names_dropped_keys_goes_on_where_they_had_what_now_always_holds(tmp_path):
    before = {**PARTS, "human_weight": "1.0", "in_batch_mean": '"positives"', "lora_alpha": "32.0"}
    earlier = RunDirectory(tmp_path, before)
    earlier.claim(earlier.status(overwrite=False))
    write_all(tmp_path, OLD)
    earlier.finish()
    assert RunDirectory(tmp_path, PARTS).status(overwrite=False) == "finished"
    other = RunDirectory(tmp_path, before | {"human_weight": "2.0"})
    other.claim(other.status(overwrite=True))
    with pytest.raises(InputError, match=r"different human_weight \(2.0 -> none\)"):
        RunDirectory(tmp_path, PARTS).status(overwrite=False)


def test_a_hash_tells_nobody_what_differs(run):
    hashes = {part: "0f" * 32 for part in ("texts to keep", "test search docs", "guard general.jsonl")}
    other = RunDirectory(run.path, {**PARTS, **hashes})
    told = r"different texts to keep, test search docs, guard general\.jsonl; give"
    with pytest.raises(InputError, match=told):
        other.status(overwrite=False)


def test_a_run_that_was_killed_while_it_replaced_another_is_new(run, monkeypatch):
    other = RunDirectory(run.path, {**PARTS, "epochs": "4"})

    def killed(path, **options):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KilledError):
            other.claim(other.status(overwrite=True))
    # What is left is not taken for this run's own, and the old run counts for nothing.
    assert other.status(overwrite=False) == "new"
    with pytest.raises(InputError, match="different epochs"):
        run.status(overwrite=False)
    for name in ("checkpoints/checkpoint-5", "tensorboard", ".angle/made"):
        write_all(run.path, {f"{name}/trainer_state.json": "{}"})
    assert other.claim("new") is None
    assert os.listdir(run.path / ".angle") == ["fit_state.json"]
    assert sorted(path.name for path in run.path.iterdir()) == [".angle", "model.safetensors"]
    assert other.status(overwrite=True) == "interrupted"  # it goes on


@pytest.mark.parametrize("for_good", [True, False])
def test_wherever_an_exchange_of_models_is_cut_off_one_is_whole(tmp_path, monkeypatch, for_good):
    found = []
    for number in count():
        run = RunDirectory(tmp_path / str(number), PARTS)
        run.claim("new")
        write_all(run.path, OLD | MINE)
        with monkeypatch.context() as patch:
            cut_off_at(patch, number, for_good=for_good)
            try:
                with run.replacing() as folder:
                    write_all(folder, NEW)
            except KilledError:
                ended = False
            else:
                ended = True
        if for_good:  # Ctrl-C is survived at once, a kill when the run goes on
            run.claim(run.status(overwrite=False))
        found.append(texts_in(run.path))
        assert os.listdir(run.path / ".angle") == ["fit_state.json"]
        if ended:
            break
    old, new = (found.count(model | MINE) for model in (OLD, NEW))
    assert found == [OLD | MINE] * old + [NEW | MINE] * new
    assert min(old, new) > 3


def test_of_folders_that_are_links_the_link_alone_is_deleted(tmp_path, run):
    write_all(tmp_path / "elsewhere", {"config.json": "kept"})
    for name in ("checkpoints", "1_Pooling"):
        (run.path / name).symlink_to(tmp_path / "elsewhere")
    run.claim("new")
    with run.replacing() as folder:
        write_all(folder, NEW)
    assert texts_in(run.path) == NEW
    assert texts_in(tmp_path / "elsewhere") == {"config.json": "kept"}


def test_settings_may_change_while_there_is_nothing_to_lose(tmp_path):
    run, other = (RunDirectory(tmp_path / "out", PARTS | {"epochs": n}) for n in "35")
    run.claim("new")
    assert other.status(overwrite=False) == "new"
    other.claim("new")
    (other.path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"a run with different epochs \(5 -> 3\); give another directory"):
        run.status(overwrite=False)


@pytest.mark.parametrize("content", ["", '{"status": "fin', "[]", '{"status": "gone", "fingerprint": {}}'])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_damaged_note_is_named_with_what_to_do(run, content, overwrite):
    note = run.path / ".angle" / "fit_state.json"
    note.write_text(content)
    told = f"{note} is damaged; give another --out; a model in {run.path} may still be good"
    with pytest.raises(InputError, match=f"^{re.escape(told)}$"):
        run.status(overwrite=overwrite)
