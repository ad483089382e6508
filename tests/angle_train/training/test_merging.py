"""Mixing the backbone into tuned weights."""

import pytest
import torch
from sentence_transformers.base.modules import Dense
from tiny_backbones import checkpoint

from angle_data.errors import InputError
from angle_train.model.adapters import add_adapters
from angle_train.model.load import load_backbone
from angle_train.recipe import BackboneConfig, Recipe
from angle_train.training.merging import (
    blend,
    blended,
    check_restored,
    count_restored,
    merge_details,
    snapshot,
)

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
    model.append(Dense(model.get_embedding_dimension(), 4))
    restored = snapshot(model, 0.34).restored
    last = {name for name in restored if f"layer{'' if family == 'bert' else 's'}.2." in name}
    assert last
    assert {name for name in restored if name.startswith("2.linear.")}
    after = {"bert": "pooler", "modernbert": "final_norm", "llama": "norm"}[family]
    rest = {name.split("model.", 1)[1] for name in restored - last if not name.startswith("2.linear.")}
    assert {name.split(".")[0] for name in rest} == ({after} if after in dir(model[0].model) else set())


@pytest.mark.parametrize(
    ("share", "layers"), [(0.05, {"2"}), (0.34, {"2"}), (0.6, {"1", "2"}), (0.99, {"1", "2"})]
)
def test_a_share_of_the_layers_is_rounded_to_one_at_least_and_one_is_left(tmp_path, share, layers):
    model = load_backbone(str(checkpoint("bert", tmp_path / "model")), device="cpu")
    restored = snapshot(model, share).restored
    assert {name.split(".layer.")[1][0] for name in restored if ".layer." in name} == layers
    assert count_restored(model, share) == (len(layers), 3)


def test_without_a_share_no_layer_is_restored(tiny_model):
    assert snapshot(tiny_model).restored == frozenset()
    assert merge_details(tiny_model, 0.0, 0.0) == {}
    assert merge_details(tiny_model, 0.0, 0.2) == {"merge": {"share": 0.2}}
    assert merge_details(tiny_model, 0.5, 0.0) == {"merge": {"share": 0.0, "restored_layers": 1, "layers": 2}}


def test_of_a_model_with_adapters_only_those_of_the_restored_layers_are_copied(tiny_model):
    add_adapters(tiny_model, BackboneConfig(lora_rank=4, lora_targets="all"))
    assert snapshot(tiny_model).weights == {}
    backbone = snapshot(tiny_model, 0.5)
    assert backbone.weights.keys() == backbone.restored
    assert all("lora_" in name and ".layer.1." in name for name in backbone.restored)
    assert backbone.restored


def test_quantized_weights_of_restored_layers_are_left(tiny_model):
    packed = torch.nn.Parameter(torch.zeros(4, dtype=torch.uint8), requires_grad=False)
    tiny_model.transformers_model.encoder.layer[1].output.dense.weight = packed
    backbone = snapshot(tiny_model, 0.5)
    assert backbone.restored
    blend(tiny_model, backbone, 0.5)
    assert packed.equal(torch.zeros(4, dtype=torch.uint8))


def recipe(**values):
    return Recipe().with_overrides(values)


def test_what_is_restored_is_said_before_anything_trains(tiny_model, caplog):
    with caplog.at_level("INFO", logger="angle"):
        check_restored(tiny_model, recipe())
        assert not caplog.records
        check_restored(tiny_model, recipe(restored_layers=0.5))
    assert caplog.messages == ["layers that are the backbone's again in every figure: the 1 highest of 2"]


@pytest.mark.parametrize(
    ("layers", "said"), [(torch.nn.Identity(), "layers of a kind that is not known"), (None, "one layer")]
)
def test_where_no_layer_can_be_restored_a_line_says_so(tiny_model, caplog, layers, said):
    encoder = tiny_model.transformers_model.encoder
    encoder.layer = layers or encoder.layer[:1]
    check_restored(tiny_model, recipe(restored_layers=0.5))
    assert caplog.messages == [f"restored_layers 0.5: this backbone has {said}, so none is restored"]
    backbone = snapshot(tiny_model, 0.5)
    assert backbone.restored == frozenset()
    assert backbone.weights


def test_layers_that_are_all_frozen_or_restored_are_refused(tiny_model):
    with pytest.raises(
        InputError, match=r"gives 1 of 2 layers the .* frozen_layers 1 trains none of the rest"
    ):
        check_restored(tiny_model, recipe(restored_layers=0.5, frozen_layers=1))
    check_restored(tiny_model, recipe(restored_layers=0.5, frozen_layers="embeddings"))


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
