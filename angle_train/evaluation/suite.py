"""Measures models on tasks: those that have a name, and the user's own pairs as tasks like them.

The data of all tasks is read before any model is loaded. A task that cannot be measured, for its data or
under one of the models, is reported and left out, and so is a damaged model; the others go on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_data.text import counted, stable_hash
from angle_train.data.judged import ONE_SET, JudgedPairs, match_judged
from angle_train.data.pairs import PairSet, distinct_names, load_pairs
from angle_train.data.search_set import SearchSet
from angle_train.data.sources import dataset_splits, is_dataset
from angle_train.evaluation.compare import (
    WORD_OVERLAP,
    Comparison,
    Evaluation,
    Outcome,
    SearchView,
    View,
    judge,
)
from angle_train.evaluation.search import rank_documents
from angle_train.evaluation.seeds import kept_backbones, spreads
from angle_train.evaluation.similarity import (
    DamagedModelError,
    Embedder,
    Encode,
    encoder_of,
    pair_similarity,
    word_overlap,
)
from angle_train.evaluation.statistics import Ranked
from angle_train.evaluation.task import Source, Task
from angle_train.model.load import telling_name
from angle_train.model.roles import NO_ROLES, RolePrompts

log = logging.getLogger("angle.evaluate")

_FEW = 20  # a resample of fewer repeats half of them; with five, the interval may have no width at all
_FEW_SOURCES = 5  # or pairs without a common text: what all pairs share widens no interval


@dataclass(frozen=True, slots=True)
class OwnPairs:
    """The task that a set of the user's own pairs is; `ranked` are its gold scores.

    `judged` is what a language model says of them and of other pairs, if it was asked.
    """

    pairs: PairSet
    ranked: Ranked
    standard_size: int | None = None
    judged: JudgedPairs | None = None

    def load(self, source: Source) -> PairSet:
        """Return the pairs."""
        return self.pairs

    def measure(self, data: PairSet, encode: Encode) -> Outcome:
        """Judge the cosines."""
        found = judge(data, pair_similarity(data, encode), ranked=self.ranked)
        return replace(found, rest=pair_similarity(self.judged.rest, encode)) if self.judged else found

    def word_overlap(self) -> Outcome:
        """Return what counting the words that two texts share does."""
        found = judge(self.pairs, word_overlap(self.pairs), ranked=self.ranked)
        return replace(found, rest=word_overlap(self.judged.rest)) if self.judged else found


@dataclass(frozen=True, slots=True)
class OwnSearch:
    """The task that documents, queries and grades of the user's own are."""

    searched: SearchSet
    standard_size: int | None = None

    def load(self, source: Source) -> SearchSet:
        """Return what is searched."""
        return self.searched

    def measure(self, data: SearchSet, encode: Encode) -> Outcome:
        """Search, and judge what is found for each query."""
        ranking = rank_documents(data, encode)
        return Outcome(ranking.statistics(), ranking=ranking)


def own_pairs(
    sources: Sequence[str],
    split: str | None = None,
    scale: str | None = None,
    judged: str | None = None,
    *,
    roles: bool = False,
) -> dict[str, OwnPairs]:
    """Return the tasks that sources of scored pairs are, see `data.pairs.load_pairs`, by names that differ.

    `split` names the rows of files, which need a `split` column then, or the split of datasets; default all
    rows, or test. `scale` is that of the scores, `LOW-HIGH`; default detected. `judged` are pairs that a
    language model graded, see `data.judged.load_judged`; the one source must be a sample of them. `roles`
    says that text1 is a query and text2 a document.
    """
    if judged and len(sources) > 1:
        raise InputError(ONE_SET.format("--pairs"))
    sets = [load_pairs(s, _split_of(s, split), scale, rows=split, split_needed=True) for s in sources]
    sets = [replace(pairs, roles=roles) for pairs in distinct_names(sets)]
    for pairs in sets:
        if len(pairs) < _FEW:
            log.warning("%s has only %d pairs: figures and intervals are unreliable", pairs.name, len(pairs))
        elif pairs.source_count < _FEW_SOURCES:
            what = f"{counted(len(pairs), 'pair')}, {pairs.counted_sources()}"
            log.warning("%s: %s: intervals hold for these texts alone", pairs.name, what)
    return {
        pairs.name: OwnPairs(
            pairs, Ranked(pairs.score), judged=match_judged(judged, pairs) if judged else None
        )
        for pairs in sets
    }


def role_prompts(given: Mapping[str, Any]) -> RolePrompts:
    """Return what an evaluation was told of queries and documents, by the names of its options."""
    prompts = (given["query_prompt"] or "", given["document_prompt"] or "")
    return RolePrompts(bool(given["roles"]), *prompts)


def _split_of(source: str, split: str | None) -> str | None:
    """Return the split of a data set to measure on: pairs that models train on are never taken unasked."""
    if split is not None or not is_dataset(source):
        return "validation" if split == "dev" else split
    found = dataset_splits(source)
    if "test" in found or len(found) == 1:
        return "test" if "test" in found else found[0]
    raise InputError(f"{source} has the splits {', '.join(found)}; choose one with --split")


def evaluate(
    models: Sequence[str],
    tasks: Mapping[str, Task],
    source: Source,
    baseline: str | None = None,
    device: str | None = None,
    prompts: RolePrompts = NO_ROLES,
) -> Evaluation:
    """Measure models on tasks, and call them by `short_names`.

    Args:
        models: Directories, hub ids or files of vectors; the baseline is measured too and comes first.
        tasks: Name -> task, see `task.load_task` and `own_pairs`.
        source: Where the tasks' data is; not asked for the user's own pairs.
        baseline: What the others are compared with, unless it is damaged.
        device: `cpu`, `cuda` …; default the best there is.
        prompts: Of queries and documents, for all models.

    Raises:
        InputError: Nothing can be measured.
    """
    given = [*([baseline] if baseline else []), *models]
    _warn_of_repeated(given)
    names = short_names(given)
    data: dict[str, Any] = {}
    failed: dict[str, str] = {}

    def fail(name: str, error: InputError, others: Sized) -> None:
        if len(others) == 1:
            raise error
        failed[name] = str(error)
        log.error("%s: %s", name, error)

    for name, task in tasks.items():
        try:
            data[name] = task.load(source)
        except InputError as error:
            fail(name, error, tasks)
    if not data:
        raise InputError("none of the tasks can be measured; see above")
    outcomes: dict[str, dict[str, Outcome]] = {name: {} for name in data}
    with Progress("evaluating", len(names) * len(data)) as progress:
        for model, called in names.items():
            left = {name: (tasks[name], data[name]) for name in data if name not in failed}  # under others
            try:
                measured = dict(_outcomes(encoder_of(model, device, prompts), left, progress))
            except InputError as error:
                fail(f"model {called}", error, names)
                continue
            for name, outcome in measured.items():
                if isinstance(outcome, InputError):
                    fail(name, outcome, data)
                else:
                    outcomes[name][called] = outcome
    done = {name: found for name, found in outcomes.items() if found and name not in failed}
    compared = names[baseline] if baseline and f"model {names[baseline]}" not in failed else None
    found = _compared(tasks, done, failed, Comparison(compared))
    by_name = {name: model for model, name in names.items()}
    sound = {model: name for model, name in names.items() if f"model {name}" not in failed}
    untuned = kept_backbones(sound)
    return replace(found, seeds=spreads(found.results, names), models=by_name, untuned=untuned)


def _warn_of_repeated(given: Sequence[str]) -> None:
    for model, count in Counter(given).items():
        if count > 1:
            log.warning(
                "warning: %s is given %d times, as a model or the baseline, and is measured once",
                model,
                count,
            )


def _outcomes(
    embed: Encode, tasks: Mapping[str, tuple[Task, Any]], progress: Progress
) -> Iterator[tuple[str, Outcome | InputError]]:
    """Yield what one model does on each task, or why it cannot be measured there; hold it only meanwhile."""
    for name, (task, found) in tasks.items():
        progress.advance()
        try:
            if isinstance(embed, Embedder) and not isinstance(task, OwnSearch):
                embed.check_cosine()
            yield name, task.measure(found, embed)
        except DamagedModelError:
            raise
        except InputError as error:
            yield name, error


def _compared(
    tasks: Mapping[str, Task],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    failed: dict[str, str],
    comparison: Comparison,
) -> Evaluation:
    """Return what is known of the tasks that every model managed."""
    if not outcomes:
        raise InputError("nothing could be measured; see above")
    results = []
    views = []
    searches = []
    for name, found in outcomes.items():
        task = tasks[name]
        if isinstance(task, OwnPairs):
            found = {WORD_OVERLAP: task.word_overlap(), **found}
            results += comparison.on_task(name, found, judged=task.judged)
        elif isinstance(task, OwnSearch):
            rankings = {model: outcome.ranking for model, outcome in found.items() if outcome.ranking}
            searches.append(SearchView(task.searched, rankings))
            results += comparison.on_search(searches[-1])
        else:
            results += comparison.on_task(name, found, task.standard_size, stable_hash(name) % 2**32)
        if pairs := next(iter(found.values())).pairs:
            similarity = {model: outcome.similarity for model, outcome in outcomes[name].items()}
            views.append(View(replace(pairs, name=name), similarity))
    return Evaluation(results, failed, views, searches)


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Return what to call each model: as many last parts of its id or path as tell it from the others.

    A folder whose name says nothing is called as its card is, if that tells all folders of its name apart.
    """
    names = {}
    for model in models:
        parts = Path(model).parts or (model,)
        others = [Path("/", other).parts for other in models if other != model]
        counts = range(1, len(parts) + 1)
        unlike = (count for count in counts if all(other[-count:] != parts[-count:] for other in others))
        count = next(unlike, None)
        names[model] = "/".join(parts[-count:]) if count else model
    told = {model: None if Path(model).is_symlink() else telling_name(model, above=False) for model in names}
    called = Counter([*told.values(), *names.values()])
    alike = {Path(model).name for model, name in told.items() if name is None or called[name] > 1}
    return names | {model: name for model, name in told.items() if name and Path(model).name not in alike}
