"""Several models on one set of pairs: scores with intervals, and paired differences to one of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.evaluate.bootstrap import (
    RESAMPLES,
    Difference,
    Interval,
    difference_between,
    draw,
    interval_around,
    resamples_for,
)
from angle_train.evaluate.similarity import check_finite, word_overlap
from angle_train.evaluate.statistics import Ranked, SpearmanOf

log = logging.getLogger("angle.evaluate")

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
) -> list[Result]:
    """Return one result for word overlap and one for every model, in the order given.

    All are measured on the same resamples, drawn once; fewer than usual where the set is large.

    Args:
        pairs: What the models were measured on.
        similarities: Similarity (B,) of the pairs by model name.
        baseline: Name of the model that the others are compared with.
        role: See `Result`.

    Raises:
        InputError: A similarity is not a number, or a model is called as word overlap is.
    """
    if WORD_OVERLAP in similarities:
        raise InputError(f"a model cannot be called {WORD_OVERLAP!r}: rename its directory")
    for model, column in similarities.items():
        check_finite(column, pairs, model)
    ranked = Ranked(pairs.score)
    columns = {WORD_OVERLAP: word_overlap(pairs), **similarities}
    statistics = {model: SpearmanOf(pairs.score, column, ranked) for model, column in columns.items()}
    resamples = resamples_for(len(pairs))
    if resamples < RESAMPLES:
        log.info("%s: %d pairs, so intervals are from %d resamples", pairs.name, len(pairs), resamples)
    drawn = dict(zip(statistics, draw(list(statistics.values()), resamples), strict=True))
    values = {model: statistic.value() for model, statistic in statistics.items()}
    results = []
    for model in columns:
        base = baseline if model not in (baseline, WORD_OVERLAP) else None
        difference = None
        if base is not None:
            difference = difference_between(values[model] - values[base], drawn[base], drawn[model])
        results.append(
            Result(
                pairs=pairs.name,
                role=role,
                count=len(pairs),
                model=model,
                score=interval_around(values[model], drawn[model]),
                baseline=base,
                difference=difference,
            )
        )
    return results
