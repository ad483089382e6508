"""Whole training runs of this toolkit, sentence-transformers and angle_emb on the same pairs, in CPU seconds.

    python benchmarks/training/speed.py [--repetitions 5] [--shapes natural repeated] [--only …] [--epochs 1]

320 made-up pairs in batches of 32, one epoch, all-MiniLM-L6-v2, fp32, one thread, no evaluation; each run
writes one checkpoint. `natural`: the numbers of words are lognormal(2.6, 0.6), 320 pairs of different
texts. `repeated`: 40 anchors with 8 partners each, in blocks of 8. The ways take turns, so that each
repetition meets the same machine; ratios are taken inside a repetition. CPU seconds are those of training
alone, without imports.

With `--epochs 3` every text is seen three times: layers that are frozen are computed in the first alone.

Rows: `ours` and the stock trainer and angle_emb have the same loss function, CoSENT's; `published angle`
and ST AnglELoss have another.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from cases import Case, Way, backbone_path
from common import RESULTS, ROOT, options, spread
from ways import angle_emb, ours, stock

from angle_data.console import configure_logging
from angle_train.data.pairs import PairSet
from angle_train.recipe import Recipe

OUT = RESULTS / "training" / "speed.json"
SHAPES = ("natural", "repeated")
_SEED = 1


def made_up(shape: str) -> PairSet:
    """Return 320 pairs of random words of the demo's texts with scores 0, 0.2 … 1."""
    import numpy as np

    rng = np.random.default_rng(0)
    lines = (ROOT / "examples" / "cloud-ops" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    prose = " ".join(json.loads(line)["text"] for line in lines)
    words = sorted({word for word in prose.split() if word.isalpha()})

    def text() -> str:
        return " ".join(rng.choice(words, size=max(2, round(rng.lognormal(2.6, 0.6)))))

    anchors = [text() for _ in range(320 if shape == "natural" else 40)]
    first = [anchor for anchor in anchors for _ in range(320 // len(anchors))]
    score = rng.integers(0, 6, size=320) / 5
    return PairSet(shape, first, [text() for _ in range(320)], score, np.ones(320))


def recipe_of(shape: str, epochs: float) -> Recipe:
    """Return the recipe of all ways: ten batches an epoch; anchors stay together where they repeat."""
    shared = {
        "epochs": epochs,
        "batch_size": 32,
        "learning_rate": 5e-5,
        "evals_per_epoch": 1,
        "precision": "fp32",
    }
    block = {"source_block": 8} if shape == "repeated" else {}
    fixed = {"loss": "papers", "seed": _SEED, "max_seq_length": 128}
    return Recipe().with_overrides(shared | block | fixed)


_COSINE = {"in_batch_weight": 0.0, "angle_weight": 0.0, "swap": False}
_ANGLE = {"cosine_weight": 0.0, "in_batch_weight": 0.0, "angle_mode": "published", "angle_tau": 0.05}
WAYS: dict[str, Way] = {
    "ours": ours(**_COSINE),
    "ST CoSENTLoss": stock("CoSENTLoss"),
    "ours, published angle": ours(**_ANGLE, swap=False),
    "ST AnglELoss": stock("AnglELoss"),
    "angle_emb": angle_emb(cosine_w=1.0, ibn_w=0.0, angle_w=0.0),
    **{f"ours, {count} layers frozen": ours(**_COSINE, frozen_layers=count) for count in (2, 3, 4)},
}


def measure(way: str, pairs: PairSet, epochs: float = 1) -> float:
    """Return the CPU seconds of one whole training."""
    from angle_train.model.load import load_backbone

    model = load_backbone(str(backbone_path("minilm")), 128)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        started = time.process_time()
        case = Case(pairs.name, pairs, dev=None, test=None)
        notes = WAYS[way].train(model, case, recipe_of(pairs.name, epochs), Path(scratch))
        return float(notes.get("cpu_seconds") or time.process_time() - started)


def print_table(kept: list[dict[str, Any]]) -> None:
    """Print medians, ranges and the ratio to the CPU seconds of `ours` in the same repetition."""
    for shape in dict.fromkeys(row["shape"] for row in kept):
        print(f"\n{shape}\n\n| way | CPU s, median (range) | ratio to ours |\n| --- | --- | --- |")
        rows = [row for row in kept if row["shape"] == shape]
        for way in dict.fromkeys(row["way"] for row in rows):
            own = {row["repetition"]: row["cpu"] for row in rows if row["way"] == "ours"}
            runs = {row["repetition"]: row["cpu"] for row in rows if row["way"] == way}
            ratios = [cpu / own[repetition] for repetition, cpu in runs.items() if repetition in own]
            ratio = spread(ratios, ".2f") if ratios else ""
            print(f"| {way} | {spread(list(runs.values()), '.1f')} | {ratio} |")


def measure_missing(kept: list[dict[str, Any]], asked: argparse.Namespace, out: Path) -> None:
    """Measure what `kept` lacks of what was asked for, a repetition at a time; add it there and to `out`."""
    have = {(row["shape"], row["way"], row["repetition"]) for row in kept}
    for way in ("ours", "ST CoSENTLoss"):  # not kept: imports inside the trainers, first use of every kernel
        measure(way, made_up("natural").take(range(32), "natural"))
    for repetition, shape, way in product(range(asked.repetitions), asked.shapes, asked.only):
        if (shape, way, repetition) in have:
            continue
        pairs = made_up(shape)
        cpu = measure(way, pairs, asked.epochs)
        run = {"shape": shape, "pairs": pairs.sha256(), "way": way, "repetition": repetition, "cpu": cpu}
        kept.append(run)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(f"{repetition} {shape} {way}: {cpu:.1f} CPU s", flush=True)


def main() -> None:
    """Measure what is missing, one repetition after the other, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--table", action="store_true", help="print what there is, measure nothing")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    import torch

    torch.set_num_threads(1)
    out = OUT if arguments.epochs == 1 else OUT.with_stem(f"speed-{arguments.epochs:g}-epochs")
    kept: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else []
    shas = {shape: made_up(shape).sha256() for shape in SHAPES}
    kept = [row for row in kept if row.get("pairs") == shas[row["shape"]]]
    if not arguments.table:
        measure_missing(kept, arguments, out)
    print_table(kept)


if __name__ == "__main__":
    main()
