"""Averages of the tuned weights and those they started from, which keep more of what the backbone can do.

Source: Wortsman et al. 2022, WiSE-FT, https://arxiv.org/abs/2109.01903.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_train.model.adapters import has_adapters, scale_adapters


def snapshot(model: SentenceTransformer) -> dict[str, Tensor]:
    """Return copies of the floating-point weights of an untouched model, by name, for `blend`.

    On the CPU, where they take nothing from the training. Of a model with adapters none: the backbone is what
    they are added to.
    """
    if has_adapters(model):
        return {}
    weights = model.named_parameters()
    return {n: value.detach().to("cpu", copy=True) for n, value in weights if value.is_floating_point()}


def merge_details(share: float) -> dict[str, Any]:
    """Return what a report says of the backbone in the final weights; nothing where there is none of it."""
    return {"merge": {"share": share}} if share else {}


@torch.no_grad()
def blend(model: SentenceTransformer, backbone: Mapping[str, Tensor], share: float) -> None:
    """Move the weights of `model` towards those of its backbone: (1 - share)·tuned + share·backbone."""
    if not share:
        return
    if has_adapters(model):
        scale_adapters(model, 1 - share)
        return
    # Names each tensor once; a state dict lists tied ones (T5's two token embeddings) under both names.
    for name, weights in model.named_parameters():
        if weights.is_floating_point():
            weights.lerp_(backbone[name].to(weights), share)


@contextmanager
def blended(model: SentenceTransformer, backbone: Mapping[str, Tensor], share: float) -> Iterator[None]:
    """Blend a model for the length of a block; afterwards its weights are the same, to the last bit."""
    if not share:
        yield
        return
    trained = {name: weights for name, weights in model.named_parameters() if weights.requires_grad}
    tuned = {name: weights.detach().clone() for name, weights in trained.items()}
    blend(model, backbone, share)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, weights in trained.items():
                weights.copy_(tuned[name])
