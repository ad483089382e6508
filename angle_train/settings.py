"""The values that decide a run, section by section, and what each of them may be.

Frozen and self-validating. Loads nothing heavy; knows neither files nor how the values are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from angle_data.errors import InputError

__all__ = ["SECTIONS", "AngleMode", "ObjectiveConfig", "TrainingConfig", "problems_of_values", "raise_if"]

AngleMode = Literal["symmetric", "published"]

# Legal values by field name: the test and how the error message states it.
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("cosine_weight", "in_batch_weight", "angle_weight"), (lambda v: v >= 0, "be at least 0")
    ),
    **dict.fromkeys(("cosine_tau", "in_batch_tau", "angle_tau"), (lambda v: v > 0, "be above 0")),
    **dict.fromkeys(("positive_score", "negative_score"), (lambda v: 0 <= v <= 1, "be between 0 and 1")),
    **dict.fromkeys(("epochs", "learning_rate", "max_grad_norm"), (lambda v: v > 0, "be above 0")),
    **dict.fromkeys(
        ("evals_per_epoch", "patience", "gradient_accumulation", "chunk_size", "source_block"),
        (lambda v: v >= 1, "be at least 1"),
    ),
    "batch_size": (lambda v: v >= 2, "be at least 2, since the objective compares pairs"),
    "warmup_ratio": (lambda v: 0 <= v < 1, "be at least 0 and below 1"),
    "weight_decay": (lambda v: v >= 0, "be at least 0"),
    "max_seq_length": (lambda v: v is None or v >= 2, "be at least 2"),
    "seed": (lambda v: 0 <= v < 2**32, "be between 0 and 4294967295"),
    "average_with_backbone": (lambda v: 0 <= v <= 1, "be between 0 and 1"),
}


@dataclass(frozen=True, slots=True)
class ObjectiveConfig:
    """The combined objective w1·cosine + w2·in-batch + w3·angle (AnglE Eq. 8), in the papers' units.

    Attributes:
        cosine_weight: w1; 0 switches the term off.
        in_batch_weight: w2.
        angle_weight: w3.
        cosine_tau: Temperature of the cosine objective; divides.
        in_batch_tau: Temperature of the in-batch objective.
        angle_tau: Temperature of the angle objective.
        angle_mode: `symmetric` or `published`.
        positive_score: Pairs with at least this score (0..1) are positives of the in-batch objective.
        negative_score: Pairs with a score above this one and below `positive_score` are neither positives
            nor negatives of the in-batch objective: antonyms that are on topic, say.
        transitive: Rank also the pairs of a batch whose label follows from others: what is known of a text
            holds for its paraphrases, see `batching.transitive_pairs`.
    """

    cosine_weight: float = 1.0
    in_batch_weight: float = 1.0
    angle_weight: float = 1.0
    cosine_tau: float = 0.05
    in_batch_tau: float = 0.05
    angle_tau: float = 1.0
    angle_mode: AngleMode = "symmetric"
    positive_score: float = 0.8
    negative_score: float = 0.0
    transitive: bool = False

    def __post_init__(self) -> None:
        raise_if(_problems_of(self, "objective"))


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How one run trains; the defaults suit a few thousand pairs and a pre-trained sentence encoder.

    Attributes:
        epochs: Passes over the training pairs; fractions are allowed.
        batch_size: Pairs per forward pass.
        learning_rate: Peak learning rate of AdamW.
        warmup_ratio: Share of all steps over which the learning rate rises.
        weight_decay: AdamW's.
        scheduler: What the learning rate does after warming up.
        max_seq_length: Tokens per text, longer texts are cut; none keeps the checkpoint's own.
        evals_per_epoch: Evaluations on the dev pairs, and checkpoints, per epoch.
        patience: Stop after this many evaluations without a new best one.
        seed: Seeds everything that is random.
        precision: `auto` is bf16 on a GPU that has it and fp32 elsewhere. Weights stay fp32.
        source_block: Pairs of one source text that are drawn into a batch together; 1 draws every pair alone,
            more saves encoding the source again and compares its pairs with each other.
        freeze_embeddings: Leave the token embeddings as they are. With few texts most of the vocabulary is
            never seen, and moving only the words that are pulls them away from the rest.
        chunk_size: Texts per forward pass inside a batch; changes memory and speed, not the result.
        swap: Exchange the two texts of a pair at random, see `batching.PairCollator`.
        gradient_accumulation: Batches per optimiser step.
        max_grad_norm: Gradients are scaled down to this norm.
        prompt: Put before every text, in training and later by the saved model.
        average_with_backbone: a in [0, 1]; the final weights are (1-a)·tuned + a·backbone, which keeps
            more of what the backbone knew.
    """

    epochs: float = 3.0
    batch_size: int = 64
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    scheduler: Literal["linear", "cosine", "constant"] = "linear"
    max_seq_length: int | None = None
    evals_per_epoch: int = 4
    patience: int = 8
    seed: int = 42
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    source_block: int = 1
    freeze_embeddings: bool = False
    chunk_size: int = 32
    swap: bool = True
    gradient_accumulation: int = 1
    max_grad_norm: float = 1.0
    prompt: str = ""
    average_with_backbone: float = 0.0

    def __post_init__(self) -> None:
        raise_if(_problems_of(self, "training"))


SECTIONS: dict[str, type[Any]] = {"objective": ObjectiveConfig, "training": TrainingConfig}
"""The sections of a recipe, in the order in which it is written."""


def raise_if(problems: Sequence[str]) -> None:
    """Raise an InputError that names all problems in one line, if there are any."""
    if problems:
        raise InputError("; ".join(problems))


def _problems_of(config: ObjectiveConfig | TrainingConfig, section: str) -> list[str]:
    return problems_of_values(
        type(config), {f.name: getattr(config, f.name) for f in fields(config)}, section
    )


def problems_of_values(section: type[Any], values: Mapping[str, Any], name: str) -> list[str]:
    """Return what is wrong with the given values of a section; unknown names are skipped."""
    hints = get_type_hints(section)
    found = []
    for key in [f.name for f in fields(section) if f.name in values]:
        value = values[key]
        wrong_type = _type_problem(value, hints[key])
        if wrong_type:
            found.append(f"[{name}] {key} must be {wrong_type}, got {value!r}")
        elif key in _RANGES and not _RANGES[key][0](value):
            found.append(f"[{name}] {key} must {_RANGES[key][1]}, got {value!r}")
    if section is ObjectiveConfig and not found:
        whole: dict[str, Any] = {f.name: f.default for f in fields(section)} | dict(values)
        if not (whole["cosine_weight"] or whole["in_batch_weight"] or whole["angle_weight"]):
            found.append(f"[{name}] at least one of the three weights must be above 0")
        if whole["negative_score"] >= whole["positive_score"]:
            found.append(f"[{name}] negative_score must be below positive_score")
    return found


def _type_problem(value: object, hint: Any) -> str:
    """Return what `value` should have been, or nothing if its type is right."""
    if get_origin(hint) is Literal:
        return "" if value in get_args(hint) else f"one of {', '.join(get_args(hint))}"
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return "" if number else "a number"
    if hint is bool:
        return "" if isinstance(value, bool) else "true or false"
    if hint is str:
        return "" if isinstance(value, str) else "a text"
    if value is None and hint == (int | None):
        return ""
    return "" if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
