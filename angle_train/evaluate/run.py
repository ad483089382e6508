"""Evaluates models on pair sources: every model on every source, compared with a baseline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.data.pairs import check_stated_scale, distinct_names, load_pairs
from angle_train.data.sources import dataset_splits, is_dataset
from angle_train.evaluate.compare import Result, compare
from angle_train.evaluate.seeds import short_names
from angle_train.evaluate.similarity import cosine_rows, embed_pairs
from angle_train.evaluate.views import Sampled, View, sample
from angle_train.model.load import load_backbone, quiet_libraries

log = logging.getLogger("angle.evaluate")

_FEW = 20  # a resample of fewer repeats half of them; with five, the interval may have no width at all


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results source by source, and the sources as the models see them, the baseline first."""

    results: list[Result]
    views: list[View]


def evaluate_closely(
    models: Sequence[str],
    sources: Sequence[str],
    *,
    baseline: str | None = None,
    split: str | None = None,
    scale: str | None = None,
    device: str | None = None,
) -> Evaluation:
    """Measure word overlap, the baseline and every model on every source.

    Args:
        models: Directories or hub ids.
        sources: Sources of scored pairs, see `pairs.load_pairs`.
        baseline: Directory or hub id of the model that the others are compared with.
        split: Rows of files with a `split` column, or the split of datasets; default all rows, or test.
        scale: Scale of the scores, `LOW-HIGH`, see `pairs.load_pairs`; default detected.
        device: `cpu`, `cuda` …; default the best there is.

    Raises:
        InputError: A model or a source cannot be used.
    """
    sets = [load_pairs(source, split=_split_of(source, split), scale=scale, rows=split) for source in sources]
    check_stated_scale(scale, sets)
    sets = distinct_names(sets, sources)
    for pairs in sets:
        if len(pairs) < _FEW:
            log.warning("%s has %d pairs only: its figures and intervals say little", pairs.name, len(pairs))
    chosen = list(dict.fromkeys([baseline, *models] if baseline else models))
    names = short_names(chosen)
    similarity: list[dict[str, NDArray[np.float64]]] = [{} for _ in sets]
    sampled: list[dict[str, Sampled]] = [{} for _ in sets]
    with Progress("evaluating", len(chosen) * len(sets)) as progress:
        for model_name in chosen:
            model = load_backbone(model_name, device=device)
            with quiet_libraries():
                for number, pairs in enumerate(sets):
                    first, second = embed_pairs(model, pairs)
                    similarity[number][names[model_name]] = cosine_rows(first, second)
                    chosen_pairs = sample(len(pairs))
                    sampled[number][names[model_name]] = first[chosen_pairs], second[chosen_pairs]
                    progress.advance()
    base = names[baseline] if baseline else None
    results = [
        result
        for pairs, columns in zip(sets, similarity, strict=True)
        for result in compare(pairs, columns, baseline=base)
    ]
    views = [
        View(pairs.name, pairs.text1, pairs.text2, pairs.score, columns, rows)
        for pairs, columns, rows in zip(sets, similarity, sampled, strict=True)
    ]
    return Evaluation(results, views)


def _split_of(source: str, split: str | None) -> str | None:
    """Return the split of a data set to measure on: pairs that models train on are never taken unasked."""
    if split is not None or not is_dataset(source):
        return "validation" if split == "dev" else split
    found = dataset_splits(source)
    if "test" in found or len(found) == 1:
        return "test" if "test" in found else found[0]
    raise InputError(f"{source} has the splits {', '.join(found)}; choose one with --split")
