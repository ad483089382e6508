"""Sparse lookups: the same gradient, dense for whoever reads it, and nothing left behind."""

import numpy as np
import pytest
import torch

from angle_train.data.pairs import PairSet
from angle_train.objective.lookups import sparse_lookups
from angle_train.recipe import Recipe
from angle_train.settings import TrainingConfig
from angle_train.train.trainer import train

TEXTS = [["the disk is full", "a node"], ["the host was restarted"], ["a cable is loose", "the disk is full"]]


def gradient(model):
    model.eval()
    model.zero_grad()
    for _ in range(2):  # twice, as gradient accumulation does
        chunks = [model(model.preprocess(texts))["sentence_embedding"] for texts in TEXTS]
        torch.cat(chunks).sin().sum().backward()
    weight = model.transformers_model.get_input_embeddings().weight
    assert not weight.grad.is_sparse
    return weight.grad


def test_the_gradient_is_the_same_and_dense(tiny_model):
    plain = gradient(tiny_model).clone()
    embeddings, seen = tiny_model.transformers_model.get_input_embeddings(), []
    with sparse_lookups(tiny_model):
        tiny_model(tiny_model.preprocess(["a disk"]))["sentence_embedding"].sum().backward()
        assert not embeddings.weight.grad.is_sparse
        handle = embeddings.weight.register_hook(lambda grad: seen.append(grad.is_sparse))
        collected = gradient(tiny_model).clone()
        handle.remove()
    assert seen == [True, True]  # one sum for each backward pass, sparse until then
    torch.testing.assert_close(collected, plain)
    assert plain.abs().max() > 1e-3
    assert not embeddings.sparse
    assert torch.equal(gradient(tiny_model), plain)


def test_frozen_embeddings_are_left_alone(tiny_model):
    embeddings = tiny_model.transformers_model.get_input_embeddings()
    embeddings.requires_grad_(False)
    with sparse_lookups(tiny_model):
        assert not embeddings.sparse


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_adaptive_run_collects_sparse_gradients_and_ends_like_a_fixed_one(tiny_model_dir, tmp_path):
    from sentence_transformers import SentenceTransformer

    texts = ["disk " * n for n in (1, 2, 3, 40, 41, 42)], ["node " * n for n in (2, 1, 4, 40, 42, 45)]
    pairs = PairSet("few", *texts, np.array([1.0, 0.0, 0.5, 0.8, 0.2, 0.0]), np.ones(6))
    ends, seen = {}, []
    for chunking in ("fixed", "adaptive"):
        model = SentenceTransformer(str(tiny_model_dir), device="cpu")
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        weight = model.transformers_model.get_input_embeddings().weight
        weight.register_hook(lambda grad: seen.append(grad.is_sparse))
        config = TrainingConfig(
            epochs=2, batch_size=6, evals_per_epoch=1, chunking=chunking, learning_rate=1e-3
        )
        train(model, pairs, [pairs], Recipe(training=config), tmp_path / chunking)
        ends[chunking] = weight.detach().clone()
    assert seen == [False, False, True, True]
    torch.testing.assert_close(ends["adaptive"], ends["fixed"], rtol=1e-3, atol=1e-5)
