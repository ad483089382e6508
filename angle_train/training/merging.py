"""Averages of the tuned weights and those they started from, which keep more of what the backbone can do.

The highest layers can be the backbone's again in full: what those below have learned then goes through layers
that still know the rest (benchmarks/log/upper-layers.md).

Source: Wortsman et al. 2022, WiSE-FT, https://arxiv.org/abs/2109.01903.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from angle_data.errors import InputError
from angle_train.model.adapters import has_adapters, scale_adapters
from angle_train.model.roles import input_modules, router_of, transformers_of
from angle_train.recipe import Recipe
from angle_train.training.frozen import layers_and_after

log = logging.getLogger("angle.merging")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The weights that tuning started from, by name, on the CPU.

    Attributes:
        weights: Those that may be mixed in. A model with adapters still has its backbone under these, so for
            it only the adapters of the restored layers.
        restored: Names of those that take the place of the tuned ones in full.
    """

    weights: Mapping[str, Tensor] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()


def count_restored(model: SentenceTransformer, share: float) -> tuple[int, int]:
    """Return how many layers a share restores, and how many there are; of several encoders, in the first.

    A share above 0 restores one layer at least, and leaves one. (0, 0) where the layers are not known.
    """
    counts = [_count(share, len(layers_and_after(transformer)[0])) for transformer in transformers_of(model)]
    return counts[0] if counts and all(total for _, total in counts) else (0, 0)


def check_restored(model: SentenceTransformer, recipe: Recipe) -> None:
    """Say how many layers the recipe restores, or that it can restore none.

    Raises:
        InputError: All layers would be frozen or restored, so nothing would be learned.
    """
    share = recipe.training.restored_layers
    if not share:
        return
    count, total = count_restored(model, share)
    if not count:
        found = "has one layer" if total else "has layers of a kind that is not known"
        log.warning("restored_layers %g: this backbone %s, so none is restored", share, found)
    elif count + recipe.backbone.layers_frozen >= total:
        raise InputError(
            f"restored_layers {share:g} gives {count} of {total} layers the backbone's weights back, and "
            f"frozen_layers {recipe.backbone.layers_frozen} trains none of the rest; lower one of them"
        )
    else:
        log.info("layers that are the backbone's again in every figure: the %d highest of %d", count, total)


def merge_details(model: SentenceTransformer, restored: float, share: float) -> dict[str, Any]:
    """Return what a report says of the backbone in the final weights; nothing where there is none of it."""
    count, total = count_restored(model, restored) if restored else (0, 0)
    found = {"share": share} | ({"restored_layers": count, "layers": total} if count else {})
    return {"merge": found} if share or count else {}


def snapshot(model: SentenceTransformer, restored_layers: float = 0.0) -> Snapshot:
    """Return copies of the floating-point weights of an untouched model, for `blend`.

    They are on the CPU, where they take no memory from the training.

    Args:
        model: Before it is trained.
        restored_layers: This share of the layers, the highest ones, and all that comes after them are
            restored; see `count_restored`.
    """
    upper = _upper_weights(model, restored_layers) if restored_layers else frozenset()
    adapted = has_adapters(model)
    weights = {
        name: value.detach().to("cpu", copy=True)
        for name, value in model.named_parameters()
        if value.is_floating_point() and (not adapted or (name in upper and value.requires_grad))
    }
    return Snapshot(weights, upper & weights.keys())


@torch.no_grad()
def blend(model: SentenceTransformer, backbone: Snapshot, share: float) -> None:
    """Move the weights of `model` towards those of its backbone: (1 - share)·tuned + share·backbone.

    Those of layers that are restored become the backbone's.
    """
    if share and has_adapters(model):
        scale_adapters(model, 1 - share)
        share = 0.0
    # Names each tensor once; a state dict lists tied ones (T5's two token embeddings) under both names.
    for name, weights in model.named_parameters():
        if name in backbone.restored:
            weights.copy_(backbone.weights[name])
        elif share and weights.is_floating_point():
            weights.lerp_(backbone.weights[name].to(weights), share)


@contextmanager
def blended(model: SentenceTransformer, backbone: Snapshot, share: float) -> Iterator[None]:
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


def _count(share: float, total: int) -> tuple[int, int]:
    """Return how many of `total` layers a share above 0 restores, and `total`."""
    return max(min(max(round(share * total), 1), total - 1), 0), total


def _upper_weights(model: SentenceTransformer, share: float) -> frozenset[str]:
    """Return the names of the weights of this share of the layers, the highest ones, and all after them."""
    if not count_restored(model, share)[0]:
        return frozenset()
    modules = _after_transformers(model)
    for transformer in transformers_of(model):
        layers, after = layers_and_after(transformer)
        count, total = _count(share, len(layers))
        modules += [*layers[total - count :], *after]
    own = {weights for module in modules for weights in module.parameters()}
    return frozenset(name for name, weights in model.named_parameters() if weights in own)


def _after_transformers(model: SentenceTransformer) -> list[nn.Module]:
    """Return the modules of a model that come after those which read texts, such as a projection."""
    first, router = input_modules(model), router_of(model)
    routes: Any = [] if router is None else router.sub_modules.values()
    modules = [*model, *(module for route in routes for module in route)]
    return [module for module in modules if module is not router and not any(module is one for one in first)]
