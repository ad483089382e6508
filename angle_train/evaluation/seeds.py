"""What model folders say of their training: which are one training with several seeds, which no training."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from angle_train.data.splits import JUDGED
from angle_train.evaluation.compare import Result, Spread

_MEASURE = {"test", "search", JUDGED}
"""Roles of data that neither trained nor chose."""


def spreads(results: Sequence[Result], models: Mapping[str, str]) -> list[Spread]:
    """Return every main figure of the models that are one training with several seeds.

    `models` are their folders, or hub ids, with the names that the results call them.
    """
    runs: dict[str, list[str]] = {}
    for model, name in models.items():
        if run := _run_of(Path(model)):
            runs.setdefault(run, []).append(name)
    found = []
    for names in runs.values():
        sets: dict[tuple[str, str], list[Result]] = {}
        for result in results:
            if result.model in names and result.main:
                sets.setdefault((result.pairs, result.metric), []).append(result)
        found += [_spread(*place, of) for place, of in sets.items() if len(of) > 1]
    return found


def _spread(pairs: str, metric: str, results: Sequence[Result]) -> Spread:
    values = [result.score.value for result in results]
    gains = [result.difference.delta for result in results if result.difference]
    compared = len(gains) == len(values)
    return Spread(
        pairs=pairs,
        metric=metric,
        models=[result.model for result in results],
        mean=statistics.mean(values),
        sd=statistics.stdev(values),
        baseline=results[0].baseline if compared else None,
        difference=statistics.mean(gains) if compared else None,
        difference_sd=statistics.stdev(gains) if compared else None,
    )


def kept_backbones(models: Mapping[str, str]) -> dict[str, str]:
    """Return those of the `models`, as `spreads` has them, whose run kept the backbone.

    By name, with the folder of the weights that it tuned; "" where there is none.
    """
    kept = {name: Path(model) for model, name in models.items()}
    kept = {name: folder for name, folder in kept.items() if _report_of(folder).get("kept") == "backbone"}
    return {
        name: str(folder / "tuned") if (folder / "tuned").is_dir() else "" for name, folder in kept.items()
    }


def _report_of(folder: Path) -> Mapping[str, Any]:
    """Return what a saved model says of its training; nothing where that is not known."""
    with suppress(OSError, ValueError):
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if isinstance(report, dict):
            return report
    return {}


def _run_of(folder: Path) -> str:
    """Return what a saved model was trained with but for the seed; nothing where that is not known.

    A run that kept the backbone is no training of it. Pairs are named, not compared: those that a run holds
    out itself depend on its seed.
    """
    report = _report_of(folder)
    with suppress(LookupError, TypeError, AttributeError, ValueError):
        if report["kept"] != "tuned":
            return ""
        training = {key: value for key, value in report["recipe"]["training"].items() if key != "seed"}
        recipe = report["recipe"] | {"training": training}
        data = [(note["role"], note["name"]) for note in report["data"] if note["role"] not in _MEASURE]
        return json.dumps([report["backbone"], recipe, data], sort_keys=True)
    return ""
