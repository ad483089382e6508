"""What attention without padding would bring: what is installed, trainings with it, and attention alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guard import attempt
from models import modernbert
from setting import Setting, seconds_of, write_pairs
from training import COSINE, SHAPES, fit_once, rates

_HEADS, _WIDTH = 12, 64
_LORA = {"lora_rank": 16, "lora_targets": "all"}


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield trainings with each implementation of attention, and attention alone."""
    installed = find_spec("flash_attn") is not None or find_spec("flash_attn_interface") is not None
    yield {"what": "flash attention", "said": "installed" if installed else "not installed"}
    for name in ("sdpa", "eager"):
        yield attempt(f"ModernBERT, {name}", lambda n=name: _train(setting, n, {}))
    if installed:  # in `fit` for adapters only: it computes in half precision
        for name in ("sdpa", "flash_attention_2"):
            yield attempt(f"ModernBERT with LoRA, {name}", lambda n=name: _train(setting, n, _LORA))
    yield from _alone(setting)


def _train(setting: Setting, attention: str, values: dict[str, Any]) -> dict[str, Any]:
    size = setting.pick(64, 4)
    pairs = write_pairs(setting, size * setting.pick(30, 3), SHAPES["long"])
    asked = {**COSINE, "precision": "bf16", "batch_size": size, "chunk_size": setting.pick(64, 4), **values}
    backbone = _with_attention(modernbert(setting), attention)
    _, clock = fit_once(setting, "attention", backbone, pairs, asked)
    return rates(clock, modernbert(setting), pairs, size, frozen="lora_rank" in values)


def _with_attention(model: Path, name: str) -> Path:
    """Return a copy of a model, beside it, whose config.json names this implementation of attention."""
    copy = model.with_name(f"{model.name}-{name}")
    shutil.copytree(model, copy, dirs_exist_ok=True)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps(config | {"attn_implementation": name}), encoding="utf-8")
    return copy


def _alone(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield forward and backward passes of one layer's attention over a batch, in bf16.

    Padded with a mask, padded in chunks of similar length as `fit` has them, and without padding.
    """
    import numpy as np

    count, chunk = setting.pick((256, 32), (8, 4))
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(SHAPES["long"], 0.6, size=count).round().clip(2, 512).astype(int)
    in_order = sorted(lengths.tolist())
    chunks = [in_order[start : start + chunk] for start in range(0, count, chunk)]
    for what, parts in {
        "in one batch": [lengths.tolist()],
        f"in chunks of {chunk}, by length": chunks,
    }.items():
        shares = {"padding": 1 - lengths.sum() / sum(max(part) * len(part) for part in parts)}
        yield attempt(f"attention alone, padded {what}", lambda p=parts, s=shares: s | _padded(setting, p))
    if not setting.on_gpu:
        yield {"what": "attention alone, without padding", "said": "needs a GPU"}
    else:
        yield attempt("attention alone, without padding", lambda: _flat(setting, lengths.tolist()))


def _padded(setting: Setting, parts: list[list[int]]) -> dict[str, Any]:
    import torch

    options = {"device": setting.device, "dtype": torch.bfloat16}
    work = []
    for lengths in parts:
        shape = (len(lengths), _HEADS, max(lengths), _WIDTH)
        tensors = [torch.randn(shape, **options).requires_grad_() for _ in range(3)]
        places = torch.arange(max(lengths), device=setting.device)
        mask = places[None, :] < torch.tensor(lengths, device=setting.device)[:, None]
        work.append((tensors, mask[:, None, None, :]))

    def run() -> None:
        for tensors, mask in work:
            out = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
            out.backward(torch.ones_like(out))

    return {"milliseconds": 1000 * seconds_of(run, setting.device, repeat=setting.pick(20, 2))}


def _flat(setting: Setting, lengths: list[int]) -> dict[str, Any]:
    """Return the time of torch's own attention over texts of any length, in versions that have it."""
    import torch
    from torch.nn.attention.varlen import varlen_attn

    shape = (sum(lengths), _HEADS, _WIDTH)
    options = {"device": setting.device, "dtype": torch.bfloat16}
    query, key, value = (torch.randn(shape, **options).requires_grad_() for _ in range(3))
    ends = torch.tensor([0, *lengths], device=setting.device).cumsum(0).to(torch.int32)

    def run() -> None:
        out = varlen_attn(query, key, value, ends, ends, max(lengths), max(lengths))
        out.backward(torch.ones_like(out))

    return {"milliseconds": 1000 * seconds_of(run, setting.device, repeat=20)}
