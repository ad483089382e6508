"""A model divided among the processes of a run (FSDP 2): a sharded copy trains beside the whole model.

Each process holds a share of the weights, their gradients and the optimiser's state. The whole model waits in
the main memory of process 0, which fills it with the current weights to measure and to save them: both are
done as for an ordinary model, and checkpoints are those of an ordinary run. Knows nothing of the objective.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import MixedPrecisionPolicy

from angle_data.errors import InputError
from angle_train.recipe import Recipe
from angle_train.train.processes import is_first, on_first, process_count
from angle_train.train.sharding_settings import sharding_asked

_LAYERS = "FSDP_TRANSFORMER_CLS_TO_WRAP"
_OPTIMIZER, _SCHEDULER = "optimizer.pt", "scheduler.pt"  # as the trainer calls them


def is_sharded() -> bool:
    """Return whether the processes of this run divide the model among them."""
    return process_count() > 1 and sharding_asked()


def check_can_shard(model: SentenceTransformer, recipe: Recipe) -> None:
    """Check that a model can be sharded.

    Raises:
        InputError: Its weights are quantized, or the layers that the launcher names are not in it.
    """
    if recipe.backbone.quantization != "none":
        raise InputError(
            f"quantization {recipe.backbone.quantization} and a sharded model (FSDP) do not go together; "
            "set quantization = none, or start without FSDP"
        )
    there = {type(module).__name__ for module in model.modules()}
    missing = set(_named_layers()) - there
    if missing:
        raise InputError(f"{_LAYERS}: the model has no layer of class {', '.join(sorted(missing))}")


def copy_to_shard(model: SentenceTransformer) -> SentenceTransformer:
    """Move `model` to main memory and return what is to be sharded: itself, in process 0 a copy."""
    model.to("cpu")
    if not is_first():  # nobody needs the whole one here
        return model
    card = model.model_card_data  # the trainer writes to it, and it is saved with the whole model
    return copy.deepcopy(model, {id(card): card})


class WholeModelEvaluator(BaseEvaluator):
    """Measures the whole model, in process 0; all processes are to call it at the same time."""

    def __init__(self, evaluator: BaseEvaluator, whole: SentenceTransformer, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._evaluator, self._whole, self._device = evaluator, whole, device

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return what the evaluator finds of the weights of `model`, which is sharded."""
        _gather(model, self._whole)
        return on_first(lambda: self._measure(output_path, epoch, steps))

    def _measure(self, output_path: str | None, epoch: int, steps: int) -> dict[str, float]:
        self._whole.to(self._device)
        try:
            found: Any = self._evaluator(self._whole, output_path, epoch, steps)
        finally:
            self._whole.to("cpu")
        return dict(found)


class ShardingTrainer(SentenceTransformerTrainer):
    """The trainer, whose model may be sharded; its checkpoints then hold the whole one.

    Attributes:
        whole: In process 0 what the sharded model is a copy of, in others that model; None where it is not
            sharded.
    """

    whole: SentenceTransformer | None = None

    def shard(self, whole: SentenceTransformer) -> None:
        """Shard the model when the training begins: layer by layer, computing in the run's precision.

        Args:
            whole: See the attribute.
        """
        self.whole = whole
        plugin: Any = self.accelerator.state.fsdp_plugin
        # A Sentence Transformers model does not tell what its transformer's layers are.
        transformer = whole.transformers_model
        known = getattr(transformer, "_no_split_modules", None) or []
        there = {type(module).__name__ for module in whole.modules()}
        plugin.transformer_cls_names_to_wrap = _named_layers() or sorted(there.intersection(known))
        if self.accelerator.mixed_precision == "bf16":
            # accelerate would add up the gradients in bf16 too, and the loss would be computed in it.
            plugin.mixed_precision_policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
            self.model.register_forward_hook(_embeddings_in_fp32)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the model as the folder of an ordinary one."""
        if self.whole is None:
            super().save_model(output_dir, _internal_call)
            return
        _gather(self.model, self.whole)
        if is_first():
            self.whole.save_pretrained(output_dir or str(self.args.output_dir))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.whole is None:
            super()._save_optimizer_and_scheduler(output_dir)
            return
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = get_optimizer_state_dict(self.model, self._optimizer(), options=options)
        if is_first():
            numbers = {name: number for number, name in enumerate(self._trained())}
            torch.save(_renamed(state, numbers), Path(output_dir) / _OPTIMIZER)
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / _SCHEDULER)  # type: ignore[union-attr]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if self.whole is None or checkpoint is None:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        state = {}
        if is_first():
            saved = torch.load(Path(checkpoint) / _OPTIMIZER, map_location="cpu", weights_only=True)
            state = _renamed(saved, dict(enumerate(self._trained())))
        # Not strict: weights that get no gradient (an encoder's own pooler) have no state.
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
        set_optimizer_state_dict(self.model, self._optimizer(), state, options=options)
        schedule = torch.load(Path(checkpoint) / _SCHEDULER, weights_only=True)
        self.lr_scheduler.load_state_dict(schedule)  # type: ignore[union-attr]

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """Load nothing into a sharded model: it is a copy of one with these weights, or done with."""
        if self.whole is None:
            super()._load_from_checkpoint(resume_from_checkpoint)

    def _optimizer(self) -> torch.optim.Optimizer:
        if self.optimizer is None:
            raise ValueError("the trainer has no optimiser yet")
        return self.optimizer

    def _trained(self) -> list[str]:
        """Return the names of the optimiser's weights, in its order."""
        names = {id(weights): name for name, weights in self.model.named_parameters()}
        return [names[id(weights)] for group in self._optimizer().param_groups for weights in group["params"]]


def _gather(shares: nn.Module, whole: SentenceTransformer) -> None:
    """Give `whole` the trained weights in process 0; all processes take part."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
    state = get_model_state_dict(shares, options=options)
    if is_first():
        trained = {name for name, weights in whole.named_parameters() if weights.requires_grad}
        missing, unknown = whole.load_state_dict(state, strict=False)
        if trained.intersection(missing) or unknown:
            raise ValueError(f"the sharded model has other weights: {[*missing, *unknown][:3]}")


def _renamed(state: Mapping[str, Any], names: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an optimiser's state with other names of the weights; an ordinary one numbers them."""
    return {
        "state": {names[name]: value for name, value in state["state"].items()},
        "param_groups": [
            group | {"params": [names[name] for name in group["params"]]} for group in state["param_groups"]
        ],
    }


def _embeddings_in_fp32(model: nn.Module, args: Any, output: dict[str, Any]) -> dict[str, Any]:
    output["sentence_embedding"] = output["sentence_embedding"].float()
    return output


def _named_layers() -> list[str]:
    """Return the classes of the layers that the launcher names."""
    return [name.strip() for name in os.environ.get(_LAYERS, "").split(",") if name.strip()]
