"""Averages of the tuned weights and those they started from, which keep more of what the backbone can do.

The highest layers can be the backbone's again in full: what those below have learned then goes through layers
that still know the rest (benchmarks/log/upper-layers.md).

Source: Wortsman et al. 2022, WiSE-FT, https://arxiv.org/abs/2109.01903.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from angle_train.model.adapters import has_adapters, scale_adapters
from angle_train.model.load import say_once
from angle_train.training.frozen import layers_and_after


@dataclass(frozen=True, slots=True)
class Backbone:
    """The weights that tuning started from, by name.

    Attributes:
        weights: All that may be mixed in; of a model with adapters, to which the backbone stays beneath, only
            those of the adapters that are restored.
        restored: Names of those that take the place of the tuned ones in full.
    """

    weights: Mapping[str, Tensor] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()


def snapshot(model: SentenceTransformer, restored_layers: float = 0.0) -> Backbone:
    """Return copies of the floating-point weights of an untouched model, for `blend`.

    On the CPU, where they take nothing from the training. Of a model with adapters, whose backbone is what
    they are added to, only the adapters of the restored layers.

    Args:
        model: Before it is trained.
        restored_layers: This share of the layers, the highest ones, and what comes after them are restored.
            None are where it is not known what the layers are, and a line says so.
    """
    restored = _upper_weights(model, restored_layers) if restored_layers else frozenset()
    adapted = has_adapters(model)
    weights = {
        name: value.detach().to("cpu", copy=True)
        for name, value in model.named_parameters()
        if value.is_floating_point() and (name in restored if adapted else True)
    }
    return Backbone(weights, restored)


@torch.no_grad()
def blend(model: SentenceTransformer, backbone: Backbone, share: float) -> None:
    """Move the weights of `model` towards those of its backbone: (1 - share)·tuned + share·backbone.

    Those of layers that are restored become the backbone's.
    """
    if share and has_adapters(model):
        scale_adapters(model, 1 - share)
        share = 0.0
    # Names each tensor once; a state dict lists tied ones (T5's two token embeddings) under both names.
    for name, weights in model.named_parameters():
        if name in backbone.restored and name in backbone.weights:
            weights.copy_(backbone.weights[name])
        elif share and weights.is_floating_point():
            weights.lerp_(backbone.weights[name].to(weights), share)


@contextmanager
def blended(model: SentenceTransformer, backbone: Backbone, share: float) -> Iterator[None]:
    """Blend a model for the length of a block; afterwards its weights are the same, to the last bit."""
    if not share and not backbone.restored:
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


def _upper_weights(model: SentenceTransformer, share: float) -> frozenset[str]:
    """Return the names of the weights of this share of the layers, the highest ones, and of what follows."""
    layers, after = layers_and_after(model)
    count = min(round(share * len(layers)), len(layers) - 1)  # one layer at least keeps what it learns
    if not layers:
        say_once("restored_layers: it is not known what the layers of this backbone are, so none is restored")
    if count < 1:
        return frozenset()
    own = {weights for module in (*layers[-count:], *after) for weights in module.parameters()}
    return frozenset(name for name, weights in model.named_parameters() if weights in own)
