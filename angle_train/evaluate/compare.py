"""Several models on one set of pairs: scores with intervals, and paired differences to one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.bootstrap import Difference, Interval, bootstrap_interval, paired_bootstrap
from angle_train.evaluate.sts import check_finite, word_overlap
from angle_train.pairs import PairSet

__all__ = ["WORD_OVERLAP", "Result", "compare"]

WORD_OVERLAP = "word overlap"


@dataclass(frozen=True, slots=True)
class Result:
    """One model on one set of pairs.

    Attributes:
        pairs: Name of the set.
        role: What the set was used for: `dev` (it chose the checkpoint) or `test`.
        count: How many pairs.
        model: Name of the model, or `word overlap`.
        score: Spearman correlation with the gold scores, and its interval.
        baseline: The model that `difference` compares with.
        difference: This model minus the baseline.
    """

    pairs: str
    role: str
    count: int
    model: str
    score: Interval
    baseline: str | None = None
    difference: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the verdict spelt out."""
        verdict = {"verdict": self.difference.verdict} if self.difference else {}
        return asdict(self) | verdict

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Build the result from what `to_dict` returned."""
        values = {name: value for name, value in row.items() if name != "verdict"}
        values["score"] = Interval(**values["score"])
        values["difference"] = Difference(**values["difference"]) if values["difference"] else None
        return cls(**values)


def compare(
    pairs: PairSet,
    similarities: Mapping[str, NDArray[np.float64]],
    *,
    baseline: str | None = None,
    role: str = "test",
    seed: int = 0,
) -> list[Result]:
    """Return one result for word overlap and one for every model, in the order given.

    Args:
        pairs: What the models were measured on.
        similarities: Similarity (B,) of the pairs by model name.
        baseline: Name of the model that the others are compared with.
        role: See `Result`.
        seed: Of the bootstrap.

    Raises:
        InputError: A similarity is not a number.
    """
    for model, column in similarities.items():
        check_finite(column, pairs, model)
    results = []
    for model, column in {WORD_OVERLAP: word_overlap(pairs), **similarities}.items():
        compared = baseline is not None and model not in (baseline, WORD_OVERLAP)
        difference = (
            paired_bootstrap(pairs.score, similarities[baseline], column, seed=seed)
            if baseline is not None and compared
            else None
        )
        results.append(
            Result(
                pairs=pairs.name,
                role=role,
                count=len(pairs),
                model=model,
                score=bootstrap_interval(pairs.score, column, seed=seed),
                baseline=baseline if compared else None,
                difference=difference,
            )
        )
    return results
