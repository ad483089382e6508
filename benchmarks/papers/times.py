"""Seconds of one epoch on STS-B under SBERT, SimCSE and AoE, one after the other (AoE Appendix D).

python benchmarks/papers/times.py --data stsb/train.jsonl.gz --backbone MODEL
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import baselines  # noqa: E402
from common import options  # noqa: E402

from angle_train.data.pairs import load_pairs  # noqa: E402
from angle_train.model.load import load_backbone  # noqa: E402
from angle_train.recipe import Recipe, find_recipe  # noqa: E402
from angle_train.training.presets import settle  # noqa: E402
from angle_train.training.trainer import train  # noqa: E402

AOE = {"cosine_weight": 0.0, "angle_tau": 0.05, "epochs": 1.0, "evals_per_epoch": 1}


def seconds(name: str, data: str, backbone: str, batch_size: int, tokens: int) -> float:
    """Return the seconds of one epoch, all methods with one batch size and length."""
    model = load_backbone(backbone, tokens)
    with tempfile.TemporaryDirectory() as folder:
        if name != "aoe":
            shared = {"batch_size": batch_size, "epochs": 1.0, "pair_epochs": None}
            method = replace(baselines.METHODS[name], **shared)
            return baselines.train(model, name, method, baselines.rows_of(data), Path(folder))
        recipe = Recipe.from_toml(find_recipe("paper-stsb"))
        recipe = recipe.with_overrides({**AOE, "batch_size": batch_size, "max_seq_length": tokens})
        pairs = load_pairs(data)
        recipe = settle(recipe, pairs)
        begun = time.perf_counter()
        train(model, pairs, recipe, Path(folder))
        return time.perf_counter() - begun


def main() -> None:
    """Print the seconds of each."""
    parser = options(__doc__)
    parser.add_argument("--data", required=True, help="graded training pairs")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-seq-length", type=int, default=64)
    given = parser.parse_args()
    for name in ("sbert", "simcse-supervised", "aoe"):
        found = seconds(name, given.data, given.backbone, given.batch_size, given.max_seq_length)
        print(f"{name}: {found:.2f} s", flush=True)


if __name__ == "__main__":
    main()
