"""What models did on a task: what cosines of scored pairs are worth, intervals, paired differences.

Pairs have the rank correlation. Those of two kinds (scores 0 and 1 alone) have the area under the ROC curve,
average precision, and accuracy at the best threshold too, which is found on the very same pairs.
All models of a task are measured on the same resamples, drawn once. Where pairs share a text or a source,
intervals are as much wider as `sharing` says. With a language model's grades beside people's, `judged` makes
rank correlations surer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.data.judged import JudgedPairs
from angle_train.data.pairs import PairSet
from angle_train.data.search_set import SearchSet
from angle_train.evaluation.judged import Judged, with_judge
from angle_train.evaluation.search import Ranking, rank_by_words
from angle_train.evaluation.sharing import INDEPENDENT, Sharing
from angle_train.evaluation.similarity import word_overlap
from angle_train.evaluation.statistics import (
    Difference,
    Drawn,
    Interval,
    Ranked,
    Statistic,
    area_under_curve,
    average_precision,
    draw_figures,
    interval_around,
    mean_of,
    resamples_for,
    spearman_of,
)

Array = NDArray[np.float64]

WORD_OVERLAP = "word overlap"
BM25_WORDS = "BM25, words"
WITHOUT_MODEL = (WORD_OVERLAP, BM25_WORDS)
"""What is measured beside the models, of pairs and of searches, and compared with none of them."""
SPEARMAN = "spearman"
BEST_ACCURACY = "best_accuracy"
"""Accuracy at the threshold that is best on the very pairs it is judged on."""
_ALWAYS = ("pairs", "role", "count", "model", "score", "baseline", "difference")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one model did on one task.

    Attributes:
        statistics: Its figures by name, of the same items in the same order; the first is the main one.
            All are larger for better models and at most 1.
        pairs: The scored pairs, where the task is about pairs.
        similarity: Their cosines (B,); empty elsewhere.
        rest: The cosines of the pairs that a language model alone graded; empty without one.
        ranking: What was found, where the task is a search.
    """

    statistics: Mapping[str, Statistic]
    pairs: PairSet | None = None
    similarity: Array = field(default_factory=lambda: np.empty(0))
    rest: Array = field(default_factory=lambda: np.empty(0))
    ranking: Ranking | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one model on one task.

    Attributes:
        pairs: Name of the set of pairs, or of a task of another kind.
        role: What the set was used for: `dev` (it chose the checkpoint) or `test`.
        count: How many pairs or other items.
        model: Name of the model, or `word overlap`.
        score: The figure with its interval over items.
        baseline: The model that `difference` compares with.
        difference: This model minus the baseline, paired.
        metric: Name of the figure.
        main: Whether it is the task's main figure.
        standard_size: Whether the set has its published size; None where there is none.
        judged: What a language model's grades of these and other pairs did for it, if there are any.
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
    judged: Judged | None = None

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
        usual = {"metric": SPEARMAN, "main": True, "standard_size": None, "judged": None}
        return found | {name: value for name, value in row.items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class View:
    """B scored pairs as several models see them: what a report looks at beyond the scores.

    `similarity` are cosines (B,) by model; the one that the others are compared with comes first.
    """

    pairs: PairSet
    similarity: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class SearchView:
    """A search as several models do it, by model; the one that the others are compared with comes first.

    `role` is that of `Result`.
    """

    searched: SearchSet
    rankings: Mapping[str, Ranking]
    role: str = "test"


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of the models of several seeds.

    Attributes:
        pairs: The set or task.
        metric: Name of the figure.
        models: Names of the models.
        mean: Of their figures.
        sd: Their standard deviation, of a sample.
        baseline: What they were compared with, if anything.
        difference: Mean of the differences to it.
        difference_sd: Standard deviation of these.
    """

    pairs: str
    metric: str
    models: list[str]
    mean: float
    sd: float
    baseline: str | None = None
    difference: float | None = None
    difference_sd: float | None = None

    def sentence(self) -> str:
        """Return the figure in words, times 100."""
        what = "Spearman" if self.metric == SPEARMAN else self.metric
        said = f"{self.pairs}: {len(self.models)} seeds ({', '.join(self.models)}): {what} "
        said += f"{100 * self.mean:.1f} ± {100 * self.sd:.1f}"
        if self.difference is None or self.difference_sd is None:
            return said + "."
        gain = f"{100 * self.difference:+.1f} ± {100 * self.difference_sd:.1f}"
        return f"{said}, difference to {self.baseline} {gain}."


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What models did on all tasks.

    Attributes:
        results: In the order of the tasks, the baseline first.
        failed: Task that could not be measured, or `model NAME` that is damaged -> reason.
        views: The pairs of tasks that are about pairs, under every model.
        searches: The searches, with what every model found.
        seeds: Figures of models of one training with several seeds, see `seeds.spreads`.
        models: Name of each model -> directory, hub id or file as given; of none that was given in memory.
        untuned: Name of each model whose run kept the backbone -> folder of the weights that it tuned, or "".
    """

    results: list[Result]
    failed: dict[str, str] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    searches: list[SearchView] = field(default_factory=list)
    seeds: Sequence[Spread] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    untuned: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """Sentences on what readers of the figures must know and the figures do not show."""
        notes = [spread.sentence() for spread in self.seeds]
        notes += [
            f"{name} is the backbone: its run kept that{f'; what it tuned is in {tuned}' if tuned else ''}."
            for name, tuned in self.untuned.items()
        ]
        notes += [f"{s.searched.name}: {note}." for s in self.searches for note in s.searched.notes]
        if any(result.metric == BEST_ACCURACY for result in self.results):
            notes.append(f"{BEST_ACCURACY}: the threshold was chosen on the same pairs, which flatters it.")
        return notes

    def to_json(self) -> str:
        """Return the figures as JSON."""
        results = [{"metric": result.metric} | result.to_dict() for result in self.results]
        found: dict[str, Any] = {"models": dict(self.models), "results": results, "failed": self.failed}
        if self.seeds:
            found["seeds"] = [asdict(spread) for spread in self.seeds]
        if self.untuned:
            found["untuned"] = dict(self.untuned)
        return json.dumps(found, ensure_ascii=False, indent=1)


def judge(pairs: PairSet, similarity: Array, ranked: Ranked | None = None) -> Outcome:
    """Return the figures of cosines, or of other similarities.

    Args:
        pairs: Pairs with gold scores, not all equal.
        similarity: Of each pair (B,).
        ranked: The gold scores', where several models share it.
    """
    statistics = {SPEARMAN: spearman_of(pairs.score, similarity, ranked)}
    if set(np.unique(pairs.score).tolist()) == {0.0, 1.0}:
        gold = pairs.score == 1
        statistics["auc"] = area_under_curve(gold, similarity)
        statistics["average_precision"] = average_precision(gold, similarity)
        statistics[BEST_ACCURACY] = accuracy_of(gold, similarity, best_threshold(gold, similarity))
    return Outcome(statistics, pairs, similarity)


def accuracy_of(gold: NDArray[np.bool_], similarity: Array, threshold: float) -> Statistic:
    """Return how often calling the pairs above a threshold positive is right; `gold` (B,) says which are."""
    return mean_of(((similarity > threshold) == gold).astype(np.float64))


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


def compare(
    pairs: PairSet,
    similarities: Mapping[str, Array],
    *,
    baseline: str | None = None,
    role: str = "test",
    judged: JudgedPairs | None = None,
    rest: Mapping[str, Array] | None = None,
) -> list[Result]:
    """Return one result for word overlap and one for every model, by its similarities (B,) of the pairs.

    In the order given; the others are compared with the `baseline`, and `role` is that of `Result`. With
    pairs that a language model `judged`, `rest` are the similarities of those that it alone graded.
    """
    ranked = Ranked(pairs.score)
    columns = {WORD_OVERLAP: word_overlap(pairs), **similarities}
    others = {WORD_OVERLAP: word_overlap(judged.rest), **(rest or {})} if judged else {}
    outcomes = {
        name: Outcome(
            {SPEARMAN: spearman_of(pairs.score, column, ranked)},
            pairs,
            column,
            others.get(name, np.empty(0)),
        )
        for name, column in columns.items()
    }
    results = Comparison(baseline).on_task(pairs.name, outcomes, judged=judged)
    return [replace(result, role=role) for result in results]


class Comparison:
    """Compares models with a baseline, if any, on one task after the other."""

    def __init__(self, baseline: str | None = None) -> None:
        self._baseline = baseline

    def on_task(
        self,
        name: str,
        outcomes: Mapping[str, Outcome],
        published_size: int | None = None,
        seed: int = 0,
        judged: JudgedPairs | None = None,
    ) -> list[Result]:
        """Return the results of one task, figure by figure, the models in the order given.

        Word overlap may be among the `outcomes` by model, and the baseline must be. `published_size` is how
        many items the published set has; `seed` decides the resamples. Pairs that a language model `judged`
        correct the rank correlation alone.
        """
        results = []
        first = next(iter(outcomes.values()))
        sharing = Sharing([first.pairs]) if first.pairs else INDEPENDENT
        for number, metric in enumerate(first.statistics):
            statistics = [outcome.statistics[metric] for outcome in outcomes.values()]
            count = statistics[0].size
            standard = None if published_size is None else count == published_size
            of = partial(Result, name, "test", count, metric=metric, main=number == 0, standard_size=standard)
            drawn = draw_figures(statistics, resamples_for(count), seed)
            found = self._results(of, dict(zip(outcomes, drawn, strict=True)), sharing)
            if judged and first.pairs and metric == SPEARMAN:
                found = self._surer(found, first.pairs, outcomes, judged, seed)
            results += found
        return results

    def on_search(self, view: SearchView) -> list[Result]:
        """Return the results of a search, which a search by words comes before."""
        rankings = {BM25_WORDS: rank_by_words(view.searched), **view.rankings}
        outcomes = {model: Outcome(found.statistics()) for model, found in rankings.items()}
        return [replace(found, role=view.role) for found in self.on_task(view.searched.name, outcomes)]

    def _results(
        self, of: Callable[..., Result], figures: Mapping[str, Drawn], sharing: Sharing
    ) -> list[Result]:
        """Return the result `of` every model, compared with the baseline."""
        results = []
        for model, figure in figures.items():
            result = of(model=model, score=_interval(figure, sharing, most=1.0))
            if self._baseline and model not in (self._baseline, *WITHOUT_MODEL):
                gain = _interval(figure.minus(figures[self._baseline]), sharing)
                difference = Difference(gain.value, gain.low, gain.high)
                result = replace(result, baseline=self._baseline, difference=difference)
            results.append(result)
        return results

    def _surer(
        self,
        alone: Sequence[Result],
        pairs: PairSet,
        outcomes: Mapping[str, Outcome],
        judged: JudgedPairs,
        seed: int,
    ) -> list[Result]:
        """Return the results with what a language model's grades say, beside those by people's `alone`."""
        columns = {model: np.append(outcome.similarity, outcome.rest) for model, outcome in outcomes.items()}
        found = with_judge(pairs, judged, columns, self._baseline, seed)
        of = partial(replace, alone[0], baseline=None, difference=None)
        results = []
        for before, after in zip(
            alone, self._results(of, found.figures, Sharing([pairs, judged.rest])), strict=True
        ):
            note = found.notes[before.model]
            note = replace(note, alone=before.score, alone_difference=before.difference)
            results.append(replace(before if note.unused else after, judged=note))
        return results


def _interval(figure: Drawn, sharing: Sharing, most: float = 2.0) -> Interval:
    """Return a figure with its interval, both cut off at `most`: no score is beyond 1, no difference 2."""
    value, drawn = np.clip(figure.value, -most, most), np.clip(sharing.widened(figure), -most, most)
    return interval_around(float(value), drawn)
