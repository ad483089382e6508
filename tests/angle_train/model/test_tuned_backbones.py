"""Real runs with what a recipe can make of a backbone: families, poolings, prompts, adapters, long texts."""

import json
import shutil

import numpy as np
import pytest
import torch
from cut_runs import CutOff, cut_off
from sentence_transformers import SentenceTransformer
from tiny_backbones import FAMILIES, checkpoint
from train_runs import evaluate_model, run_of, tuned_weights, write

from angle_data.errors import InputError
from angle_train import run as fit_module
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.statistics import spearman
from angle_train.model.adapters import has_adapters
from angle_train.model.load import load_backbone, load_for_training
from angle_train.model.pooling import POOLINGS
from angle_train.recipe import BackboneConfig, Recipe
from angle_train.run import fit
from angle_train.training.arguments import checkpoint_gradients

PAPER = 'Summarize sentence "{text}" in one word:"'
FAST = {
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "evals_per_epoch": 1,
    "average_with_backbone": 0.0,
}
LEARNS = {"learning_rate": 5e-2, "epochs": 6}
"""What lets adapters of a tiny model learn enough for 32 pairs to show it."""


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory, rows):
    return write(tmp_path_factory.mktemp("data") / "pairs.jsonl", rows[:32])


@pytest.fixture
def run(monkeypatch, tmp_path, tiny_model_dir, pairs_file):
    """Fit with some recipe keys; return the configuration and the report. Without figures and model cards."""
    monkeypatch.setattr(fit_module, "write_fit_page", lambda *_: None)
    monkeypatch.setattr(SentenceTransformer, "_create_model_card", lambda *_, **__: None)

    def start(backbone=tiny_model_dir, out="out", **values):
        config = run_of(backbone, tmp_path / out, pairs_file, FAST | values)
        return config, fit(config).report

    return start


def similarity(model, pairs_file):
    return evaluate_model(model, load_pairs(str(pairs_file)))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_and_opens_as_an_ordinary_model(run, tmp_path, family):
    values = {} if family in ("bert", "roberta", "modernbert") else {"lora_rank": 4, "prompt": PAPER}
    config, report = run(checkpoint(family, tmp_path / family, pad=False), learning_rate=5e-3, **values)
    assert report.dev_after > report.dev_before
    model = SentenceTransformer(str(tuned_weights(config.out)), device="cpu")
    assert not has_adapters(model)
    assert abs(similarity(model, config.dev[0])).max() <= 1 + 1e-6
    names = {name for name, _ in model.named_parameters()}
    assert not any("lm_head" in name or "lora" in name for name in names)


def test_the_baseline_is_the_backbone_as_it_is(run, tiny_model_dir, pairs_file):
    """And it is what is saved if what was made of it, trained or not, is worse."""
    gold = load_pairs(str(pairs_file)).score
    plain = similarity(load_backbone(str(tiny_model_dir), device="cpu"), pairs_file)
    scores = {}
    for name in POOLINGS:
        model = load_for_training(str(tiny_model_dir), BackboneConfig(pooling=name), PAPER, device="cpu")
        scores[name] = spearman(gold, similarity(model, pairs_file))
    worst = min(scores, key=scores.__getitem__)
    assert scores[worst] < spearman(gold, plain) - 0.01
    config, report = run(pooling=worst, prompt=PAPER, learning_rate=1e-9, epochs=1)
    assert report.dev_before == spearman(gold, plain)
    assert report.kept == "backbone"
    np.testing.assert_array_equal(similarity(load_backbone(str(config.out), device="cpu"), pairs_file), plain)


def test_adapters_alone_are_trained(run, tiny_model_dir, pairs_file):
    config, report = run(lora_rank=4, **LEARNS, average_with_backbone=0.25)
    assert report.kept == "tuned"
    assert Recipe.from_toml(config.out / "recipe.toml").backbone == config.recipe.backbone
    again = load_backbone(str(config.out), device="cpu")
    assert not has_adapters(again)
    before = load_backbone(str(tiny_model_dir), device="cpu").state_dict()
    after = again.state_dict()
    changed = {name for name, weights in before.items() if not torch.equal(after[name], weights)}
    assert changed
    assert all(name.endswith(("query.weight", "value.weight")) for name in changed)


def test_a_run_with_adapters_goes_on_where_it_was_cut_off(run):
    whole, report = run(out="whole", lora_rank=4, lora_dropout=0.1, **LEARNS)
    assert report.kept == "tuned"
    with cut_off("on_save", 2), pytest.raises(CutOff):
        run(out="cut", lora_rank=4, lora_dropout=0.1, **LEARNS)
    checkpoint_directory = whole.out.parent / "cut" / "checkpoints" / "checkpoint-2"
    assert (checkpoint_directory / "adapter_model.safetensors").is_file()
    assert not (checkpoint_directory / "model.safetensors").exists()
    again, resumed = run(out="cut", lora_rank=4, lora_dropout=0.1, **LEARNS)
    assert resumed.curve == report.curve
    assert (again.out / "model.safetensors").read_bytes() == (whole.out / "model.safetensors").read_bytes()


def test_adapters_follow_the_seed(tiny_model_dir, tmp_path, pairs_file):
    states = []
    for seed in (1, 1, 2):
        config = run_of(tiny_model_dir, tmp_path, pairs_file, FAST | {"lora_rank": 4, "seed": seed})
        model = load_for_training(config.backbone, config.recipe.backbone, seed=seed, device="cpu")
        state = model.state_dict()
        states.append(torch.cat([w.flatten() for name, w in state.items() if "lora_A" in name]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_gradient_checkpointing_changes_memory_not_results(run):
    files = []
    for out, flag in (("with", True), ("without", False)):
        config, _ = run(out=out, args={"gradient_checkpointing": flag})
        files.append(SentenceTransformer(str(config.out), device="cpu").state_dict())
    for name, weights in files[0].items():
        torch.testing.assert_close(weights, files[1][name], rtol=0, atol=1e-6)
    model = load_for_training(config.backbone, BackboneConfig(), device="cpu")
    checkpoint_gradients(model, Recipe(arguments={"gradient_checkpointing": True}))
    assert model.transformers_model.is_gradient_checkpointing


def test_attention_is_the_one_that_the_checkpoint_names(tiny_model_dir, tmp_path):
    directory = shutil.copytree(tiny_model_dir, tmp_path / "model")
    settings = json.loads((directory / "config.json").read_text())
    for name in ("eager", "sdpa"):
        (directory / "config.json").write_text(json.dumps(settings | {"attn_implementation": name}))
        model = load_for_training(str(directory), BackboneConfig(), device="cpu")
        assert model.transformers_model.config._attn_implementation == name


def test_the_first_token_of_a_causal_model_is_not_read(tmp_path):
    directory = str(checkpoint("llama", tmp_path / "llama"))
    with pytest.raises(InputError, match=r"pooling cls reads the first token, .* = last-token"):
        load_for_training(directory, BackboneConfig(pooling="cls"), device="cpu")


def test_what_is_no_transformer_is_not_tuned(tmp_path):
    from sentence_transformers.sentence_transformer.modules import BoW

    model = SentenceTransformer(modules=[BoW(vocab=["node", "api"])], device="cpu")
    model.save_pretrained(str(tmp_path / "bow"), create_model_card=False)
    with pytest.raises(InputError, match=r"bow is not a transformer \(.*\): fit cannot tune it"):
        load_for_training(str(tmp_path / "bow"), BackboneConfig(), device="cpu")
