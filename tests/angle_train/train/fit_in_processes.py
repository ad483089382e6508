"""What test_processes runs as a program: whole runs in one process and in two, started as torchrun does.

`python fit_in_processes.py MODEL PAIRS OUT` leaves the results of every run in a folder of OUT. It is one
program that forks, because importing the libraries takes longer than everything else.
"""

import gc
import json
import os
import shutil
import signal
import socket
import sys
import traceback
import warnings
from dataclasses import replace
from pathlib import Path

import torch

from angle_train import fit as fit_module
from angle_train.fit import FitConfig, fit
from angle_train.recipe import Recipe
from angle_train.train import trainer

PROCESSES = 2
RECIPE = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


def in_processes(count, action):
    """Exit codes of `count` forked processes that call `action(rank)` with torchrun's variables set."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    children = []
    gc.freeze()  # what the libraries made is here to stay; looking through it takes longer than a run
    for rank in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.set_num_threads(1)
                warnings.simplefilter("error")
                if count > 1:
                    os.environ |= {
                        "RANK": str(rank),
                        "LOCAL_RANK": str(rank),
                        "WORLD_SIZE": str(count),
                        "LOCAL_WORLD_SIZE": str(count),
                        "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": str(port),
                    }
                status = action(rank) or 0
            except SystemExit as stop:
                status = stop.code
            except BaseException:  # noqa: BLE001 - told, and an exit code
                traceback.print_exc()
            finally:  # never go on with the parent's program
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def cut_off(monkeypatched_at, step, action):
    """Let the run's callback do something at one event of one step."""
    original = getattr(trainer.RunCallback, monkeypatched_at)

    def at_event(self, args, state, control, **kwargs):
        if state.global_step == step:
            action()
        return original(self, args, state, control, **kwargs)

    setattr(trainer.RunCallback, monkeypatched_at, at_event)


def run(config, *, interrupted=False, killed=False, other=None):
    """An action: the run, cut off in a certain way; 130 where it was interrupted."""

    def action(rank):
        torch.manual_seed(rank)
        if interrupted and rank == 1:
            cut_off("on_step_end", 3, lambda: signal.raise_signal(signal.SIGINT))
        if killed:
            cut_off("on_step_begin", 5, lambda: os._exit(9))
        try:
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
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    fit_module.write_fit_page = lambda *given: None  # its figures take longer than the training
    calm = calm_copy(model, Path(out) / "calm")
    base = FitConfig(
        data=[pairs],
        backbone=model,
        out=Path(out),
        recipe=Recipe().with_overrides(RECIPE),
        dev=[pairs],
        device="cpu",
    )

    def at(name, **changes):
        return replace(base, out=Path(out) / name, **changes)

    few = {
        "data": [],
        "dev": [],
        "human": [pairs],
        "recipe": base.recipe.with_overrides({"folds": 2, "average_with_backbone": "auto"}),
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
        "refused": in_processes(PROCESSES, run(at("two", backbone=str(calm)), other={"data": [pairs] * 2})),
    }
    (Path(out) / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main(*sys.argv[1:])
