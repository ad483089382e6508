"""What a recipe makes of a backbone before it is trained, and of the trained model before it is saved.

Puts together what the modules of poolings, prompts, adapters and long texts do; trains nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from angle_data.errors import InputError
from angle_train.model.adapters import add_adapters, has_adapters, merge_adapters, merge_into
from angle_train.model.load import is_causal, load_backbone, say_once
from angle_train.model.long_text import LongText
from angle_train.model.pooling import CHECKPOINT, FIRST_TOKEN, freeze_fixed_weights, set_pooling
from angle_train.model.prompt import set_prompt
from angle_train.settings import BackboneConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load_for_training(
    id_or_path: str,
    config: BackboneConfig,
    prompt: str = "",
    max_seq_length: int | None = None,
    device: str | None = None,
    seed: int = 0,
) -> SentenceTransformer:
    """Load a backbone and make of it what is to be trained: prompt, pooling, adapters, long texts.

    Args:
        id_or_path: A local directory, or an id on the Hugging Face hub.
        config: What to make of it.
        prompt: Put around every text, see `prompting.set_prompt`.
        max_seq_length: Tokens per text; default the checkpoint's own.
        device: `cpu`, `cuda` …; default the best there is.
        seed: Decides what is random in new adapters.

    Raises:
        InputError: As `load_backbone`, or the model cannot take something of `config`.
        MissingExtraError: Something that is needed is not installed.
    """
    model = load_backbone(
        id_or_path,
        max_seq_length,
        device,
        attention=config.attention,
        quantization=config.quantization,
        long_text=LongText.of(config),
    )
    _prepare(model, config, seed)
    if config.pooling != CHECKPOINT:
        say_once(f"{id_or_path}: what is trained on it is pooled by {config.pooling}, as the recipe says")
    set_prompt(model, prompt)
    return model


def starts_as_backbone(config: BackboneConfig, prompt: str = "") -> bool:
    """Return whether a model loaded for training computes what the untouched backbone does."""
    asks = (config.pooling, config.quantization, config.long_text, prompt)
    return asks == (CHECKPOINT, "none", "cut", "")


def finish_training(
    model: SentenceTransformer,
    config: BackboneConfig,
    load_plain: Callable[[BackboneConfig], SentenceTransformer],
) -> SentenceTransformer:
    """Return a trained model as it is to be saved: with its adapters merged, unless they are saved alone.

    Args:
        model: What was trained.
        config: Of the run.
        load_plain: Loads the model that was trained for another config: one without adapters and
            quantization, whose weights a quantized model's adapters go into.
    """
    if not has_adapters(model) or config.lora_save == "adapter":
        return model
    if config.quantization == "none":
        merge_adapters(model)
        return model
    plain = load_plain(replace(config, quantization="none", lora_rank=0))
    merge_into(plain, model)
    plain.model_card_data = model.model_card_data
    return plain


def _prepare(model: SentenceTransformer, config: BackboneConfig, seed: int) -> None:
    if has_adapters(model):  # of an earlier run
        if config.lora_save == "adapter":
            raise InputError("this backbone is itself saved as adapters; set lora_save = merged")
        merge_adapters(model)
        # Their loading froze the weights, which are to be trained now, unless new adapters are: then they may
        # be 4-bit integers, which have no gradient.
        if not config.lora_rank:
            model.requires_grad_(True)
            freeze_fixed_weights(model)
    if config.pooling != CHECKPOINT:
        _pool(model, config.pooling)
    if config.lora_rank:
        add_adapters(model, config, seed)
    transformer = model.transformers_model
    if config.gradient_checkpointing:
        if transformer is None:
            raise InputError("gradient_checkpointing is for transformer models; set it to false")
        if not transformer.supports_gradient_checkpointing:
            raise InputError("this backbone cannot do gradient_checkpointing; set it to false")
        transformer.gradient_checkpointing_enable({"use_reentrant": False})


def _pool(model: SentenceTransformer, pooling: str) -> None:
    if pooling in FIRST_TOKEN and is_causal(model):
        raise InputError(
            f"pooling {pooling} reads the first token, which in a causal language model knows nothing of the "
            "text after it; set pooling = last-token"
        )
    try:
        set_pooling(model, pooling)
    except ValueError:
        raise InputError(
            f"pooling {pooling} needs a transformer with a pooling after it, which this backbone is not; set "
            f"pooling = {CHECKPOINT}"
        ) from None
