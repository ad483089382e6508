"""The values that decide a run, section by section, and what each of them may be.

Frozen and self-validating. Loads nothing heavy; knows neither files nor how the values are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from angle_data.errors import InputError

AngleMode = Literal["symmetric", "published"]

CHECKPOINT = "checkpoint"
"""The value of `pooling` that keeps what the checkpoint has."""

Pooling = Literal["checkpoint", "cls", "last-avg", "last-max", "cls-last-avg", "first-last-avg", "last-token"]

AUTO = "auto"
"""The value of a setting that is chosen from the data."""

# Legal values by field name: the test and how the error message states it.
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("cosine_weight", "in_batch_weight", "angle_weight"), (lambda v: v >= 0, "be at least 0")
    ),
    **dict.fromkeys(("cosine_tau", "in_batch_tau", "angle_tau"), (lambda v: v > 0, "be above 0")),
    "matryoshka_dims": (
        lambda v: len(set(v)) == len(v) and all(d >= 2 for d in v),
        "be different numbers of at least 2",
    ),
    **dict.fromkeys(("positive_score", "negative_score"), (lambda v: 0 <= v <= 1, "be between 0 and 1")),
    **dict.fromkeys(("epochs", "learning_rate", "max_grad_norm"), (lambda v: v > 0, "be above 0")),
    **dict.fromkeys(
        ("evals_per_epoch", "patience", "gradient_accumulation", "chunk_size", "source_block"),
        (lambda v: v >= 1, "be at least 1"),
    ),
    "batch_size": (lambda v: v >= 2, "be at least 2, since the objective compares pairs"),
    "warmup_ratio": (lambda v: 0 <= v < 1, "be at least 0 and below 1"),
    "weight_decay": (lambda v: v >= 0, "be at least 0"),
    "max_seq_length": (lambda v: v in (None, AUTO) or v >= 2, "be at least 2"),
    "seed": (lambda v: 0 <= v < 2**32, "be between 0 and 4294967295"),
    "average_with_backbone": (lambda v: v == AUTO or 0 <= v <= 1, "be between 0 and 1"),
    "human_weight": (lambda v: v > 0, "be above 0"),
    "folds": (lambda v: v >= 2, "be at least 2"),
    "lora_rank": (lambda v: v >= 0, "be at least 0"),
    "lora_alpha": (lambda v: v > 0, "be above 0"),
    "lora_dropout": (lambda v: 0 <= v < 1, "be at least 0 and below 1"),
    "lora_targets": (
        lambda v: bool(v.replace(",", " ").split()),
        "be auto, all, or names with commas between",
    ),
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
        angle_mode: `symmetric` or `published`, see `terms.ANGLE_SIMILARITIES`.
        positive_score: Pairs with at least this score (0..1) are positives of the in-batch objective.
        negative_score: Pairs with a score above this one and below `positive_score` are neither positives
            nor negatives of the in-batch objective: antonyms that are on topic, say.
        transitive: Rank also the pairs of a batch whose label follows from others: what is known of a text
            holds for its paraphrases, see `batches.transitive_pairs`.
        isp: Which texts of a batch are no in-batch negatives of each other (identical-sentence-pair
            detection): `groups` those that equal texts and positive pairs connect, `equal` equal texts only,
            `none` detects nothing; a text that several pairs share is encoded and counted once in any case.
        matryoshka_dims: The objective is also computed on the first d dimensions, for each d here, and the
            sum is trained, so that embeddings can be cut to d (https://arxiv.org/abs/2205.13147).
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
    isp: Literal["groups", "equal", "none"] = "groups"
    matryoshka_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        raise_if(_problems_of(self, "objective"))
        object.__setattr__(self, "matryoshka_dims", tuple(self.matryoshka_dims))  # TOML has lists


@dataclass(frozen=True, slots=True)
class BackboneConfig:
    """What is made of the checkpoint before it is trained.

    Attributes:
        pooling: From token embeddings to one per text, see `pooling.POOLINGS`. `checkpoint` keeps what the
            checkpoint has; a plain transformer is averaged, a causal language model read at its last token.
        lora_rank: Rank of LoRA adapters, which then are all that is trained; 0 trains every weight.
        lora_alpha: The adapters' output is scaled by lora_alpha / lora_rank.
        lora_dropout: Share of the adapters' inputs that is dropped in training.
        lora_targets: `auto` (the attention projections that peft knows for the architecture), `all` (every
            linear layer), or names of layers with commas between.
        lora_save: `merged` saves an ordinary model, `adapter` the adapters alone; these load as long as the
            checkpoint can be reached where it was.
        quantization: `4bit` holds the frozen weights in 4-bit NormalFloat (QLoRA); needs LoRA and a GPU.
        gradient_checkpointing: Compute activations again in the backward pass, which saves memory for time.
        attention: Implementation of attention; `auto` is what transformers chooses.
        long_text: What becomes of texts of more tokens than `max_seq_length`, see `long_text`: `cut` keeps
            the start, `head_tail` the start and the end.
    """

    pooling: Pooling = "checkpoint"
    lora_rank: int = 0
    lora_alpha: float = 32.0
    lora_dropout: float = 0.05
    lora_targets: str = "auto"
    lora_save: Literal["merged", "adapter"] = "merged"
    quantization: Literal["none", "4bit"] = "none"
    gradient_checkpointing: bool = False
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    long_text: Literal["cut", "head_tail"] = "cut"

    def __post_init__(self) -> None:
        raise_if(_problems_of(self, "backbone"))


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
        max_seq_length: Tokens per text, longer texts are cut; none keeps the checkpoint's own, `auto` chooses
            the shortest that cuts hardly any training text, see `long_text.choose_length`.
        evals_per_epoch: Evaluations on the dev pairs, and checkpoints, per epoch.
        patience: Stop after this many evaluations without a new best one.
        seed: Seeds everything that is random. On a CPU the same seed, `chunking` and number of threads
            give the same bytes; on a GPU, which adds up in no fixed order, the last digits differ.
        precision: `auto` is bf16 on a GPU that has it and fp32 elsewhere. Weights stay fp32.
        source_block: Pairs of one source text that are drawn into a batch together; 1 draws every pair alone,
            more saves encoding the source again and compares its pairs with each other.
        freeze_embeddings: Leave the token embeddings as they are. With few texts most of the vocabulary is
            never seen, and moving only the words that are pulls them away from the rest.
        chunk_size: Texts per forward pass inside a batch, for memory and speed. Loss and gradient are the
            same but for which activations dropout draws: a run ends as one with another seed does.
        chunking: `fixed` puts `chunk_size` texts into each forward pass. `adaptive` puts in at most so many,
            fewer where that saves padding: the fastest on one CPU thread, too many small passes for several
            threads or a GPU. `auto` is `adaptive` for one process with one thread and `fixed` elsewhere;
            dropout draws differently, see `chunk_size`.
        gradient_cache: Hold the activations of one chunk at a time and encode every text twice, so that a
            large batch fits a small memory, see `gradient_cache`; the result stays the same.
        swap: Exchange the two texts of a pair at random, see `batches.PairCollator`.
        gradient_accumulation: Batches per optimiser step.
        max_grad_norm: Gradients are scaled down to this norm.
        prompt: Put around every text, in training and later by the saved model. `{text}` says where the text
            goes; without it the prompt stands before the text.
        average_with_backbone: a in [0, 1]; the final weights are (1-a)·tuned + a·backbone, which keeps
            more of what the backbone knew. `auto` takes what is best on the dev pairs, see `merge`.
        human_weight: The weight of a human-graded pair (`--human`) beside that of the other training pairs.
        folds: Without dev pairs, how many parts the human-graded pairs are cut into to choose the number of
            steps, see `folds`.
        skip_near_copies: Leave out training pairs scored at most `negative_score` whose texts are nearly the
            same words, see `leaks.without_near_copies`.
    """

    epochs: float = 3.0
    batch_size: int = 64
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    scheduler: Literal["linear", "cosine", "constant"] = "linear"
    max_seq_length: int | Literal["auto"] | None = None
    evals_per_epoch: int = 4
    patience: int = 8
    seed: int = 42
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    source_block: int = 1
    freeze_embeddings: bool = False
    chunk_size: int = 32
    chunking: Literal["auto", "fixed", "adaptive"] = "auto"
    gradient_cache: bool = False
    swap: bool = True
    gradient_accumulation: int = 1
    max_grad_norm: float = 1.0
    prompt: str = ""
    average_with_backbone: float | Literal["auto"] = 0.0
    human_weight: float = 1.0
    folds: int = 5
    skip_near_copies: bool = False

    def __post_init__(self) -> None:
        raise_if(_problems_of(self, "training"))


SECTIONS: dict[str, type[Any]] = {
    "objective": ObjectiveConfig,
    "backbone": BackboneConfig,
    "training": TrainingConfig,
}
"""The sections of a recipe, in the order in which it is written."""


def raise_if(problems: Sequence[str]) -> None:
    """Raise an InputError that names all problems in one line, if there are any."""
    if problems:
        raise InputError("; ".join(problems))


def _problems_of(config: ObjectiveConfig | BackboneConfig | TrainingConfig, section: str) -> list[str]:
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
    if section is BackboneConfig and not found:
        found += _problems_of_backbone({f.name: f.default for f in fields(section)} | dict(values), name)
    return found


def _problems_of_backbone(whole: Mapping[str, Any], name: str) -> list[str]:
    """Return what does not go together in a whole section."""
    found = []
    if whole["quantization"] != "none" and not whole["lora_rank"]:
        found.append(f"[{name}] quantization {whole['quantization']} trains adapters only; set lora_rank too")
    if whole["attention"] == "flash_attention_2" and not whole["lora_rank"]:
        # Without adapters all weights are fp32, and so is what is measured.
        found.append(
            f"[{name}] flash_attention_2 computes in half precision only; set lora_rank too, or sdpa"
        )
    if whole["lora_save"] == "adapter" and not whole["lora_rank"]:
        found.append(f"[{name}] lora_save adapter needs adapters; set lora_rank too")
    if whole["lora_save"] == "adapter" and whole["pooling"] == "first-last-avg":
        # The setting that makes the checkpoint give out all its layers is lost with its config.json.
        found.append(f"[{name}] lora_save adapter cannot keep pooling first-last-avg; set lora_save = merged")
    return found


def _type_problem(value: object, hint: Any) -> str:
    """Return what `value` should have been, or nothing if its type is right."""
    if get_origin(hint) is Literal:
        names = ", ".join(get_args(hint))
        return "" if value in get_args(hint) else f"one of {names}" if "," in names else names
    if hint is type(None):
        return "" if value is None else "left out"
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return "" if number else "a number"
    if hint is bool:
        return "" if isinstance(value, bool) else "true or false"
    if hint is str:
        return "" if isinstance(value, str) else "a text"
    if get_origin(hint) is tuple:
        listed = isinstance(value, list | tuple) and not any(
            _type_problem(v, get_args(hint)[0]) for v in value
        )
        return "" if listed else "a list of whole numbers"
    if get_origin(hint) in (Union, UnionType):
        problems = [_type_problem(value, part) for part in get_args(hint)]
        return "" if "" in problems else " or ".join(problem for problem in problems if problem)
    return "" if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
