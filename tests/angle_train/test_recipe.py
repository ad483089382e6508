"""Recipes: what they accept, how they complain, and that writing and reading them loses nothing."""

from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.errors import InputError
from angle_train.model.pooling import POOLINGS
from angle_train.objective.terms import SIMILARITIES
from angle_train.recipe import (
    CHECKPOINT,
    AngleMode,
    BackboneConfig,
    ObjectiveConfig,
    Pooling,
    Recipe,
    TrainingConfig,
    builtin_recipes,
    find_recipe,
    parse_settings,
)
from angle_train.trainer_arguments import USUAL_ARGUMENTS
from angle_train.training.presets import PRESETS


def written(tmp_path, text):
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_default_recipe_spells_out_the_defaults():
    recipe = Recipe.from_toml(find_recipe("default"))
    assert replace(recipe, description="") == Recipe()
    text = find_recipe("default").read_text()
    for config in (ObjectiveConfig, BackboneConfig, TrainingConfig):
        for name in (f.name for f in fields(config) if f.name != "max_seq_length"):
            # What the kind of labels chooses is named, too, but stays open.
            assert f"\n# {name} = " in text if name in PRESETS["papers"] else f"\n{name} = " in text
    assert all(f"\n{name} = " in text for name in USUAL_ARGUMENTS)


def test_recipes_can_name_every_pooling_and_angle_mode():
    assert set(get_args(Pooling)) == {CHECKPOINT, *POOLINGS}
    assert {"cosine", *get_args(AngleMode)} == set(SIMILARITIES)


@pytest.mark.parametrize("path", builtin_recipes().values(), ids=lambda path: path.stem)
def test_builtin_recipes_are_valid_and_open_with_their_command(path):
    assert Recipe.from_toml(path).description
    assert path.read_text().startswith("# angle-train fit ")
    assert f"--recipe {path.stem}" in path.read_text().splitlines()[0]


@settings(deadline=None)
@given(
    description=st.text(st.characters(blacklist_categories=["Cs"])),
    prompt=st.text(st.characters(blacklist_categories=["Cs"])),
    rate=st.floats(1e-12, 1e6),
    length=st.none() | st.just("auto") | st.integers(2, 10**6),
    swap=st.booleans(),
    dims=st.lists(st.integers(2, 999), unique=True),
    share=st.sampled_from([0, 0.25]),
)
def test_recipe_survives_writing_and_reading(
    tmp_path_factory, description, prompt, rate, length, swap, dims, share
):
    training = TrainingConfig(prompt=prompt, learning_rate=rate, max_seq_length=length, swap=swap)
    recipe = Recipe(training=training, description=description)
    recipe = recipe.with_overrides({"matryoshka_dims": dims, "average_with_backbone": share})
    path = written(tmp_path_factory.getbasetemp(), recipe.to_toml_text())
    assert Recipe.from_toml(path) == recipe
    # Equal recipes have equal texts, also of 0 and 0.0.
    twin = recipe.with_overrides({"average_with_backbone": float(share)})
    assert twin.to_toml_text() == recipe.to_toml_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[objektive]\n", r"unknown section 'objektive', did you mean 'objective'\?"),
        (
            "[wheels]\n",
            r"unknown section 'wheels' \(known: objective, backbone, training, arguments, description\)",
        ),
        (
            "[objective]\ncosine_wieght = 1\n",
            r"\[objective\] key 'cosine_wieght', did you mean 'cosine_weight'\?",
        ),
        ("[training]\nepochs = 0\n", r"training.epochs: Input should be greater than 0, got 0"),
        ("[training]\nepochs = '3'\n", r"training.epochs: Input should be a valid number, got '3'"),
        ("[training]\nlearning_rate = nan\n", r"learning_rate: Input should be a finite number, got nan"),
        ("[training]\nbatch_size = 2.5\n", r"batch_size: Input should be a valid integer.*, got 2.5"),
        ("[training]\nprecision = 'fp8'\n", r"precision: Input should be 'auto', 'fp32', 'bf16' or 'fp16'"),
        (
            "[training]\nmax_seq_length = 1\n",
            r"max_seq_length: Input .* 2 or 'auto', got 1$",
        ),
        (
            "[training]\naverage_with_backbone = 1.5\n",
            r"average_with_backbone \(fit --merge-back\): .*got 1.5",
        ),
        ("[backbone]\ndistil_epochs = 2\n", r"distil_epochs belongs under \[training\]; move it there"),
        ("distil_epochs = 2\n", r"distil_epochs belongs under \[training\]; move it there"),
        (
            "[training]\ndistil_epochs = -1\n",
            r"distil_epochs: Input .* or equal to 0, got -1",
        ),
        (
            "[objective]\npositive_score = 0.8\nnegative_score = 0.8\n",
            r"negative_score must be below positive_score",
        ),
        (
            "[objective]\nflourish = 'mnrl'\n",
            r"unknown \[objective\] key 'flourish' \(known: loss, ",
        ),
        ("[objective]\nmatryoshka_dims = [64.0]\n", r"matryoshka_dims: Input should be a valid integer"),
        (
            "[objective]\nmatryoshka_dims = [64, 64]\n",
            r"must be different numbers, got \[64, 64\]",
        ),
        (
            "[objective]\ncosine_weight = 0\nin_batch_weight = 0\nangle_weight = 0\n",
            r"at least one of the three weights must be above 0",
        ),
        (
            "[backbone]\nquantization = '4bit'\n",
            r"\[backbone\] quantization 4bit trains adapters only; set lora_rank too",
        ),
        ("[backbone]\nlora_targets = ' , '\n", r"lora_targets must be auto, all, or names"),
        ("[backbone]\nlora_dropout = 1.0\n", r"lora_dropout: Input should be less than 1"),
        ("[backbone]\npooling = 'avg'\n", r"pooling: Input should be 'checkpoint', 'cls', 'last-avg', "),
        ("description = 3\n", r"description: Input should be a valid string"),
        ("training = 3\n", r"training: Input should be .*, got 3"),
        ("[training\n", r"not a valid TOML file"),
    ],
)
def test_mistakes_are_named_with_the_file(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        Recipe.from_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_all_mistakes_are_reported_at_once(tmp_path):
    path = written(tmp_path, "[training]\nepochs = -1\nseeds = 3\n[objective]\nangle_tau = -1\n")
    with pytest.raises(InputError) as caught:
        Recipe.from_toml(path)
    assert all(name in str(caught.value) for name in ("epochs", "'seeds', did you mean 'seed'", "angle_tau"))
    assert str(caught.value).count("; ") == 2


def test_values_given_in_python_are_checked_too():
    with pytest.raises(ValueError, match=r"patience\n.* greater than or equal to 1"):
        TrainingConfig(patience=0)


def test_overrides_replace_single_values_of_either_section():
    recipe = Recipe().with_overrides({"epochs": 7, "angle_tau": 2.0, "seed": None})
    assert recipe.training == TrainingConfig(epochs=7)
    assert recipe.objective == ObjectiveConfig(angle_tau=2.0)
    with pytest.raises(InputError, match=r"unknown recipe key 'epoch', did you mean 'epochs'\?"):
        Recipe().with_overrides({"epoch": 7})
    with pytest.raises(InputError, match="epochs: Input should be greater than 0, got -1"):
        Recipe().with_overrides({"epochs": -1})


def test_settings_of_the_command_line_are_read_as_toml_or_texts():
    given = ["epochs=3", "training.learning_rate = 1e-4", "swap=false", "precision=bf16", "prompt=a=b"]
    values = parse_settings([*given, "max_seq_length=auto", "objective.matryoshka_dims=[16, 8]"])
    recipe = Recipe().with_overrides(values)
    assert recipe.training == TrainingConfig(
        epochs=3, learning_rate=1e-4, swap=False, precision="bf16", prompt="a=b", max_seq_length="auto"
    )
    assert recipe.objective.matryoshka_dims == (16, 8)
    assert parse_settings([]) == {}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "--set epochs: write KEY=VALUE, such as"),
        ("=3", "--set =3: write KEY=VALUE"),
        ("objective.epochs=3", "--set objective.epochs=3: epochs is in section 'training'"),
        ("wheels.epochs=3", "epochs is in section 'training'"),
    ],
)
def test_malformed_settings_are_named(setting, message):
    with pytest.raises(InputError, match=message):
        parse_settings([setting])


def test_a_value_is_given_in_one_way_only():
    options = {"epochs": ("--epochs", 2.0), "seed": ("--seed", None)}
    assert parse_settings(["seed=3"], options) == {"epochs": 2.0, "seed": 3}
    with pytest.raises(InputError, match="epochs is given twice: leave out --epochs or --set epochs"):
        parse_settings(["training.epochs=abc"], options)
    with pytest.raises(InputError, match=r"^--epochs: must be greater than 0, got 0.0$"):
        parse_settings([], {"epochs": ("--epochs", 0.0)})
    with pytest.raises(InputError, match=r"keep_general: write true or false, got 0$"):
        Recipe().with_overrides(parse_settings(["keep_general=0"]))


def test_recipes_are_found_by_name_or_path(tmp_path):
    assert find_recipe(str(tmp_path / "mine.toml")) == tmp_path / "mine.toml"
    assert find_recipe("mine.toml") == Path("mine.toml")
    with pytest.raises(InputError, match=r"no recipe is called 'defualt', did you mean 'default'\?"):
        find_recipe("defualt")
    with pytest.raises(InputError, match=r"missing.toml: no such recipe file"):
        Recipe.from_toml(tmp_path / "missing.toml")


def test_a_file_that_is_no_text_is_named_in_one_line(tmp_path):
    (tmp_path / "r.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"r\.toml: not a valid TOML file"):
        Recipe.from_toml(tmp_path / "r.toml")
