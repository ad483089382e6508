"""The rows of paper.md that are run: what trains on what, in which variants, and the published figures.

Tables and no logic. What is published and what is chosen here stands in recipes/paper-*.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

BERT = "google-bert/bert-base-uncased"
LLAMA_7B, LLAMA_13B = "NousResearch/Llama-2-7b-hf", "NousResearch/Llama-2-13b-hf"
SEEDS = (42, 43, 44, 45, 46)


@dataclass(frozen=True)
class Family:
    """Experiments on the same pairs.

    Attributes:
        recipe: Of this toolkit.
        data: What trains, see `paper_data.write_data`.
        tasks: What `angle-train eval` measures.
        dev: Data set whose validation pairs choose the checkpoint; None is a tenth of the training pairs.
        backbone: Hub id.
        settings: Of the recipe.
        annotators: Models that write the pairs.
    """

    recipe: str
    data: str
    tasks: tuple[str, ...]
    dev: str | None = None
    backbone: str = BERT
    settings: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()


def _llm(*annotators: str) -> Family:
    return Family("paper-llm", "llm", ("stsb",), dev="stsb", annotators=annotators)


_STS = ("sts", "transfer")
_LONG = ("max_seq_length=2048", "chunk_size=4")
_QLORA = ("quantization=4bit",)
FAMILIES = {
    "nli": Family("paper-nli", "nli", (*_STS, "snli", "mnli", "flickr30k"), dev="stsb"),
    "nli-llama-7b": Family("paper-nli-llama", "nli", _STS, "stsb", LLAMA_7B),
    # 13B is in the AoE paper alone, which trains LLaMA with QLoRA.
    "nli-llama-13b": Family("paper-nli-llama", "nli", _STS, "stsb", LLAMA_13B, _QLORA),
    "stsb": Family("paper-stsb", "stsb", ("stsb",), dev="stsb"),
    "mrpc": Family("paper-pairs", "mrpc", ("mrpc",), dev="mrpc"),
    "qqp": Family("paper-pairs", "qqp", ("qqp",), settings=("epochs=3",)),
    "qnli": Family("paper-pairs", "qnli", ("qnli",), settings=("epochs=3",)),
    "gis": Family("paper-gis", "gis", ("gis",), dev="gis"),
    "gis-long": Family("paper-gis", "gis", ("gis",), "gis", "answerdotai/ModernBERT-base", _LONG),
    "llm-chatgpt": _llm("chatgpt"),
    "llm-llama": _llm("llama"),
    "llm-chatglm": _llm("chatglm"),
    "llm-ensemble": _llm("chatgpt", "llama", "chatglm"),
}

_AOE = ("cosine_weight=0", "angle_tau=0.05")  # AoE Eq. 5 has no cosine term, and one temperature
VARIANTS: dict[str, tuple[str, ...]] = {
    "angle": (),
    "aoe": _AOE,
    "aoe-only-angle": (*_AOE, "in_batch_weight=0"),
    "aoe-only-contrastive": ("cosine_weight=0", "angle_weight=0"),
    "aoe-avg": (*_AOE, "pooling=last-avg"),
    "aoe-max": (*_AOE, "pooling=last-max"),
    # The authors' command for BERT on NLI, see recipes/paper-nli.toml.
    "repository": (
        *_AOE,
        "in_batch_weight=15",
        "epochs=10",
        "batch_size=128",
        "gradient_accumulation=16",
        "warmup_ratio=0.016",
    ),
    "without-in-batch": ("in_batch_weight=0",),
    "without-angle": ("angle_weight=0",),
    "only-cosine": ("in_batch_weight=0", "angle_weight=0"),
    "only-in-batch": ("cosine_weight=0", "angle_weight=0"),
    "only-angle": ("cosine_weight=0", "in_batch_weight=0"),
    "last-avg": ("pooling=last-avg",),
    "last-max": ("pooling=last-max",),
    "without-isp": ("isp=none",),
    # CoSENT is the cosine term alone.
    "cosent": ("in_batch_weight=0", "angle_weight=0"),
}

_OF_FAMILY: dict[tuple[str, str], tuple[str, ...]] = {
    ("nli-llama-7b", "aoe"): _QLORA,
}


def settings_of(name: str, variant: str) -> tuple[str, ...]:
    """Return the settings of a row beyond its recipe; of equal keys the last one counts."""
    return (*FAMILIES[name].settings, *VARIANTS[variant], *_OF_FAMILY.get((name, variant), ()))


_STS7, _TRANSFER = "average of 7 STS", "average of 7 transfer tasks"
PUBLISHED: dict[tuple[str, str], dict[str, str]] = {
    ("nli", "angle"): {_STS7: "82.37", "flickr30k": "12.9"},
    ("nli", "cosent"): {_STS7: "75.69"},
    ("nli", "aoe"): {_STS7: "82.43", _TRANSFER: "86.96", "MNLI": "56.60", "SNLI": "63.88"},
    ("nli", "aoe-only-angle"): {_STS7: "82.36"},
    ("nli", "aoe-only-contrastive"): {_STS7: "81.53"},
    ("nli", "aoe-avg"): {_STS7: "81.69"},
    ("nli", "aoe-max"): {_STS7: "77.96"},
    ("nli-llama-7b", "angle"): {_STS7: "85.96", _TRANSFER: "91.38"},
    ("nli-llama-7b", "aoe"): {_STS7: "85.96", _TRANSFER: "91.01"},
    ("nli-llama-13b", "aoe"): {_STS7: "86.52", _TRANSFER: "91.45"},
    ("stsb", "angle"): {"STS-B": "86.26"},
    ("stsb", "aoe"): {"STS-B": "86.28"},
    ("stsb", "without-in-batch"): {"STS-B": "86.00"},
    ("stsb", "without-angle"): {"STS-B": "85.30"},
    ("stsb", "only-cosine"): {"STS-B": "85.28"},
    ("stsb", "only-in-batch"): {"STS-B": "72.48"},
    ("stsb", "only-angle"): {"STS-B": "85.15"},
    ("stsb", "last-avg"): {"STS-B": "84.15"},
    ("stsb", "last-max"): {"STS-B": "79.76"},
    ("stsb", "without-isp"): {"STS-B, less than with it by about": "0.18"},
    ("mrpc", "angle"): {"MRPC": "62.20"},
    ("qqp", "angle"): {"QQP": "76.54"},
    ("qnli", "angle"): {"QNLI": "72.19"},
    ("gis", "angle"): {"GIS": "70.55"},
    ("gis", "aoe"): {"GIS": "70.59"},
    ("gis-long", "angle"): {"GIS, RAN": "71.25"},
    ("llm-chatgpt", "angle"): {"STS-B": "81.52"},
    ("llm-llama", "angle"): {"STS-B": "79.29"},
    ("llm-chatglm", "angle"): {"STS-B": "81.11"},
    ("llm-ensemble", "angle"): {"STS-B": "82.01"},
}
"""Row -> what is measured -> Spearman or accuracy x 100 as printed in the papers."""
