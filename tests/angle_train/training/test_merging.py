"""Mixing the backbone into tuned weights."""

import pytest
import torch
from tiny_backbones import checkpoint

from angle_train.model.adapters import add_adapters
from angle_train.model.load import load_backbone, say_once
from angle_train.recipe import BackboneConfig
from angle_train.training.merging import blend, blended, snapshot

TEXTS = ["the node failed", "disk full"]


def encode(model):
    return model.encode(TEXTS, convert_to_tensor=True)


def moved(model, by=0.1):
    """Change the weights that would be trained."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.requires_grad:
                weights.add_(by * torch.randn(weights.shape, generator=generator))


@pytest.mark.parametrize("rank", [0, 4])
def test_a_block_sees_the_blend_and_leaves_no_trace(tiny_model, rank):
    untouched = encode(tiny_model)
    if rank:
        add_adapters(tiny_model, BackboneConfig(lora_rank=rank))
    backbone = snapshot(tiny_model)
    moved(tiny_model)
    before = {name: value.clone() for name, value in tiny_model.state_dict().items()}
    tuned = encode(tiny_model)
    with blended(tiny_model, backbone, 0.5):
        between = encode(tiny_model)
    with blended(tiny_model, backbone, 1.0):
        torch.testing.assert_close(encode(tiny_model), untouched)
    assert not torch.allclose(between, tuned)
    assert not torch.allclose(between, untouched)
    assert all(value.equal(before[name]) for name, value in tiny_model.state_dict().items())


def layers_changed(model, before):
    """The layers, and what is none, whose weights are not those of `before`."""
    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    return {name.split(".layer.")[1].split(".")[0] if ".layer." in name else "rest" for name in changed}


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_upper_layers_become_the_backbones_and_the_others_are_mixed(tmp_path, rank, share):
    model = load_backbone(str(checkpoint("bert", tmp_path / "model")), device="cpu")
    if rank:
        add_adapters(model, BackboneConfig(lora_rank=rank, lora_targets="all"))
    untouched = {name: value.clone() for name, value in model.state_dict().items()}
    backbone = snapshot(model, 0.67)
    moved(model)
    tuned = {name: value.clone() for name, value in model.state_dict().items()}
    with blended(model, backbone, share):
        encode(model)
        assert layers_changed(model, untouched) == ({"0"} if rank else {"0", "rest"})
        name = "0.model.encoder.layer.0.attention.self.query."
        name += "lora_B.default.weight" if rank else "weight"
        expected = (1 - share) * tuned[name] + share * untouched[name]
        torch.testing.assert_close(model.state_dict()[name], expected)
    assert all(value.equal(tuned[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("family", ["bert", "modernbert", "llama"])
def test_what_comes_after_the_layers_is_restored_with_them(tmp_path, family):
    model = load_backbone(str(checkpoint(family, tmp_path / "model")), device="cpu")
    restored = snapshot(model, 0.34).restored
    last = {name for name in restored if f"layer{'' if family == 'bert' else 's'}.2." in name}
    after = {"bert": "pooler", "modernbert": "final_norm", "llama": "norm"}[family]
    assert last
    assert all(name.split("model.", 1)[1].startswith(after) for name in restored - last)
    assert restored - last or family == "bert"  # which may have been loaded without its pooler


def test_a_share_of_the_layers_is_rounded_and_one_is_left(tmp_path, caplog):
    model = load_backbone(str(checkpoint("bert", tmp_path / "model")), device="cpu")
    caplog.clear()  # of what is said of the checkpoint where an earlier test left the level at INFO
    for share, layers in ((0.0, set()), (0.16, set()), (0.34, {"2"}), (0.67, {"1", "2"}), (0.99, {"1", "2"})):
        restored = snapshot(model, share).restored
        assert {name.split(".layer.")[1][0] for name in restored if ".layer." in name} == layers
    assert not caplog.records


def test_layers_that_are_not_known_are_not_restored_and_a_line_says_so(tiny_model, caplog):
    say_once.cache_clear()
    tiny_model.transformers_model.encoder.layer = torch.nn.Identity()
    with caplog.at_level("INFO", logger="angle"):
        backbone = snapshot(tiny_model, 0.34)
    assert backbone.restored == frozenset()
    assert backbone.weights
    assert "it is not known what the layers of this backbone are, so none is restored" in caplog.text


def test_tied_weights_are_blended_once():
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(0)
    model = T5EncoderModel(T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    model.transformers_model = None  # what adapters would be looked for in
    assert {"shared.weight", "encoder.embed_tokens.weight"} <= model.state_dict().keys()
    backbone = snapshot(model)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(1.0)
    blend(model, backbone, 0.5)
    for name, weights in model.named_parameters():
        torch.testing.assert_close(weights, backbone.weights[name] + 0.5, msg=name)
