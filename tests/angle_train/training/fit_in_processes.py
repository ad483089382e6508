"""What test_processes runs as a program: whole runs in one process and in two, started as torchrun does.

`python fit_in_processes.py MODEL PAIRS OUT` leaves the results of every run in a folder of OUT.
"""

import json
import os
import shutil
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from cut_runs import cut_off, interrupt
from process_runs import in_processes
from train_runs import changed, now, run_of, write

from angle_train import run as fit_module
from angle_train.run import fit
from angle_train.training import folds as cross_fitting

PROCESSES = 2
RECIPE = {
    "loss": "papers",
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "evals_per_epoch": 1,
    "precision": "fp32",  # bf16, which a processor with AMX would choose, rounds more than what is compared
}


def run(config, *, interrupted=False, killed=False, other=None):
    """An action: the run, cut off in a certain way; 130 where it was interrupted."""

    def action(rank):
        torch.set_num_threads(1)
        warnings.simplefilter("error")
        torch.manual_seed(rank)
        cut = nullcontext()
        if interrupted and rank == 1:
            cut = cut_off("on_step_end", 3, interrupt)
        if killed:
            cut = cut_off("on_step_begin", 5, lambda: os._exit(9))
        try:
            with cut:
                fit(replace(config, **other) if other and rank == 0 else config)
        except KeyboardInterrupt:
            return 130
        return 0

    return action


def calm_copy(model, directory):
    """The model without dropout, which would differ from process to process."""
    shutil.copytree(model, directory)
    settings = json.loads((directory / "config.json").read_text())
    settings |= {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    (directory / "config.json").write_text(json.dumps(settings))
    return directory


def main(model, pairs, out):
    """Everything that the tests look at."""
    fit_module.write_fit_page = lambda *given: None  # its figures take longer than the training
    cross_fitting.PARTS = 2
    calm = calm_copy(model, Path(out) / "calm")
    base = run_of(model, Path(out), pairs, RECIPE)
    copies = now(map(json.loads, Path(pairs).read_text().splitlines()))

    def at(name, **changes):
        return replace(base, out=Path(out) / name, **changes)

    few = {
        "data": [write(Path(out) / "copies.jsonl", copies)],
        "dev": [],
        "human": [pairs],
        "recipe": changed(base, learning_rate=2e-3).recipe,
    }
    others = [{"text": f"a text of another kind, {number}"} for number in range(40)]
    distilled = {
        "keep": [write(Path(out) / "others.jsonl", others)],
        "recipe": changed(base, distil_epochs=4).recipe,
        "backbone": str(calm),
    }
    codes = {
        "one": in_processes(1, run(at("one", backbone=str(calm)))),
        "two": in_processes(PROCESSES, run(at("two", backbone=str(calm)))),
        "noisy": in_processes(PROCESSES, run(at("noisy"))),
        "interrupted": in_processes(PROCESSES, run(at("cut"), interrupted=True)),
        "killed": in_processes(PROCESSES, run(at("cut"), killed=True)),
        "resumed": in_processes(PROCESSES, run(at("cut"))),
        "folds": in_processes(PROCESSES, run(at("folds", **few, backbone=str(calm)))),
        "folds in one": in_processes(1, run(at("folds-in-one", **few, backbone=str(calm)))),
        "distilled": in_processes(PROCESSES, run(at("distilled", **distilled))),
        "distilled in one": in_processes(1, run(at("distilled-in-one", **distilled))),
        "refused": in_processes(PROCESSES, run(at("two", backbone=str(calm)), other={"data": [pairs] * 2})),
    }
    (Path(out) / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main(*sys.argv[1:])
