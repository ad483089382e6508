"""Training runs on a tiny random model: selection, determinism, resuming, what is written and refused."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from train_runs import changed, run_of, state, tuned_weights, write

from angle_data.errors import InputError
from angle_train.data.pairs import load_pairs
from angle_train.recipe import Recipe
from angle_train.report.result import FitReport
from angle_train.report.text import results_table
from angle_train.run import fit
from angle_train.training.presets import PRESETS, settle

# The processor would decide on the precision, and programs that tests start see another one than tests do.
FAST = {
    "loss": "papers",
    "epochs": 5,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "evals_per_epoch": 1,
    "precision": "fp32",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model_dir, rows):
    """A finished run of 5 epochs of 4 steps, with its result."""
    folder = tmp_path_factory.mktemp("finished")
    config = run_of(tiny_model_dir, folder / "out", write(folder / "pairs.jsonl", rows[:60]), FAST)
    return config, fit(config)


@pytest.fixture
def config(finished, tmp_path):
    """The same run, to be done anew in another directory."""
    return replace(finished[0], out=tmp_path / "out")


def test_finished_run_leaves_model_card_recipe_and_reports_but_no_checkpoints(finished):
    config, result = finished
    names = {path.name for path in config.out.iterdir()}
    assert {"modules.json", "README.md", "recipe.toml", "report.json", "report.html"} <= names
    assert "checkpoints" not in names
    assert {name for name in names if name.startswith((".", "fit_state"))} == {".angle"}
    assert Recipe.from_toml(config.out / "recipe.toml") == settle(config.recipe, load_pairs(config.data[0]))
    assert FitReport.read(config.out / "report.json") == result.report
    card = (config.out / "README.md").read_text()
    assert result.report.verdict.advice in card
    assert results_table(result.report.results) in card
    kinds = {module["type"].split(".")[0] for module in json.loads((config.out / "modules.json").read_text())}
    assert kinds == {"sentence_transformers"}


@pytest.mark.parametrize(("dev", "told"), [(3, True), (60, False)])
def test_dev_pairs_too_few_to_choose_by_are_warned_of_before_training(
    dev, told, config, rows, tmp_path, caplog
):
    some, test = write(tmp_path / "some.jsonl", rows[:dev]), write(tmp_path / "test.jsonl", rows[60:80])
    fit(replace(changed(config, epochs=0.3), dev=[some], test=[test]))
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    warned = [line for line in lines if "3 held-out pairs are too few to choose by; give --dev pairs" in line]
    assert len(warned) == told
    assert all(line.endswith("at the end of training are those that are tested") for line in warned)


def test_killed_run_goes_on_and_ends_in_the_same_weights(finished, config):
    arguments = ["fit", "--data", *config.data, "--backbone", config.backbone, "--out", str(config.out)]
    arguments += ["--dev", *config.dev, "--recipe", str(finished[0].out / "recipe.toml")]
    program = "from angle_train.cli import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not (config.out / "checkpoints" / "checkpoint-8" / "trainer_state.json").exists():
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.002)
    child.kill()
    child.communicate()
    assert not (config.out / "model.safetensors").exists()
    # What a kill in the middle of writing a checkpoint leaves behind.
    (config.out / "checkpoints" / "checkpoint-19").mkdir()
    assert fit(config).report == finished[1].report
    for name in ("model.safetensors", "report.json", "report.html", "recipe.toml"):
        assert (config.out / name).read_bytes() == (finished[0].out / name).read_bytes(), name


def test_finished_run_is_found_and_only_overwritten_on_request(finished, config):
    shutil.copytree(finished[0].out, config.out)
    mark = config.out / "README.md"
    mark.write_text("untouched")
    again = fit(config)
    assert (again.already_finished, finished[1].already_finished) == (True, False)
    assert again.report == finished[1].report
    assert fit(replace(config, recipe=replace(config.recipe, description="another name"))).already_finished
    # What leaves the result the same makes no other run.
    assert fit(changed(config, chunk_size=4)).already_finished
    told = r"run with different epochs \(5.0 -> 1.0\); .* --overwrite"
    with pytest.raises(InputError, match=told):
        fit(changed(config, epochs=1))
    assert mark.read_text() == "untouched"
    assert not fit(replace(changed(config, epochs=1), overwrite=True)).already_finished
    assert mark.read_text() != "untouched"


def test_dimensions_that_the_backbone_lacks_are_refused_before_anything_is_measured(config, caplog):
    with (
        caplog.at_level("INFO", logger="angle"),
        pytest.raises(InputError, match="matryoshka_dims 9999 is more than the 32 dimensions"),
    ):
        fit(changed(config, matryoshka_dims=[9999]))
    assert "the untouched backbone" not in caplog.text
    assert not config.out.exists()


def test_the_kind_of_labels_chooses_what_the_recipe_leaves_open(config, caplog):
    recipe = Recipe().with_overrides({"epochs": 1, "batch_size": 16, "evals_per_epoch": 1})
    with caplog.at_level("INFO", logger="angle"):
        report = fit(replace(config, recipe=recipe)).report
    assert caplog.text.count("labels: graded (60 pairs have ") == 1
    values = report.recipe["objective"] | report.recipe["training"]
    assert values.items() >= (PRESETS["graded"] | {"epochs": 1.0}).items()
    assert re.search(r"step 4/4, epoch 1.00: loss [\d.]+, cosine [\d.]+; dev", caplog.text)
    as_run = Recipe.from_toml(config.out / "recipe.toml")
    assert fit(replace(config, recipe=as_run)).already_finished
    with pytest.raises(InputError, match=r"different in_batch_weight \(0.0 -> 1.0\).* learning_rate "):
        fit(replace(config, recipe=recipe.with_overrides({"loss": "papers"})))


def test_token_embeddings_can_be_frozen(finished, config, tiny_model_dir):
    fit(changed(config, epochs=1, frozen_layers="embeddings"))
    outs = map(tuned_weights, (finished[0].out, config.out))
    before, trained, frozen = map(state, (tiny_model_dir, *outs))
    # BERT's own pooler takes no part in mean pooling.
    names = {name for name in before if "pooler" not in name}
    assert not [name for name in names if before[name].equal(trained[name])]
    assert {name for name in names if before[name].equal(frozen[name])} == {
        name for name in names if "word_embeddings" in name
    }
