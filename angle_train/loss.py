"""The combined AnglE objective as a Sentence Transformers loss: one forward pass, three terms.

Expects the batches of `batching.PairCollator`; the mathematics is in `objectives`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from angle_train.objectives import angle_objective, cosine_objective, in_batch_objective
from angle_train.settings import ObjectiveConfig

__all__ = ["CombinedLoss", "combined_objective"]

_CITATION = """
@article{li2023angle,
    title = {AnglE-optimized Text Embeddings},
    author = {Li, Xianming and Li, Jing},
    journal = {arXiv preprint arXiv:2309.12871},
    year = {2023},
}
"""


def combined_objective(
    embeddings: Tensor, labels: dict[str, Tensor], config: ObjectiveConfig
) -> dict[str, Tensor]:
    """Return the weighted terms w1·cosine, w2·in-batch, w3·angle (scalars); their sum is the loss (Eq. 8).

    Args:
        embeddings: The distinct texts of a batch (N, D).
        labels: The tensors under `label` of a `PairCollator` batch.
        config: Weights, temperatures and angle mode; terms of weight 0 are left out.
    """
    first, second, score, weight = (labels[name] for name in ("first", "second", "score", "weight"))
    emb1, emb2 = embeddings[first], embeddings[second]
    terms: dict[str, Tensor] = {}
    if config.cosine_weight:
        term = cosine_objective(emb1, emb2, score, tau=config.cosine_tau, weight=weight)
        terms["cosine"] = config.cosine_weight * term
    if config.in_batch_weight:
        term = in_batch_objective(
            embeddings,
            first,
            second,
            labels["positive"],
            labels["group"],
            tau=config.in_batch_tau,
            weight=weight,
            neutral=labels["neutral"],
        )
        terms["in_batch"] = config.in_batch_weight * term
    if config.angle_weight:
        term = angle_objective(emb1, emb2, score, tau=config.angle_tau, mode=config.angle_mode, weight=weight)
        terms["angle"] = config.angle_weight * term
    return terms


class CombinedLoss(nn.Module):
    """Sentence Transformers loss around `combined_objective`; its terms are logged one by one.

    Inputs: the chunks of a `PairCollator` batch as `features`, its label dictionary as `labels`. `watch` is
    called with the terms of every batch.
    """

    def __init__(
        self,
        model: nn.Module,
        config: ObjectiveConfig,
        watch: Callable[[Mapping[str, Tensor]], None] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self._watch = watch

    def forward(self, features: Iterable[dict[str, Tensor]], labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encode every chunk and return the weighted terms; the trainer sums them."""
        embeddings = torch.cat([self.model(chunk)["sentence_embedding"] for chunk in features])
        terms = combined_objective(embeddings, labels, self.config)
        if self._watch is not None:
            self._watch(terms)
        return terms

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings shown in the model card."""
        return {name: getattr(self.config, name) for name in self.config.__slots__}

    @property
    def citation(self) -> str:
        """BibTeX of the paper, for the model card."""
        return _CITATION
