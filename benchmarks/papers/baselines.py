"""The models that the papers compare with, trained by Sentence Transformers' own losses.

    python benchmarks/papers/baselines.py simcse --data TRAIN --dev DEV --backbone MODEL --out DIR [--seed 42]

simcse             unsupervised SimCSE: a text is its own positive under another dropout
simcse-supervised  entailed sentences as positives, contradictions as hard negatives; of pairs the positives
sbert              a softmax classifier over (u, v, |u-v|) of three classes; of scores the cosine regressed
ct                 Contrastive Tension in its in-batch form: two copies of the model that must agree
untuned            the backbone with another pooling; nothing is trained

Rates, batches and lengths are those of the methods' authors for BERT-base, see `METHODS`; SimCSE's layer that
is used while training alone is left out. `--recipe` gives what the backbone needs (pooling, prompt, LoRA).
The seconds of training are written to DIR/baseline.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from datasets import Dataset  # noqa: E402
from poolings import already_trained, training_options  # noqa: E402
from sentence_transformers import (  # noqa: E402
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses  # noqa: E402
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator  # noqa: E402
from transformers import PrinterCallback  # noqa: E402

from angle_data.errors import InputError  # noqa: E402
from angle_train.data.pairs import load_pairs  # noqa: E402
from angle_train.data.sources import read_rows  # noqa: E402
from angle_train.model.load import (  # noqa: E402
    finish_training,
    load_for_training,
    quiet_libraries,
    save_model,
)
from angle_train.recipe import BackboneConfig, Recipe, find_recipe, parse_settings  # noqa: E402

CLASSES = ("contradiction", "entailment", "neutral")
POSITIVE = 0.8
"""Pairs scored so high are positives of supervised SimCSE; as in the recipes `paper-*`."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a method is trained; on scores for `pair_epochs` epochs, if these are stated."""

    pooling: str
    learning_rate: float
    batch_size: int
    epochs: float
    max_seq_length: int
    pair_epochs: float | None = None


METHODS = {
    # https://github.com/princeton-nlp/SimCSE: run_unsup_example.sh, run_sup_example.sh
    "simcse": Method("cls", 3e-5, 64, 1, 32),
    "simcse-supervised": Method("cls", 5e-5, 512, 3, 32),
    # Reimers and Gurevych 2019: one epoch of NLI; their STS benchmark example has 4 epochs
    "sbert": Method("last-avg", 2e-5, 16, 1, 128, pair_epochs=4),
    # Carlsson et al. 2021; rate and batch of the library's in-batch example
    "ct": Method("last-avg", 5e-5, 128, 1, 75),
    "untuned": Method("last-avg", 0, 1, 0, 128),
}


BEST_ON_DEV: dict[str, Any] = {
    "eval_strategy": "steps",
    "eval_steps": 0.125,
    "save_strategy": "steps",
    "save_steps": 0.125,
    "save_total_limit": 1,
    "load_best_model_at_end": True,
    "metric_for_best_model": "eval_dev_spearman_cosine",
    "greater_is_better": True,
}
"""What keeps the weights that are best on the dev pairs, measured eight times."""


class Trainer(SentenceTransformerTrainer):
    """The library's trainer without its model card, whose examples take longer than a short training."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Note nothing."""


def rows_of(spec: str) -> list[dict[str, Any]]:
    """Return `text1, text2` with a `class` of inference, or with a `score` from 0 to 1."""
    first = next(iter(read_rows(spec, "train")), ("", {}))[1]
    if first.get("label") in CLASSES:
        found = ((row["text1"], row["text2"], row["label"]) for _, row in read_rows(spec, "train"))
        return [{"text1": a, "text2": b, "class": label} for a, b, label in found]
    pairs = load_pairs(spec, one_score=True)
    columns = zip(pairs.text1, pairs.text2, pairs.score.tolist(), strict=True)
    return [{"text1": a, "text2": b, "score": score} for a, b, score in columns]


def prepare(method: str, rows: list[dict[str, Any]], model: SentenceTransformer) -> tuple[Dataset, Any]:
    """Return what a method trains on, made from all training rows, and its loss."""
    if method in ("simcse", "ct"):
        texts = dict.fromkeys(text for row in rows for text in (row["text1"], row["text2"]))
        data = Dataset.from_list([{"anchor": text, "positive": text} for text in texts])
        if method == "ct":
            return data, losses.ContrastiveTensionLossInBatchNegatives(model)
        return data, losses.MultipleNegativesRankingLoss(model)
    if method == "simcse-supervised":
        found = triplets(rows) if "class" in rows[0] else positives(rows)
        if not found:
            raise InputError("no positive pair to train on: no entailment, or no score of at least 0.8")
        return Dataset.from_list(found), losses.MultipleNegativesRankingLoss(model)
    if "class" in rows[0]:
        labelled = [
            {"text1": row["text1"], "text2": row["text2"], "label": CLASSES.index(row["class"])}
            for row in rows
        ]
        width = model.get_embedding_dimension()
        return Dataset.from_list(labelled), losses.SoftmaxLoss(model, width, num_labels=len(CLASSES))
    return Dataset.from_list(rows), losses.CosineSimilarityLoss(model)


def triplets(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return one triplet for each premise with an entailed and a contradicted sentence: the first of each."""
    by_premise: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        by_premise[row["text1"]].setdefault(row["class"], row["text2"])
    return [
        {"anchor": premise, "positive": found["entailment"], "negative": found["contradiction"]}
        for premise, found in by_premise.items()
        if {"entailment", "contradiction"} <= found.keys()
    ]


def positives(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the pairs that count as positives."""
    return [{"anchor": row["text1"], "positive": row["text2"]} for row in rows if row["score"] >= POSITIVE]


def train(
    model: SentenceTransformer,
    name: str,
    method: Method,
    rows: list[dict[str, Any]],
    folder: Path,
    dev: str | None = None,
    seed: int = 42,
) -> float:
    """Train `model` in place and return the seconds; where there are dev pairs, their best weights stay.

    Args:
        model: What is trained.
        name: A key of `METHODS`, and `method` how it is trained.
        method: See `name`.
        rows: As `rows_of` gives them.
        folder: For checkpoints.
        dev: Pairs that are measured eight times.
        seed: Of batches and dropout.
    """
    data, loss = prepare(name, rows, model)
    epochs = method.pair_epochs if name == "sbert" and "score" in rows[0] else None
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs or method.epochs,
        per_device_train_batch_size=method.batch_size,
        learning_rate=method.learning_rate,
        warmup_steps=0.1,
        seed=seed,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=model.device.type == "cpu",
        **(BEST_ON_DEV if dev else {"save_strategy": "no"}),
    )
    with quiet_libraries():
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=data,
            loss=loss,
            evaluator=evaluator_of(dev) if dev else None,
        )
        trainer.remove_callback(PrinterCallback)
        begun = time.perf_counter()
        trainer.train()
    return time.perf_counter() - begun


def evaluator_of(dev: str) -> EmbeddingSimilarityEvaluator:
    """Return the library's evaluator of the cosine of dev pairs."""
    pairs = load_pairs(dev, split="validation", rows="dev")
    return EmbeddingSimilarityEvaluator(
        list(pairs.text1), list(pairs.text2), pairs.score.tolist(), main_similarity="cosine", name="dev"
    )


def method_of(name: str, settings: list[str]) -> Method:
    """Return a method with settings `KEY=VALUE` applied, numbers all of them."""
    numbers = {key: float(value) for key, value in (setting.split("=", 1) for setting in settings)}
    whole = ("batch_size", "max_seq_length")
    changes: dict[str, Any] = {key: int(value) if key in whole else value for key, value in numbers.items()}
    if "epochs" in changes:
        changes["pair_epochs"] = None
    return replace(METHODS[name], **changes)


def main() -> None:
    """Train and save one model."""
    parser = training_options(__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--dev", help="pairs that choose the checkpoint; default the last one")
    parser.add_argument("--pooling", help="default the recipe's, or else the method's")
    parser.add_argument("--recipe", help="gives pooling, prompt, LoRA and quantization")
    parser.add_argument("--recipe-set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of `Method`")
    given = parser.parse_args()
    if already_trained(given.out):
        return
    method = method_of(given.method, given.set)
    backbone, prompt = BackboneConfig(pooling=method.pooling), ""
    if given.recipe:
        recipe = Recipe.from_toml(find_recipe(given.recipe))
        recipe = recipe.with_overrides(parse_settings(given.recipe_set))
        backbone, prompt = recipe.backbone, recipe.training.prompt
    if given.pooling:
        backbone = replace(backbone, pooling=given.pooling)
    if given.method == "untuned":
        backbone = replace(backbone, lora_rank=0)

    def load(config: BackboneConfig) -> SentenceTransformer:
        return load_for_training(given.backbone, config, prompt, method.max_seq_length, seed=given.seed)

    model = load(backbone)
    said: dict[str, Any] = {"method": given.method, "seed": given.seed}
    if given.method != "untuned":
        rows = rows_of(given.data)
        # The library's trainer cannot load the best adapters again.
        dev = None if backbone.lora_rank else given.dev
        seconds = train(model, given.method, method, rows, given.out / "checkpoints", dev, given.seed)
        said |= {"rows": len(rows), "seconds": round(seconds, 2)}
    finish_training(model, backbone, load)
    save_model(model, given.out)
    (given.out / "baseline.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print(f"{given.out}: {said}")


if __name__ == "__main__":
    main()
