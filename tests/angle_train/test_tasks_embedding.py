"""Embeddings computed once a text: in memory, on disk, and never mixed up between models."""

import sqlite3

import numpy as np
import pytest
import torch

from angle_data.errors import InputError
from angle_train.evaluate import embedding
from angle_train.evaluate.embedding import Embedder, EmbeddingFile, embedding_file
from angle_train.model.load import load_backbone
from angle_train.model.prompt import set_prompt

TEXTS = ["the node failed", "backup done", "the node failed", "disk full on node 3"]


def test_embeddings_are_the_models_own_in_the_order_asked_for(tiny_model):
    embed = Embedder(tiny_model, "tiny")
    assert np.allclose(embed(TEXTS), tiny_model.encode(TEXTS), atol=1e-6)
    assert embed.computed == 3


def test_a_text_is_computed_once_whatever_task_asks_for_it(tiny_model):
    embed = Embedder(tiny_model, "tiny")
    first = embed(TEXTS)
    assert np.array_equal(embed([TEXTS[1], TEXTS[0]]), first[[1, 0]])
    embed(["new one", TEXTS[0]])
    assert embed.computed == 4


def test_two_sentences_as_one_input_are_not_their_text_joined(tiny_model):
    embed = Embedder(tiny_model, "tiny")
    pair = embed([("node failed", "disk node")])
    assert np.allclose(pair, tiny_model.encode([("node failed", "disk node")]), atol=1e-6)
    ids = tiny_model.preprocess([("node failed", "disk node")])["input_ids"][0]
    assert tiny_model.tokenizer.decode(ids) == "[CLS] node failed [SEP] disk node [SEP]"
    embed(['["node failed", "disk node"]', "node failed [SEP] disk node"])
    assert embed.computed == 3


def test_a_cache_on_disk_spares_the_model_in_the_next_process(tiny_model, tiny_model_dir, tmp_path):
    file = embedding_file(tmp_path / "cache", str(tiny_model_dir), tiny_model)
    first = Embedder(tiny_model, "tiny", file)([*TEXTS, ("a", "b")])
    file.close()
    again = Embedder(tiny_model, "tiny", embedding_file(tmp_path / "cache", str(tiny_model_dir), tiny_model))
    assert np.array_equal(again([*TEXTS, ("a", "b")]), first)
    assert again.computed == 0
    assert again(["something else"]).shape == (1, 32)
    assert again.computed == 1


def test_a_pair_and_the_list_that_prints_like_it_have_different_keys(tmp_path):
    file = EmbeddingFile(tmp_path / "e.sqlite")
    file.write({("a", "b"): np.ones(2, np.float32), '["a", "b"]': np.zeros(2, np.float32)})
    found = file.read([("a", "b"), '["a", "b"]', "c"])
    assert {key: value.tolist() for key, value in found.items()} == {
        ("a", "b"): [1, 1],
        '["a", "b"]': [0, 0],
    }
    file.write({"('a', 'b')": np.full(2, 2, np.float32)})
    assert file.read([("a", "b")])[("a", "b")].tolist() == [1, 1]


def test_more_keys_than_a_query_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr("angle_train.evaluate.embedding._ASKED", 3)
    file = EmbeddingFile(tmp_path / "e.sqlite")
    file.write({f"t{i}": np.full(2, i, np.float32) for i in range(10)})
    assert [file.read([f"t{i}" for i in range(10)])[f"t{i}"][0] for i in range(10)] == list(range(10))


@pytest.mark.parametrize(
    "change", ["weights", "length", "prompt", "template", "width", "dtype", "commit", "long text"]
)
def test_another_model_or_setting_has_another_file(tiny_model, tiny_model_dir, tmp_path, change):
    names = [embedding_file(tmp_path, str(tiny_model_dir), tiny_model)._path.name]
    if change == "weights":
        other = tmp_path / "model"
        next(tiny_model.parameters()).data += 1
        tiny_model.save_pretrained(str(other), create_model_card=False)
        names.append(embedding_file(tmp_path, str(other), tiny_model)._path.name)
    else:
        if change == "length":
            tiny_model.max_seq_length = 16
        elif change == "prompt":
            tiny_model.prompts["angle"], tiny_model.default_prompt_name = "query: ", "angle"
        elif change == "width":
            tiny_model.truncate_dim = 16
        elif change == "dtype":
            tiny_model.bfloat16()
        elif change == "commit":
            tiny_model[0].auto_model.config._commit_hash = "0" * 40
        elif change == "long text":
            tiny_model.long_text = "head_tail"
        else:
            tiny_model.tokenizer.chat_template = "{{ messages[-1]['content'] }}"
        names.append(embedding_file(tmp_path, str(tiny_model_dir), tiny_model)._path.name)
    assert names[0] != names[1]


def test_the_same_model_loaded_again_has_the_same_file(tiny_model, tiny_model_dir, tmp_path):
    again = load_backbone(str(tiny_model_dir), device="cpu")
    names = {embedding_file(tmp_path, str(tiny_model_dir), model)._path.name for model in (tiny_model, again)}
    assert len(names) == 1


class Numbers:
    """A model that says how long a text is, and remembers what it was asked in each call."""

    def __init__(self):
        self.asked = []

    def encode(self, items, **options):
        self.asked.append(list(items))
        return np.array([[len(item), ord(item[-1])] for item in items], dtype=np.float32)


def test_many_texts_are_computed_piece_by_piece_longest_first(monkeypatch):
    monkeypatch.setattr(embedding, "_PIECE", 3)
    model, texts = Numbers(), [f"{'x' * (i % 4)}{i}" for i in range(8)]
    found = Embedder(model, "numbers")(texts)
    assert found.tolist() == [[len(text), ord(text[-1])] for text in texts]
    assert [len(piece) for piece in model.asked] == [3, 3, 2]
    assert [len(text) for piece in model.asked for text in piece] == [4, 4, 3, 3, 2, 2, 1, 1]


def test_each_piece_is_on_disk_before_the_next_is_computed(monkeypatch, tmp_path):
    monkeypatch.setattr(embedding, "_PIECE", 2)
    file, model = EmbeddingFile(tmp_path / "e.sqlite"), Numbers()
    compute = model.encode

    def fail(items, **options):
        if "b" in items:
            raise KeyboardInterrupt
        return compute(items, **options)

    model.encode = fail
    with pytest.raises(KeyboardInterrupt):
        Embedder(model, "numbers", file)(["aaa", "aa", "a", "b"])
    assert set(file.read(["aaa", "aa", "a", "b"])) == {"aaa", "aa"}


def test_with_a_file_nothing_stays_in_memory_and_nothing_is_computed_again(tmp_path):
    model = Numbers()
    embed = Embedder(model, "numbers", EmbeddingFile(tmp_path / "e.sqlite"))
    first = embed(["a", "bb", "a"])
    assert embed._known == {}
    assert np.array_equal(embed(["bb", "a"]), first[[1, 0]])
    assert (embed.computed, len(model.asked)) == (2, 1)


def test_a_template_has_no_place_for_two_sentences(tiny_model):
    set_prompt(tiny_model, 'Summarize "{text}" in one word:')
    embed = Embedder(tiny_model, "llama")
    assert embed(["a text"]).shape == (1, 32)
    with pytest.raises(
        InputError, match="llama puts a template around every text, which has no place for two"
    ):
        embed(["a text", ("a", "b")])


def test_damage_is_one_line(tiny_model, tmp_path):
    (tmp_path / "e.sqlite").write_text("this is no database, but it is long enough to look like something")
    with pytest.raises(InputError, match=r"e\.sqlite: no usable cache of embeddings .*; delete it"):
        EmbeddingFile(tmp_path / "e.sqlite")
    with torch.no_grad():
        next(tiny_model.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="tiny: 2 of 2 embeddings are not numbers; its weights are damaged"):
        Embedder(tiny_model, "tiny")(["a", "b"])


def test_a_full_disk_is_one_line(tmp_path):
    file = EmbeddingFile(tmp_path / "e.sqlite")
    file._database.execute("PRAGMA max_page_count = 3")
    with pytest.raises(InputError, match=r"e\.sqlite: cannot be written \(database or disk is full\); free"):
        file.write({f"t{i}": np.ones(500, np.float32) for i in range(20)})


def test_an_interrupted_write_leaves_nothing_behind(tmp_path):
    file = EmbeddingFile(tmp_path / "e.sqlite")
    with pytest.raises(AttributeError):
        file.write({"good": np.zeros(2, np.float32), "bad": None})
    assert file.read(["good"]) == {}
    file.close()
    with pytest.raises(sqlite3.ProgrammingError):
        file.read(["good"])
