"""Prompts around texts: the very tokens of the spelt-out prompt, for encoders and causal models."""

import pytest
import torch
from tiny_backbones import checkpoint

from angle_data.errors import InputError
from angle_train.model.load import load_backbone
from angle_train.model.prompt import has_template, set_prompt

PAPER = 'Summarize sentence "{text}" in one word:"'
TEXTS = [
    "the node failed",
    "",
    " spaces ",
    'a "quoted" {text}, {{ braces }} and a\nsecond line',
    "ünïcödé 😀",
]


@pytest.fixture(scope="module", params=["bert", "roberta", "modernbert", "llama", "qwen2"])
def directory(request, tmp_path_factory):
    return str(checkpoint(request.param, tmp_path_factory.mktemp("prompting") / request.param))


@pytest.mark.parametrize("prompt", [PAPER, "{text} \\ \"'{{x}} %}", "é😀 {text}\n\t😀"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_template_gives_the_tokens_of_the_whole_prompt(directory, prompt, side):
    model = load_backbone(directory, device="cpu")
    tokenizer = model.tokenizer
    expected = [tokenizer(prompt.replace("{text}", text, 1))["input_ids"] for text in TEXTS]
    set_prompt(model, prompt)
    assert has_template(model)
    tokenizer.padding_side = side
    features = model.preprocess(TEXTS)
    for ids, mask, tokens in zip(features["input_ids"], features["attention_mask"], expected, strict=True):
        assert ids[mask.bool()].tolist() == tokens


def test_the_end_of_the_prompt_outlives_a_text_that_is_cut(directory):
    model = load_backbone(directory, max_seq_length=40, device="cpu")
    tokenizer = model.tokenizer
    end = tokenizer('x" in one word:"')["input_ids"][-6:]
    set_prompt(model, PAPER)
    features = model.preprocess(["the node failed " * 50, "short"])
    assert features["input_ids"].shape[1] == 40
    assert features["input_ids"][0, -6:].tolist() == end


def test_last_token_is_the_true_last_on_either_side(tmp_path):
    model = load_backbone(str(checkpoint("llama", tmp_path / "llama")), device="cpu")
    set_prompt(model, PAPER)
    embeddings = {}
    for side in ("left", "right"):
        model.tokenizer.padding_side = side
        embeddings[side] = model.encode(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(embeddings["left"], embeddings["right"], rtol=0, atol=1e-4)
    alone = torch.stack([model.encode(text, convert_to_tensor=True) for text in TEXTS])
    torch.testing.assert_close(embeddings["right"], alone, rtol=0, atol=1e-4)


def test_a_template_stands_in_place_of_the_models_own_prompt(tiny_model):
    set_prompt(tiny_model, "passage: ")
    set_prompt(tiny_model, PAPER)
    assert tiny_model.default_prompt_name is None


@pytest.mark.parametrize("prompt", ["query: ", "query: {text}"])
def test_prefixes_are_the_libraries_own(tiny_model, prompt):
    plain = tiny_model.encode(["query: the node failed"])
    set_prompt(tiny_model, prompt)
    assert not has_template(tiny_model)
    assert tiny_model.prompts[tiny_model.default_prompt_name] == "query: "
    assert (tiny_model.encode(["the node failed"]) == plain).all()


def test_prompts_that_cannot_be_are_refused(tiny_model):
    with pytest.raises(InputError, match=r"has \{text\} more than once; write it once"):
        set_prompt(tiny_model, "{text} and {text} again")
    del tiny_model[0]
    with pytest.raises(InputError, match="needs a transformer; this model takes only a prefix"):
        set_prompt(tiny_model, PAPER)
