"""Training runs on a tiny random model: selection, determinism, resuming, what is written and refused."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from angle_data.errors import InputError
from angle_train.data.kinds import PRESETS, settle
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.similarity import evaluate_model
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.report.result import FitReport
from angle_train.report.text import results_table
from angle_train.run import fit

FAST = {"loss": "papers", "epochs": 5, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 1}


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory, examples):
    """60 of the natural dev pairs: training on what selects the checkpoint cannot but improve on it."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    path = tmp_path_factory.mktemp("data") / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows[:60])))
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model_dir, pairs_file):
    """A finished run of 5 epochs of 4 steps, with its result."""
    config = FitOptions(
        data=[str(pairs_file)],
        backbone=str(tiny_model_dir),
        out=tmp_path_factory.mktemp("finished") / "out",
        recipe=Recipe().with_overrides(FAST),
        dev=[str(pairs_file)],
        device="cpu",
    )
    return config, fit(config)


@pytest.fixture
def config(finished, tmp_path):
    """The same run, to be done anew in another directory."""
    return replace(finished[0], out=tmp_path / "out")


def changed(config, **values):
    return replace(config, recipe=config.recipe.with_overrides(values))


def read_rows(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def weights(directory):
    return (directory / "model.safetensors").read_bytes()


def test_the_end_is_saved_and_the_curve_reported(finished):
    config, result = finished
    report = result.report
    tuned = [point["dev"] for point in report.curve[1:]]
    assert [point["step"] for point in report.curve] == list(range(0, 21, 4))
    assert report.kept == "tuned"
    assert report.dev_after == tuned[-1] > report.dev_before == report.curve[0]["dev"]
    assert report.best_step == report.steps == report.planned_steps == 20
    choice = report.details["choice"]
    assert (choice["chosen"], choice["compared"]) == (1, 5)
    assert choice["confidence"] == pytest.approx(1, abs=0.01)
    assert (choice["simplest"], choice["best"]) == pytest.approx((report.dev_before, report.dev_after))
    dev = load_pairs(config.dev[0])
    saved = load_backbone(str(config.out), device="cpu")
    assert spearman(dev.score, evaluate_model(saved, dev)) == pytest.approx(report.dev_after)
    assert report.notes == ["60 of 60 dev pairs of pairs are training pairs too"]


def test_finished_run_leaves_model_card_recipe_and_reports_but_no_checkpoints(finished):
    config, result = finished
    names = {path.name for path in config.out.iterdir()}
    assert {"modules.json", "README.md", "recipe.toml", "report.json", "report.html"} <= names
    assert "checkpoints" not in names
    assert Recipe.from_toml(config.out / "recipe.toml") == settle(config.recipe, load_pairs(config.data[0]))
    assert FitReport.read(config.out / "report.json") == result.report
    card = (config.out / "README.md").read_text()
    assert result.report.advice() in card
    assert results_table(result.report.results) in card
    kinds = {module["type"].split(".")[0] for module in json.loads((config.out / "modules.json").read_text())}
    assert kinds == {"sentence_transformers"}


def test_the_same_run_gives_the_same_bytes(finished, config):
    fit(config)
    for name in ("model.safetensors", "report.json", "report.html", "recipe.toml"):
        assert (config.out / name).read_bytes() == (finished[0].out / name).read_bytes(), name


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
    report = fit(config).report
    assert weights(config.out) == weights(finished[0].out)
    assert report == finished[1].report


def test_finished_run_is_found_and_only_overwritten_on_request(finished, config):
    shutil.copytree(finished[0].out, config.out)
    mark = config.out / "README.md"
    mark.write_text("untouched")
    again = fit(config)
    assert (again.already_finished, finished[1].already_finished) == (True, False)
    assert again.report == finished[1].report
    assert fit(replace(config, recipe=replace(config.recipe, description="another name"))).already_finished
    # What leaves the result the same makes no other run.
    assert fit(changed(config, chunking="fixed", chunk_size=4)).already_finished
    told = r"run with different epochs \(5.0 -> 1.0\); .* --overwrite"
    with pytest.raises(InputError, match=told):
        fit(changed(config, epochs=1))
    assert mark.read_text() == "untouched"
    assert not fit(replace(changed(config, epochs=1), overwrite=True)).already_finished
    assert mark.read_text() != "untouched"


def test_a_run_that_does_not_help_stops_early_and_keeps_the_backbone(config, tiny_model_dir):
    # Weights that do not move score the same each time: the first evaluation stays the best one.
    report = fit(changed(config, learning_rate=1e-12, patience=2)).report
    assert [point["step"] for point in report.curve] == [0, 4, 8, 12]
    assert (report.steps, report.planned_steps) == (12, 20)
    assert report.kept == "backbone"
    assert report.best_step == 0
    assert report.verdict()[0].startswith(
        "Tuning did not surely help: of 3 compared, none ranked the dev pairs better than the backbone by "
        "more than chance explains"
    )
    assert {result.model for result in report.judged} == {"tuned, not saved"}
    before, after = (
        load_backbone(str(tiny_model_dir), device="cpu"),
        load_backbone(str(config.out), device="cpu"),
    )
    assert all(bool((a == b).all()) for a, b in zip(before.parameters(), after.parameters(), strict=True))


def test_prompt_and_length_are_saved_with_the_model_and_used(config):
    fit(changed(config, epochs=1, prompt="note: ", max_seq_length=6))
    model = load_backbone(str(config.out), device="cpu")
    assert model.max_seq_length == 6
    plain = model.encode("the node failed", prompt="")
    assert model.encode("the node failed") == pytest.approx(model.encode("note: the node failed", prompt=""))
    assert model.encode("the node failed") != pytest.approx(plain)


def test_dimensions_that_the_backbone_lacks_are_refused_before_anything_is_measured(config, caplog):
    with (
        caplog.at_level("INFO", logger="angle"),
        pytest.raises(InputError, match="matryoshka_dims 9999 is more than the 32 dimensions"),
    ):
        fit(changed(config, matryoshka_dims=[9999]))
    assert "the untouched backbone" not in caplog.text
    assert not config.out.exists()


def test_weights_of_pairs_and_options_of_the_batches_reach_the_training(config, tmp_path, caplog):
    # Three paraphrases of a text and one opposite: with these, transitive labels say more than the rows.
    rows = read_rows(config.data[0])
    plain = [
        {"text1": rows[i // 4 * 4]["sentence1"], "text2": row["sentence2"], "score": i % 4 > 0}
        for i, row in enumerate(rows)
    ]
    weighted = [row | {"weight": 1.0 if row["score"] else 0.1} for row in plain]
    terms = []
    caplog.set_level("INFO", logger="angle")
    for rows, option in (
        (plain, {}), (weighted, {}), (plain, {"transitive": True}), (plain, {"source_block": 4})
    ):  # fmt: skip
        data = tmp_path / "sourced.jsonl"
        data.write_text("\n".join(map(json.dumps, rows)))
        run = replace(changed(config, epochs=1, **option), data=[str(data)], out=tmp_path / f"{len(terms)}")
        caplog.clear()
        fit(run)
        terms.append(re.findall(r"loss [\d.]+, cosine [\d.]+", caplog.text)[0])
    assert terms[0] not in terms[1:]


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
    fit(changed(config, epochs=1, freeze_embeddings=True))
    before, trained, frozen = (
        load_backbone(str(path), device="cpu").state_dict()
        for path in (tiny_model_dir, finished[0].out, config.out)
    )
    # BERT's own pooler takes no part in mean pooling.
    names = {name for name in before if "pooler" not in name}
    assert not [name for name in names if before[name].equal(trained[name])]
    assert {name for name in names if before[name].equal(frozen[name])} == {
        name for name in names if "word_embeddings" in name
    }
