"""Every setting of a recipe has its effect on the training; `test_fit` covers whole runs."""

import re
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformerTrainer
from train_runs import evaluate_model, pair_set

from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.model.prompt import set_prompt
from angle_train.recipe import ObjectiveConfig, Recipe, TrainingConfig
from angle_train.training import arguments, trainer
from angle_train.training.arguments import resolve_precision, training_arguments
from angle_train.training.merging import snapshot
from angle_train.training.presets import settle
from angle_train.training.trainer import (
    DevEvaluator,
    choose_chunking,
    restore,
    train,
)
from angle_train.training.watch import METRIC

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


SETTINGS = [
    {"epochs": 3.0}, {"batch_size": 2}, {"learning_rate": 3e-3}, {"args": {"warmup_ratio": 0.9}},
    {"args": {"weight_decay": 0.9}}, {"args": {"lr_scheduler_type": "constant_with_warmup"}}, {"seed": 7},
    {"args": {"gradient_accumulation_steps": 2}}, {"args": {"max_grad_norm": 1e-3}},
    {"args": {"adam_beta2": 0.5}},
    {"precision": "bf16"}, {"positive_score": 0.95}, {"negative_score": 0.35}, {"isp": "none"},
    {"swap": True}, {"transitive": True}, {"prompt": "query: "}, {"frozen_layers": "embeddings"},
    {"source_block": 2}, {"matryoshka_dims": [8]}, {"angle_mode": "published"},
    {"human": True},
]  # fmt: skip


def test_every_setting_changes_what_is_learned(tiny_model, tmp_path):
    """As do the kinds of supervision, which decide what is compared; without a change nothing differs."""
    base = {"epochs": 2.0, "batch_size": 4, "learning_rate": 1e-3, "swap": False, "loss": "papers"}

    def learned(human=False, **changes):
        model, recipe = deepcopy(tiny_model), Recipe().with_overrides(base | changes)
        set_prompt(model, recipe.training.prompt)
        texts = ["the node failed", "the node broke", "disk full", "no space left", "a cable", "rain"]
        rows = [(0, 1, 1.0), (2, 3, 0.9), (0, 2, 0.2), (1, 4, 0.4), (0, 3, 0.0), (2, 5, 0.3), (4, 5, 0.6)]
        first, _, score = zip(*rows, strict=True)
        kinds = ["human" if human and i else "" for i in first]
        pairs = [(texts[i], texts[j]) for i, j, _ in rows]
        made = pair_set(pairs, score, source_ids=[str(i) for i in first], supervision=kinds)
        train(model, made, settle(recipe, made), tmp_path / "run")
        return torch.cat([weights.detach().flatten() for weights in model.parameters()])

    plain = learned()
    assert torch.equal(learned(), plain)
    assert [changes for changes in SETTINGS if torch.equal(learned(**changes), plain)] == []


def test_a_look_at_a_model_on_its_way_tells_and_keeps_nothing(tiny_model):
    told = []
    pairs = pair_set([("the node failed", "the node broke"), ("disk full", "rain")])
    dev = DevEvaluator([pairs], told=lambda step, columns: told.append((step, columns)))
    dev.look(tiny_model, 3)
    assert dev.measured() == {}
    assert dev.vectors == {}
    dev(tiny_model, steps=4)
    assert [*dev.measured()] == [step for step, _ in dev.vectors] == [4]
    assert [step for step, _ in told] == [3, 4]
    assert np.array_equal(*(columns for _, columns in told))


def test_bf16_is_chosen_only_where_it_is_not_emulated(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert resolve_precision("auto", torch.device("cuda")) == "fp32"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    assert resolve_precision("auto", torch.device("cuda")) == "bf16"


@pytest.mark.parametrize(
    ("flags", "precision"), [("avx512_bf16 amx_tile amx_bf16", "bf16"), ("avx512_bf16", "fp32")]
)
def test_bf16_is_chosen_on_processors_with_amx_alone(monkeypatch, tmp_path, flags, precision):
    """With AVX-512 BF16 alone it was slower than fp32 on some."""
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nflags\t\t: fpu sse {flags}\n")
    monkeypatch.setattr(arguments, "CPU_INFO", info)
    assert resolve_precision("auto", torch.device("cpu")) == precision
    assert resolve_precision("fp32", torch.device("cpu")) == "fp32"
    info.unlink()  # as on macOS
    assert resolve_precision("auto", torch.device("cpu")) == "fp32"


def test_one_process_uses_one_gpu_of_several(monkeypatch, tmp_path):
    """The trainer would split batches, and with them the objective, among all that it sees."""

    class Several(arguments.SentenceTransformerTrainingArguments):
        def __post_init__(self):
            super().__post_init__()
            self._n_gpu = 3

    monkeypatch.setattr(arguments, "SentenceTransformerTrainingArguments", Several)
    assert (
        training_arguments(
            Recipe(training=TrainingConfig(epochs=1, learning_rate=1e-3)), 100, tmp_path, torch.device("cpu")
        ).n_gpu
        == 1
    )


@pytest.mark.parametrize("number", [0, 2])
def test_processes_draw_dropout_of_their_own(monkeypatch, tiny_model, tmp_path, number):
    monkeypatch.setattr(trainer, "process_number", lambda: number)
    monkeypatch.setattr(SentenceTransformerTrainer, "train", lambda self, **given: None)
    train(tiny_model, few_pairs(), settle(Recipe(), few_pairs()), tmp_path)
    assert torch.initial_seed() == TrainingConfig().seed + number


def few_pairs():
    texts = ["the node failed", "disk full", "a network cable", "the host restarted", "no space left"]
    return pair_set(list(pairwise(texts)), [0.0, 0.2, 1.0, 0.4])


def test_the_last_weights_stay_and_those_of_the_best_checkpoint_can_be_had(tiny_model, tmp_path):
    pairs = few_pairs()
    # Trained on the opposite, the first evaluation is the best one.
    opposite = replace(pairs, score=1 - pairs.score)
    training = TrainingConfig(epochs=3, batch_size=4, evals_per_epoch=1, learning_rate=0.02, swap=False)
    evaluator = DevEvaluator([pairs], notes=tmp_path / "notes.jsonl")
    constant = {"lr_scheduler_type": "constant_with_warmup"}
    recipe = Recipe(ObjectiveConfig(loss="papers"), training=training, arguments=constant)
    recipe = settle(recipe, few_pairs())
    done = train(tiny_model, opposite, recipe, tmp_path, evaluator=evaluator)
    scores, measured = [point["dev"] for point in done.curve], evaluator.measured()
    assert scores.index(max(scores)) == done.best_step - 1 < 2
    assert scores[-1] < max(scores)
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {
        f"checkpoint-{done.best_step}",
        "checkpoint-3",
    }
    assert [len(measured[step]) for step in (1, 2, 3)] == [1, 1, 1]
    np.testing.assert_array_equal(evaluate_model(tiny_model, pairs), measured[3][0])
    restore(tiny_model, tmp_path, done.best_step)
    np.testing.assert_array_equal(evaluate_model(tiny_model, pairs), measured[done.best_step][0])
    # Whoever goes on with the run finds the notes.
    again = DevEvaluator([pairs], notes=tmp_path / "notes.jsonl").measured()
    assert [again[step][0].tolist() for step in again] == [measured[s][0].tolist() for s in (1, 2, 3)]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_dev_sets_are_measured_with_the_share_of_the_backbone(tiny_model, share):
    pairs = few_pairs()
    backbone, untouched = snapshot(tiny_model), evaluate_model(tiny_model, pairs)
    with torch.no_grad():
        for weights in tiny_model.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1)))
    moved = evaluate_model(tiny_model, pairs)
    evaluator = DevEvaluator([pairs, pairs], share=share)
    evaluator.backbone = backbone
    shown = evaluator(tiny_model, steps=7)["dev_spearman"]
    first, second = evaluator.measured()[7]
    assert (first == second).all()
    assert shown == pytest.approx(spearman(pairs.score, first))
    for end, expected in ((0.0, moved), (1.0, untouched)):
        assert np.allclose(first, expected, atol=1e-6) == (share == end)
    np.testing.assert_array_equal(evaluate_model(tiny_model, pairs), moved)


def test_dev_sets_are_averaged_not_merged(tiny_model):
    texts = ["the node failed", "disk full", "a network cable", "the host restarted"]
    sets = []
    for order in (1, -1):
        similar = tiny_model.similarity_pairwise(
            tiny_model.encode(texts[:-1], convert_to_tensor=True),
            tiny_model.encode(texts[1:], convert_to_tensor=True),
        )
        gold = similar.argsort().argsort().double().numpy() * order
        sets.append(pair_set(list(pairwise(texts)), (gold - gold.min()) / 2))
    found = [DevEvaluator(some)(tiny_model)[METRIC] for some in (sets, sets[:1], sets[1:])]
    assert found == pytest.approx([0, 1, -1], abs=1e-9)


@pytest.mark.parametrize(
    ("device", "processes", "threads", "chosen"),
    [("cpu", 1, 1, "adaptive"), ("cuda", 1, 1, "fixed"), ("cpu", 2, 1, "fixed"), ("cpu", 1, 2, "fixed")],
)
def test_chunks_are_adaptive_for_one_thread_of_a_cpu(monkeypatch, device, processes, threads, chosen):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    model = SimpleNamespace(device=torch.device(device))
    assert choose_chunking(model) == chosen


def test_the_last_evaluation_has_a_loss_of_its_own(tiny_model, tmp_path, caplog):
    """Five steps with an evaluation every two: the fifth is logged for the evaluation at the end."""
    training = TrainingConfig(epochs=2.5, batch_size=2, evals_per_epoch=1, learning_rate=1e-3)
    recipe = settle(Recipe(ObjectiveConfig(loss="papers"), training=training), few_pairs())
    with caplog.at_level("INFO", logger="angle"):
        train(tiny_model, few_pairs(), recipe, tmp_path, evaluator=DevEvaluator([few_pairs()]))
    found = re.findall(r"step (\d)/5, epoch [\d.]+: (loss .*); dev Spearman", caplog.text)
    assert [step for step, _ in found] == ["2", "4", "5"]
    assert len({terms for _, terms in found}) == 3


def test_a_single_step_has_a_rate_above_zero(tiny_model, tmp_path):
    before = snapshot(tiny_model)
    recipe = Recipe(ObjectiveConfig(loss="papers"), training=TrainingConfig(epochs=1, batch_size=8))
    with pytest.raises(ValueError, match="settle the recipe first"):
        train(tiny_model, few_pairs(), recipe, tmp_path)
    assert train(tiny_model, few_pairs(), settle(recipe, few_pairs()), tmp_path).steps == 1
    assert any(not torch.equal(before[name], weight) for name, weight in tiny_model.state_dict().items())


def test_dropout_follows_the_seed(tiny_model_dir, tmp_path, caplog):
    caplog.set_level("INFO", logger="angle")

    def loss(seed, out):
        model = load_backbone(str(tiny_model_dir), device="cpu")
        # One batch, and no text swapped: what dropout draws is all that is left to vary.
        recipe = Recipe(training=TrainingConfig(epochs=1, batch_size=4, swap=False, seed=seed))
        recipe = settle(recipe, few_pairs())
        caplog.clear()
        train(model, few_pairs(), recipe, tmp_path / out, evaluator=DevEvaluator([few_pairs()]))
        return float(re.search(r"loss ([\d.]+)", caplog.text)[1])

    one, again, other = loss(1, "one"), loss(1, "again"), loss(2, "other")
    assert one == again
    assert one != pytest.approx(other, abs=1e-3)
