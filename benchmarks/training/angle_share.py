"""How much of the gradient the angle term carries, over batches of the demo's pairs.

    make demo && OMP_NUM_THREADS=1 python benchmarks/training/angle_share.py [--batches 20]

For the recipe `opposites` and for `loss = papers`, both with angle weight 1 and temperature 1, and with the
temperature at which the term acts (0.1): the norm of the gradient of each weighted term with respect to all
weights of MiniLM as it is, without dropout, as a share of the sum of the three norms. Median over the batches.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from cases import backbone_path
from common import ROOT
from torch import Tensor

from angle_train.data.kinds import settle
from angle_train.data.pairs import PairSet, load_pairs
from angle_train.model.load import load_for_training
from angle_train.objective.batches import EpochSampler, PairCollator
from angle_train.objective.loss import CombinedLoss
from angle_train.recipe import BackboneConfig, Recipe, find_recipe

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
    model = load_for_training(str(backbone_path()), BackboneConfig(), "", 128, "cpu", config.seed).eval()
    loss = CombinedLoss(model, recipe.objective)
    collate = PairCollator(model.preprocess, recipe)
    sampler = EpochSampler(pairs.text1, config.batch_size, drop_last=False, seed=config.seed)
    sampler.sources, sampler.block = pairs.sources(), config.source_block
    columns = {"text1": pairs.text1, "text2": pairs.text2, "score": pairs.score, "weight": pairs.weight}
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found: dict[str, list[float]] = {}
    for _, rows in zip(range(count), iter(sampler), strict=False):
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
