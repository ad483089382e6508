"""Evaluates models on pair sources: every model on every source, compared with a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from angle_data.console import Progress
from angle_train.backbones import load_backbone, quiet_libraries
from angle_train.evaluate.compare import Result, compare
from angle_train.evaluate.sts import evaluate_model
from angle_train.pairs import check_stated_scale, load_pairs

__all__ = ["evaluate"]


def evaluate(
    models: Sequence[str],
    sources: Sequence[str],
    *,
    baseline: str | None = None,
    split: str | None = None,
    scale: str | None = None,
    device: str | None = None,
) -> list[Result]:
    """Return the results of word overlap, the baseline and every model, source by source.

    Args:
        models: Directories or hub ids.
        sources: Sources of scored pairs, see `pairs.load_pairs`.
        baseline: Directory or hub id of the model that the others are compared with.
        split: Rows of files with a `split` column, or the split of datasets.
        scale: Scale of the scores, `LOW-HIGH`, see `pairs.load_pairs`; default detected.
        device: `cpu`, `cuda` …; default the best there is.

    Raises:
        InputError: A model or a source cannot be used.
    """
    part = "validation" if split == "dev" else split
    sets = [load_pairs(source, split=part, scale=scale, rows=split) for source in sources]
    check_stated_scale(scale, sets)
    chosen = list(dict.fromkeys([baseline, *models] if baseline else models))
    names = _short_names(chosen)
    columns = []
    with Progress("evaluating", len(chosen) * len(sets)) as progress:
        for model_name in chosen:
            model = load_backbone(model_name, device=device)
            with quiet_libraries():
                for pairs in sets:
                    columns.append((names[model_name], evaluate_model(model, pairs)))
                    progress.advance()
    return [
        result
        for position, pairs in enumerate(sets)
        for result in compare(
            pairs,
            dict(columns[position :: len(sets)]),
            baseline=names[baseline] if baseline else None,
        )
    ]


def _short_names(models: Sequence[str]) -> dict[str, str]:
    """Return the last part of each id or path where that is unambiguous, else the whole."""
    last = [Path(model).name or model for model in models]
    return {
        model: short if last.count(short) == 1 else model for model, short in zip(models, last, strict=True)
    }
