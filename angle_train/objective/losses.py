"""The registry of losses; imports a loss only on use.

Add a loss: a subclass of `loss.CombinedLoss` whose `terms` measures the embeddings of a batch, and a line in
LOSSES. Loads nothing heavy, so that recipes can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from angle_data.resources import load_object

if TYPE_CHECKING:
    from torch import Tensor, nn

    from angle_train.objective.loss import CombinedLoss
    from angle_train.settings import ObjectiveConfig

OWN_LOSS = "angle"
"""The combined objective of this toolkit; the other losses are peers to compare it with."""

LOSSES: dict[str, str] = {
    OWN_LOSS: "angle_train.objective.loss:CombinedLoss",
    "cosent": "angle_train.objective.peers:CoSENT",
    "st-angle": "angle_train.objective.peers:StockAnglE",
    "mnrl": "angle_train.objective.peers:MultipleNegatives",
    "simcse": "angle_train.objective.peers:SupervisedSimCSE",
    "sbert": "angle_train.objective.peers:Regression",
}
"""Name in a recipe -> "module:Class"."""


CONTRASTIVE = frozenset({"mnrl", "simcse"})
"""The losses that rank nothing: they learn from positive pairs, against the rest of the batch."""


def make_loss(
    model: nn.Module,
    objective: ObjectiveConfig,
    watch: Callable[[Mapping[str, Tensor]], None] | None = None,
    gradient_cache: bool = False,
) -> CombinedLoss:
    """Import the loss that `objective` names and build it.

    Args:
        model: Turns the chunks of a `PairCollator` batch into embeddings.
        objective: Its `loss` is a key of LOSSES.
        watch: Called with the terms of every batch.
        gradient_cache: Hold one chunk's activations at a time, see `gradient_cache`.
    """
    return cast("CombinedLoss", load_object(LOSSES[objective.loss])(model, objective, watch, gradient_cache))
