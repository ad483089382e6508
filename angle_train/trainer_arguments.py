"""The table `[arguments]` of a recipe: settings of the library's trainer, by the library's names.

They are those of sentence-transformers' `SentenceTransformerTrainingArguments`, which `args` of `fit` and
`train` takes too. What a run needs for itself is refused by name. Loads the library only to look up a name
that is not in `USUAL_ARGUMENTS`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from angle_train.dropped import former_key_line

USUAL_ARGUMENTS: Mapping[str, tuple[Any, Any]] = {
    "weight_decay": (Annotated[float, Field(ge=0)], 0.01),
    "max_grad_norm": (Annotated[float, Field(gt=0)], 1.0),
    "lr_scheduler_type": (str, "linear"),
    "warmup_ratio": (Annotated[float, Field(ge=0, lt=1)], 0.1),
    "gradient_accumulation_steps": (Annotated[int, Field(ge=1)], 1),
    "gradient_checkpointing": (bool, False),
}
"""Arguments that have a value in every run -> their kind, and the value where nothing is said."""

RECIPE_KEYS: Mapping[str, str] = {
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "learning_rate": "learning_rate",
    "seed": "seed",
    "bf16": "precision",
    "fp16": "precision",
}
"""What recipes call by names of their own: `[training]` has them."""

_BATCHES = "which pairs are in a batch follows from the seed, so that a run can be resumed"
_CHECKPOINTS = "evals_per_epoch says when dev pairs are measured and checkpoints are written, and out where"
_PUSH = "push_to_hub of fit pushes; push the model that train returns: model.push_to_hub(…)"
_WHOLE = "each process holds the whole model; for others use AngleLoss in a trainer of your own"
_ROUTES = "an asymmetric model is trained with AngleLoss in a trainer of your own"
REFUSED: Mapping[str, str] = {
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
    "neftune_noise_alpha": "the trainer adds that noise to the input embeddings of a language model alone",
    "prompts": "prompt is put around every text, and saved with the model",
    "use_cpu": "the model trains where it lies: give device, or move it there",
}
"""What would break what a run rests on -> why, and what to do instead."""

IGNORED = ("output_dir", "do_train", "do_eval", "do_predict", "local_rank", "label_names")
"""What nothing follows from; `TrainingArguments` may have them, a recipe may not."""

_OF_PYTHON = {
    "max_steps": "write epochs under [training]; in Python, args of train takes max_steps",
    "warmup_steps": "give warmup_ratio, a share of all steps",
    "report_to": "give report_to to fit (--report-to); in Python, args of train takes it",
    **dict.fromkeys(IGNORED, "nothing follows from it"),
}


def completed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a run: those given, in a fixed order, and the usual value of each other one.

    Raises:
        ValueError: Arguments are refused, unknown, or of a wrong kind: all in one line.
    """
    problems = [problem for name, value in given.items() if (problem := _problem(name, value))]
    if problems:
        raise ValueError("; ".join(problems))
    usual = {name: value for name, (_, value) in USUAL_ARGUMENTS.items()}
    said = {name: _adapter(name).validate_python(given[name]) for name in sorted(given)}
    return usual | said


def why_refused(name: str) -> str:
    """Return why a recipe cannot have an argument, and what to do; nothing if it can, or is unknown."""
    if name in RECIPE_KEYS:
        return f"write {RECIPE_KEYS[name]} under [training]"
    return REFUSED.get(name) or _OF_PYTHON.get(name, "")


def _problem(name: str, value: Any) -> str:
    """Return what is wrong with an argument, or nothing."""
    if why := why_refused(name):
        return f"{name} cannot be set here: {why}"
    if name == "lr_scheduler_type" and value == "reduce_lr_on_plateau":
        return (
            f"{name}: {value} cannot be set here: dev pairs choose the checkpoint and set no rate; try cosine"
        )
    if not _has_toml(value):
        return f"{name}: no file can hold what is in it, got {value!r}; leave out None and what is no number"
    kinds = _kinds_in_library() if name not in USUAL_ARGUMENTS else {}
    if name not in USUAL_ARGUMENTS and kinds and name not in kinds:
        if (former := former_key_line(name)) is not None:
            return former
        near = difflib.get_close_matches(name, (kind for kind in kinds if kind not in REFUSED), n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else "sentence-transformers' trainer has none of that name"
        )
        return f"unknown argument {name!r}, {hint}"
    try:
        _adapter(name).validate_python(value)
    except ValidationError as error:
        said = dict.fromkeys(detail["msg"] for detail in error.errors(include_url=False))
        return f"{name}: {' or '.join(said).replace(' or Input should be', ' or')}, got {value!r}"
    return ""


def _has_toml(value: Any) -> bool:
    """Return whether a value has no None, NaN or infinity inside: a recipe's file could not be read again."""
    if isinstance(value, Mapping):
        return all(map(_has_toml, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_has_toml, value))
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def tracker_names(given: str | Sequence[str] | None) -> list[str]:
    """Return the names of programs that follow a run, given as a list or with commas between."""
    names = given.split(",") if isinstance(given, str) else given or ()
    return [name.strip() for name in names if name.strip()]


def is_argument(name: str) -> bool:
    """Return whether the library's trainer has an argument of that name, where that can be looked up."""
    return name in USUAL_ARGUMENTS or name in _kinds_in_library()


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    """Return what checks the value of an argument; anything passes where nothing is known of it."""
    kind = USUAL_ARGUMENTS[name][0] if name in USUAL_ARGUMENTS else _kinds_in_library().get(name, Any)
    return TypeAdapter(
        kind, config=ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    )


@cache
def _kinds_in_library() -> dict[str, Any]:
    """Return the kind of value of each of the library's arguments; nothing where it is not installed.

    `fit` and `train` do not run there, so that nothing unchecked trains.
    """
    try:
        from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    except ImportError:
        return {}
    kinds = get_type_hints(Arguments)
    return {field.name: kinds[field.name] for field in fields(Arguments) if field.init}
