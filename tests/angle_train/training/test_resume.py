"""Runs that were cut off: wherever that was, going on ends in the same weights and the same report."""

import os
from dataclasses import replace

import pytest
from cut_runs import CutOff, cut_off, interrupt
from train_runs import changed, run_of, turned, weights, write

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.run import fit
from angle_train.training import trainer

# Too high a rate: the dev score rises, and after a few epochs it falls for good.
PEAK = {
    "loss": "papers",
    "epochs": 12,
    "batch_size": 16,
    "learning_rate": 0.02,
    "evals_per_epoch": 1,
    "patience": 2,
    "args": {"lr_scheduler_type": "constant_with_warmup", "warmup_ratio": 0.0},
}


@pytest.fixture(scope="module")
def peaked(tmp_path_factory, tiny_model_dir, rows):
    """A run, with its result, that stops early because nothing was better than an earlier checkpoint."""
    folder = tmp_path_factory.mktemp("peaked")
    config = run_of(tiny_model_dir, folder / "out", write(folder / "pairs.jsonl", rows[:48]), PEAK)
    return config, fit(config).report


@pytest.fixture
def collapsing(peaked, rows, tmp_path):
    """A run of 3 epochs that is best after the first one: scores are turned, and the rate is far too high.

    The backbone ranks these pairs the wrong way round, so that even that first evaluation is surely better.
    """
    pairs = [write(tmp_path / "turned.jsonl", turned(rows[:48]))]
    return replace(changed(peaked[0], epochs=3, patience=9, learning_rate=0.05), data=pairs, dev=pairs)


def test_the_best_checkpoint_is_saved_although_it_is_not_the_last(peaked, tmp_path):
    config, report = peaked
    scores = [point["dev"] for point in report.curve[1:]]
    assert report.kept == "tuned"
    assert report.best_step == report.steps - 6  # two evaluations later it stopped
    assert report.steps < report.planned_steps
    assert report.dev_after == max(scores) > scores[-1]
    # The rate is constant, so a run that ends there has the same weights.
    fit(replace(changed(config, epochs=report.best_step / 3), out=tmp_path / "shorter"))
    assert weights(tmp_path / "shorter") == weights(config.out)


def test_other_users_may_read_what_the_umask_lets_them(peaked):
    mask = os.umask(0o077)
    os.umask(mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in peaked[0].out.iterdir() if path.is_file()}
    assert "model.safetensors" in modes
    assert modes == dict.fromkeys(modes, 0o666 & ~mask)


def test_a_run_killed_after_its_last_evaluation_takes_no_further_step(peaked, tmp_path):
    config, report = peaked
    with cut_off("on_save", report.steps), pytest.raises(CutOff):
        fit(replace(config, out=tmp_path / "out"))
    # Moved, as results are: the best checkpoint is found in the new place.
    moved = (tmp_path / "out").rename(tmp_path / "moved")
    resumed = replace(config, out=moved)
    # What chose the weights outlives the kill: the similarities of every evaluation.
    assert (moved / "checkpoints" / "measured.jsonl").is_file()
    assert fit(resumed).report == report
    assert (moved / "report.json").read_bytes() == (config.out / "report.json").read_bytes()
    assert weights(moved) == weights(config.out)


@pytest.mark.parametrize("step", [4, 6, 9])  # on the way, after an evaluation, after the last one
def test_a_run_that_was_cut_off_makes_the_same_choice(collapsing, tmp_path, step):
    report = fit(replace(collapsing, out=tmp_path / "whole")).report
    assert report.details["choice"]["compared"] == 3
    run = replace(collapsing, out=tmp_path / "cut")
    with cut_off("on_save" if step % 3 == 0 else "on_step_end", step), pytest.raises(CutOff):
        fit(run)
    found = fit(run).report
    assert found == report
    assert weights(run.out) == weights(tmp_path / "whole")


def test_changed_inputs_are_noticed_before_the_first_step_of_a_resumed_run(peaked, rows, tmp_path):
    config, _ = peaked
    run = replace(config, out=tmp_path / "out")
    with cut_off("on_save", 3), pytest.raises(CutOff):
        fit(run)
    before = {path: path.read_bytes() for path in run.out.rglob("*") if path.is_file()}
    fewer = [write(tmp_path / "pairs.jsonl", rows[:40])]
    for change, named in (
        ({"dev": fewer}, "dev pairs"),
        ({"data": fewer}, "training pairs"),
        ({"test": fewer}, "test pairs"),
        ({"recipe": config.recipe.with_overrides({"seed": 7})}, r"seed \(42 -> 7\)"),
        ({"threshold": 2.0}, r"training pairs, threshold \(none -> 2\)"),
    ):
        with pytest.raises(InputError, match=f"holds a run with different {named}; give another directory"):
            fit(replace(run, **change))
    assert {path: path.read_bytes() for path in run.out.rglob("*") if path.is_file()} == before


def test_a_run_interrupted_between_evaluations_reports_what_an_uninterrupted_one_does(
    peaked, rows, tmp_path, monkeypatch
):
    # Four batches; two epochs, evaluated at steps 4 and 8.
    values = {"epochs": 2, "batch_size": 8, "evals_per_epoch": 1, "learning_rate": 1e-3}
    data = write(tmp_path / "fewer.jsonl", rows[:32])
    whole = run_of(peaked[0].backbone, tmp_path / "whole", data, values, dev=peaked[0].dev)
    fit(whole)
    run = replace(whole, out=tmp_path / "cut")
    with cut_off("on_step_end", 3, interrupt), pytest.raises(KeyboardInterrupt):
        fit(run)
    shown = []

    class Seen(Progress):
        def __exit__(self, *raised: object) -> None:
            shown.append((self._label, self._total, self._skipped, self._done))
            super().__exit__(*raised)

    monkeypatch.setattr(trainer, "Progress", Seen)
    fit(run)
    assert shown == [("training, on from step 3", 8, 3, 8)]
    assert weights(run.out) == weights(whole.out)
    for name in ("report.json", "report.html"):
        assert (run.out / name).read_bytes() == (whole.out / name).read_bytes()
