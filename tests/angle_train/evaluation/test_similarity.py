"""Texts to embeddings, each once, and embeddings to cosines and their correlation with gold scores."""

import math

import numpy as np
import pytest
import torch
from train_runs import pair_set

from angle_data.errors import InputError
from angle_train.evaluation import similarity
from angle_train.evaluation.similarity import (
    Embedder,
    cosine_rows,
    evaluate_model,
    word_overlap,
)
from angle_train.model.prompt import set_prompt

TEXTS = ["the node failed", "backup done", "the node failed", "disk full on node 3"]
RNG = np.random.default_rng(0)


def test_embeddings_are_the_models_own_in_the_order_asked_for_and_computed_once(tiny_model, monkeypatch):
    own, computed, encode = tiny_model.encode(TEXTS), [], tiny_model.encode
    monkeypatch.setattr(tiny_model, "encode", lambda new, **how: computed.extend(new) or encode(new, **how))
    embed = Embedder(tiny_model, "tiny")
    first = embed(TEXTS)
    assert np.allclose(first, own, atol=1e-6)
    assert len(computed) == 3
    assert np.array_equal(embed([TEXTS[1], TEXTS[0]]), first[[1, 0]])
    embed(["new one", TEXTS[0]])
    assert len(computed) == 4


def test_two_sentences_as_one_input_are_not_their_text_joined(tiny_model):
    embed = Embedder(tiny_model, "tiny")
    pair = embed([("node failed", "disk node")])
    assert np.allclose(pair, tiny_model.encode([("node failed", "disk node")]), atol=1e-6)
    written = embed(['["node failed", "disk node"]', "('node failed', 'disk node')"])
    assert not np.allclose(written, pair, atol=1e-3)


def test_a_template_has_no_place_for_two_sentences(tiny_model):
    set_prompt(tiny_model, 'Summarize "{text}" in one word:')
    embed = Embedder(tiny_model, "llama")
    assert embed(["a text"]).shape == (1, 32)
    with pytest.raises(InputError, match="llama puts a template around every text"):
        embed(["a text", ("a", "b")])


def test_embeddings_that_are_not_numbers_stop_an_evaluation_but_not_training(tiny_model):
    with torch.no_grad():
        next(tiny_model.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="tiny: 2 of 2 embeddings are not numbers; its weights are damaged"):
        Embedder(tiny_model, "tiny")(["a", "b"])
    assert all(map(math.isnan, evaluate_model(tiny_model, pair_set([("a", "b"), ("c", "d")], [0, 1]))))


def test_word_overlap_is_the_jaccard_index_of_words():
    pairs = pair_set([("Disk full!", "disk FULL"), ("disk full", "disk empty"), ("a b", "c d")], [1, 0.5, 0])
    assert word_overlap(pairs).tolist() == pytest.approx([1, 1 / 3, 0])


@pytest.mark.parametrize("block", [4096, 3])
def test_equal_texts_have_equal_cosines_and_others_are_hardly_rounded(monkeypatch, block):
    monkeypatch.setattr(similarity, "_BLOCK", block)
    first, second = RNG.normal(size=(2, 200, 64)).astype(np.float32)
    noisy = first + RNG.normal(size=first.shape).astype(np.float32) * 1e-7  # as encoded in other batches
    assert np.unique(cosine_rows(first, first)).tolist() == [1]
    assert np.unique(cosine_rows(first, noisy * 3)).tolist() == [1]
    slow = [
        np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b))
        for a, b in zip(first.astype(float), second.astype(float), strict=True)
    ]
    assert np.abs(cosine_rows(first, second) - slow).max() < 1e-10
    assert len(np.unique(cosine_rows(first, second))) == 200
