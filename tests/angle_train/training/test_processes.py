"""Runs of several processes: they end where one process ends, and where they ended before."""

import json
from pathlib import Path

import pytest
from process_runs import check_alike, differences, run_program
from train_runs import write

from angle_data.errors import InputError
from angle_train.training.processes import any_process, connect_processes, is_first, process_count, rank_zero

PROGRAM = Path(__file__).with_name("fit_in_processes.py")


@pytest.fixture(scope="module")
def runs(tiny_model_dir, rows, tmp_path_factory):
    """The folder with every run, and the exit codes of their processes."""
    out = tmp_path_factory.mktemp("runs")
    pairs = write(out / "pairs.jsonl", rows[:50])  # the last batch of an epoch has two pairs
    errors = run_program(PROGRAM, tiny_model_dir, pairs, out)
    return out, json.loads((out / "codes.json").read_text()), errors


@pytest.mark.slow
def test_every_run_ended_as_it_should(runs):
    _, codes, errors = runs
    assert codes == {
        "one": [0],
        "two": [0, 0],
        "noisy": [0, 0],
        "interrupted": [130, 130],  # the signal reached one process only
        "killed": [9, 9],
        "resumed": [0, 0],
        "folds": [0, 0],
        "folds in one": [0],
        "distilled": [0, 0],
        "distilled in one": [0],
        "refused": [1, 1],
    }
    # What process 0 refuses is told once; its traceback is this program's doing.
    assert errors.count("holds a run with different training pairs") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "two", "near"),
    [
        ("one", "two", 1e-6),
        ("folds-in-one", "folds", 1e-6),
        # The others begin at their targets, so half of the gradient begins as rounding errors, which Adam
        # divides by; training moves weights by up to 8e-3.
        ("distilled-in-one", "distilled", 2e-5),
    ],
)
def test_two_processes_end_where_one_does(runs, tiny_model_dir, one, two, near):
    one, two = runs[0] / one, runs[0] / two
    check_alike(one, two, near)
    assert differences(tiny_model_dir, two)[-1] > 1e-3


@pytest.mark.slow
def test_a_run_of_two_processes_that_was_cut_off_twice_writes_the_same_bytes(runs):
    for name in ("model.safetensors", "report.json", "recipe.toml"):
        assert (runs[0] / "cut" / name).read_bytes() == (runs[0] / "noisy" / name).read_bytes(), name


def test_one_process_needs_no_launcher(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert (process_count(), is_first(), any_process(False), any_process(True)) == (1, True, False, True)
    assert rank_zero(lambda: "value")() == "value"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_sharded_model_is_refused(monkeypatch, processes):
    # What `accelerate launch --use_fsdp` sets.
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("WORLD_SIZE", processes)
    refused = pytest.raises(InputError, match=r"ACCELERATE_USE_FSDP: .* start .* \(DDP\) with torchrun")
    with refused as caught, connect_processes("cpu"):
        pass
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "false")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with connect_processes("cpu"):
        pass
