"""The adapter for mteb: batches of texts in, the model's embeddings out, with its prompt in every task."""

import numpy as np
import pytest

from angle_train.evaluate.mteb_adapter import MtebModel
from angle_train.evaluate.similarity import unit_rows


def batches(texts):
    return [{"text": texts[:2]}, {"text": texts[2:]}]


def test_texts_of_all_batches_are_encoded_in_order_and_once(tiny_model_dir, tiny_model, tmp_path):
    texts = ["the node failed", "disk full", "the node failed"]
    adapter = MtebModel(str(tiny_model_dir), "main", device="cpu", cache=tmp_path)
    asked = {"task_metadata": None, "hf_split": "test", "hf_subset": "default", "batch_size": 8}
    found = adapter.encode(batches(texts), **asked)
    assert np.allclose(found, tiny_model.encode(texts), atol=1e-6)
    again = MtebModel(str(tiny_model_dir), device="cpu", cache=tmp_path)
    assert np.array_equal(again.encode(batches(texts), **asked, prompt_type="query"), found)
    assert (adapter._embed.computed, again._embed.computed) == (2, 0)
    expected = unit_rows(found[:2]) @ unit_rows(found).T
    assert np.allclose(adapter.similarity(found[:2], found), expected, atol=1e-6)
    assert np.allclose(adapter.similarity_pairwise(found[:2], found[1:]), expected[[0, 1], [1, 2]], atol=1e-6)


def test_queries_get_the_prompt_that_training_texts_had(tiny_model, tmp_path):
    tiny_model.prompts["angle"], tiny_model.default_prompt_name = "node: ", "angle"
    tiny_model.save_pretrained(str(tmp_path / "prompted"), create_model_card=False)
    adapter = MtebModel(str(tmp_path / "prompted"), device="cpu")
    options = {"task_metadata": None, "hf_split": "test", "hf_subset": "default", "prompt_type": "query"}
    found = adapter.encode([{"text": ["disk full"]}], **options)
    assert np.allclose(found, tiny_model.encode(["disk full"], prompt="node: "), atol=1e-6)
    # What the library does by itself for queries, and so mteb: the model's empty prompt of that name.
    assert not np.allclose(found, tiny_model.encode_query(["disk full"]), atol=1e-3)


def test_mteb_takes_it_for_an_encoder(tiny_model_dir):
    mteb = pytest.importorskip("mteb")
    adapter = MtebModel(str(tiny_model_dir), device="cpu")
    assert isinstance(adapter, mteb.models.EncoderProtocol)
    assert adapter.mteb_model_meta is not None
