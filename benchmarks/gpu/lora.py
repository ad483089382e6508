"""LoRA and QLoRA on a model of LLaMA-7B shape with the papers' prompt: memory, speed, saved = measured.

Few layers by default, for the time; `--llama-layers 32` is the whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guard import attempt
from models import PROMPT, llama
from setting import GIB, Setting, write_pairs
from training import COSINE, fit_once, rates, saved_is_measured

_RECIPE: dict[str, Any] = {
    **COSINE,
    "precision": "bf16",
    "pooling": "last-token",
    "prompt": PROMPT,
    "lora_rank": 32,
    "lora_targets": "q_proj,v_proj",
    "max_seq_length": 64,
}


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield memory and speed of both, with what each saved against what it measured."""
    backbone = llama(setting)
    size = sum(file.stat().st_size for file in backbone.glob("*.safetensors"))
    yield {"what": "model", "said": f"{setting.llama_layers} layers, {size / GIB:.2f} GiB in bf16"}
    yield attempt("LoRA", lambda: _train(setting, backbone, {}))
    yield attempt(
        "LoRA, activations computed again",
        lambda: _train(setting, backbone, {"args": {"gradient_checkpointing": True}}),
    )
    if not setting.on_gpu:
        yield {"what": "QLoRA", "said": "needs a GPU"}
    elif find_spec("bitsandbytes") is None:
        yield {"what": "QLoRA", "said": "bitsandbytes is not installed"}
    else:
        yield attempt("QLoRA", lambda: _train(setting, backbone, {"quantization": "4bit"}))


def _train(setting: Setting, backbone: Path, values: dict[str, Any]) -> dict[str, Any]:
    size = setting.pick(64, 4)
    pairs = write_pairs(setting, size * setting.pick(24, 12))
    test = write_pairs(setting, setting.pick(128, 36), seed=2)
    asked = {
        **_RECIPE,
        "learning_rate": 1e-4,
        "batch_size": size,
        "test": str(test),
        **values,
    }
    fitted, clock = fit_once(setting, "lora", backbone, pairs, asked)
    found = rates(clock, backbone, pairs, size, frozen=True)
    found |= saved_is_measured(setting, fitted, test)
    shutil.rmtree(fitted.path)
    return found
