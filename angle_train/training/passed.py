"""A user's own training arguments: what of them a recipe decides, what passes, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from transformers import TrainingArguments

from angle_data.errors import InputError

# Names of the trainer -> keys of a recipe.
_OF_RECIPE = {
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "learning_rate": "learning_rate",
    "lr_scheduler_type": "scheduler",
    "warmup_ratio": "warmup_ratio",
    "weight_decay": "weight_decay",
    "max_grad_norm": "max_grad_norm",
    "gradient_accumulation_steps": "gradient_accumulation",
    "gradient_checkpointing": "gradient_checkpointing",
    "seed": "seed",
}
_SCHEDULERS = {"constant_with_warmup": "constant"}
_BATCHES = "which pairs are in a batch follows from the seed, so that a run can be resumed"
_CHECKPOINTS = "evals_per_epoch says when dev pairs are measured and checkpoints are written, and out where"
_PUSH = "push the model that train returns: model.push_to_hub(…)"
_WHOLE = "each process holds the whole model; for others use AngleLoss in a trainer of your own"
_ROUTES = "an asymmetric model is trained with AngleLoss in a trainer of your own"
_REFUSED = {
    **dict.fromkeys(
        (
            "batch_sampler",
            "multi_dataset_batch_sampler",
            "train_sampling_strategy",
            "length_column_name",
            "dataloader_drop_last",
            "data_seed",
            "accelerator_config",
            "auto_find_batch_size",
            "ignore_data_skip",
            "remove_unused_columns",
        ),
        _BATCHES,
    ),
    **dict.fromkeys(
        (
            "save_strategy",
            "save_steps",
            "save_total_limit",
            "save_only_model",
            "enable_jit_checkpoint",
            "load_best_model_at_end",
            "metric_for_best_model",
            "greater_is_better",
            "eval_strategy",
            "eval_steps",
            "eval_delay",
            "eval_on_start",
            "resume_from_checkpoint",
            "restore_callback_states_from_checkpoint",
        ),
        _CHECKPOINTS,
    ),
    **dict.fromkeys(
        (
            "push_to_hub",
            "hub_token",
            "hub_private_repo",
            "hub_model_id",
            "hub_strategy",
            "hub_always_push",
            "hub_revision",
        ),
        _PUSH,
    ),
    **dict.fromkeys(("fsdp", "fsdp_config", "deepspeed", "parallelism_config"), _WHOLE),
    "router_mapping": _ROUTES,
    "prompts": "prompt= is put around every text, and saved with the model",
    "use_cpu": "the model trains where it lies: move it there",
}
_IGNORED = {"output_dir", "do_train", "do_eval", "do_predict", "local_rank", "label_names"}


class Passed(NamedTuple):
    """What training arguments say.

    Attributes:
        recipe: Values of the recipe, by key.
        settings: What the trainer is given beside them.
        max_steps: How many optimiser steps to take, in place of epochs; None for as many as the epochs have.
    """

    recipe: dict[str, Any]
    settings: dict[str, Any]
    max_steps: int | None = None


def read_arguments(given: TrainingArguments | Mapping[str, Any] | None) -> Passed:
    """Return what training arguments say, apart from what is the default.

    Args:
        given: `TrainingArguments`, those of sentence-transformers too, or a mapping with their names.

    Raises:
        InputError: An argument would break what a run rests on; the line names it and says why.
    """
    if given is None:
        return Passed({}, {})
    if isinstance(given, TrainingArguments):
        usual = type(given)(output_dir=given.output_dir)
        names = [field.name for field in fields(given) if field.init]
        changed = {name: getattr(given, name) for name in names}
        changed = {name: value for name, value in changed.items() if value != getattr(usual, name)}
    else:
        changed = dict(given)
    for name, why in _REFUSED.items():
        if name in changed:
            raise InputError(f"args: {name} cannot be set here: {why}; leave it out")
    settings = {name: value for name, value in changed.items() if name not in _IGNORED}
    max_steps = settings.pop("max_steps", None)
    recipe = {key: settings.pop(name) for name, key in _OF_RECIPE.items() if settings.get(name) is not None}
    if "scheduler" in recipe:
        name = getattr(recipe["scheduler"], "value", recipe["scheduler"])
        recipe["scheduler"] = _SCHEDULERS.get(name, name)
    warmup = settings.pop("warmup_steps", None)
    if warmup is not None:
        if warmup >= 1:
            raise InputError("args: warmup_steps cannot be set here: give warmup_ratio, a share of all steps")
        recipe.setdefault("warmup_ratio", float(warmup))
    for precision in ("bf16", "fp16"):
        if settings.pop(precision, False):
            recipe["precision"] = precision
    return Passed(recipe, settings, max_steps if max_steps and max_steps > 0 else None)
