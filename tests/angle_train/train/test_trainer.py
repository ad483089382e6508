"""Every setting of a recipe reaches the trainer and the collator; `test_fit` covers what they then do."""

import re
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformerTrainer

from angle_train.data.pairs import PairSet
from angle_train.evaluation.similarity import evaluate_model
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.model.prompt import set_prompt
from angle_train.objective.loss import CombinedLoss
from angle_train.recipe import ObjectiveConfig, Recipe, TrainingConfig
from angle_train.train import arguments, trainer
from angle_train.train.arguments import resolve_precision, training_arguments
from angle_train.train.merging import snapshot
from angle_train.train.trainer import (
    DevEvaluator,
    TrainOptions,
    choose_chunking,
    make_collator,
    restore,
    train,
)
from angle_train.train.watch import METRIC, RunCallback

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
        "save_total_limit": 2,  # the last one and the best one on the dev sets
        "metric_for_best_model": METRIC,
        "greater_is_better": True,
        "load_best_model_at_end": False,
    }
    assert {name: getattr(arguments, name) for name in expected} == expected


def test_bf16_is_chosen_only_where_it_is_not_emulated(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert resolve_precision("auto", torch.device("cuda")) == "fp32"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    assert resolve_precision("auto", torch.device("cuda")) == "bf16"


def test_one_process_uses_one_gpu_of_several(monkeypatch, tmp_path):
    """The trainer would split batches, and with them the objective, among all that it sees."""

    class Several(arguments.SentenceTransformerTrainingArguments):
        def __post_init__(self):
            super().__post_init__()
            self._n_gpu = 3

    monkeypatch.setattr(arguments, "SentenceTransformerTrainingArguments", Several)
    assert (
        training_arguments(
            TrainingConfig(epochs=1, learning_rate=1e-3), 100, tmp_path, torch.device("cpu")
        ).n_gpu
        == 1
    )


@pytest.mark.parametrize("number", [0, 2])
def test_processes_draw_dropout_of_their_own(monkeypatch, tiny_model, tmp_path, number):
    monkeypatch.setattr(trainer, "process_number", lambda: number)
    monkeypatch.setattr(SentenceTransformerTrainer, "train", lambda self, **given: None)
    train(tiny_model, few_pairs(), Recipe(), tmp_path)
    assert torch.initial_seed() == TrainingConfig().seed + number


def few_pairs():
    texts = ["the node failed", "disk full", "a network cable", "the host restarted", "no space left"]
    scores = np.array([0.0, 0.2, 1.0, 0.4])
    return PairSet("few", texts[:-1], texts[1:], scores, np.ones(4))


def test_what_a_run_in_half_precision_measures_is_what_it_saves(tiny_model, tmp_path):
    pairs = few_pairs()
    training = TrainingConfig(epochs=1, batch_size=4, evals_per_epoch=1, learning_rate=1e-3, precision="bf16")
    for directory in ("once", "again"):  # a model that was trained can be trained again
        evaluator = DevEvaluator([pairs])
        train(tiny_model, pairs, Recipe(training=training), tmp_path / directory, evaluator=evaluator)
        ((measured,),) = evaluator.measured().values()
        tiny_model.save_pretrained(str(tmp_path / f"{directory}-saved"), create_model_card=False)
        saved = load_backbone(str(tmp_path / f"{directory}-saved"), device="cpu")
        expected = evaluate_model(saved, pairs)
        np.testing.assert_array_equal(evaluate_model(tiny_model, pairs), expected)
        np.testing.assert_array_equal(measured, expected)


def test_the_last_weights_stay_and_those_of_the_best_checkpoint_can_be_had(tiny_model, tmp_path):
    pairs = few_pairs()
    # Trained on the opposite, the first evaluation is the best one.
    opposite = replace(pairs, score=1 - pairs.score)
    training = TrainingConfig(
        epochs=3, batch_size=4, evals_per_epoch=1, learning_rate=0.02, scheduler="constant", swap=False
    )
    evaluator = DevEvaluator([pairs], notes=tmp_path / "notes.jsonl")
    recipe = Recipe(ObjectiveConfig(loss="papers"), training=training)
    done = train(tiny_model, opposite, recipe, tmp_path, evaluator=evaluator)
    scores, measured = [point.dev for point in done.curve], evaluator.measured()
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


def test_the_steps_of_such_a_run_are_taken_in_half_precision(tiny_model, tmp_path):
    seen = []

    class Watch(RunCallback):
        def on_step_begin(self, *given, **options):
            seen.append("forward" in tiny_model.__dict__)

    training = TrainingConfig(epochs=2, batch_size=4, evals_per_epoch=1, precision="bf16")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "RunCallback", Watch)
        for directory in ("once", "again"):
            train(tiny_model, few_pairs(), Recipe(training=training), tmp_path / directory)
    assert seen == [True] * 4


def test_settings_of_the_batches_reach_the_collator(tiny_model, monkeypatch):
    objective = ObjectiveConfig(positive_score=0.6, negative_score=0.3, transitive=True, isp="equal")
    training = TrainingConfig(chunk_size=2, chunking="adaptive", swap=False, seed=7)
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("RANK", "1")
    set_prompt(tiny_model, "query: ")
    collate = make_collator(tiny_model, Recipe(objective=objective, training=training))
    expected = {
        "positive_score": 0.6,
        "negative_score": 0.3,
        "transitive": True,
        "isp": "equal",
        "chunk_size": 2,
        "chunking": "adaptive",
        "swap": False,
        "seed": 7,
        "prompt": "query: ",
        "process": 1,
        "processes": 3,
    }
    assert {name: getattr(collate, name) for name in expected} == expected


def test_supervision_decides_what_is_compared(tiny_model, tmp_path):
    """One kind is as none, to the last bit."""
    seen = []

    class Seen(CombinedLoss):
        def terms(self, embeddings, labels):
            seen.append(labels)
            return super().terms(embeddings, labels)

    def trained(supervision):
        seen.clear()
        model = deepcopy(tiny_model)
        training = TrainingConfig(epochs=3, batch_size=4, learning_rate=1e-2)
        pairs = replace(few_pairs(), supervision=supervision)
        options = TrainOptions(make_loss=Seen)
        recipe = Recipe(ObjectiveConfig(loss="papers"), training=training)
        train(model, pairs, recipe, tmp_path / "run", options=options)
        scales = sorted(seen[0]["scale"].tolist())
        return torch.cat([weights.detach().flatten() for weights in model.parameters()]), scales

    none, scales = trained(None)
    assert scales == [1, 1, 1, 1]
    for one_kind in (["", "", "random", ""], ["degrees", "polarity", "random", "grades"]):
        assert torch.equal(trained(one_kind)[0], none)
    weights, scales = trained(["degrees", "random", "human", "human"])
    assert scales == [0, 1, 2, 2]
    assert not torch.equal(weights, none)


def test_dev_sets_are_averaged_not_merged(tiny_model):
    texts = ["the node failed", "disk full", "a network cable", "the host restarted"]
    sets = []
    for order in (1, -1):
        similar = tiny_model.similarity_pairwise(
            tiny_model.encode(texts[:-1], convert_to_tensor=True),
            tiny_model.encode(texts[1:], convert_to_tensor=True),
        )
        gold = similar.argsort().argsort().double().numpy()[::1] * order
        sets.append(PairSet("dev", texts[:-1], texts[1:], (gold - gold.min()) / 2, np.ones(3), None, "0-1"))
    found = [DevEvaluator(some)(tiny_model)[METRIC] for some in (sets, sets[:1], sets[1:])]
    assert found == pytest.approx([0, 1, -1], abs=1e-9)


@pytest.mark.parametrize(
    ("chunking", "device", "processes", "threads", "chosen"),
    [
        ("auto", "cpu", 1, 1, "adaptive"),
        ("auto", "cuda", 1, 1, "fixed"),
        ("auto", "cpu", 2, 1, "fixed"),
        ("auto", "cpu", 1, 2, "fixed"),
        ("adaptive", "cuda", 1, 1, "adaptive"),
        ("fixed", "cpu", 1, 1, "fixed"),
    ],
)
def test_auto_is_adaptive_for_one_thread_of_a_cpu(monkeypatch, chunking, device, processes, threads, chosen):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    model = SimpleNamespace(device=torch.device(device))
    assert choose_chunking(model, TrainingConfig(chunking=chunking)) == chosen


class HalfLoss(CombinedLoss):
    """A loss of somebody else's: half the objective, as one term, beside a term that is always 2."""

    def terms(self, embeddings, labels):
        return {"half": sum(super().terms(embeddings, labels).values()) / 2, "constant": torch.tensor(2.0)}


def test_the_log_has_the_terms_of_any_loss(tiny_model, tmp_path, caplog):
    training = TrainingConfig(epochs=1, batch_size=4, evals_per_epoch=1)
    options = TrainOptions(make_loss=HalfLoss)
    recipe, evaluator = Recipe(training=training), DevEvaluator([few_pairs()])
    with caplog.at_level("INFO", logger="angle"):
        train(tiny_model, few_pairs(), recipe, tmp_path, evaluator=evaluator, options=options)
    (found,) = re.findall(r"loss ([\d.]+), half ([\d.]+), constant 2.000; dev Spearman", caplog.text)
    loss, half = map(float, found)
    assert loss == pytest.approx(half + 2, abs=2e-3)


def test_the_last_evaluation_has_a_loss_of_its_own(tiny_model, tmp_path, caplog):
    """Five steps with an evaluation every two: the fifth is logged for the evaluation at the end."""
    training = TrainingConfig(epochs=2.5, batch_size=2, evals_per_epoch=1, learning_rate=1e-3)
    recipe = Recipe(ObjectiveConfig(loss="papers"), training=training)
    with caplog.at_level("INFO", logger="angle"):
        train(tiny_model, few_pairs(), recipe, tmp_path, evaluator=DevEvaluator([few_pairs()]))
    found = re.findall(r"step (\d)/5, epoch [\d.]+: (loss .*); dev Spearman", caplog.text)
    assert [step for step, _ in found] == ["2", "4", "5"]
    assert len({terms for _, terms in found}) == 3


def test_a_single_step_has_a_rate_above_zero(tiny_model, tmp_path):
    before = snapshot(tiny_model)
    recipe = Recipe(ObjectiveConfig(loss="papers"), training=TrainingConfig(epochs=1, batch_size=8))
    assert train(tiny_model, few_pairs(), recipe, tmp_path).steps == 1
    assert any(not torch.equal(before[name], weight) for name, weight in tiny_model.state_dict().items())


def test_dropout_follows_the_seed(tiny_model_dir, tmp_path, caplog):
    caplog.set_level("INFO", logger="angle")

    def loss(seed, out):
        model = load_backbone(str(tiny_model_dir), device="cpu")
        # One batch, and no text swapped: what dropout draws is all that is left to vary.
        recipe = Recipe(training=TrainingConfig(epochs=1, batch_size=4, swap=False, seed=seed))
        caplog.clear()
        train(model, few_pairs(), recipe, tmp_path / out, evaluator=DevEvaluator([few_pairs()]))
        return float(re.search(r"loss ([\d.]+)", caplog.text)[1])

    one, again, other = loss(1, "one"), loss(1, "again"), loss(2, "other")
    assert one == again
    assert one != pytest.approx(other, abs=1e-3)
