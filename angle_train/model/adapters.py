"""LoRA adapters on the transformer of a model: added, scaled, merged, and read back; and its 4-bit weights.

Low-rank adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685) are all that trains; QLoRA (Dettmers
et al. 2023, https://arxiv.org/abs/2305.14314) also holds the frozen weights in 4 bits. Both are peft's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError, MissingExtraError
from angle_train.recipe import BackboneConfig

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

_ADAPTER = "default"  # peft's own name for the only adapter
_SAVED_PREFIX = "base_model.model."
_ALPHA = 32  # the adapters' output is scaled by this, divided by their rank
_NAMED_TARGETS = {"auto": None, "all": "all-linear"}


def add_adapters(model: SentenceTransformer, config: BackboneConfig, seed: int = 0) -> None:
    """Put fresh LoRA adapters into `model`, which change nothing yet, and freeze everything else.

    `seed` decides their random half.

    Raises:
        InputError: The model has no layers of those names.
    """
    import torch
    from peft import LoraConfig
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as KNOWN

    transformer: Any = model.transformers_model
    targets: Any = _NAMED_TARGETS.get(config.lora_targets, config.lora_targets.replace(",", " ").split())
    if targets is None and transformer.config.model_type not in KNOWN:
        targets = _NAMED_TARGETS["all"]
    # Encoders' own pooler is computed but not used, so it would get no gradient.
    pooler = any(name.startswith("pooler.") for name, _ in transformer.named_modules())
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    model.requires_grad_(False)
    lora = LoraConfig(
        r=config.lora_rank,
        lora_alpha=_ALPHA,
        lora_dropout=config.lora_dropout,
        target_modules=targets,
        exclude_modules=r"pooler\..*" if targets == "all-linear" and pooler else None,
        task_type="FEATURE_EXTRACTION",
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformer.add_adapter(lora)
    except ValueError as error:
        for weights in trained:
            weights.requires_grad_(True)
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"lora_targets {config.lora_targets!r} does not match the model: {reason}") from None


def has_adapters(model: SentenceTransformer) -> bool:
    """Return whether the model carries adapters that are not merged."""
    return next(_layers(model), None) is not None


def scale_adapters(model: SentenceTransformer, factor: float) -> None:
    """Multiply what the adapters add by `factor`.

    Averaging with the backbone, (1 - a)·tuned + a·backbone, is scaling by 1 - a: exactly, since the tuned
    weights are the backbone's plus what the adapters add.
    """
    import torch

    with torch.no_grad():
        for _, layer in _layers(model):
            for part in layer.lora_B.values():
                part.weight.mul_(factor)
            for weights in layer.lora_embedding_B.values():
                weights.mul_(factor)


def merge_adapters(model: SentenceTransformer) -> None:
    """Add the adapters to the weights and take them out: an ordinary model that computes the same."""
    transformer = model.transformers_model
    if transformer is None or not has_adapters(model):
        return
    for name, layer in list(_layers(model)):
        layer.merge(safe_merge=True)
        parent, _, leaf = name.rpartition(".")
        setattr(transformer.get_submodule(parent), leaf, layer.get_base_layer())
    # Undo what transformers notes about adapters, so that it saves the whole model again.
    transformer._hf_peft_config_loaded = False
    del transformer.peft_config
    # How saved adapters were renamed when they were loaded: whole weights would be saved under such names,
    # and not be found again. Without it transformers takes what the architecture itself asks for.
    transformer.__dict__.pop("_weight_conversions", None)


def copy_adapters(model: SentenceTransformer, other: SentenceTransformer) -> None:
    """Give the adapters of `other` the values of those of `model`, which are of the same shapes."""
    from peft import get_peft_model_state_dict

    adapted: Any = model.transformers_model
    _put(other, get_peft_model_state_dict(adapted, adapter_name=_ADAPTER))


def load_adapters(model: SentenceTransformer, directory: Path) -> None:
    """Give the adapters of `model` the values saved in `directory`, a checkpoint of the same run."""
    from peft.utils import load_peft_weights

    saved = load_peft_weights(str(directory), device="cpu")
    _put(model, {name.removeprefix(_SAVED_PREFIX): weights for name, weights in saved.items()})


def training_weights(model: SentenceTransformer, precision: str) -> SentenceTransformer:
    """Return `model` with its weights in fp32, as training needs them.

    Frozen weights under adapters keep their type where the run computes in half precision, since only what
    the optimiser changes needs the precision. On the processor those in fp16 do not: its layer norm takes
    none beside bf16 ("mixed dtype").
    """
    import torch

    if precision == "fp32" or not has_adapters(model):
        return model.float()
    on_processor = model.device.type == "cpu"
    for parameter in model.parameters():
        if parameter.requires_grad or (on_processor and parameter.dtype == torch.float16):
            parameter.data = parameter.data.to(torch.float32)
    return model


def four_bit_settings(asked: str | torch.device | None) -> dict[str, Any]:
    """Return the options with which transformers loads 4-bit weights, as QLoRA does; it computes in bf16.

    `asked` is the device, None for the best.

    Not on a CPU: with AVX-512 BF16 bitsandbytes packs the weights at the first evaluation, and packed ones
    pass no gradient on (0.50.2).

    Raises:
        MissingExtraError: bitsandbytes is not installed.
        InputError: The device is no GPU.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingExtraError("quantization 4bit", "qlora")
    import torch
    from sentence_transformers.util import get_device_name
    from transformers import BitsAndBytesConfig

    device = torch.device(asked or get_device_name())
    if device.type != "cuda":
        raise InputError(f"quantization 4bit needs a GPU, this run is on {device.type}; set it to none")

    quantization = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    return {"quantization_config": quantization, "device_map": {"": device}}


def _layers(model: SentenceTransformer) -> Iterator[tuple[str, Any]]:
    """Yield name and layer of every layer of the transformer with an adapter."""
    transformer = model.transformers_model
    if transformer is None or not getattr(transformer, "_hf_peft_config_loaded", False):
        return
    from peft.tuners.lora import LoraLayer

    for name, module in transformer.named_modules():
        if isinstance(module, LoraLayer):
            yield name, module


def _put(model: SentenceTransformer, weights: dict[str, Any]) -> None:
    from peft import set_peft_model_state_dict

    done: Any = set_peft_model_state_dict(model.transformers_model, weights, adapter_name=_ADAPTER)
    missing = [name for name in done.missing_keys if "lora_" in name]
    if missing or done.unexpected_keys:
        raise ValueError(f"adapters of another shape: {[*missing, *done.unexpected_keys][:3]}")
