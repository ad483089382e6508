"""What goes into a run: scales, splits, leaks, the backbone's content, broken models, and full disks."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from full_disk import files_of_at_most, models_of_at_most
from train_runs import changed, damaged, run_of, write

from angle_data.errors import InputError
from angle_data.locking import hold
from angle_train.model.load import backbone_identity
from angle_train.report.result import FitReport
from angle_train.run import fit
from angle_train.training.run_directory import HIDDEN

SHORT = {"loss": "papers", "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


@pytest.fixture
def config(rows, tiny_model_dir, tmp_path):
    """A run of two steps."""
    return run_of(tiny_model_dir, tmp_path / "out", write(tmp_path / "pairs.jsonl", rows[:32]), SHORT)


def test_nothing_that_is_written_names_the_machines_paths(config, tiny_model_dir):
    report = fit(config).report
    assert report.backbone == backbone_identity(str(tiny_model_dir))
    for path in config.out.rglob("*"):
        if path.is_file():
            assert str(tiny_model_dir.parent).encode() not in path.read_bytes(), path
            assert str(config.out.parent).encode() not in path.read_bytes(), path


def test_a_backbone_that_gives_no_numbers_is_refused_before_training(config, tiny_model_dir, tmp_path):
    with pytest.raises(InputError, match=r"backbone: .* embeddings are not numbers"):
        fit(replace(config, backbone=str(damaged(tiny_model_dir, tmp_path / "backbone"))))
    assert not (config.out / "checkpoints").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the overflow
def test_training_that_diverged_is_one_line_and_no_report(config):
    with pytest.raises(InputError, match=r"tuned: .* embeddings are not numbers") as caught:
        fit(changed(config, learning_rate=1e30))
    assert "a lower learning rate or fp32" in str(caught.value)
    assert not (config.out / "report.json").exists()


def test_a_folder_in_use_is_said_before_anything_is_loaded(config):
    run = replace(config, data=["missing.jsonl"])
    with hold(config.out / HIDDEN), pytest.raises(InputError, match="out is in use by another process"):
        fit(run)
    with pytest.raises(InputError, match=r"missing.jsonl does not exist"):
        fit(run)


@pytest.mark.parametrize("option", ["human", "dev", "test", "dev_search", "test_search", "guard"])
def test_a_file_that_is_given_twice_to_one_option_is_refused_before_it_is_read(config, option):
    again = str(Path("twice.csv").resolve())
    wanted = f"--{option.replace('_', '-')} {again} is given twice; name each once"
    with pytest.raises(InputError, match=f"^{re.escape(wanted)}$"):
        fit(replace(config, **{option: ["twice.csv", "once.csv", again]}))


FULL = r"cannot be written \(.+\); free space or give another --out"


@pytest.mark.parametrize("share", [0.5, 1.5])
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(config, tiny_model_dir, share):
    # Below the size of the weights safetensors fails, above it torch: the optimiser's state is larger.
    size = share * (tiny_model_dir / "model.safetensors").stat().st_size
    with pytest.raises(InputError, match=FULL), files_of_at_most(size):
        fit(config)
    assert not fit(config).already_finished
    assert FitReport.read(config.out / "report.json").steps == 2


def test_a_disk_that_is_full_when_the_model_is_saved_loses_no_training(config, caplog):
    with pytest.raises(InputError, match=FULL), models_of_at_most(5000):
        fit(config)
    with caplog.at_level("INFO", logger="angle"):
        assert fit(config).report.steps == 2
    assert "resuming from" in caplog.text
