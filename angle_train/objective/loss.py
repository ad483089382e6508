"""The combined AnglE objective as a Sentence Transformers loss: one forward pass, three terms."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from angle_data.errors import InputError
from angle_train.objective.encoding import encode, encode_cached, gather_embeddings, world_size
from angle_train.objective.terms import (
    angle_objective,
    cosine_objective,
    in_batch_objective,
    not_negatives,
    positive_share,
)
from angle_train.recipe import ObjectiveConfig


def combined_objective(
    embeddings: Tensor, labels: dict[str, Tensor], config: ObjectiveConfig
) -> dict[str, Tensor]:
    """Return the weighted terms w1·cosine, w2·in-batch, w3·angle (scalars); their sum is the loss (Eq. 8).

    With `matryoshka_dims` each term is the sum of its values on all dimensions and on the first d, for each
    d (https://arxiv.org/abs/2205.13147, with equal weights).

    Args:
        embeddings: The distinct texts of a batch (N, D).
        labels: The tensors under `label` of a `PairCollator` batch.
        config: Weights, temperatures and angle mode; terms of weight 0 are left out.

    Raises:
        InputError: The embeddings do not have the dimensions that the settings speak of.
        ValueError: No term has a weight: the recipe was not settled.
    """
    if not (config.cosine_weight or config.in_batch_weight or config.angle_weight):
        raise ValueError("no term has a weight; choose the values of the recipe with data.kinds.settle first")
    terms: dict[str, Tensor] = {}
    for width in widths(config, embeddings.shape[1]):
        for name, term in _terms(embeddings[:, :width], labels, config).items():
            terms[name] = terms[name] + term if name in terms else term
    return terms


def widths(config: ObjectiveConfig, width: int) -> list[int]:
    """Return how many dimensions to compute the objective on, first of all `width` of them.

    Raises:
        InputError: Embeddings of that width do not have the dimensions that the settings speak of.
    """
    found = [width, *(d for d in config.matryoshka_dims if d != width)]
    if max(found) > width:
        raise InputError(
            f"[objective] matryoshka_dims {max(found)} is more than the {width} dimensions that the "
            f"backbone's embeddings have; give at most {width}"
        )
    odd = [d for d in found if d % 2]
    if odd and config.angle_weight and config.angle_mode == "published":
        raise InputError(
            f"[objective] angle_mode published pairs the halves of a vector and cannot take "
            f"{odd[0]} dimensions; give an even number or another angle_mode"
        )
    return found


def _terms(embeddings: Tensor, labels: dict[str, Tensor], config: ObjectiveConfig) -> dict[str, Tensor]:
    """Return the weighted terms on the given dimensions."""
    first, second, score, weight = (labels[name] for name in ("first", "second", "score", "weight"))
    emb1, emb2, scale = embeddings[first], embeddings[second], labels["scale"]
    terms: dict[str, Tensor] = {}
    if config.cosine_weight:
        term = cosine_objective(emb1, emb2, score, tau=config.cosine_tau, weight=weight, scale=scale)
        terms["cosine"] = config.cosine_weight * term
    if config.in_batch_weight:
        neutral = labels["neutral"]
        excluded = not_negatives(labels["group"], first[neutral], second[neutral])
        positive, tau = labels["positive"], config.in_batch_tau
        term = in_batch_objective(embeddings, first, second, positive, excluded, tau=tau, weight=weight)
        if config.in_batch_mean == "pairs":
            term = positive_share(positive, weight) * term
        terms["in_batch"] = config.in_batch_weight * term
    if config.angle_weight:
        tau, mode = config.angle_tau, config.angle_mode
        term = angle_objective(emb1, emb2, score, tau=tau, mode=mode, weight=weight, scale=scale)
        terms["angle"] = config.angle_weight * term
    return terms


class CombinedLoss(nn.Module):
    """Sentence Transformers loss around `combined_objective`, with each term on its own for the log.

    Inputs: the chunks of a `PairCollator` batch as `features`, its label dictionary as `labels`. With
    `gradient_cache` the activations of one chunk are held at a time, see `encoding.encode_cached`. In each of
    several processes the terms are those of the whole batch.
    """

    def __init__(self, model: nn.Module, config: ObjectiveConfig, gradient_cache: bool = False) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self._gradient_cache = gradient_cache

    def forward(self, features: Iterable[dict[str, Tensor]], labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encode every chunk and return the weighted terms; the trainer sums them."""
        if self._gradient_cache:
            embeddings = encode_cached(self.model, list(features))
        else:
            embeddings = torch.cat([encode(self.model, chunk) for chunk in features])
        embeddings = gather_embeddings(embeddings, labels) if world_size() > 1 else embeddings
        return combined_objective(embeddings, labels, self.config)
