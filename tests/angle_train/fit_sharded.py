"""What test_sharding runs as a program: whole runs of two processes that shard the model (FSDP 2).

`python fit_sharded.py MODEL PAIRS OUT` leaves the results of every run in a folder of OUT, like
fit_in_processes, whose way of starting and cutting off runs it uses.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from accelerate import PartialState
from accelerate.utils import DistributedType
from fit_in_processes import PROCESSES, RECIPE, calm_copy, in_processes, run
from torch.distributed.fsdp import FSDPModule

from angle_train import fit as fit_module
from angle_train.fit import FitConfig
from angle_train.recipe import Recipe
from angle_train.train import trainer

ASKED = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
STOPPED = {"learning_rate": 3e-3, "epochs": 4, "evals_per_epoch": 2, "patience": 1}  # after 8 of 16 steps
ADAPTERS = {"lora_rank": 4, "lora_dropout": 0.0, "learning_rate": 1e-2, "average_with_backbone": 0.3}
EVERYTHING = {
    "gradient_cache": True,
    "gradient_accumulation": 2,
    "gradient_checkpointing": True,
    "average_with_backbone": "auto",
    "evals_per_epoch": 2,
}


def shard_without_gpus():
    """Let accelerate shard processes that have no GPU.

    It shards where it calls the processes MULTI_GPU, and torch shards over gloo just as well. So this stands
    for the GPUs alone: what accelerate, the trainer and torch then do is what they do there.
    """
    original = PartialState.__init__

    def connected(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = connected


def check_shares(state, model):
    """Fail unless this process holds half of the weights, layer by layer."""
    layers = model.transformers_model.encoder.layer
    assert all(isinstance(layer, FSDPModule) for layer in layers), "not sharded layer by layer"
    held = sum(weights.to_local().numel() for weights in model.parameters())
    whole = sum(weights.numel() for weights in model.parameters())
    assert held < 0.55 * whole, f"{held} of {whole} weights after step {state.global_step}"


def sharded(action, gpus=True):
    """The action in processes whose launcher asks for sharding."""

    def asked(rank):
        os.environ |= ASKED
        if gpus:
            shard_without_gpus()
        original = trainer.RunCallback.on_step_end

        def checked(self, args, state, control, model, **kwargs):
            check_shares(state, model)
            original(self, args, state, control, **kwargs)

        trainer.RunCallback.on_step_end = checked
        return action(rank)

    return asked


def main(model, pairs, out):
    """Everything that the tests look at."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    fit_module.write_fit_page = lambda *given: None  # its figures take longer than the training
    calm = calm_copy(model, Path(out) / "calm")
    base = FitConfig(
        data=[pairs],
        backbone=str(calm),
        out=Path(out),
        recipe=Recipe().with_overrides(RECIPE),
        dev=[pairs],
        device="cpu",
    )

    def at(name, settings=None, **changes):
        recipe = base.recipe.with_overrides(settings or {})
        return replace(base, out=Path(out) / name, recipe=recipe, **changes)

    few = {"data": [], "dev": [], "human": [pairs]}
    alike = {
        "stopped": at("stopped", STOPPED),
        "everything": at("everything", EVERYTHING),
        "folds": at("folds", {"folds": 2, "average_with_backbone": 0.1}, **few),
        "adapters": at("adapters", ADAPTERS),
    }
    codes = {}
    for name, config in alike.items():
        codes[f"{name} in one"] = in_processes(1, run(replace(config, out=config.out / "one")))
        codes[name] = in_processes(PROCESSES, sharded(run(replace(config, out=config.out / "two"))))
    half = at("half", EVERYTHING | {"precision": "bf16"})
    codes["half"] = in_processes(PROCESSES, sharded(run(half)))
    # A run that one process began and two that shard the model go on with, and the other way round.
    there, back = at("there", STOPPED), at("back", STOPPED)
    codes |= {
        "there, killed": in_processes(1, run(there, killed=True)),
        "there": in_processes(PROCESSES, sharded(run(there))),
        "back, killed": in_processes(PROCESSES, sharded(run(back, killed=True))),
        "back": in_processes(1, run(back)),
    }
    noisy = {"backbone": model}
    codes |= {
        "noisy": in_processes(PROCESSES, sharded(run(at("noisy", **noisy)))),
        "interrupted": in_processes(PROCESSES, sharded(run(at("cut", **noisy), interrupted=True))),
        "killed": in_processes(PROCESSES, sharded(run(at("cut", **noisy), killed=True))),
        "resumed": in_processes(PROCESSES, sharded(run(at("cut", **noisy)))),
        "without GPUs": in_processes(PROCESSES, sharded(run(at("none")), gpus=False)),
    }
    (Path(out) / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main(*sys.argv[1:])
