"""Every setting of a recipe reaches the trainer and the collator; `test_fit` covers what they then do."""

import numpy as np
import pytest
import torch

from angle_train.config import Recipe
from angle_train.pairs import PairSet
from angle_train.settings import ObjectiveConfig, TrainingConfig
from angle_train.trainer import DevEvaluator, make_collator, training_arguments

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_training_settings_reach_the_trainer(tmp_path):
    config = TrainingConfig(
        epochs=1.5,
        batch_size=8,
        learning_rate=3e-4,
        warmup_ratio=0.25,
        weight_decay=0.07,
        scheduler="cosine",
        evals_per_epoch=2,
        seed=7,
        gradient_accumulation=3,
        max_grad_norm=0.4,
        precision="bf16",
    )
    arguments = training_arguments(config, 480, tmp_path, torch.device("cpu"))
    expected = {
        "num_train_epochs": 1.5,
        "per_device_train_batch_size": 8,
        "learning_rate": 3e-4,
        "warmup_steps": 0.25,
        "weight_decay": 0.07,
        "lr_scheduler_type": "cosine",
        "seed": 7,
        "data_seed": 7,
        "gradient_accumulation_steps": 3,
        "max_grad_norm": 0.4,
        "bf16": True,
        "fp16": False,
        # 480 pairs are 60 batches or 20 steps an epoch, evaluated twice
        "eval_steps": 10,
        "save_steps": 10,
        "load_best_model_at_end": True,
    }
    assert {name: getattr(arguments, name) for name in expected} == expected


def test_objective_and_batch_settings_reach_the_collator(tiny_model):
    recipe = Recipe(
        objective=ObjectiveConfig(positive_score=0.6, negative_score=0.3, transitive=True),
        training=TrainingConfig(chunk_size=2, swap=False),
    )
    rows = [
        {"text1": "a node", "text2": "the host", "score": 0.6, "weight": 1.0},
        {"text1": "a node", "text2": "a machine", "score": 1.0, "weight": 1.0},
        {"text1": "a disk", "text2": "the volume is full", "score": 0.4, "weight": 0.5},
        {"text1": "a disk", "text2": "one network cable", "score": 0.3, "weight": 0.5},
    ]
    batch = make_collator(tiny_model, recipe)(rows)
    assert len([name for name in batch if name.endswith("input_ids")]) == 3  # 6 texts in chunks of 2
    label = batch["label"]
    assert label["positive"].sum() == 3  # two rows, and the pair that follows from them
    assert label["neutral"].sum() == 1  # 0.4 lies between the thresholds, 0.3 does not
    assert label["weight"].min() == 0.5


def test_swapping_follows_the_recipe(tiny_model):
    rows = [{"text1": f"{'x' * n}", "text2": f"{'y' * (n + 30)}", "score": 1.0} for n in range(1, 30)]

    def swapped(swap):
        label = make_collator(tiny_model, Recipe(training=TrainingConfig(swap=swap)))(rows)["label"]
        return int((label["first"] > label["second"]).sum())  # texts are indexed from short to long

    assert swapped(False) == 0
    assert 5 < swapped(True) < 25


def test_dev_sets_of_equal_names_are_averaged_not_merged(tiny_model):
    texts = ["the node failed", "disk full", "a network cable", "the host restarted"]
    sets = []
    for order in (1, -1):
        similar = tiny_model.similarity_pairwise(
            tiny_model.encode(texts[:-1], convert_to_tensor=True),
            tiny_model.encode(texts[1:], convert_to_tensor=True),
        )
        gold = similar.argsort().argsort().double().numpy()[::1] * order
        sets.append(PairSet("dev", texts[:-1], texts[1:], (gold - gold.min()) / 2, np.ones(3), None, "0-1"))
    metrics = DevEvaluator(sets)(tiny_model)
    assert metrics["dev_1_spearman"] == pytest.approx(1)
    assert metrics["dev_2_spearman"] == pytest.approx(-1)
    assert metrics["dev_spearman"] == pytest.approx(0)
