"""Settings of the library's trainer in a recipe: by its names, checked, and a part of the run's identity."""

import subprocess
import sys

import pytest
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from train_runs import run_of, write

from angle_data.errors import InputError
from angle_train import fit, train
from angle_train import run as fit_module
from angle_train.recipe import Recipe, parse_settings
from angle_train.trainer_arguments import REFUSED, USUAL_ARGUMENTS
from angle_train.training.arguments import check_arguments, training_arguments
from angle_train.training.presets import PRESETS

FAST = {"loss": "graded", "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    """Leave out the HTML report, whose figures take longer than the training."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *given: None)


@pytest.fixture
def pairs(rows, tmp_path):
    return write(tmp_path / "pairs.jsonl", rows[:32])


def settled(**arguments):
    return Recipe(arguments=arguments).with_overrides(PRESETS["papers"])


def given_to_the_trainer(tmp_path, **arguments):
    return training_arguments(settled(**arguments), 1000, tmp_path, torch.device("cpu"))


def test_arguments_reach_the_trainer_and_the_usual_ones_need_not_be_said(tmp_path):
    usual = given_to_the_trainer(tmp_path)
    assert (usual.weight_decay, usual.max_grad_norm, usual.lr_scheduler_type) == (0.01, 1.0, "linear")
    assert (usual.warmup_steps, usual.gradient_accumulation_steps) == (0.1, 1)
    other = given_to_the_trainer(tmp_path, weight_decay=0.2, optim="sgd", adam_beta1=0.8, warmup_ratio=0.3)
    assert (other.weight_decay, other.optim, other.adam_beta1, other.warmup_steps) == (0.2, "sgd", 0.8, 0.3)


def test_a_recipe_with_arguments_survives_writing_and_reading(tmp_path):
    path = tmp_path / "recipe.toml"
    recipe = Recipe().with_overrides(
        {
            "args": {
                "optim": "adafactor",
                "lr_scheduler_kwargs": {"min_lr": 1e-6},
                "weight_decay": 1,
                "project": None,
            }
        }
    )
    path.write_text(recipe.to_toml_text(), encoding="utf-8")
    assert Recipe.from_toml(path) == recipe
    other = Recipe(
        arguments={"lr_scheduler_kwargs": {"min_lr": 1e-6}, "optim": "adafactor", "weight_decay": 1.0}
    )
    assert other.to_toml_text() == recipe.to_toml_text()  # equal recipes have equal texts


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("weight_decay", "much", r"weight_decay: Input should be a valid number, got 'much'"),
        ("weight_decay", -1, r"weight_decay: Input should be greater than or equal to 0, got -1"),
        (
            "gradient_accumulation_steps",
            0,
            r"gradient_accumulation_steps: Input should be greater than or eq",
        ),
        ("adam_beta1", "high", r"adam_beta1: Input should be a valid number, got 'high'"),
        ("wieght_decay", 0.1, r"unknown argument 'wieght_decay', did you mean 'weight_decay'\?"),
        ("learnin_rate", 0.1, r"unknown argument 'learnin_rate', did you mean 'learning_rate'\?"),
        ("batch_size", 4, r"unknown argument 'batch_size', (?!.*batch_sampler)"),
        ("flourish", 1, r"unknown argument 'flourish', sentence-transformers' trainer has none"),
        ("folds", 3, r"folds was dropped before 0.1.0 and is always 5"),
        ("scheduler", "cosine", r"scheduler moved: write lr_scheduler_type under \[arguments\]"),
        ("freeze_embeddings", True, r"freeze_embeddings moved: frozen_layers"),
        ("seed", 1, r"seed cannot be set here: write seed under \[training\]"),
        ("num_train_epochs", 1, r"num_train_epochs cannot be set here: write epochs under \[training\]"),
        ("bf16", True, r"bf16 cannot be set here: write precision under \[training\]"),
        ("save_steps", 10, r"save_steps cannot be set here: evals_per_epoch says when"),
        ("max_steps", 10, r"max_steps cannot be set here: write epochs"),
        ("output_dir", "here", r"output_dir cannot be set here: nothing follows from it"),
        ("lr_scheduler_type", "reduce_lr_on_plateau", r"lr_scheduler_type: reduce_lr_on_plateau cannot be"),
    ],
)
def test_what_a_recipe_cannot_have_is_one_line(tmp_path, name, value, said):
    path = tmp_path / "recipe.toml"
    path.write_text(f"[arguments]\n{name} = {str(value).lower() if value is True else repr(value)}\n")
    with pytest.raises(InputError, match=rf"^{path}: \[arguments\] {said}") as caught:
        Recipe.from_toml(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=said):
        Recipe().with_overrides(parse_settings([f"arguments.{name}={value}"]))


def test_all_that_is_refused_is_a_name_of_the_library():
    known = training_arguments.__globals__["SentenceTransformerTrainingArguments"].__dataclass_fields__
    assert set(REFUSED) <= known.keys()
    assert set(USUAL_ARGUMENTS) <= known.keys()


def test_the_usual_arguments_are_checked_without_the_library():
    code = (
        "import sys\n"
        "from angle_train.recipe import Recipe, find_recipe, parse_settings\n"
        "for name in ('default', 'paper-nli-llama'):\n"
        "    recipe = Recipe.from_toml(find_recipe(name))\n"
        "    recipe.with_overrides(parse_settings(['arguments.weight_decay=1']))\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "args",
    [
        {"lr_scheduler_type": "step"},
        {"lr_scheduler_type": "cosine_with_min_lr"},
        {"lr_scheduler_kwargs": {"x": 1}},
        {"dataloader_persistent_workers": True},
        {"dataloader_num_workers": -1},
        {"optim_args": "bad"},
        {"adam_beta1": 1.5},
        {"learning_rate_mapping": {"(": 0.1}},
    ],
)
def test_a_value_that_the_trainer_refuses_is_one_line_before_anything_is_measured(
    tiny_model_dir, tmp_path, pairs, monkeypatch, args
):
    monkeypatch.setattr(fit_module, "measure_base_model", lambda *given: pytest.fail("measured"))
    run = run_of(tiny_model_dir, tmp_path / "out", pairs, FAST | {"args": args})
    with pytest.raises(InputError, match=r"^\[arguments\] the trainer refuses them: .") as caught:
        fit_module.fit(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "args",
    [
        {"lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr": 1e-6}},
        {"lr_scheduler_type": "polynomial", "lr_scheduler_kwargs": {"lr_end": 1e-3}},  # below the run's rate
        {"optim": "adafactor"},
        {"optim": "sgd", "optim_target_modules": ["attn"]},
        {"dataloader_num_workers": 1, "dataloader_prefetch_factor": 2},
    ],
)
def test_what_the_trainer_can_do_is_not_refused(tiny_model, args):
    recipe = Recipe(arguments=args).with_overrides({"learning_rate": 2e-3})
    check_arguments(recipe, tiny_model)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("weight_decay=1", "^args: got str; give TrainingArguments, or a dictionary of names and values"),
        ([("weight_decay", 1)], "^args: got list; give TrainingArguments"),
        ({"warmup_steps": "0.1"}, "^args: warmup_steps must be a number, got '0.1'"),
        ({"max_steps": "9"}, "^args: max_steps must be a number, got '9'"),
        ({"report_to": 5}, "^args: report_to must be a name or a list of names, got 5"),
        ({"report_to": "all"}, "^args: report_to cannot be 'all' here; name the programs"),
        ({"max_steps": False}, "^args: max_steps must be a number, got False"),
        ({"warmup_steps": -1}, "^args: warmup_steps cannot be set here"),
        ({"warmup_steps": 0.5, "warmup_ratio": 0.1}, "^args: warmup_steps and warmup_ratio say different"),
        ({"neftune_noise_alpha": 5.0}, "^args: neftune_noise_alpha cannot be set here"),
        ({"max_steps": 2.5}, "^args: max_steps must be a whole number, got 2.5"),
        ({"bf16": "False"}, "^args: bf16 must be True or False, got 'False'"),
        ({"bf16": True, "fp16": True}, "^args: bf16 and fp16 are both on; leave out one"),
        ({"lr_scheduler_kwargs": {"a": None}}, r"lr_scheduler_kwargs: no file can hold what is in it"),
        ({"lr_scheduler_kwargs": {"a": [float("nan")]}}, r"lr_scheduler_kwargs: no file can hold"),
    ],
)
def test_training_arguments_that_are_none_are_refused_in_one_line(
    tiny_model_dir, tmp_path, pairs, args, said
):
    for door in (fit, train):
        given = {"backbone": str(tiny_model_dir), "out": tmp_path / "out"} if door is fit else {}
        places = [pairs] if door is fit else [str(tiny_model_dir), pairs]
        with pytest.raises(InputError, match=said):
            door(*places, args=args, **given)


def test_a_setting_of_the_trainer_that_is_written_as_a_key_is_told_its_place():
    near = "learning_rate_mapping=1"  # a recipe has a key much like it
    for setting in (near, "optim=sgd", "args.optim=sgd", "training.optim=sgd", "lr_scheduler_type=cosine"):
        key = setting.partition("=")[0].rpartition(".")[2]
        with pytest.raises(InputError, match=rf"^{key} is a setting of the trainer: write arguments\.{key}$"):
            parse_settings([setting])


def test_a_key_is_set_once():
    with pytest.raises(InputError, match=r"^--set seed is given twice; leave one out$"):
        parse_settings(["seed=1", "training.seed=2"])
    with pytest.raises(InputError, match=r"^--set arguments\.optim is given twice; leave one out$"):
        parse_settings(["arguments.optim=sgd", "arguments.optim=adafactor"])


def test_a_setting_that_no_recipe_has_is_not_sent_to_the_arguments():
    with pytest.raises(InputError, match=r"^save_steps cannot be set here: evals_per_epoch says"):
        parse_settings(["save_steps=3"])


@pytest.fixture
def seen(monkeypatch):
    """The arguments of each trainer that trains."""
    found, train = [], SentenceTransformerTrainer.train

    def noted(self, *given, **more):
        found.append(self.args)
        return train(self, *given, **more)

    monkeypatch.setattr(SentenceTransformerTrainer, "train", noted)
    return found


def test_arguments_of_a_recipe_and_of_the_caller_meet_in_the_run(tiny_model_dir, tmp_path, pairs, seen):
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[arguments]\nweight_decay = 0.2\nadam_beta2 = 0.9\n")
    given = {"backbone": str(tiny_model_dir), "dev": pairs, "out": tmp_path / "out", "recipe": recipe}
    given |= {"device": "cpu", **FAST}
    args = {"weight_decay": 0.3, "max_grad_norm": 2.0}
    fitted = fit(pairs, args=args, **given)
    (trained,) = seen
    assert (trained.weight_decay, trained.adam_beta2, trained.max_grad_norm) == (0.3, 0.9, 2.0)
    written = Recipe.from_toml(fitted.path / "recipe.toml").arguments
    assert args.items() <= written.items() == fitted.report.recipe["arguments"].items()
    assert fit(pairs, args=args, **given).already_finished
    assert fit(pairs, **given | {"recipe": fitted.path / "recipe.toml"}).already_finished
    with pytest.raises(InputError, match=r"run with different weight_decay \(0.3 -> 0.2\), max_grad_norm"):
        fit(pairs, **given)
    assert len(seen) == 1


def test_training_arguments_of_the_library_are_taken_by_fit(tiny_model_dir, tmp_path, pairs, seen):
    arguments = training_arguments(settled(), 10, tmp_path, torch.device("cpu"))
    arguments = type(arguments)(
        str(tmp_path / "elsewhere"), num_train_epochs=1, learning_rate=1e-3, warmup_steps=0.25, adam_beta1=0.8
    )
    given = {"backbone": str(tiny_model_dir), "dev": pairs, "device": "cpu", "loss": "graded"}
    fitted = fit(pairs, args=arguments, out=tmp_path / "out", **given)
    (trained,) = seen
    assert (trained.num_train_epochs, trained.learning_rate, trained.adam_beta1) == (1, 1e-3, 0.8)
    assert fitted.report.recipe["training"]["epochs"] == 1
    assert fitted.report.recipe["arguments"]["warmup_ratio"] == 0.25
    with pytest.raises(InputError, match="args: max_steps cannot be set here: give epochs"):
        fit(pairs, args={"max_steps": 3}, out=tmp_path / "other", **given)
    with pytest.raises(InputError, match="learning_rate is given twice, by its name and in args"):
        fit(pairs, args=arguments, learning_rate=1e-4, out=tmp_path / "other", **given)
    with pytest.raises(
        InputError, match=r"args: optim_args cannot be set here: a recipe .* cannot hold a object"
    ):
        fit(pairs, args={"optim_args": object()}, out=tmp_path / "other", **given)


def test_activations_are_computed_again_only_where_the_backbone_can(
    tiny_model_dir, tmp_path, pairs, monkeypatch
):
    monkeypatch.setattr(fit_module, "measure_base_model", lambda *given: pytest.fail("measured"))
    transformer = type(SentenceTransformer(str(tiny_model_dir), device="cpu").transformers_model)
    monkeypatch.setattr(transformer, "supports_gradient_checkpointing", False)
    run = run_of(tiny_model_dir, tmp_path / "out", pairs, FAST | {"args": {"gradient_checkpointing": True}})
    with pytest.raises(InputError, match="this backbone does not support gradient_checkpointing; set it to"):
        fit_module.fit(run)


def test_a_projects_arguments_and_those_of_the_call_meet(tiny_model_dir, tmp_path, pairs, seen):
    class Project:
        folder = tmp_path

        def options_of(self, command):
            settings = ["arguments.weight_decay=0.2", "arguments.max_grad_norm=3.0"]
            settings += ["loss=graded", "evals_per_epoch=1"]
            options = {"data": [pairs], "dev": [pairs], "backbone": str(tiny_model_dir), "set": settings}
            return options | {"epochs": 1.0, "batch_size": 16, "device": "cpu"}

    fit(Project(), args={"weight_decay": 0.3, "num_train_epochs": 0.5})  # wins over the project's epochs
    (trained,) = seen
    assert (trained.weight_decay, trained.max_grad_norm, trained.num_train_epochs) == (0.3, 3.0, 0.5)


def test_what_a_call_leaves_open_stays_the_projects(tiny_model_dir, tmp_path, pairs, seen):
    class Project:
        folder = tmp_path

        def options_of(self, command):
            settings = ["arguments.weight_decay=0.2", "arguments.warmup_ratio=0.3", "precision=fp32"]
            settings += ["loss=graded", "evals_per_epoch=1"]
            options = {"data": [pairs], "dev": [pairs], "backbone": str(tiny_model_dir), "set": settings}
            return options | {"epochs": 0.5, "device": "cpu", "report_to": "tensorboard"}

    open_args = {"weight_decay": None, "num_train_epochs": None, "bf16": False, "report_to": "none"}
    fitted = fit(Project(), args=open_args | {"warmup_steps": 0.25})
    (trained,) = seen
    assert (trained.weight_decay, trained.num_train_epochs, trained.report_to) == (0.2, 0.5, [])
    recipe = fitted.report.recipe
    assert (recipe["training"]["precision"], recipe["arguments"]["warmup_ratio"]) == ("fp32", 0.25)
