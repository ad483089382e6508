"""Rows, pairs and runs, as the tests of training make them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from angle_train.data.pairs import PairSet, load_pairs
from angle_train.data.splits import assign_uses, load_sets
from angle_train.evaluation.similarity import measure
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.training.presets import settle


def write(path, rows):
    """Write rows, one a line; return the path as a run is given it."""
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def now(rows):
    """Near copies of rows, from which a run learns what it is measured on."""
    return [row | {"sentence1": f"{row['sentence1']} now"} for row in rows]


def search_folder(root, pairs, extra=(), split="test"):
    """A search in a folder: the first texts of pairs are queries, the second what they should find."""
    (root / "qrels").mkdir(parents=True)
    documents = list(dict.fromkeys([*(row["sentence2"] for row in pairs), *extra]))
    corpus = [{"_id": f"d{at}", "text": text} for at, text in enumerate(documents)]
    queries = [{"_id": f"q{at}", "text": row["sentence1"]} for at, row in enumerate(pairs)]
    write(root / "corpus.jsonl", corpus)
    write(root / "queries.jsonl", queries)
    lines = [f"q{at}\td{documents.index(row['sentence2'])}\t1" for at, row in enumerate(pairs)]
    (root / f"qrels/{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    return root


def turned(rows):
    """The rows with opposite scores, which the backbone ranks the wrong way round."""
    return [row | {"score": 5 - row["score"]} for row in rows]


def dataset(directory, **splits):
    """Add splits to a dataset directory; return it as a run is given it."""
    from datasets import Dataset

    (directory / "data").mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        Dataset.from_list(rows).to_parquet(directory / "data" / f"{split}-00000-of-00001.parquet")
    return str(directory)


def pair_set(pairs, scores=None, name="made", **columns):
    """These pairs of texts; without scores, theirs rise from 0 to 1."""
    first, second = zip(*pairs, strict=True)
    score = np.linspace(0, 1, len(pairs)) if scores is None else np.array(scores, dtype=np.float64)
    return PairSet(name, first, second, score, np.ones(len(pairs)), **columns)


def run_data(data, human=(), dev=(), test=(), *, recipe=None, scale=None, threshold=None, drop_leaks=False):
    """The pairs of a run, as `inputs.load_data` makes them of its options."""
    sources = {"data": data, "human": human, "dev": dev, "test": test}
    given = load_sets(FitOptions(backbone="", out=Path(), scale=scale, threshold=threshold, **sources))
    return assign_uses(given, settle(recipe or Recipe(), given.training), drop_leaks=drop_leaks)


def evaluate_model(model, pairs):
    """The cosine of every pair."""
    return measure(model, [pairs])[0]


def run_of(backbone, out, pairs, values, **more):
    """A run on pairs that also choose its weights, with these values of the recipe."""
    recipe = Recipe().with_overrides(values)
    sources = {"data": [pairs], "dev": [pairs]} | more
    return FitOptions(backbone=str(backbone), out=out, recipe=recipe, device="cpu", **sources)


def changed(run, **values):
    """The run with other values of its recipe."""
    return replace(run, recipe=run.recipe.with_overrides(values))


def weights(directory):
    """The tuned weights of a run, to the last bit."""
    return (tuned_weights(directory) / "model.safetensors").read_bytes()


def state(directory):
    """The weights of a model by their names."""
    return load_backbone(str(directory), device="cpu").state_dict()


def tuned_weights(directory):
    """Where a run saved the tuned weights: beside the backbone, where that stays."""
    beside = directory / "tuned"
    return beside if beside.is_dir() else directory


def same_weights(directory, backbone):
    """Whether two models have the same weights."""
    one, other = state(directory), state(backbone)
    return all(one[name].equal(other[name]) for name in other)


def saved_score(directory, file):
    """Spearman on a file of pairs of the model that was saved, loaded anew."""
    pairs = load_pairs(str(file))
    return spearman(pairs.score, evaluate_model(load_backbone(str(directory), device="cpu"), pairs))


def moved(model):
    """The model with adapters that do something."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02)
    return model


def damaged(model, directory, *, cut=False):
    """A copy of a model whose weights are cut off, or are no numbers."""
    shutil.copytree(model, directory)
    weights = directory / "model.safetensors"
    if cut:
        weights.write_bytes(weights.read_bytes()[:100])
    else:
        save_file({k: v * np.nan for k, v in load_file(weights).items()}, weights, {"format": "pt"})
    return directory


def direction(degrees):
    """The embedding that points there."""
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def table(degrees):
    """An encoder that looks up the direction of every text."""
    return lambda items: np.array([direction(degrees[item]) for item in items], dtype=np.float32)
