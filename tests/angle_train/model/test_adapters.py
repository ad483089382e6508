"""Adapters: what trains, that merging and scaling are exact, and what a recipe may ask of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_backbones import checkpoint
from train_runs import moved

from angle_data.errors import InputError, MissingExtraError
from angle_train.model import adapters as lora
from angle_train.model.adapters import (
    four_bit_settings,
    has_adapters,
    load_adapters,
    merge_adapters,
    scale_adapters,
    training_weights,
)
from angle_train.model.load import load_backbone, load_for_training
from angle_train.recipe import BackboneConfig

TEXTS = ["the node failed", "a", "a much longer text about the api and its latency", "deploy to the cluster"]
LORA = BackboneConfig(lora_rank=2, lora_targets="all")


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    return checkpoint("llama", tmp_path_factory.mktemp("lora") / "llama")


@pytest.fixture(params=["encoder", "causal"])
def directory(request, tiny_model_dir, llama):
    return str(tiny_model_dir if request.param == "encoder" else llama)


def adapted(directory, config=LORA, seed=1):
    model = load_for_training(directory, config, device="cpu")
    torch.manual_seed(seed)
    return moved(model)


def test_fresh_adapters_change_nothing_and_are_all_that_trains(directory):
    plain = load_backbone(directory, device="cpu").encode(TEXTS)
    model = load_for_training(directory, LORA, device="cpu")
    assert (model.encode(TEXTS) == plain).all()
    trainable = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert trainable
    assert all("lora_" in name for name in trainable)
    model(model.preprocess(TEXTS))["sentence_embedding"].square().sum().backward()
    without = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert not without, "these would stop distributed training"


def test_merged_weights_compute_what_the_adapters_did(directory):
    model = adapted(directory)
    expected, plain = model.encode(TEXTS), load_backbone(directory, device="cpu").encode(TEXTS)
    assert abs(expected - plain).max() > 1e-2
    names = load_backbone(directory, device="cpu").state_dict().keys()
    merge_adapters(model)
    assert not has_adapters(model)
    assert model.state_dict().keys() == names
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-5)
    merge_adapters(model)  # a model without any is left alone


def test_scaled_adapters_are_an_average_with_the_backbone(directory):
    model, share = adapted(directory), 0.3
    averaged, plain = adapted(directory), load_backbone(directory, device="cpu").state_dict()
    scale_adapters(model, 1 - share)
    merge_adapters(averaged)
    for name, weights in averaged.state_dict().items():
        if weights.is_floating_point():
            weights.lerp_(plain[name], share)
    np.testing.assert_allclose(model.encode(TEXTS), averaged.encode(TEXTS), atol=1e-5)


def test_a_checkpoints_adapters_are_read_back(directory, tmp_path):
    model = adapted(directory)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    other = adapted(directory, seed=2)
    assert abs(other.encode(TEXTS) - model.encode(TEXTS)).max() > 1e-2
    load_adapters(other, tmp_path)
    assert (other.encode(TEXTS) == model.encode(TEXTS)).all()
    with pytest.raises((ValueError, RuntimeError), match=r"adapters of another shape|size mismatch"):
        load_adapters(load_for_training(directory, replace(LORA, lora_rank=3), device="cpu"), tmp_path)


def test_layers_are_chosen_by_name(tiny_model_dir):
    model = load_for_training(str(tiny_model_dir), replace(LORA, lora_targets="query, key"), device="cpu")
    layers = {name.split(".lora_")[0].split(".")[-1] for name in model.state_dict() if "lora_" in name}
    assert layers == {"query", "key"}
    with pytest.raises(
        InputError, match=r"lora_targets 'q_proj' does not match the model: .*q_proj.* not found"
    ) as caught:
        load_for_training(str(tiny_model_dir), replace(LORA, lora_targets="q_proj"), device="cpu")
    assert "\n" not in str(caught.value)


def test_automatic_targets_of_an_architecture_unknown_to_peft_are_all_linear_layers(tmp_path, monkeypatch):
    from peft import utils

    known = utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    monkeypatch.delitem(known, "modernbert", raising=False)
    model = load_for_training(
        str(checkpoint("modernbert", tmp_path / "m")), BackboneConfig(lora_rank=2), device="cpu"
    )
    layers = {name.split(".lora_")[0].split(".")[-1] for name in model.state_dict() if "lora_" in name}
    assert layers == {"Wqkv", "Wo", "Wi"}


def test_an_adapter_model_is_merged_before_it_is_trained_again(tiny_model_dir, tmp_path):
    model = adapted(str(tiny_model_dir))
    model.save_pretrained(str(tmp_path), create_model_card=False)
    again = load_for_training(str(tmp_path), BackboneConfig(), device="cpu")
    assert not has_adapters(again)
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    assert all(parameter.requires_grad for parameter in again.parameters())
    again.save_pretrained(str(tmp_path / "whole"), create_model_card=False)
    whole = SentenceTransformer(str(tmp_path / "whole"), device="cpu")
    np.testing.assert_allclose(whole.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    more = load_for_training(str(tmp_path), LORA, device="cpu")
    assert all(parameter.requires_grad == ("lora_" in name) for name, parameter in more.named_parameters())


def test_frozen_weights_keep_their_type_in_half_precision(llama):
    half = load_for_training(str(llama), LORA, device="cpu").to(torch.bfloat16)
    types = {p.requires_grad: p.dtype for p in training_weights(half, "bf16").parameters()}
    assert types == {False: torch.bfloat16, True: torch.float32}
    assert {p.dtype for p in training_weights(half, "fp32").parameters()} == {torch.float32}
    whole = load_backbone(str(llama), device="cpu").to(torch.bfloat16)
    assert {p.dtype for p in training_weights(whole, "bf16").parameters()} == {torch.float32}


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
def test_adapters_train_on_the_processor_in_bf16_whatever_the_type_of_the_frozen_weights(directory, stored):
    model = training_weights(load_for_training(str(directory), LORA, device="cpu").to(stored), "bf16")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        embeddings = model(model.preprocess(TEXTS))["sentence_embedding"]
    embeddings.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)


def test_four_bits_are_those_of_qlora(monkeypatch):
    found = lora.importlib.util.find_spec
    monkeypatch.setattr(lora.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'quantization 4bit needs the "qlora" extra: pip install'):
        four_bit_settings(torch.device("cuda"))
    monkeypatch.setattr(lora.importlib.util, "find_spec", lambda name: found("json"))
    with pytest.raises(
        InputError, match=r"quantization 4bit needs a GPU, this run is on cpu; set it to none"
    ):
        four_bit_settings(torch.device("cpu"))
    settings = four_bit_settings(torch.device("cuda", 0))
    assert settings["device_map"] == {"": torch.device("cuda", 0)}
    quantization = settings["quantization_config"].to_dict()
    assert quantization["load_in_4bit"] is True
    assert quantization["bnb_4bit_quant_type"] == "nf4"
    assert quantization["bnb_4bit_use_double_quant"] is True
    assert quantization["bnb_4bit_compute_dtype"] == "bfloat16"
