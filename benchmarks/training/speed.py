"""Whole training runs of this toolkit, sentence-transformers and angle_emb on the same pairs, in CPU seconds.

    python benchmarks/training/speed.py [--repetitions 5] [--shapes natural repeated] [--only …] [--table]

320 made-up pairs in batches of 32, one epoch, all-MiniLM-L6-v2, fp32, one thread, no evaluation; each run
writes one checkpoint. `natural`: the numbers of words are lognormal(2.6, 0.6), 320 pairs of different
texts. `repeated`: 40 anchors with 8 partners each, in blocks of 8. The ways take turns, so that each
repetition meets the same machine; ratios are taken inside a repetition. CPU seconds are those of training
alone, without imports.

Rows: `ours` and the stock trainer and angle_emb have the same loss function, CoSENT's; `published angle`
and ST AnglELoss have another.
`encode`: the cosines of all pairs, three times each, by the evaluator here and by
EmbeddingSimilarityEvaluator, both in batches of 16 texts, its default (here it is 32, as of `encode` there).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from cases import backbone_path
from common import RESULTS, ROOT, options, spread
from ways import run_angle_emb, train_stock

from angle_data.console import configure_logging
from angle_train.data.pairs import PairSet
from angle_train.recipe import Recipe

OUT = RESULTS / "training" / "speed.json"
SHAPES = ("natural", "repeated")
_SEED = 1
Train = Callable[[Any, PairSet, Path], float | None]
"""Trains a model on pairs with a scratch folder; may know the CPU seconds better."""


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


def recipe_of(shape: str, **values: Any) -> Recipe:
    """Return the recipe of all ways: one epoch of ten batches; anchors stay together where they repeat."""
    shared = {"epochs": 1, "batch_size": 32, "learning_rate": 5e-5, "evals_per_epoch": 1, "precision": "fp32"}
    block = {"source_block": 8} if shape == "repeated" else {}
    fixed = {"loss": "papers", "seed": _SEED, "max_seq_length": 128}
    return Recipe().with_overrides(shared | block | fixed | values)


def ours(**values: Any) -> Train:
    """Return training with this toolkit."""

    def run(model: Any, pairs: PairSet, scratch: Path) -> None:
        from angle_train.train.trainer import train

        train(model, pairs, recipe_of(pairs.name, **values), scratch)

    return run


def _sampler(*given: Any, sources: Sequence[str], block: int, **more: Any) -> Any:
    """Return the toolkit's sampler for the stock trainer."""
    from angle_train.objective.batches import EpochSampler

    sampler = EpochSampler(*given, **more)
    sampler.sources, sampler.block = sources, block
    return sampler


def stock(loss_name: str) -> Train:
    """Return training with sentence-transformers: its trainer, collator and loss, on the same batches."""

    def run(model: Any, pairs: PairSet, scratch: Path) -> None:
        recipe = recipe_of(pairs.name)
        sampler = partial(_sampler, sources=pairs.sources(), block=recipe.training.source_block)
        train_stock(model, pairs, recipe, scratch, loss_name, sampler=sampler)

    return run


def angle_emb(model: Any, pairs: PairSet, scratch: Path) -> float:
    """Train with angle_emb's cosine term in a process of its own; return the CPU seconds there."""
    cosine = {"cosine_w": 1.0, "ibn_w": 0.0, "angle_w": 0.0}
    notes = run_angle_emb(model, {"train": pairs}, recipe_of(pairs.name), scratch, cosine)
    return float(notes["cpu_seconds"])


_COSINE = {"in_batch_weight": 0.0, "angle_weight": 0.0, "swap": False}
_ANGLE = {"cosine_weight": 0.0, "in_batch_weight": 0.0, "angle_mode": "published", "angle_tau": 0.05}
WAYS: dict[str, Train] = {
    "ours": ours(**_COSINE),
    "ST CoSENTLoss": stock("CoSENTLoss"),
    "ours, published angle": ours(**_ANGLE, swap=False),
    "ST AnglELoss": stock("AnglELoss"),
    "angle_emb": angle_emb,
}


def measure(way: str, pairs: PairSet) -> float:
    """Return the CPU seconds of one whole training."""
    from angle_train.model.load import load_backbone

    model = load_backbone(str(backbone_path("minilm")), 128)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        started = time.process_time()
        return WAYS[way](model, pairs, Path(scratch)) or time.process_time() - started


def measure_encoding(pairs: PairSet) -> dict[str, float]:
    """Return the CPU seconds that all cosines take here and in the stock evaluator, three times over."""
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from angle_train.evaluation.similarity import evaluate_model
    from angle_train.model.load import load_backbone

    model = load_backbone(str(backbone_path("minilm")), 128)
    texts = list(pairs.text1), list(pairs.text2)
    stock_evaluator = EmbeddingSimilarityEvaluator(
        *texts, pairs.score.tolist(), batch_size=32, write_csv=False
    )
    evaluators: dict[str, Callable[[], Any]] = {
        "encode, ours": lambda: evaluate_model(model, pairs),
        "encode, ST": lambda: stock_evaluator(model),
    }
    measured = {}
    for name, evaluate in evaluators.items():
        started = time.process_time()
        for _ in range(3):
            evaluate()
        measured[name] = time.process_time() - started
    return measured


def print_table(kept: list[dict[str, Any]]) -> None:
    """Print medians, ranges and the ratio to the CPU seconds of `ours` in the same repetition."""
    for shape in dict.fromkeys(row["shape"] for row in kept):
        print(f"\n{shape}\n\n| way | CPU s, median (range) | ratio to ours |\n| --- | --- | --- |")
        rows = [row for row in kept if row["shape"] == shape]
        for way in dict.fromkeys(row["way"] for row in rows):
            base = "encode, ours" if way.startswith("encode") else "ours"
            own = {row["repetition"]: row["cpu"] for row in rows if row["way"] == base}
            runs = {row["repetition"]: row["cpu"] for row in rows if row["way"] == way}
            ratios = [cpu / own[repetition] for repetition, cpu in runs.items() if repetition in own]
            ratio = spread(ratios, ".2f") if ratios else ""
            print(f"| {way} | {spread(list(runs.values()), '.1f')} | {ratio} |")


def measure_missing(
    kept: list[dict[str, Any]], repetitions: int, shapes: Sequence[str], ways: Sequence[str]
) -> None:
    """Measure what `kept` lacks, one repetition after the other, and add it there and to the file."""
    have = {(row["shape"], row["way"], row["repetition"]) for row in kept}
    for way in ("ours", "ST CoSENTLoss"):  # not kept: imports inside the trainers, first use of every kernel
        measure(way, made_up("natural").take(range(32), "natural"))
    for repetition, shape, way in product(range(repetitions), shapes, [*ways, "encode, ours"]):
        if (shape, way, repetition) in have:
            continue
        pairs = made_up(shape)
        for name, cpu in (measure_encoding(pairs) if way not in WAYS else {way: measure(way, pairs)}).items():
            run = {"shape": shape, "pairs": pairs.sha256(), "way": name, "repetition": repetition, "cpu": cpu}
            kept.append(run)
            OUT.parent.mkdir(parents=True, exist_ok=True)
            OUT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(f"{repetition} {shape} {name}: {cpu:.1f} CPU s", flush=True)


def main() -> None:
    """Measure what is missing, one repetition after the other, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--table", action="store_true", help="print what there is, measure nothing")
    arguments = parser.parse_args()
    configure_logging(quiet=True)
    import torch

    torch.set_num_threads(1)
    kept: list[dict[str, Any]] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else []
    shas = {shape: made_up(shape).sha256() for shape in SHAPES}
    kept = [row for row in kept if row.get("pairs") == shas[row["shape"]]]
    if not arguments.table:
        measure_missing(kept, arguments.repetitions, arguments.shapes, arguments.only)
    print_table(kept)


if __name__ == "__main__":
    main()
