"""Runs a program that makes training runs of several processes, and compares what they left."""

import json
import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file


def run_program(program, model, examples, out):
    """Start `program MODEL PAIRS OUT`; return OUT, the exit codes of its processes, and what they said."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    pairs = out / "pairs.jsonl"
    pairs.write_text("\n".join(map(json.dumps, rows[:50])))  # the last batch of an epoch has two pairs
    environment = os.environ | {
        "PYTHONPATH": str(program.parents[2]),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [sys.executable, str(program), str(model), str(pairs), str(out)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out, json.loads((out / "codes.json").read_text()), done.stderr


def report(folder):
    """The report of a run."""
    return json.loads((folder / "report.json").read_text())


def differences(one, other):
    """The difference of every weight, the largest last."""
    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return np.sort(np.concatenate([np.abs(first[name] - second[name]).ravel() for name in first]))


def check_alike(one, two):
    """Fail unless a run of two processes ended where one of one process did."""
    # Where a gradient is next to 0, Adam divides rounding errors by it: one weight in 10,000 may differ more.
    apart = differences(one, two)
    assert apart[: len(apart) * 9999 // 10_000].max() < 1e-6
    assert apart[-1] < 1e-4
    alone, together = report(one), report(two)
    assert (alone["details"].pop("processes"), together["details"].pop("processes")) == (1, 2)
    for key in ("kept", "steps", "best_step", "planned_steps", "data", "notes"):
        assert alone[key] == together[key]
    scores = [[point["dev"] for point in found["curve"]] for found in (alone, together)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-6)
    losses = [[point["terms"].get("loss", 0) for point in found["curve"]] for found in (alone, together)]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-4)
