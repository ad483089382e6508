"""Texts to embeddings, each once, and embeddings to cosines and their correlation with gold scores."""

import math

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from train_runs import evaluate_model, pair_set

from angle_data.errors import InputError
from angle_train.data.pairs import load_pairs
from angle_train.evaluation import similarity
from angle_train.evaluation.similarity import (
    Embedder,
    cosine_rows,
    pair_similarity,
    word_overlap,
)
from angle_train.evaluation.statistics import spearman
from angle_train.model.load import load_backbone

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


def test_embeddings_that_are_not_numbers_stop_an_evaluation_but_not_training(tiny_model):
    with torch.no_grad():
        next(tiny_model.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="tiny: 2 of 2 embeddings are not numbers; its weights are damaged"):
        Embedder(tiny_model, "tiny")(["a", "b"])
    assert all(map(math.isnan, evaluate_model(tiny_model, pair_set([("a", "b"), ("c", "d")], [0, 1]))))


def test_other_programs_get_the_same_embeddings_from_a_saved_model(tiny_model, tmp_path):
    """What mteb and others call: the library alone opens the directory, and encodes by default or by name."""
    tiny_model.prompts["angle"], tiny_model.default_prompt_name = "node: ", "angle"
    tiny_model.save_pretrained(str(tmp_path), create_model_card=False)
    ours = Embedder(load_backbone(str(tmp_path), device="cpu"), "ours")(TEXTS)
    opened = SentenceTransformer(str(tmp_path), device="cpu")
    assert np.allclose(opened.encode(TEXTS), ours, atol=1e-6)
    assert np.allclose(opened.encode(TEXTS, prompt_name="angle"), ours, atol=1e-6)
    assert np.allclose(opened.encode([f"node: {text}" for text in TEXTS], prompt=""), ours, atol=1e-6)
    assert not np.allclose(opened.encode(TEXTS, prompt=""), ours, atol=1e-3)


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


def test_scores_equal_those_of_the_librarys_evaluator(tiny_model, examples):
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    pairs = load_pairs(str(examples / "eval_natural.jsonl"), rows="dev")
    ours = spearman(pairs.score, pair_similarity(pairs, Embedder(tiny_model, "x")))
    evaluator = EmbeddingSimilarityEvaluator(
        list(pairs.text1), list(pairs.text2), list(pairs.score), main_similarity="cosine", name="x"
    )
    assert ours == pytest.approx(evaluator(tiny_model)["x_spearman_cosine"], abs=1e-6)
