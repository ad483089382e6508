"""Trials of recipe values: what the demo's training gains on dev pairs, and what it loses on other text.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/less_harm.py - frozen_layers=3,keep_weight=250
    … --epochs 2 --seeds 1 2 3

Each trial trains on the demo's pairs by the recipe `opposites` with the values given, in one stage unless
they say otherwise, to the end: nothing is chosen. It is then measured with several shares of the backbone
mixed in. The guards are those of `no_harm.py` and whole bug reports (../log/frozen-layers.md). Finished
trials are not repeated.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, data_folder, minilm, options  # noqa: E402
from llm_supervised import cloud_ops, data_sets, rows_of  # noqa: E402
from no_harm import PARTS, guards, scores  # noqa: E402

from angle_data.console import configure_logging  # noqa: E402
from angle_data.jsonl import write_jsonl  # noqa: E402
from angle_train import run as fitting  # noqa: E402
from angle_train.options import FitOptions  # noqa: E402
from angle_train.recipe import Recipe, find_recipe, parse_settings  # noqa: E402
from angle_train.training.merging import blended, snapshot  # noqa: E402
from angle_train.training.run_directory import RunDirectory  # noqa: E402

OUT = RESULTS / "training" / "less-harm.json"
_TITLES, _REPORTS, _CHARACTERS = PARTS["dev"]["bug-titles"][2] or 0, 100, 600
_LEFT_OUT = ("sick",)  # never lost anything


def reports() -> Path:
    """Write pairs of whole bug reports, none of which is among those whose titles are a guard."""
    rows = [*rows_of(data_folder() / "data" / "bug-duplicates" / "train.jsonl.gz")]
    found = [{"text1": row["text1"], "text2": row["text2"], "score": row["label"]} for row in rows]
    random.Random(0).shuffle(found)  # as `guards` does: the first are those of the titles
    cut = [
        {name: text[:_CHARACTERS] if isinstance(text, str) else text for name, text in row.items()}
        for row in found[_TITLES : _TITLES + _REPORTS]
    ]
    file = RESULTS / "training" / "no-harm" / "dev" / "bug-reports.jsonl"
    write_jsonl(file, cut)
    return file


def run_of(
    values: Sequence[str], seed: int, epochs: float, keep: Sequence[str], pairs: str | None
) -> fitting.FitRun:
    """Return a run of the demo's pairs with these values of the recipe, as `fit` makes it."""
    task = cloud_ops()
    shared = {"seed": seed, "epochs": epochs, "average_with_backbone": 0.0, "distil_epochs": 0.0}
    recipe = Recipe.from_toml(find_recipe(task.purpose)).with_overrides(shared | parse_settings(values))
    guarded = [file for file in guards("dev") if Path(file).stem not in _LEFT_OUT]
    files: dict[str, Any] = {"dev": [*map(str, task.dev)], "guard": [*guarded, str(reports())]}
    data_set = [pairs or str(data_sets(task)["all"])]
    given = FitOptions(str(minilm()), OUT.parent, data_set, recipe=recipe, keep=list(keep) or None, **files)
    data, settled = fitting.load_data(given)
    return fitting.FitRun(given, settled, data, RunDirectory(OUT.parent, {}))


def trial(run: fitting.FitRun, before: dict[str, float] | None, shares: Sequence[float]) -> dict[str, Any]:
    """Train, and return the scores before it and those after it with each share of the backbone."""
    run, model, _ = fitting.load_model(run)
    run = fitting.run_with_texts_to_keep(run, fitting.measure_base_model(run, model))
    sets = [*run.data.dev, *(guard.pairs for guard in run.data.guards if guard.kind != "own")]
    before, backbone = before or scores(model, sets), snapshot(model)
    begun = time.process_time()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        run = replace(run, directory=RunDirectory(Path(scratch), {}))
        run.train(model)
    cpu = time.process_time() - begun
    after = {}
    for share in shares:
        with blended(model, backbone, share):
            after[str(share)] = scores(model, sets)
    return {"before": before, "after": after, "cpu": cpu}


def main() -> None:
    """Make the trials that are missing and print what each gained and lost."""
    parser = options(__doc__)
    parser.add_argument("trials", nargs="*", metavar="KEY=VALUE,…", help="values of the recipe; - for none")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.2], help="of the backbone")
    parser.add_argument("--data", metavar="DIR", help="the demo's pairs, made before")
    parser.add_argument("--keep", nargs="+", default=[], metavar="FILE", help="further texts to keep")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    done: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for seed in arguments.seeds:
        for asked in arguments.trials:
            kept = "".join(f" +{Path(file).stem}" for file in arguments.keep)
            name = f"{asked}{kept} epochs {arguments.epochs:g} seed {seed}"
            if name not in done:
                values = [value for value in asked.split(",") if value != "-"]
                run = run_of(values, seed, arguments.epochs, arguments.keep, arguments.data)
                before = next((found["before"] for found in done.values()), None)
                done[name] = trial(run, before, arguments.shares)
                OUT.parent.mkdir(parents=True, exist_ok=True)
                OUT.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
            show(name, done[name])


def show(name: str, found: dict[str, Any]) -> None:
    """Print the dev scores of a trial, and what the others changed, for each share of the backbone."""
    before = found["before"]
    for share, after in found["after"].items():
        parts = [
            f"{pairs} {after[pairs]:.1f}"
            if "eval_" in pairs
            else f"{pairs} {after[pairs] - before[pairs]:+.1f}"
            for pairs in before
        ]
        print(f"{name}, share {share}: {'; '.join(parts)}; {found['cpu']:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
