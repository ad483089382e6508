"""`train`: a model in memory or a path, any form of pairs, the user's own parts, and what is refused."""

import dataclasses
import inspect
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from train_runs import write
from transformers import TrainerCallback

from angle_data.errors import InputError
from angle_train import AngleLoss, fit, train
from angle_train.keywords import FitKeywords, RecipeKeywords
from angle_train.model.adapters import has_adapters
from angle_train.options import FitOptions
from angle_train.recipe import SECTIONS
from angle_train.training.watch import DivergedError

FAST = {"loss": "graded", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}
FAST |= {"device": "cpu", "precision": "fp32"}


@pytest.fixture(scope="module")
def some(rows):
    return rows[:40]


def forms(rows, folder):
    """The same pairs in every form, by its name."""
    texts = [(row["sentence1"], row["sentence2"], row["score"]) for row in rows]
    return {
        "dictionaries": rows,
        "tuples": texts,
        "Dataset": Dataset.from_list(rows),
        "DatasetDict": DatasetDict(train=Dataset.from_list(rows)),
        "data frame": pd.DataFrame(rows),
        "path": write(folder / "pairs.jsonl", rows),
        "paths": [write(folder / "pairs.jsonl", rows)],
    }


def weights_of(model):
    return torch.cat([value.reshape(-1).float() for value in model.state_dict().values()])


def test_every_form_of_pairs_trains_the_same_model(tiny_model_dir, some, tmp_path):
    found = {}
    for name, pairs in forms(some, tmp_path).items():
        model = SentenceTransformer(str(tiny_model_dir), device="cpu")
        result = train(model, pairs, epochs=1, **{k: v for k, v in FAST.items() if k != "epochs"})
        assert result.model is model
        assert result.steps == result.best_step == 3
        assert result.best is None
        found[name] = weights_of(model)
    by_path = train(str(tiny_model_dir), some, **FAST | {"epochs": 1})
    assert isinstance(by_path.model, SentenceTransformer)
    found["model by its path"] = weights_of(by_path.model)
    first = found.pop("dictionaries")
    assert not first.equal(weights_of(SentenceTransformer(str(tiny_model_dir), device="cpu")))
    assert [name for name, weights in found.items() if not weights.equal(first)] == []


def test_dev_pairs_choose_the_best_evaluation(tiny_model, some):
    """The rate is so high that the first evaluation is the best one."""
    fast = FAST | {"epochs": 4, "learning_rate": 5e-2, "seed": 3}
    result = train(tiny_model, some, dev=some, **fast)
    assert [point["step"] for point in result.curve] == [3, 6, 9, 12]
    best = max(result.curve, key=lambda point: point["dev"])
    assert (result.best, result.best_step) == (best["dev"], best["step"])
    again = train(tiny_model, some, dev=some, epochs=1e-3, learning_rate=1e-9, loss="graded", device="cpu")
    assert again.curve[0]["dev"] == pytest.approx(result.best, abs=1e-3)  # these weights are the model's


def test_the_validation_split_of_a_data_set_is_dev(tiny_model, some):
    data = DatasetDict(train=Dataset.from_list(some), validation=Dataset.from_list(some[:20]))
    assert len(train(tiny_model, data, **FAST).curve) == 2


class Heard(TrainerCallback):
    def __init__(self):
        self.steps = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.steps += 1
        self.args = args


def test_callbacks_and_training_arguments_reach_the_trainer(tiny_model, some, tmp_path):
    heard = Heard()
    args = SentenceTransformerTrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=4,
        learning_rate=3e-4,
        lr_scheduler_type="cosine",
        warmup_steps=0.25,
        adam_beta2=0.98,
        max_steps=7,
        report_to="none",
    )
    result = train(tiny_model, some, args=args, callbacks=[heard], loss="graded", device="cpu")
    assert heard.steps == result.steps == 7
    seen = heard.args
    assert (seen.per_device_train_batch_size, seen.learning_rate) == (4, 3e-4)
    assert (seen.lr_scheduler_type, seen.warmup_steps, seen.adam_beta2) == ("cosine", 0.25, 0.98)
    assert list(tmp_path.iterdir()) == []  # its output_dir is not where anything goes


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("save_steps", 3, "evals_per_epoch says when"),
        ("load_best_model_at_end", True, "evals_per_epoch says when"),
        ("batch_sampler", "no_duplicates", "which pairs are in a batch follows from the seed"),
        ("dataloader_drop_last", True, "which pairs are in a batch follows from the seed"),
        ("push_to_hub", True, "model.push_to_hub"),
        ("fsdp", "full_shard", "each process holds the whole model"),
        ("router_mapping", {"text1": "query"}, "AngleLoss in a trainer of your own"),
        ("warmup_steps", 100, "give warmup_ratio"),
    ],
)
def test_arguments_that_would_break_a_run_are_refused_by_name(tiny_model, some, name, value, why):
    with pytest.raises(InputError, match=f"args: {name} cannot be set here: .*{why}"):
        train(tiny_model, some, args={name: value})


class Shortness(BaseEvaluator):
    """The lower the better: the length of one embedding."""

    def __init__(self):
        super().__init__()
        self.greater_is_better = False
        self.primary_metric = "length"

    def __call__(self, model, output_path=None, epoch=-1, steps=-1):
        return {"length": float(np.linalg.norm(model.encode("disk full"))), "other": 0.0}


def test_an_evaluator_of_ones_own_chooses(tiny_model, some):
    result = train(tiny_model, some, evaluator=Shortness(), **FAST | {"epochs": 3})
    assert len(result.curve) == 3
    assert all(point["dev"] < 0 for point in result.curve)
    assert -result.best == pytest.approx(Shortness()(tiny_model)["length"], abs=1e-4)


def test_an_evaluator_of_the_library_chooses(tiny_model, some):
    columns = ([row[name] for row in some] for name in ("sentence1", "sentence2", "score"))
    evaluator = EmbeddingSimilarityEvaluator(*columns, name="mine")
    result = train(tiny_model, some, evaluator=evaluator, **FAST)
    found = evaluator(tiny_model)[evaluator.primary_metric]
    assert result.best == pytest.approx(found, abs=1e-6)


def triplets(rows):
    texts = [row["sentence1"] for row in rows]
    return [(a, b, c) for a, b, c in zip(texts, texts[1:], texts[2:], strict=False)]


@pytest.mark.parametrize(
    ("loss", "data"),
    [
        (AngleLoss, "rows"),
        (losses.CoSENTLoss, "rows"),
        (losses.TripletLoss, "triplets"),
        (lambda model: losses.MatryoshkaLoss(model, AngleLoss(model), [32, 8]), "triplets"),
    ],
)
def test_a_loss_of_ones_own_trains(tiny_model, some, loss, data):
    rows = [{k: row[k] for k in ("sentence1", "sentence2", "score")} for row in some]
    rows = [row | {"score": row["score"] / 5} for row in rows]
    before = weights_of(tiny_model)
    pairs = rows if data == "rows" else triplets(some)
    result = train(tiny_model, pairs, loss=loss, epochs=1, batch_size=16, device="cpu")
    assert result.steps == 3
    assert not weights_of(tiny_model).equal(before)


def test_a_loss_for_another_model_is_refused(tiny_model, tiny_model_dir, some):
    loss = AngleLoss(SentenceTransformer(str(tiny_model_dir), device="cpu"))
    with pytest.raises(InputError, match="loss was made for another model"):
        train(tiny_model, some, loss=loss)


def test_with_out_the_same_call_reopens_and_another_is_refused(tiny_model_dir, some, tmp_path):
    given = {"dev": some, "out": tmp_path / "model", **FAST}
    first = train(str(tiny_model_dir), some, **given)
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert weights_of(saved).equal(weights_of(first.model))
    heard = Heard()
    again = train(str(tiny_model_dir), some, callbacks=[heard], **given)
    assert heard.steps == 0
    assert (again.curve, again.best_step, again.path) == (first.curve, first.best_step, first.path)
    assert weights_of(again.model).equal(weights_of(first.model))
    with pytest.raises(InputError, match="different learning_rate"):
        train(str(tiny_model_dir), some, **given | {"learning_rate": 2e-3})
    with pytest.raises(InputError, match="different training pairs"):
        train(str(tiny_model_dir), some[1:], **given)


class Stop(TrainerCallback):
    """Ctrl-C after some steps."""

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 4:
            raise KeyboardInterrupt


def test_a_training_that_was_stopped_goes_on_to_the_same_weights(tiny_model_dir, some, tmp_path):
    whole = train(str(tiny_model_dir), some, dev=some, out=tmp_path / "whole", **FAST)
    given = {"dev": some, "out": tmp_path / "cut", **FAST}
    with pytest.raises(KeyboardInterrupt):
        train(str(tiny_model_dir), some, callbacks=[Stop()], **given)
    heard = Heard()
    cut = train(str(tiny_model_dir), some, callbacks=[heard], **given)
    assert heard.steps == 3  # from the checkpoint of step 3 to step 6
    assert cut.curve == whole.curve
    assert weights_of(cut.model).equal(weights_of(whole.model))


def test_lora_of_a_model_in_memory_leaves_a_plain_model(tiny_model, some, tmp_path):
    before = weights_of(tiny_model)
    train(tiny_model, some, lora_rank=2, **FAST)
    assert not any("lora" in name for name in tiny_model.state_dict())
    assert not weights_of(tiny_model).equal(before)
    tiny_model.save_pretrained(str(tmp_path), create_model_card=False)
    assert weights_of(SentenceTransformer(str(tmp_path), device="cpu")).equal(weights_of(tiny_model))


class Poison(TrainerCallback):
    """Weights that are no numbers, after some steps."""

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step == 4:
            with torch.no_grad():
                next(iter(model.parameters())).fill_(torch.nan)


def test_a_training_that_diverges_stops_and_leaves_the_model_as_it_was(tiny_model, some, tmp_path):
    before = weights_of(tiny_model)
    with pytest.raises(DivergedError, match=r"by step 6 the loss is not a number.*lower learning_rate"):
        train(tiny_model, some, dev=some, callbacks=[Poison()], out=tmp_path / "out", **FAST | {"epochs": 5})
    assert weights_of(tiny_model).equal(before)
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"evaluator": Shortness(), "dev": [("a", "b", 1.0)]}, "either dev or evaluator"),
        ({"pairs": {"test": []}}, "without a split train, with test"),
        ({"pairs": [("a", "b", "c"), ("a",)]}, r"item 2 is \('a',\); give"),
        ({"model": 3}, "int is no SentenceTransformer"),
        ({"learning_rate": 1e-3, "args": {"learning_rate": 1e-4}}, "learning_rate is given twice"),
        ({"args": {"report_to": "flourish"}}, "report_to: the trainer reports to no program 'flourish'"),
        ({"args": {"report_to": "clearml"}}, "report_to: clearml is not installed"),
        ({"quantization": "4bit", "lora_rank": 2}, "quantization is for models that are loaded"),
        ({"epochs": -1}, "epochs"),
    ],
)
def test_what_cannot_be_trained_is_one_line(tiny_model, some, given, said):
    given = {"model": tiny_model, "pairs": some, **given}
    with pytest.raises(InputError, match=said):
        train(given.pop("model"), given.pop("pairs"), **given)


FOR_FIT = {"average_with_backbone", "distil_epochs", "guard_loss"}
FOR_FIT |= {"keep_general", "keep_texts", "keep_weight"}


@pytest.mark.parametrize("name", [*sorted(FOR_FIT), "merge_back", "human"])
def test_what_only_fit_does_is_refused(tiny_model, some, name):
    with pytest.raises(TypeError, match=f"no option '{name}', which is for fit: train keeps no other text"):
        train(tiny_model, some, **{name: 0.5})


@pytest.mark.parametrize(("recipe", "warned"), [("opposites", True), ("topics", True), ("default", False)])
def test_what_a_recipe_has_for_fit_alone_is_told(tiny_model, some, recipe, warned, caplog):
    train(tiny_model, some, recipe=recipe, epochs=0.1)
    assert ("by this recipe fit also keeps what the backbone knew" in caplog.text) == warned


def test_a_slip_in_a_keyword_is_named(tiny_model, some):
    with pytest.raises(TypeError, match="no option 'epoch'; did you mean epochs"):
        train(tiny_model, some, epoch=1)


def test_typed_keywords_are_the_recipes_own():
    fields = {name for section in SECTIONS.values() for name in section.__dataclass_fields__}
    assert {*RecipeKeywords.__annotations__, "loss"} == fields - FOR_FIT
    assert FitKeywords.__annotations__.keys() > fields


def test_typed_keywords_and_named_arguments_are_all_options_of_the_command():
    """Each option of the command is one of `fit`; `--set` stands for the recipe's other values."""
    named = inspect.signature(fit).parameters.keys() - {"keywords"}
    options = {field.name for field in dataclasses.fields(FitOptions)} - {"setting"}
    values = {name for section in SECTIONS.values() for name in section.__dataclass_fields__}
    assert named | FitKeywords.__annotations__.keys() == options | values | {"args"}


WRONG = """
from angle_train import fit, train

fit("a.jsonl", backbone="b", out="c", epochs=3.0, learning_rate=1e-4, seed=1, human="d.jsonl")
train("b", "a.jsonl", epochs=3, loss="graded")
fit("a.jsonl", backbone="b", out="c", epoch=3)
fit("a.jsonl", backbone="b", out="c", seed="one")
fit("a.jsonl", backbone="b", out="c", loss="grades")
train("b", "a.jsonl", batchsize=3)
"""


def test_a_type_checker_sees_a_wrong_keyword(tmp_path):
    file = tmp_path / "user.py"
    file.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--output=json"]
    command += [f"--cache-dir={tmp_path}/cache", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    said = {error["line"]: error["message"] for error in found if error["file"].endswith("user.py")}
    assert sorted(said) == [6, 7, 8, 9], done.stdout + done.stderr
    assert '"epoch"' in said[6]
    assert '"batchsize"' in said[9]


@pytest.mark.parametrize(
    ("pairs", "given", "said"),
    [
        ([], {}, "^pairs: got an empty list; give at least two pairs$"),
        (None, {"evaluator": "cosent"}, "^evaluator: str cannot be called on a model; give one of"),
        (None, {"evaluator": BaseEvaluator}, "^evaluator: .* cannot be called on a model"),
        ([], {"loss": AngleLoss}, "^pairs: there are none; give at least two"),
        (None, {"args": {"adam_beta1": 1.5}}, r"^\[arguments\] the trainer refuses them: Invalid beta"),
        (None, {"args": {"max_steps": float("inf")}}, "^args: max_steps must be a number, got inf"),
        (None, {"epochs": 1, "args": {"max_steps": 3}}, "^epochs is given twice, as max_steps in args too"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(tiny_model, some, pairs, given, said):
    with pytest.raises(InputError, match=said):
        train(tiny_model, some if pairs is None else pairs, device="cpu", **given)


def test_one_callback_needs_no_list(tiny_model, some):
    class Heard(TrainerCallback):
        ended = 0

        def on_train_end(self, args, state, control, **kwargs):
            Heard.ended += 1

    train(tiny_model, some, callbacks=Heard(), args={"max_steps": 1}, loss="graded", device="cpu")
    train(tiny_model, some, callbacks=Heard, args={"max_steps": 1}, loss="graded", device="cpu")
    train(tiny_model, some, callbacks={Heard()}, args={"max_steps": 1}, loss="graded", device="cpu")
    one_by_one = (callback for callback in [Heard()])
    train(tiny_model, some, callbacks=one_by_one, args={"max_steps": 1}, loss="graded", device="cpu")
    assert Heard.ended == 4


def test_what_is_refused_leaves_the_folder_and_the_model_as_they_were(
    tiny_model, tiny_model_dir, some, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    given = FAST | {"epochs": 1}
    first = {"out": out, "args": {"adam_beta1": 0.8}} | given
    assert train(str(tiny_model_dir), some, **first).steps
    another = losses.CoSENTLoss(SentenceTransformer(str(tiny_model_dir), device="cpu"))
    refused = [
        ({"args": {"adam_beta1": 1.5}, "overwrite": True}, "the trainer refuses them"),
        ({"callbacks": 3, "overwrite": True}, "callbacks: int is no callback"),
        ({"callbacks": [None], "overwrite": True}, "callbacks: NoneType is no callback"),
        ({"frozen_layers": 9, "overwrite": True}, "frozen_layers 9: the backbone has"),
        ({"loss": 3, "overwrite": True}, "loss: int is no loss"),
        ({"loss": another, "overwrite": True}, "loss was made for another model"),
        ({"seed": 9}, "holds a run with different"),
    ]
    for more, message in refused:
        for model in (str(tiny_model_dir), tiny_model):
            with pytest.raises(InputError, match=message):
                train(model, some, **given | {"out": out, "prompt": "say: ", "lora_rank": 2} | more)
    assert "say: " not in tiny_model.prompts.values()
    assert not has_adapters(tiny_model)
    with pytest.raises(InputError, match="lora_targets 'nope' does not match"):
        train(tiny_model, some, **given | {"lora_rank": 2, "lora_targets": "nope"})
    assert all(weights.requires_grad for weights in tiny_model.parameters())
    monkeypatch.setattr("angle_train.in_memory.take_steps", pytest.fail)
    assert train(str(tiny_model_dir), some, **first).steps  # opened, and not trained again
