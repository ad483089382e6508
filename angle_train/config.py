"""One frozen, self-validating recipe is one run; read from TOML, where unknown keys are errors."""

from __future__ import annotations

from dataclasses import dataclass

from angle_train.objectives import AngleMode

__all__ = ["ObjectiveConfig"]


@dataclass(frozen=True, slots=True)
class ObjectiveConfig:
    """The combined objective w1·cosine + w2·in-batch + w3·angle (AnglE Eq. 8), in the papers' units.

    Attributes:
        cosine_weight: w1; 0 switches the term off.
        in_batch_weight: w2.
        angle_weight: w3.
        cosine_tau: Temperature of the cosine objective; divides.
        in_batch_tau: Temperature of the in-batch objective.
        angle_tau: Temperature of the angle objective.
        angle_mode: `symmetric` or `published`.
        positive_score: Pairs with at least this score (0..1) are positives of the in-batch objective.
        negative_score: Pairs with a score above this one and below `positive_score` are neither positives
            nor negatives of the in-batch objective: antonyms that are on topic, say.
    """

    cosine_weight: float = 1.0
    in_batch_weight: float = 1.0
    angle_weight: float = 1.0
    cosine_tau: float = 0.05
    in_batch_tau: float = 0.05
    angle_tau: float = 1.0
    angle_mode: AngleMode = "symmetric"
    positive_score: float = 0.8
    negative_score: float = 0.0
