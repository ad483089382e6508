"""Mixing the backbone into tuned weights."""

import pytest
import torch

from angle_train.model.adapters import add_adapters
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
        torch.testing.assert_close(weights, backbone[name] + 0.5, msg=name)
