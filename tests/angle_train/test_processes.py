"""Runs of several processes: they end where one process ends, and where they ended before."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from angle_data.errors import InputError
from angle_train.batching import PairCollator
from angle_train.processes import any_process, connect, is_first, on_first, process_count

PROGRAM = Path(__file__).with_name("fit_in_processes.py")


@pytest.fixture(scope="module")
def runs(tiny_model_dir, examples, tmp_path_factory):
    """The folder with every run, and the exit codes of their processes."""
    out = tmp_path_factory.mktemp("runs")
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    pairs = out / "pairs.jsonl"
    pairs.write_text("\n".join(map(json.dumps, rows[:50])))  # the last batch of an epoch has two pairs
    environment = os.environ | {
        "PYTHONPATH": str(PROGRAM.parents[2]),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tiny_model_dir), str(pairs), str(out)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out, json.loads((out / "codes.json").read_text()), done.stderr


def report(folder):
    return json.loads((folder / "report.json").read_text())


def differences(one, other):
    """The difference of every weight, the largest last."""
    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return np.sort(np.concatenate([np.abs(first[name] - second[name]).ravel() for name in first]))


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
        "refused": [1, 1],
    }
    # What process 0 refuses is told once; its traceback is this program's doing.
    assert errors.count("holds a run with different training pairs") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [("one", "two"), ("folds-in-one", "folds")])
def test_two_processes_end_where_one_does(runs, tiny_model_dir, one, two):
    one, two = runs[0] / one, runs[0] / two
    # Where a gradient is next to 0, Adam divides rounding errors by it: one weight in 10,000 may differ more.
    apart = differences(one, two)
    assert apart[: len(apart) * 9999 // 10_000].max() < 1e-6
    assert apart[-1] < 1e-4
    assert differences(tiny_model_dir, two)[-1] > 1e-3
    alone, together = report(one), report(two)
    assert (alone["details"].pop("processes"), together["details"].pop("processes")) == (1, 2)
    assert alone["steps"] == together["steps"]
    for key in ("kept", "best_step", "planned_steps", "data", "notes"):
        assert alone[key] == together[key]
    scores = [[point["dev"] for point in found["curve"]] for found in (alone, together)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    losses = [[point["terms"].get("loss", 0) for point in found["curve"]] for found in (alone, together)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.mark.slow
def test_a_run_of_two_processes_that_was_cut_off_twice_writes_the_same_bytes(runs):
    for name in ("model.safetensors", "report.json", "recipe.toml"):
        assert (runs[0] / "cut" / name).read_bytes() == (runs[0] / "noisy" / name).read_bytes(), name


class Tokens:
    """A tokeniser of one token a character, which notes what it was given."""

    def __init__(self):
        self.texts = []

    def __call__(self, texts, prompt=None):
        self.texts += texts
        return {"input_ids": torch.zeros(len(texts), max(map(len, texts)))}


@pytest.mark.parametrize("processes", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 4, 6])
def test_processes_share_the_texts_and_agree_on_the_labels(processes, count):
    rows = [{"text1": "a" * (i + 1), "text2": "b" * (2 * i + 1), "score": i % 2} for i in range(count)]
    whole = Tokens()
    expected = PairCollator(whole, chunk_size=2, swap=False)(rows)["label"]
    read, chunks = [], []
    for process in range(processes):
        tokens = Tokens()
        collate = PairCollator(tokens, chunk_size=2, swap=False, process=process, processes=processes)
        batch = collate(rows)
        labels = batch.pop("label")
        read += tokens.texts
        chunks.append(len(batch))
        assert len(tokens.texts) == labels["counts"][process]
        assert all(labels[name].equal(expected[name]) for name in expected)
    assert [read[row] for row in labels["rows"]] == whole.texts
    assert len(set(chunks)) == 1  # a sharded model's processes must call it equally often


def test_sharding_the_model_is_refused_before_anything_is_connected(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(InputError, match=r"sharding it \(FSDP\) is not supported"), connect("cpu"):
        pass


def test_one_process_needs_no_launcher(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert (process_count(), is_first(), any_process(False), any_process(True)) == (1, True, False, True)
    assert on_first(lambda: "value") == "value"
