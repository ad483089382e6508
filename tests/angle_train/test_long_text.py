"""Long texts: which tokens are kept or divided, how windows are averaged, what stands beside the model."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.modules import Normalize
from tiny_backbones import checkpoint

from angle_data.console import Progress
from angle_data.errors import InputError
from angle_train.model import long_text
from angle_train.model.load import load_backbone
from angle_train.model.long_text import (
    LONG_TEXT_FILE,
    LongText,
    LongTextModel,
    choose_length,
    head_and_tail,
    windows,
)
from angle_train.model.prepare import load_for_training
from angle_train.model.prompt import set_prompt
from angle_train.settings import BackboneConfig

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def words(count):
    """A text of that many words, and where each stands."""
    text = " ".join(f"{LETTERS[i % 26]}{i}" for i in range(count))
    spans, at = [], 0
    for word in text.split():
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return text, spans


def loaded(directory, limit=None, **config):
    config = BackboneConfig(**config)
    return load_for_training(str(directory), config, max_seq_length=limit, device="cpu")


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(4, "a0 b1 i8 j9"), (5, "a0 b1 c2 i8 j9"), (1, "a0 "), (9, "a0 b1 c2 d3 e4 g6 h7 i8 j9")],
)
def test_head_and_tail_are_the_ends(budget, expected):
    assert head_and_tail(*words(10), budget) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"stride": 4}, ["a0 b1 c2 d3", "e4 f5 g6 h7", "g6 h7 i8 j9"]),
        ({"stride": 2}, ["a0 b1 c2 d3", "c2 d3 e4 f5", "e4 f5 g6 h7", "g6 h7 i8 j9"]),
        ({"stride": 9}, ["a0 b1 c2 d3", "e4 f5 g6 h7", "g6 h7 i8 j9"]),
        ({}, ["a0 b1 c2 d3", "d3 e4 f5 g6", "g6 h7 i8 j9"]),
        ({"stride": 2, "max_windows": 2}, ["a0 b1 c2 d3", "c2 d3 e4 f5"]),
        ({"memory": 1, "stride": 3}, ["a0 b1 c2 d3", "a0 e4 f5 g6", "a0 h7 i8 j9"]),
        ({"memory": 9, "stride": 9, "max_windows": 2}, ["a0 b1 c2 d3", "a0 b1 e4 f5"]),
    ],
)
def test_windows_are_those_stated(config, expected):
    pieces = windows(*words(10), 4, LongText("windows", **config))
    assert [piece.text for piece in pieces] == expected


@given(
    count=st.integers(5, 80),
    budget=st.integers(2, 20),
    stride=st.none() | st.integers(1, 30),
    memory=st.integers(0, 12),
)
def test_windows_cover_every_token_once(count, budget, stride, memory):
    if count <= budget:
        return
    text, spans = words(count)
    config = LongText("windows", stride=stride, memory=memory, max_windows=1000)
    pieces = windows(text, spans, budget, config)
    assert sum(piece.added for piece in pieces) == count
    assert all(piece.added > 0 for piece in pieces)
    assert all(len(piece.text.split()) <= budget for piece in pieces)
    assert set(text.split()) == {word for piece in pieces for word in piece.text.split()}


def test_short_texts_are_left_alone(tiny_model_dir):
    plain, model = (
        load_backbone(str(tiny_model_dir), device="cpu"),
        loaded(tiny_model_dir, long_text="windows"),
    )
    texts = ["the node failed", "", "deploy to the cluster"]
    assert (model.encode(texts) == plain.encode(texts)).all()


@pytest.mark.parametrize("normalised", [False, True])
def test_windows_are_averaged_by_what_they_add(tiny_model_dir, normalised):
    model = loaded(tiny_model_dir, 16, long_text="windows", stride=10)
    if normalised:
        model.append(Normalize())
    long = "the node failed and the api is slow because the cluster has no memory left and then again " * 2
    pieces = model.pieces(long)
    assert len(pieces) > 2
    plain = load_backbone(str(tiny_model_dir), max_seq_length=16, device="cpu")
    single = plain.encode([piece.text for piece in pieces])
    if normalised:
        single /= np.linalg.norm(single, axis=1, keepdims=True)
    weights = np.array([piece.added for piece in pieces])
    expected = (weights[:, None] * single).sum(axis=0) / weights.sum()
    if normalised:
        expected /= np.linalg.norm(expected)
    others = ["short", long, "the api", long]
    got = model.encode(others)
    np.testing.assert_allclose(got[1], expected, atol=1e-5)
    np.testing.assert_allclose(got[3], expected, atol=1e-5)
    np.testing.assert_allclose(got[0], model.encode("short"), atol=1e-6)


def test_every_window_gets_a_gradient(tiny_model_dir):
    model = loaded(tiny_model_dir, 16, long_text="windows")
    text = "the node failed and then the api was slow for a very long time, until the zebra came"
    features = model.preprocess(["short", text])
    assert len(features["input_ids"]) == 1 + len(model.pieces(text))
    model(features)["sentence_embedding"][1].sum().backward()
    rows = features["input_ids"][1:]
    used = model.transformers_model.get_input_embeddings().weight.grad.abs().sum(dim=1)
    assert (used[rows[-1][-3]] > 0).item()


@pytest.mark.parametrize("mode", ["head_tail", "windows"])
@pytest.mark.parametrize("prompt", ["", "query: ", 'Say "{text}" in one word:"'])
def test_pieces_fit_with_markers_and_prompt(tiny_model_dir, mode, prompt):
    model = load_for_training(
        str(tiny_model_dir), BackboneConfig(long_text=mode), prompt, max_seq_length=48, device="cpu"
    )
    long = " ".join(["zebra node quagga api xylophone"] * 6) + " thelastword"
    with_prompt = model.prompts.get(model.default_prompt_name or "")
    features = model.preprocess([long], prompt=with_prompt)
    assert features["input_ids"].shape[1] <= 48
    tokens = model.tokenizer.convert_ids_to_tokens(features["input_ids"][-1].tolist())
    assert "".join(tokens).replace("##", "").replace("[PAD]", "").count("thelastword") == 1


def test_causal_models_read_the_end_of_the_template_after_every_piece(tmp_path):
    directory = checkpoint("llama", tmp_path / "llama")
    prompt = 'Summarize sentence "{text}" in one word:"'
    model = load_for_training(
        str(directory), BackboneConfig(long_text="windows"), prompt, max_seq_length=64, device="cpu"
    )
    features = model.preprocess(["the node failed " * 60, "short"])
    assert len(features["input_ids"]) > 3
    for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True):
        assert model.tokenizer.decode(ids[mask.bool()]).endswith('" in one word:"')


def test_it_is_read_again_from_beside_the_model(tiny_model_dir, tmp_path):
    model = loaded(tiny_model_dir, 16, long_text="windows", stride=5, max_windows=3, window_memory=2)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    again = load_backbone(str(tmp_path), device="cpu")
    assert isinstance(again, LongTextModel)
    assert again.long_text == LongText("windows", None, 5, 3, 2)
    text = ["the node failed and the api is slow because the cluster has no memory left today"]
    assert (again.encode(text) == model.encode(text)).all()
    assert not isinstance(load_backbone(str(tiny_model_dir), device="cpu"), LongTextModel)


@pytest.mark.parametrize("content", ["{", "[]", '{"mode": "skip"}', '{"mode": "windows", "colour": 1}'])
def test_damaged_notes_are_named(tiny_model_dir, tmp_path, content):
    loaded(tiny_model_dir, long_text="windows").save_pretrained(str(tmp_path), create_model_card=False)
    (tmp_path / LONG_TEXT_FILE).write_text(content)
    with pytest.raises(InputError, match=r"long_text.json does not say how long texts are read; delete it"):
        load_backbone(str(tmp_path), device="cpu")


def test_windows_longer_than_the_model_reads_are_refused(tiny_model_dir):
    with pytest.raises(InputError, match=r"window 100 is more than the model's max_seq_length 64"):
        loaded(tiny_model_dir, long_text="windows", window=100)


def test_the_recipe_says_all_of_it():
    assert LongText.of(BackboneConfig()) is None
    config = BackboneConfig(long_text="windows", window=32, stride=16, max_windows=4, window_memory=3)
    assert LongText.of(config) == LongText("windows", 32, 16, 4, 3)


def test_length_is_chosen_from_the_texts(tiny_model):
    texts = ["a " * count for count in range(1, 51)]  # 3 to 52 tokens with the two markers
    choice = choose_length(tiny_model, texts + texts, percentile=90)
    assert choice.max_seq_length == 48  # 47 rounded up
    assert (choice.truncated, choice.longest) == (4 / 50, 52)
    whole = choose_length(tiny_model, texts, percentile=100)
    assert (whole.max_seq_length, whole.truncated) == (56, 0.0)
    tiny_model.max_seq_length = 20
    bounded = choose_length(tiny_model, texts)
    assert (bounded.max_seq_length, bounded.truncated, bounded.longest) == (20, 32 / 50, 52)


@pytest.mark.parametrize(("many", "told"), [(4, [2, 2, 1]), (5, [])])
def test_counting_many_texts_is_followed(tiny_model, monkeypatch, many, told):
    counted = []
    monkeypatch.setattr(Progress, "advance", lambda progress, count: counted.append(count))
    monkeypatch.setattr(long_text, "_MANY", many)
    monkeypatch.setattr(long_text, "_COUNTED_AT_ONCE", 2)
    assert choose_length(tiny_model, ["a", "b", "c", "d", "a b c"]).longest == 3 + 2
    assert counted == told


def test_length_counts_the_prompt(tiny_model):
    texts = ["a"] * 3
    assert choose_length(tiny_model, texts).longest == 3
    assert choose_length(tiny_model, texts, "a b c ").longest == 6
    set_prompt(tiny_model, "a b c ")
    assert choose_length(tiny_model, texts).longest == 6
    set_prompt(tiny_model, "a b {text} c d e")
    assert (
        choose_length(tiny_model, texts).longest
        == choose_length(tiny_model, texts, "a b {text} c d e").longest
        == 8
    )


def test_the_saved_note_is_plain_json(tmp_path):
    LongText("head_tail").write(tmp_path)
    assert json.loads((tmp_path / LONG_TEXT_FILE).read_text()) == {
        "mode": "head_tail",
        "window": None,
        "stride": None,
        "max_windows": 8,
        "memory": 0,
    }


def test_averages_hold_in_half_precision():
    from angle_train.model.long_text import _average

    rows = torch.full((3, 2), 1.5, dtype=torch.bfloat16)
    means = _average(rows, torch.tensor([0, 0, 1]), torch.tensor([300.0, 100.0, 1.0]))
    assert means.dtype == torch.bfloat16
    torch.testing.assert_close(means.float(), torch.full((2, 2), 1.5), atol=0.01, rtol=0)
