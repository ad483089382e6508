"""The keywords of `fit` and `train`, typed for editors and type checkers, and the checks of their names.

A test compares them with the recipe's own fields and with the options of `fit`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from angle_data.calling.notebook import check_names
from angle_data.errors import InputError
from angle_train.recipe import MERGE_BACK, AngleMode, LabelKind, Pooling, Recipe

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainingArguments

PathLike: TypeAlias = str | os.PathLike[str]


class RecipeKeywords(TypedDict, total=False):
    """Values of the recipe by their names, see `recipe`; what is not given is the recipe's.

    Without `loss`, which for `train` may be an object too, and without what is for `fit` alone.
    """

    cosine_weight: float | None
    in_batch_weight: float | None
    angle_weight: float | None
    cosine_tau: float | None
    in_batch_tau: float | None
    angle_tau: float | None
    angle_mode: AngleMode | None
    positive_score: float | None
    negative_score: float | None
    transitive: bool | None
    isp: Literal["groups", "equal", "none"] | None
    matryoshka_dims: Sequence[int] | None
    pooling: Pooling | None
    frozen_layers: int | Literal["embeddings"] | None
    lora_rank: int | None
    lora_dropout: float | None
    lora_targets: str | None
    quantization: Literal["none", "4bit"] | None
    epochs: float | None
    batch_size: int | None
    learning_rate: float | None
    max_seq_length: int | Literal["auto"] | None
    evals_per_epoch: int | None
    patience: int | None
    seed: int | None
    precision: Literal["auto", "fp32", "bf16", "fp16"] | None
    source_block: int | None
    chunk_size: int | None
    gradient_cache: bool | None
    swap: bool | None
    prompt: str | None
    roles: bool | None
    query_prompt: str | None
    document_prompt: str | None


class FitKeywords(RecipeKeywords, total=False):
    """What `fit` takes beside its named arguments: the command's other options, and values of the recipe."""

    keep_weight: float | None
    average_with_backbone: float | None
    distil_epochs: float | None
    keep_general: bool | None
    keep_texts: int | None
    guard_loss: float | None
    loss: LabelKind | None
    args: TrainingArguments | Mapping[str, Any] | None
    human: Any
    keep: Any
    guard: Any
    judged: Any
    teacher: Any
    teacher_pairs: Any
    dev_search: Any
    test_search: Any
    scale: str | None
    threshold: float | None
    drop_leaks: bool
    overwrite: bool
    device: str | None
    report_to: str | Sequence[str] | None
    require_better: bool
    merge_back: float | None


class TrainKeywords(RecipeKeywords, total=False):
    """What `train` takes beside its named arguments: these, and values of the recipe."""

    recipe: PathLike | Recipe | None
    args: TrainingArguments | Mapping[str, Any] | None
    callbacks: Sequence[TrainerCallback] | TrainerCallback
    scale: str | None
    device: str | None
    overwrite: bool


def rename_merge_back(options: dict[str, Any]) -> None:
    """Give the option `merge_back` of `fit` the recipe's name for it; an InputError where both are given."""
    if "merge_back" not in options:
        return
    share = options.pop("merge_back")
    if share is not None and options.get(MERGE_BACK) is not None:
        raise InputError(f"{MERGE_BACK} is given twice: leave out merge_back or {MERGE_BACK}")
    if share is not None:
        options[MERGE_BACK] = share


def check_train_keywords(given: Mapping[str, Any]) -> None:
    """Raise a `TypeError` for what `train` does not take, an InputError for a key of earlier versions."""
    from angle_train.dropped import refuse_dropped

    refuse_dropped(given)
    known = TrainKeywords.__annotations__
    for name in given:
        if name not in known and name in FitKeywords.__annotations__:
            raise TypeError(
                f"train() has no option {name!r}, which is for fit: train keeps no other text, measures no "
                "guard, and returns the weights that the training ends with"
            )
    check_names("train", given, known)
