"""What models did on a task: what cosines of scored pairs are worth, intervals, paired differences.

Pairs have the rank correlation. Those of two kinds (scores 0 and 1 alone) have the area under the ROC curve,
average precision, and accuracy at the best threshold too, which is found on other pairs where there are some.
All models of a task are measured on the same resamples, drawn once. Intervals take pairs as independent;
where a text is in several pairs they are somewhat too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.data.pairs import PairSet
from angle_train.evaluation.similarity import Encode, pair_similarity, word_overlap
from angle_train.evaluation.statistics import (
    Difference,
    Interval,
    Ranked,
    area_under_curve,
    average_precision,
    difference_between,
    draw,
    interval_around,
    mean_of,
    resamples_for,
    spearman_of,
)
from angle_train.evaluation.task import AVERAGES, GROUPS, Outcome, Source

Array = NDArray[np.float64]

WORD_OVERLAP = "word overlap"
SPEARMAN = "spearman"
BEST_ACCURACY = "best_accuracy"
"""Accuracy at the threshold that is best on the very pairs it is judged on."""
_ALWAYS = ("pairs", "role", "count", "model", "score", "baseline", "difference")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one model on one task.

    Attributes:
        pairs: Name of the set of pairs, or of a task of another kind; `GROUP average` for an average.
        role: What the set was used for: `dev` (it chose the checkpoint) or `test`.
        count: How many pairs or other items; tasks for an average.
        model: Name of the model, or `word overlap`.
        score: The figure with its interval over items.
        baseline: The model that `difference` compares with.
        difference: This model minus the baseline, paired.
        metric: Name of the figure.
        main: Whether it is the task's main figure.
        standard_size: Whether the set has its published size; None where there is none.
    """

    pairs: str
    role: str
    count: int
    model: str
    score: Interval
    baseline: str | None = None
    difference: Difference | None = None
    metric: str = SPEARMAN
    main: bool = True
    standard_size: bool | None = None

    @property
    def gain(self) -> Difference:
        """The difference to the baseline, of a result that was compared with one."""
        if self.difference is None:
            raise ValueError(f"{self.model} was not compared on {self.pairs}")
        return self.difference

    def to_dict(self) -> dict[str, Any]:
        """Return plain values with the verdict spelt out; what says nothing more about pairs is left out."""
        row = asdict(self)
        found = {name: row.pop(name) for name in _ALWAYS}
        if self.difference:
            found["verdict"] = self.difference.verdict
        usual = {"metric": SPEARMAN, "main": True, "standard_size": None}
        return found | {name: value for name, value in row.items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class View:
    """B scored pairs as several models see them: what a report looks at beyond the scores.

    `similarity` are cosines (B,) by model; the one that the others are compared with comes first.
    """

    pairs: PairSet
    similarity: Mapping[str, Array]


def judge(
    pairs: PairSet,
    similarity: Array,
    dev: tuple[PairSet, Array] | None = None,
    ranked: Ranked | None = None,
) -> Outcome:
    """Return the figures of cosines, or of other similarities.

    Args:
        pairs: Pairs with gold scores, not all equal.
        similarity: Of each pair (B,).
        dev: Other pairs of two kinds, with their similarities, that the threshold is found on; default the
            pairs themselves.
        ranked: The gold scores', where several models share it.
    """
    statistics = {SPEARMAN: spearman_of(pairs.score, similarity, ranked)}
    if set(np.unique(pairs.score).tolist()) == {0.0, 1.0}:
        gold = pairs.score == 1
        statistics["auc"] = area_under_curve(gold, similarity)
        statistics["average_precision"] = average_precision(gold, similarity)
        known, found = (dev[0].score == 1, dev[1]) if dev else (gold, similarity)
        threshold = best_threshold(known, found)
        correct = mean_of(((similarity > threshold) == gold).astype(np.float64))
        statistics["accuracy" if dev else BEST_ACCURACY] = correct
    return Outcome(statistics, pairs, similarity)


def best_threshold(gold: NDArray[np.bool_], similarity: Array) -> float:
    """Return the threshold above which calling pairs positive is right most often.

    It lies halfway between two neighbouring similarities (B,), or beyond the last one; of several equally
    good ones it is the highest. `gold` (B,) says which pairs are positive.
    """
    levels, level = np.unique(similarity, return_inverse=True)
    gained = np.bincount(level, weights=2.0 * gold - 1, minlength=len(levels))[::-1].cumsum()
    right = np.append(0, gained)  # more than calling none positive, after calling 0, 1, 2 … levels positive
    below = np.append(levels[::-1], levels[0] - 1)  # next lower level then
    above = np.append(levels[-1] + 1, levels[::-1])
    return float((above + below)[int(right.argmax())] / 2)


@dataclass(frozen=True, slots=True)
class OwnPairs:
    """The task that a set of the user's own pairs is; `ranked` are its gold scores."""

    pairs: PairSet
    ranked: Ranked
    standard_size: int | None = None

    def load(self, source: Source) -> PairSet:
        """Return the pairs."""
        return self.pairs

    def measure(self, data: PairSet, encode: Encode, seed: int) -> Outcome:
        """Judge the cosines."""
        return judge(data, pair_similarity(data, encode), ranked=self.ranked)


def compare(
    pairs: PairSet, similarities: Mapping[str, Array], *, baseline: str | None = None, role: str = "test"
) -> list[Result]:
    """Return one result for word overlap and one for every model, by its similarities (B,) of the pairs.

    In the order given; the others are compared with the `baseline`, and `role` is that of `Result`.
    """
    ranked = Ranked(pairs.score)
    outcomes = {
        name: Outcome({SPEARMAN: spearman_of(pairs.score, column, ranked)})
        for name, column in {WORD_OVERLAP: word_overlap(pairs), **similarities}.items()
    }
    return [replace(result, role=role) for result in Comparison(baseline).on_task(pairs.name, outcomes)]


Columns = Mapping[str, tuple[float, Array]]
"""One figure under every model: its value, and the resampled ones (R,)."""


class Comparison:
    """Compares models with a baseline, if any, on one task after the other and on averages of groups."""

    def __init__(self, baseline: str | None = None) -> None:
        self._baseline = baseline
        self._main: dict[str, tuple[Result, Columns]] = {}

    def on_task(
        self, name: str, outcomes: Mapping[str, Outcome], published_size: int | None = None, seed: int = 0
    ) -> list[Result]:
        """Return the results of one task, figure by figure, the models in the order given.

        Word overlap may be among the `outcomes` by model, and the baseline must be. `published_size` is how
        many items the published set has; `seed` decides the resamples.
        """
        results = []
        for number, metric in enumerate(next(iter(outcomes.values())).statistics):
            statistics = [outcome.statistics[metric] for outcome in outcomes.values()]
            count = statistics[0].size
            drawn = draw(statistics, resamples_for(count), seed)
            values = [statistic.value() for statistic in statistics]
            standard = None if published_size is None else count == published_size
            columns = dict(zip(outcomes, zip(values, drawn, strict=True), strict=True))
            of = partial(Result, name, "test", count, metric=metric, main=number == 0, standard_size=standard)
            found = self._results(of, columns)
            results += found
            if number == 0:
                self._main[name] = found[0], columns
        return results

    def averages(self) -> list[Result]:
        """Return the papers' averages over groups of tasks; of those alone that are there in standard size.

        Tasks are resampled independently of each other, although some share pairs (STS-B is chosen from
        the years' sets), so the intervals are a little too narrow.
        """
        results = []
        for group in AVERAGES:
            found = [self._main[task] for task in GROUPS[group] if task in self._main]
            if len(found) < len(GROUPS[group]) or any(one.standard_size is False for one, _ in found):
                continue
            tables = [columns for _, columns in found]
            of = partial(Result, f"{group} average", "test", len(found), metric=found[0][0].metric)
            averaged = {}
            for model in tables[0]:
                values, drawn = zip(*(columns[model] for columns in tables), strict=True)
                shortest = min(map(len, drawn))
                mean: Array = np.mean([column[:shortest] for column in drawn], axis=0)
                averaged[model] = float(np.mean(values)), mean
            results += self._results(partial(of, standard_size=True), averaged)
        return results

    def _results(self, of: Callable[..., Result], columns: Columns) -> list[Result]:
        """Return the result `of` every model, compared with the baseline."""
        results = []
        for model, (value, drawn) in columns.items():
            result = of(model=model, score=interval_around(value, drawn))
            if self._baseline and model not in (self._baseline, WORD_OVERLAP):
                before, drawn_before = columns[self._baseline]
                difference = difference_between(value - before, drawn_before, drawn)
                result = replace(result, baseline=self._baseline, difference=difference)
            results.append(result)
        return results
