"""Long texts: which tokens are kept, what stands beside the model, and which length suits some texts."""

import pytest
from tiny_backbones import checkpoint

from angle_train.model.load import load_backbone, load_for_training
from angle_train.model.long_text import choose_length, head_and_tail
from angle_train.model.prompt import set_prompt
from angle_train.recipe import BackboneConfig

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


def test_short_texts_are_left_alone(tiny_model_dir):
    plain, model = (
        load_backbone(str(tiny_model_dir), device="cpu"),
        loaded(tiny_model_dir, long_text="head_tail"),
    )
    texts = ["the node failed", "", "deploy to the cluster"]
    assert (model.encode(texts) == plain.encode(texts)).all()


@pytest.mark.parametrize("prompt", ["", "query: ", 'Say "{text}" in one word:"'])
def test_both_ends_fit_with_markers_and_prompt(tiny_model_dir, prompt):
    model = load_for_training(
        str(tiny_model_dir), BackboneConfig(long_text="head_tail"), prompt, max_seq_length=48, device="cpu"
    )
    long = " ".join(["zebra node quagga api xylophone"] * 6) + " thelastword"
    with_prompt = model.prompts.get(model.default_prompt_name or "")
    features = model.preprocess([long], prompt=with_prompt)
    assert features["input_ids"].shape[1] <= 48
    tokens = model.tokenizer.convert_ids_to_tokens(features["input_ids"][-1].tolist())
    assert "".join(tokens).replace("##", "").replace("[PAD]", "").count("thelastword") == 1


def test_causal_models_read_the_end_of_the_template_after_both_ends(tmp_path):
    directory = checkpoint("llama", tmp_path / "llama")
    prompt = 'Summarize sentence "{text}" in one word:"'
    model = load_for_training(
        str(directory), BackboneConfig(long_text="head_tail"), prompt, max_seq_length=64, device="cpu"
    )
    features = model.preprocess(["the node failed " * 60, "short"])
    for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True):
        assert model.tokenizer.decode(ids[mask.bool()]).endswith('" in one word:"')


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
