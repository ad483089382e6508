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


def test_of_many_texts_a_sample_decides_and_the_longest_is_counted(tiny_model, monkeypatch):
    counted, tokenise = [], type(tiny_model.tokenizer).__call__

    def spy(self, texts, **options):
        counted.extend(texts)
        return tokenise(self, texts, **options)

    monkeypatch.setattr(type(tiny_model.tokenizer), "__call__", spy)
    texts = [f"{number} " + "a " * (number % 10) for number in range(5_000)]
    alone = choose_length(tiny_model, texts)
    counted.clear()
    choice = choose_length(tiny_model, ["b " * 49, *reversed(texts)], percentile=99)
    assert 2_000 <= len([text for text in counted if text]) <= 2_100
    assert choice.max_seq_length == alone.max_seq_length < 48  # one text in 5,000 does not decide
    assert choice.longest == 51
    assert 0 < choice.truncated < 1 / 1_000
    assert choose_length(tiny_model, ["b " * 49, *texts], percentile=100).max_seq_length == 56  # none is cut


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
