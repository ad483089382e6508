"""Which length suits some texts."""

from angle_train.model.length import choose_length
from angle_train.model.prompt import set_prompt


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
