"""Keys that recipes had once: files and runs that name them stay readable, and one line says what to do."""

from dataclasses import fields

import pytest

from angle_data.errors import InputError
from angle_train import fit, train
from angle_train.dropped import DROPPED_KEYS, FREEZE_EMBEDDINGS, MOVED_KEYS, parts_that_count
from angle_train.recipe import SECTIONS, Recipe, parse_settings
from angle_train.trainer_arguments import USUAL_ARGUMENTS


def written(tmp_path, text):
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_recipe_of_an_earlier_version_is_read_where_it_says_what_now_always_holds(tmp_path, caplog):
    path = written(tmp_path, '[objective]\nin_batch_mean = "positives"\n[backbone]\nlora_alpha = 32.0\n')
    assert Recipe.from_toml(path) == Recipe()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[1].endswith(
        "recipe.toml: lora_alpha was dropped before 0.1.0 and is always 32.0: it was 32 in every recipe; "
        "lora_rank and learning_rate do the same; delete it"
    )


@pytest.mark.parametrize("key", DROPPED_KEYS)
def test_a_dropped_key_is_refused_in_one_line_that_says_why(tmp_path, key):
    path = written(tmp_path, f"[training]\n{key} = 7.5\n")
    line = f"{key} was dropped before 0.1.0 and is always .*; delete it"
    for refused in (
        lambda: Recipe.from_toml(path),
        lambda: Recipe().with_overrides({key: DROPPED_KEYS[key][0]}),
        lambda: parse_settings([f"{key}=1"]),
        lambda: fit([], backbone="a", out=tmp_path / "out", **{key: 1}),
        lambda: train("a", [], **{key: 1}),
    ):
        with pytest.raises(InputError, match=line):
            refused()


def test_a_moved_key_of_an_earlier_version_is_read_in_its_new_place(tmp_path, caplog):
    old = """
        [backbone]
        gradient_checkpointing = true
        [training]
        scheduler = "constant"
        gradient_accumulation = 4
        weight_decay = 0.2
        [arguments]
        adam_beta2 = 0.98
    """
    recipe = Recipe.from_toml(written(tmp_path, old))
    new = {"gradient_checkpointing": True, "lr_scheduler_type": "constant_with_warmup"}
    new |= {"gradient_accumulation_steps": 4, "weight_decay": 0.2, "adam_beta2": 0.98}
    assert recipe == Recipe(arguments=new)
    said = [record.getMessage() for record in caplog.records if record.name == "angle.fit"]
    assert len(said) == 4
    assert said[1].endswith(
        "recipe.toml: scheduler moved: write lr_scheduler_type under [arguments] (--set arguments."
        "lr_scheduler_type=…, in Python args={'lr_scheduler_type': …}); it is read as if it stood there"
    )
    twice = written(tmp_path, "[training]\nscheduler = 'cosine'\n[arguments]\nlr_scheduler_type = 'linear'\n")
    with pytest.raises(
        InputError, match=r"recipe.toml: lr_scheduler_type is given twice, by its former name"
    ):
        Recipe.from_toml(twice)


@pytest.mark.parametrize("key", MOVED_KEYS)
def test_a_moved_key_is_refused_elsewhere_in_one_line_that_says_where_it_went(tmp_path, key):
    line = rf"^{key} moved: write {MOVED_KEYS[key]} under \[arguments\]"
    for refused in (
        lambda: Recipe().with_overrides({key: 1}),
        lambda: parse_settings([f"training.{key}=1"]),
        lambda: fit([], backbone="a", out=tmp_path / "out", **{key: 1}),
        lambda: train("a", [], **{key: 1}),
    ):
        with pytest.raises(InputError, match=line):
            refused()


@pytest.mark.parametrize(
    ("said", "frozen"),
    [
        ("[training]\nfreeze_embeddings = true\n", "embeddings"),
        ("[training]\nfreeze_embeddings = false\n[backbone]\npooling = 'cls'\n", 0),
        ("[training]\nfreeze_embeddings = true\n[backbone]\npooling = 'cls'\n", "embeddings"),
        ("[backbone]\nfrozen_layers = 2\n[training]\nfreeze_embeddings = true\n", 2),
    ],
)
def test_frozen_embeddings_of_an_earlier_version_are_the_least_that_is_frozen(tmp_path, caplog, said, frozen):
    recipe = Recipe.from_toml(written(tmp_path, said))
    assert recipe.backbone.frozen_layers == frozen
    assert recipe.backbone.layers_frozen == (2 if frozen == 2 else 0)
    assert 'frozen_layers = "embeddings" under [backbone] says so now; it is read as if it did' in caplog.text
    with pytest.raises(InputError, match=r'^freeze_embeddings moved: frozen_layers = "embeddings" under'):
        parse_settings(["freeze_embeddings=true"])


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("[training]\nfreeze_embeddings = 'yes'\n", "freeze_embeddings: write true or false, got 'yes'"),
        ("arguments = 3\n[training]\nweight_decay = 0.1\n", "arguments: "),
        ("backbone = 3\n[training]\nfreeze_embeddings = true\n", "backbone: "),
        ("[training]\nscheduler = ['cosine']\n", "lr_scheduler_type"),
        ("[objective]\nweight_decay = 0.1\n", "unknown .objective. key 'weight_decay'"),
        ("[objective]\nfreeze_embeddings = true\n", "unknown .objective. key 'freeze_embeddings'"),
    ],
)
def test_what_no_earlier_version_took_is_refused_in_one_line(tmp_path, said, problem):
    with pytest.raises(InputError, match=problem) as refused:
        Recipe.from_toml(written(tmp_path, said))
    assert "\n" not in str(refused.value)


def test_no_recipe_has_a_key_of_earlier_versions():
    assert not {*DROPPED_KEYS, *MOVED_KEYS, FREEZE_EMBEDDINGS} & {
        f.name for c in SECTIONS.values() for f in fields(c)
    }
    assert set(MOVED_KEYS.values()) == set(USUAL_ARGUMENTS)


def test_a_run_of_an_earlier_version_is_the_run_that_it_would_be_today():
    before = {"seed": "42", "scheduler": '"constant"', "gradient_accumulation": "1", "weight_decay": "0.01"}
    before |= {"folds": "5", "attention": '"auto"', "args": "[]"}
    now = {"seed": "42", "lr_scheduler_type": '"constant_with_warmup"', "gradient_accumulation_steps": "1"}
    assert parts_that_count(before) == now | {"weight_decay": "0.01"}
    assert parts_that_count({"folds": "2"}) == {"folds": "2"}
    assert parts_that_count({"args": "[('adam_beta1', 0.8)]"}) == {"adam_beta1": "0.8"}
    assert parts_that_count({"args": "[('report_to', 'none'), ('seed', None)]"}) == {}
    assert parts_that_count({"args": "[('optim', <Optim.SGD>)]"}) == {"args": "[('optim', <Optim.SGD>)]"}
    share = {"average_with_backbone": "0.3"}
    later = {"distil_epochs": "0.0"}  # there was no such key
    assert parts_that_count(share) == share | later
    assert parts_that_count(share | {"distil_epochs": "2.0"}) == share | later | {"distil_epochs": "2.0"}
    frozen = {"frozen_layers": "0", "freeze_embeddings": "true"}
    assert parts_that_count(frozen) == {"frozen_layers": '"embeddings"'}
    assert parts_that_count(frozen | {"freeze_embeddings": "false"}) == {"frozen_layers": "0"}
