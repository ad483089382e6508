"""Losses of others as baselines: the stock functions of Sentence Transformers on the toolkit's batches.

Each distinct text is encoded once and the stock loss sees the embeddings of the pairs' texts, so that only
the loss differs from a run of the toolkit. All have their stock settings: scale 20, that is τ = 0.05. Weights
of rows are not used. A batch without a positive pair, where one is needed, gives 0. CoSENT is the toolkit's
own cosine term alone: `in_batch_weight = 0, angle_weight = 0`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from angle_train.objective.loss import CombinedLoss
from angle_train.train.trainer import TrainOptions


class PeerLoss(CombinedLoss):
    """A stock loss on the batches of a `PairCollator`: of all pairs with their scores."""

    stock: Any = losses.CosineSimilarityLoss

    @cached_property
    def _stock_loss(self) -> Any:
        """The stock loss. A cached property is hidden from torch: a loss must not own a second model."""
        return self.stock(nn.Identity())

    def columns(self, embeddings: Tensor, labels: dict[str, Tensor]) -> tuple[list[Tensor], Tensor | None]:
        """Return the embedded columns, (B, D) each, and the scores (B,), if the loss takes any."""
        return [embeddings[labels["first"]], embeddings[labels["second"]]], labels["score"]

    def terms(self, embeddings: Tensor, labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the one term (scalar) for the distinct texts (N, D) of a batch."""
        columns, score = self.columns(embeddings, labels)
        if not len(columns[0]):
            return {"peer": embeddings.sum() * 0.0}
        return {"peer": self._stock_loss.compute_loss_from_embeddings(columns, score)}


class StockAnglE(PeerLoss):
    """AnglELoss: the ranking by the authors' released, order-dependent "angle"."""

    stock = losses.AnglELoss


class MultipleNegatives(PeerLoss):
    """MultipleNegativesRankingLoss on the positive pairs; the others' second texts are the negatives."""

    stock = losses.MultipleNegativesRankingLoss

    def columns(self, embeddings: Tensor, labels: dict[str, Tensor]) -> tuple[list[Tensor], None]:
        """Return the first and second texts of the positive pairs."""
        positive = labels["positive"]
        return [embeddings[labels[side][positive]] for side in ("first", "second")], None


class SupervisedSimCSE(MultipleNegatives):
    """Supervised SimCSE (Gao et al. 2021, Eq. 5): second texts of negative pairs are candidates too."""

    def columns(self, embeddings: Tensor, labels: dict[str, Tensor]) -> tuple[list[Tensor], None]:
        """Return the texts of the positive pairs, and the second texts of the negative ones."""
        columns, _ = super().columns(embeddings, labels)
        return [*columns, embeddings[labels["second"][labels["score"] <= self.config.negative_score]]], None


PEERS: dict[str, type[PeerLoss]] = {
    "st-angle": StockAnglE,
    "mnrl": MultipleNegatives,
    "simcse": SupervisedSimCSE,
    "sbert": PeerLoss,
}
"""Name in the tables of the benchmarks -> loss."""


def options_for(peer: str | None) -> TrainOptions:
    """Return the options that make a run train with a peer's loss; none is the toolkit's own."""
    return TrainOptions() if peer is None else TrainOptions(make_loss=PEERS[peer])
