"""Long pairs: what reading more than the start of a text brings, untuned and tuned.

    ANGLE_BENCH_DATA=FOLDER python benchmarks/training/long_text.py [--tuned] [--seeds 1 2 3] [--only NAME …]

Data: bug-duplicates, title and body of issues (median 82 words, a tenth beyond 400). Backbone: MiniLM, which
reads 256 tokens as published and has positions for 512. Every row reads the same pairs; CPU seconds are those
of encoding them, with one thread. `long` are the pairs of which a text has more than 256 tokens.
Tuned: the default recipe, one epoch over --pairs training pairs, the checkpoint chosen on 400 others; each
run is kept under runs/benchmarks/long-text and not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import RESULTS, data_folder, minilm

from angle_data.console import configure_logging
from angle_data.jsonl import write_jsonl
from angle_train.data.pairs import PairSet, load_pairs
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.fit import FitConfig, fit
from angle_train.model.load import load_backbone
from angle_train.model.prepare import load_for_training
from angle_train.recipe import Recipe
from angle_train.settings import BackboneConfig

WINDOWS = {"long_text": "windows"}
ROWS: dict[str, tuple[int, dict[str, Any]]] = {
    "cut 64": (64, {}),
    "cut 128": (128, {}),
    "cut 256 (as published)": (256, {}),
    "cut 512": (512, {}),
    "head+tail 128": (128, {"long_text": "head_tail"}),
    "head+tail 256": (256, {"long_text": "head_tail"}),
    "head+tail 512": (512, {"long_text": "head_tail"}),
    "windows 128": (128, WINDOWS),
    "windows 128, memory 16": (128, WINDOWS | {"window_memory": 16}),
    "windows 128, memory 32": (128, WINDOWS | {"window_memory": 32}),
    "windows 256": (256, WINDOWS),
    "windows 256, memory 32": (256, WINDOWS | {"window_memory": 32}),
    "windows 512": (512, WINDOWS),
}
TUNED = ["cut 128", "cut 256 (as published)", "head+tail 128", "windows 128, memory 32"]
FOLDER = RESULTS / "long-text"
LONG, DEV = 256, 400


def measured(model: Any, pairs: PairSet, long: list[int]) -> dict[str, float]:
    """Return Spearman and AUC (x 100) on all pairs and on the long ones, and CPU seconds."""
    from sklearn.metrics import roc_auc_score

    started = time.process_time()
    similarity = evaluate_model(model, pairs, batch_size=32)
    seconds = time.process_time() - started
    row = {"seconds": seconds}
    for name, where in (("all", list(range(len(pairs)))), ("long", long)):
        gold, column = pairs.score[where], similarity[where]
        row[f"spearman {name}"] = 100 * spearman(gold, column)
        row[f"AUC {name}"] = 100 * float(roc_auc_score(gold > 0.5, column))
    return row


def long_ones(pairs: PairSet) -> list[int]:
    """Return the pairs of which a text has more than LONG tokens."""
    tokenizer = load_backbone(str(minilm()), device="cpu").tokenizer
    lengths = {
        text: len(ids)
        for text, ids in zip(
            pairs.text1 + pairs.text2,
            tokenizer([*pairs.text1, *pairs.text2], verbose=False)["input_ids"],
            strict=True,
        )
    }
    both = zip(pairs.text1, pairs.text2, strict=True)
    return [i for i, (a, b) in enumerate(both) if max(lengths[a], lengths[b]) > LONG]


def divided(folder: Path, count: int) -> tuple[Path, Path]:
    """Write `count` training pairs and DEV others that share no text with them."""
    pairs = load_pairs(str(folder / "train.jsonl.gz"))
    order = list(range(len(pairs)))
    random.Random(0).shuffle(order)
    taken, files = set(), []
    for name, size in (("dev", DEV), (f"train-{count}", count)):
        rows = []
        for i in order:
            texts = {pairs.text1[i], pairs.text2[i]}
            if len(rows) < size and (name == "dev" or not texts & taken):
                rows.append(
                    {"text1": pairs.text1[i], "text2": pairs.text2[i], "score": float(pairs.score[i])}
                )
                if name == "dev":
                    taken |= texts
        files.append(FOLDER / f"{name}.jsonl")
        write_jsonl(files[-1], iter(rows))
    return files[1], files[0]


def tuned(name: str, seed: int, train: Path, dev: Path, test: PairSet, long: list[int]) -> dict[str, float]:
    """Train one row with one seed, or return what an earlier run measured."""
    length, changes = ROWS[name]
    result = FOLDER / f"{name}-{train.stem}-{seed}.json"
    if result.exists():
        return dict(json.loads(result.read_text()))
    recipe = Recipe(backbone=BackboneConfig(**changes))
    training = replace(
        recipe.training, max_seq_length=length, seed=seed, epochs=1.0, batch_size=32, learning_rate=5e-5
    )
    out = result.with_suffix("")
    shutil.rmtree(out, ignore_errors=True)
    started = time.process_time()
    fit(FitConfig([str(train)], str(minilm()), out, replace(recipe, training=training), dev=[str(dev)]))
    spent = time.process_time() - started
    row = measured(load_backbone(str(out), length, "cpu"), test, long) | {"training seconds": spent}
    shutil.rmtree(out)
    result.write_text(json.dumps(row))
    return row


def show(title: str, rows: dict[str, list[dict[str, float]]]) -> None:
    """Print the means of the rows over their seeds."""
    columns = ["spearman all", "AUC all", "spearman long", "AUC long", "seconds"]
    width = max(map(len, rows))
    print(f"\n{title}\n  {'':<{width}}  " + "  ".join(f"{column:>13}" for column in columns))
    for name, runs in rows.items():
        means = [sum(run[column] for run in runs) / len(runs) for column in columns]
        print(f"  {name:<{width}}  " + "  ".join(f"{mean:13.2f}" for mean in means), flush=True)


def main() -> None:
    """Measure every row untuned and, if asked, tuned."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", help="rows to run; default all, tuned four of them")
    parser.add_argument("--pairs", type=int, default=1500)
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = data_folder() / "data" / "bug-duplicates"
    test = load_pairs(str(folder / "validation.jsonl.gz"))
    long = long_ones(test)
    print(f"{len(test)} pairs, {len(long)} of them with a text of more than {LONG} tokens", flush=True)
    if arguments.tuned:
        train, dev = divided(folder, arguments.pairs)
        rows: dict[str, list[dict[str, float]]] = {}
        for seed in arguments.seeds:
            for name in arguments.only or TUNED:
                rows.setdefault(name, []).append(tuned(name, seed, train, dev, test, long))
                print(f"{name} seed {seed}: {rows[name][-1]}", flush=True)
        show(f"tuned on {arguments.pairs} pairs, mean of seeds {arguments.seeds}", rows)
        return
    untuned = {}
    for name in arguments.only or ROWS:
        length, changes = ROWS[name]
        model = load_for_training(
            str(minilm()), BackboneConfig(**changes), max_seq_length=length, device="cpu"
        )
        untuned[name] = [measured(model, test, long)]
        print(f"{name}: {untuned[name][0]}", flush=True)
    show("untuned", untuned)
    (FOLDER / "untuned.json").write_text(json.dumps(untuned, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
