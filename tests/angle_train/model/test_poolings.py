"""Poolings: exact against slow loops, independent of padding, never trained. Reloading: test_saved_models."""

from typing import get_args

import pytest
import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, WeightedLayerPooling

from angle_train.model.load import load_backbone
from angle_train.model.pooling import FIRST_TOKEN, POOLINGS, freeze_fixed_weights, set_pooling
from angle_train.recipe import CHECKPOINT, Pooling

TEXTS = ["the node failed", "a", "a much longer text about the api and its latency", "deploy to the cluster"]


def mean(rows):
    return sum(rows) / len(rows)


def largest(rows):
    return torch.tensor([max(row[d].item() for row in rows) for d in range(len(rows[0]))])


# From the layers of one text, each a list of the (D,) vectors of its real tokens; layer 0 is the embeddings.
REFERENCES = {
    "cls": lambda layers: layers[-1][0],
    "last-avg": lambda layers: mean(layers[-1]),
    "last-max": lambda layers: largest(layers[-1]),
    "cls-last-avg": lambda layers: (layers[-1][0] + mean(layers[-1])) / 2,
    "first-last-avg": lambda layers: mean(
        [(first + last) / 2 for first, last in zip(layers[1], layers[-1], strict=True)]
    ),
    "last-token": lambda layers: layers[-1][-1],
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", REFERENCES)
def test_pooling_is_what_it_says(tiny_model, name, side):
    set_pooling(tiny_model, name)
    tiny_model.tokenizer.padding_side = side
    features = tiny_model.preprocess(TEXTS)
    mask = features["attention_mask"].bool()
    assert not mask.all(), "nothing is padded"
    inputs = {key: features[key] for key in ("input_ids", "attention_mask")}
    with torch.no_grad():
        tiny_model.eval()
        layers = tiny_model.transformers_model(**inputs, output_hidden_states=True).hidden_states
        pooled = tiny_model(features)["sentence_embedding"]
    for row in range(len(TEXTS)):
        expected = REFERENCES[name]([list(layer[row][mask[row]]) for layer in layers])
        torch.testing.assert_close(pooled[row], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cls-last-avg", "first-last-avg"])
def test_fixed_weights_are_frozen_again_when_loaded(tiny_model, tmp_path, name):
    set_pooling(tiny_model, name)
    tiny_model.save_pretrained(str(tmp_path), create_model_card=False)
    trainable = [
        n for n, p in load_backbone(str(tmp_path), device="cpu").named_parameters() if p.requires_grad
    ]
    assert trainable
    assert all(name.startswith("0.") for name in trainable)


def test_learned_weights_of_the_same_kind_are_left_trainable(tiny_model):
    learned = torch.nn.Parameter(torch.tensor([1.0, 0.5]))
    tiny_model.insert(1, WeightedLayerPooling(32, 2, layer_start=1, layer_weights=learned))
    projection = Dense(64, 32, bias=False, activation_function=torch.nn.Identity())
    tiny_model.append(projection)
    freeze_fixed_weights(tiny_model)
    assert learned.requires_grad
    assert projection.linear.weight.requires_grad


def test_what_follows_the_pooling_stays_and_what_belonged_to_it_goes(tiny_model):
    trained = Dense(32, 16)
    tiny_model.extend([trained, Normalize()])
    plain = tiny_model.encode(TEXTS)
    for name in ("cls-last-avg", "first-last-avg", "cls"):
        set_pooling(tiny_model, name)
        assert list(tiny_model)[-2:] == [trained, tiny_model[-1]]
        assert isinstance(tiny_model[-1], Normalize)
        assert tiny_model.encode(TEXTS).shape == (4, 16)
    set_pooling(tiny_model, "last-avg")
    assert len(tiny_model) == 4
    assert tiny_model.transformers_model.config.output_hidden_states is False
    assert (tiny_model.encode(TEXTS) == plain).all()


def test_recipes_can_name_every_pooling():
    assert set(get_args(Pooling)) == {CHECKPOINT, *POOLINGS}
    assert set(FIRST_TOKEN) <= POOLINGS.keys()
