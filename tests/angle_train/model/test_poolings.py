"""Poolings: exact against slow loops, independent of padding. Reloading: test_saved_models."""

import pytest
import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize

from angle_train.model.pooling import POOLINGS, set_pooling

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
    "last-token": lambda layers: layers[-1][-1],
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", POOLINGS)
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


def test_what_follows_the_pooling_stays(tiny_model):
    trained = Dense(32, 16)
    tiny_model.extend([trained, Normalize()])
    plain = tiny_model.encode(TEXTS)
    set_pooling(tiny_model, "cls")
    assert list(tiny_model)[-2:] == [trained, tiny_model[-1]]
    assert isinstance(tiny_model[-1], Normalize)
    assert (tiny_model.encode(TEXTS) != plain).any()
    set_pooling(tiny_model, "last-avg")
    assert len(tiny_model) == 4
    assert (tiny_model.encode(TEXTS) == plain).all()
