"""AnglE trained under the two poolings of its Table 4 that the toolkit does not offer.

    python benchmarks/papers/poolings.py --pooling first-last-avg --recipe paper-stsb --data TRAIN --dev DEV \
        --backbone MODEL --out DIR [--set KEY=VALUE]

Both consist of modules of Sentence Transformers, so a saved model opens anywhere. Their weights are
constants: frozen here, they would be trained by whoever trains the saved model on without freezing them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import torch  # noqa: E402
from common import options  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.base.modules import Transformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import (  # noqa: E402
    Dense,
    Pooling,
    WeightedLayerPooling,
)

from angle_data.errors import InputError  # noqa: E402
from angle_train.data.pairs import load_pairs  # noqa: E402
from angle_train.evaluation.similarity import mean_spearman, measure  # noqa: E402
from angle_train.model.load import load_backbone, save_model  # noqa: E402
from angle_train.recipe import Recipe, find_recipe, parse_settings  # noqa: E402
from angle_train.training.presets import settle  # noqa: E402
from angle_train.training.trainer import DevEvaluator, restore, train  # noqa: E402

POOLINGS = ("cls-last-avg", "first-last-avg")


def set_pooling(model: SentenceTransformer, name: str) -> None:
    """Replace the pooling of `model`, a transformer and what follows it.

    `cls-last-avg` is the mean of the first token and of the last layer's average. `first-last-avg` averages
    the tokens of the first and of the last layer; the first follows the embeddings, as in SimCSE's code.
    """
    transformer = model[0]
    if not isinstance(transformer, Transformer):
        raise InputError(f"pooling {name} needs a transformer, which this backbone is not")
    width = transformer.get_embedding_dimension()
    if name == "cls-last-avg":
        halves = torch.cat([torch.eye(width), torch.eye(width)], dim=1) / 2
        mean = Dense(
            2 * width, width, bias=False, activation_function=torch.nn.Identity(), init_weight=halves
        )
        modules = [Pooling(width, ("cls", "mean")), mean]
    else:
        layers = transformer.auto_model.config.num_hidden_layers
        transformer.auto_model.config.output_hidden_states = True
        weights = torch.zeros(layers)
        weights[0] = weights[-1] = 1.0
        both = WeightedLayerPooling(
            width, num_hidden_layers=layers, layer_start=1, layer_weights=torch.nn.Parameter(weights)
        )
        modules = [both, Pooling(width, "mean")]
    del model[1:]
    for module in modules:
        module.requires_grad_(False)
        model.append(module.to(model.device))


def training_options(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every script has which trains one model."""
    parser = options(doc)
    parser.add_argument("--data", required=True, help="training pairs")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, required=True)
    return parser


def already_trained(out: Path) -> bool:
    """Return whether `out` holds the model, and say so."""
    found = (out / "modules.json").exists()
    if found:
        print(f"{out}: already trained")
    return found


def main() -> None:
    """Train and save one model."""
    parser = training_options(__doc__)
    parser.add_argument("--pooling", choices=POOLINGS, required=True)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--dev", required=True, help="pairs that choose the checkpoint")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    given = parser.parse_args()
    if already_trained(given.out):
        return
    recipe = Recipe.from_toml(find_recipe(given.recipe))
    recipe = recipe.with_overrides({**parse_settings(given.set), "seed": given.seed})
    tokens = recipe.training.max_seq_length
    model = load_backbone(given.backbone, tokens if isinstance(tokens, int) else None)
    set_pooling(model, given.pooling)
    dev = [load_pairs(given.dev, split="validation", rows="dev")]
    evaluator = DevEvaluator(dev, mean_spearman(dev, measure(model, dev)))
    checkpoints = given.out / "checkpoints"
    pairs = load_pairs(given.data)
    training = train(model, pairs, settle(recipe, pairs), checkpoints, evaluator=evaluator)
    restore(model, checkpoints, training.best_step)
    save_model(model, given.out)
    print(f"{given.out}: step {training.best_step} of {training.steps}")


if __name__ == "__main__":
    main()
