"""Losses of others as baselines: the stock functions of Sentence Transformers on the toolkit's batches.

Each distinct text is encoded once and the stock `compute_loss_from_embeddings` sees the pairs' rows, so that
only the loss differs from a run of the toolkit. All have their stock settings: scale 20, that is τ = 0.05.
Row weights and the weights and temperatures of the combined objective are not used. A batch without anything
to learn from (no positive pair where one is needed) gives 0.

`options_for("mnrl")` makes `angle_train.train.trainer.train` train with a peer; give it a recipe with
`swap = false`, since the peers take pairs as they stand. CoSENT is the toolkit's cosine term alone:
`in_batch_weight = 0` and `angle_weight = 0`.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, cast

from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn

from angle_train.objective.loss import CombinedLoss
from angle_train.train.trainer import TrainOptions

_SIMCSE = """
@inproceedings{gao2021simcse,
    title = {{SimCSE}: Simple Contrastive Learning of Sentence Embeddings},
    author = {Gao, Tianyu and Yao, Xingcheng and Chen, Danqi},
    booktitle = {Empirical Methods in Natural Language Processing (EMNLP)},
    year = {2021},
}
"""


class PeerLoss(CombinedLoss):
    """A stock loss of Sentence Transformers on the batches of a `PairCollator`; one term, called `loss_name`.

    Attributes:
        loss_name: What the term is called in logs.
        stock: The class of the stock loss.
    """

    loss_name: str
    stock: type[nn.Module]

    @cached_property
    def _stock_loss(self) -> Any:
        """The stock loss. A cached property is hidden from torch: a loss must not own a second model."""
        return cast(Any, self.stock)(nn.Identity())

    def terms(self, embeddings: Tensor, labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the one term (scalar) for the distinct texts (N, D) of a batch."""
        return {self.loss_name: self.measure(embeddings, labels)}

    @abstractmethod
    def measure(self, embeddings: Tensor, labels: dict[str, Tensor]) -> Tensor:
        """Return the stock loss (scalar) of a batch."""

    def stock_value(self, columns: list[Tensor], score: Tensor | None = None) -> Tensor:
        """Return the stock loss of embedded columns, (B, D) each, and scores (B,)."""
        value: Tensor = self._stock_loss.compute_loss_from_embeddings(columns, score)
        return value

    def get_config_dict(self) -> dict[str, Any]:
        """Return the stock loss's settings, shown in the model card."""
        settings: dict[str, Any] = self._stock_loss.get_config_dict()
        return settings

    @property
    def citation(self) -> str:
        """BibTeX of the loss, for the model card; empty where the stock loss names no paper."""
        return getattr(self._stock_loss, "citation", "")


class _ScoredPairs(PeerLoss):
    """Losses of two columns and a score for each pair."""

    def measure(self, embeddings: Tensor, labels: dict[str, Tensor]) -> Tensor:
        """Return the stock loss of all pairs with their scores."""
        columns = [embeddings[labels["first"]], embeddings[labels["second"]]]
        return self.stock_value(columns, labels["score"])


class CoSENT(_ScoredPairs):
    """CoSENTLoss: pairs with a higher score should have a higher cosine."""

    loss_name, stock = "cosent", losses.CoSENTLoss


class StockAnglE(_ScoredPairs):
    """AnglELoss: the same ranking by the authors' released, order-dependent "angle", at scale 20."""

    loss_name, stock = "st_angle", losses.AnglELoss


class Regression(_ScoredPairs):
    """CosineSimilarityLoss, SBERT's regression objective: squared error of the cosine to the score."""

    loss_name, stock = "sbert", losses.CosineSimilarityLoss


class MultipleNegatives(PeerLoss):
    """MultipleNegativesRankingLoss on the positive pairs of a batch: the first text should find the second.

    The second texts of the batch's other positive pairs are the negatives; other pairs are not used.
    """

    loss_name, stock = "mnrl", losses.MultipleNegativesRankingLoss

    def measure(self, embeddings: Tensor, labels: dict[str, Tensor]) -> Tensor:
        """Return the stock loss of the positive pairs, with `negatives` as further candidates."""
        first, second, positive = (labels[name] for name in ("first", "second", "positive"))
        if not bool(positive.any()):
            return embeddings.sum() * 0.0
        candidates = [embeddings[second[positive]], *self.negatives(embeddings, labels)]
        return self.stock_value([embeddings[first[positive]], *candidates])

    def negatives(self, embeddings: Tensor, labels: dict[str, Tensor]) -> list[Tensor]:
        """Return candidates (M, D) that are nobody's partner, in columns: here none."""
        return []


class SupervisedSimCSE(MultipleNegatives):
    """Supervised SimCSE (Gao et al. 2021, Eq. 5): in-batch negatives and the hard negatives of the batch.

    The second texts of all pairs scored at most `negative_score` are candidates of every first text, as the
    contradictions of NLI are there. An anchor meets its own hard negatives where its pairs share a batch:
    see `source_block`.
    """

    loss_name = "simcse"

    def negatives(self, embeddings: Tensor, labels: dict[str, Tensor]) -> list[Tensor]:
        """Return the second texts of the negative pairs."""
        negative = labels["score"] <= self.config.negative_score
        return [embeddings[labels["second"][negative]]]

    @property
    def citation(self) -> str:
        """BibTeX of SimCSE."""
        return _SIMCSE


PEERS: dict[str, type[PeerLoss]] = {
    "cosent": CoSENT,
    "st-angle": StockAnglE,
    "mnrl": MultipleNegatives,
    "simcse": SupervisedSimCSE,
    "sbert": Regression,
}
"""Name in the tables of the benchmarks -> loss."""


def options_for(loss: str) -> TrainOptions:
    """Return the options that make a run train with a peer's loss; `angle` is the toolkit's own."""
    return TrainOptions() if loss == "angle" else TrainOptions(make_loss=PEERS[loss])
